#!/usr/bin/env python3
"""In the guest: the verbs transport beside perftest's programs, Get and MultiGet beside the raw
read, and the benchmarks that dLSM has, in turns in one boot. The processor is emulated: only ratios
mean anything. dLSM itself does not run here: its figures are constants, measured once on another
machine and another day, so a ratio to them tells an order of magnitude and no more.
`./run vm python3 -B tests/rdma_vm/measure.py build/release/bin [--rounds N]`
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HOST = "10.77.0.1"
NODES = 4
# Constants of another machine and another day: dLSM's own db_bench and server, with tables that are
# byte-addressable and no log, in such a guest: one thread, 500,000 keys of 20 B, values of 400 B.
# Operations a second; 5 GB were pinned before the first key.
DLSM = {"fillrandom": 43e3, "readrandom": 14e3, "readseq": 133e3, "readrandomwriterandom": 20e3}
RECORD_BYTES = 430  # What a Get of such a key reads.


class Table:
    """Figures by name, one a round."""

    def __init__(self) -> None:
        self.figures: dict[str, list[float]] = {}

    def add(self, name: str, value: float) -> None:
        self.figures.setdefault(name, []).append(value)
        print(f"  {name:36} {value:12,.1f}", flush=True)

    def median(self, name: str) -> float:
        return statistics.median(self.figures[name])

    def ratio(self, what: str, name: str, reference: float, target: str) -> None:
        value = self.median(name)
        print(f"{what:44} {value:12,.1f} {reference:12,.1f} {value / reference:7.2f}  {target}")


class Programs:
    """Ours and perftest's, each against a far side in this guest."""

    def __init__(self, binaries: pathlib.Path) -> None:
        self.binaries = binaries
        self.servers: list[subprocess.Popen] = []
        self.port = 20000

    def serve(self, name: str, *arguments: str) -> subprocess.Popen:
        server = subprocess.Popen([self.binaries / name, *arguments], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
        self.servers.append(server)
        return server

    def stop(self) -> None:
        for server in self.servers:
            server.terminate()
        for server in self.servers:
            server.wait(timeout=60)
        self.servers = []

    def output(self, name: str, *arguments: str, **environment: str) -> str:
        return subprocess.run([self.binaries / name, *arguments], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, timeout=300, check=True,
                              env=os.environ | environment).stdout

    def perf(self, operation: str, *arguments: str) -> dict:
        return json.loads(self.output("nacre-perf", operation, f"verbs:{HOST}:7900", "--json",
                                      *arguments))

    def perftest(self, program: str, size: int, iterations: int, column: int) -> float:
        """A figure of the line of results."""
        self.port += 1
        command = [program, "-d", "rxe0", "-s", str(size), "-n", str(iterations), "-p",
                   str(self.port)]
        far = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(1)
        near = subprocess.run([*command, HOST], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              text=True, timeout=120, check=True)
        far.wait(timeout=60)
        lines = [line.split() for line in near.stdout.splitlines()]
        return float([line for line in lines if line[:1] == [str(size)]][-1][column])

    def write_latency(self) -> float:
        report = json.loads(self.output(
            "micro_rdma", "--benchmark_filter=BM_VerbsWriteOneWay/64/", "--benchmark_format=json",
            NACRE_TEST_VERBS_HOST=HOST))
        return report["benchmarks"][0]["p50_us"]

    def db_bench(self, pool: str, benchmarks: str, *arguments: str) -> dict[str, dict]:
        with tempfile.NamedTemporaryFile(suffix=".json") as result:
            self.output("db_bench", "--engine=nacre", f"--pool={pool}", "--key_size=20",
                        "--value_size=400", f"--benchmarks={benchmarks}",
                        f"--json={result.name}", *arguments)
            found = json.load(open(result.name, encoding="utf-8"))["benchmarks"]
            return {benchmark["name"]: benchmark for benchmark in found}


def start_nodes(programs: Programs) -> tuple[str, list[subprocess.Popen]]:
    ports = [7001 + i for i in range(NODES)]
    nodes = [programs.serve("nacre-memnode", f"--listen=verbs:{HOST}:{port}", "--size=256MiB")
             for port in ports]
    time.sleep(5)
    return "verbs:" + ",".join(f"{HOST}:{port}" for port in ports), nodes


def memory_mib(nodes: list[subprocess.Popen]) -> float:
    resident = 0
    for node in nodes:
        for line in pathlib.Path(f"/proc/{node.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                resident += int(line.split()[1])
    return resident / 1024


def measure_raw(programs: Programs, table: Table) -> None:
    table.add("ib_read_lat 512, us", programs.perftest("ib_read_lat", 512, 10000, 4))
    table.add("read 512, us", programs.perf("read", "--size=512")["p50_us"])
    table.add("ib_write_lat 64, us", programs.perftest("ib_write_lat", 64, 10000, 4))
    table.add("write 64, us", programs.write_latency())
    table.add("ib_write_bw 65536, MiB/s", programs.perftest("ib_write_bw", 65536, 500, 3))
    megabytes = programs.perf("write", "--size=65536", "--depth=128")["mb_per_sec"]
    table.add("write 65536, MiB/s", megabytes * 1e6 / 2**20)


def measure_reads(programs: Programs, pool: str, table: Table) -> None:
    size = f"--size={RECORD_BYTES}"
    table.add("raw read, us", programs.perf("read", size)["p50_us"])
    table.add("raw read, ops/s", programs.perf("read", size)["ops_per_sec"])
    table.add("raw read 32 at once, ops/s",
              programs.perf("read", size, "--depth=32", "--batch=32")["ops_per_sec"])
    found = programs.db_bench(pool, "fillseq,flush,waitforcompaction,readrandom,multireadrandom",
                              "--num=100000", "--reads=50000", "--multiread_batch=32")
    for name in ("readrandom", "multireadrandom"):
        if found[name]["found"] != 50000:
            sys.exit(f"{name} found {found[name]['found']} of 50000")
    table.add("Get, us", found["readrandom"]["p50_us"])
    table.add("Get, ops/s", found["readrandom"]["ops_per_sec"])
    table.add("MultiGet 32, ops/s", found["multireadrandom"]["ops_per_sec"])


def measure_dlsm(programs: Programs, pool: str, table: Table) -> None:
    found = programs.db_bench(pool, ",".join(DLSM), "--num=500000", "--reads=500000",
                              "--readwrites=500000", "--readwritepercent=50", "--seed=1")
    for name in DLSM:
        table.add(f"{name}, ops/s", found[name]["ops_per_sec"])
    table.add("readrandom found", found["readrandom"]["found"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binaries", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    programs = Programs(arguments.binaries.resolve())
    table = Table()
    try:
        programs.serve("nacre-perf", "serve", f"verbs:{HOST}:7900", "--region=64MiB")
        pool, nodes = start_nodes(programs)
        before = memory_mib(nodes)
        for number in range(1, arguments.rounds + 1):
            print(f"round {number} of {arguments.rounds}", flush=True)
            measure_raw(programs, table)
            measure_reads(programs, pool, table)
            measure_dlsm(programs, pool, table)
        after = memory_mib(nodes)
    finally:
        programs.stop()

    print(f"\n{'medians':44} {'nacre':>12} {'reference':>12} {'ratio':>7}  target")
    for what, name, peer, target in (
            ("read of 512 B, us, against ib_read_lat", "read 512, us", "ib_read_lat 512, us",
             "<= 1.15"),
            ("write of 64 B, us, against ib_write_lat", "write 64, us", "ib_write_lat 64, us",
             "<= 1.15"),
            ("write of 64 KiB, MiB/s, against ib_write_bw", "write 65536, MiB/s",
             "ib_write_bw 65536, MiB/s", ">= 0.9"),
            ("Get, us, against the raw read", "Get, us", "raw read, us", "<= 1.25"),
            ("MultiGet 32 against Get, ops/s", "MultiGet 32, ops/s", "Get, ops/s", ">= 4"),
            ("32 raw reads at once against one, ops/s", "raw read 32 at once, ops/s",
             "raw read, ops/s", "")):
        table.ratio(what, name, table.median(peer), target)
    print("dLSM's figures are constants of another machine and another day:")
    for name, dlsm in DLSM.items():
        table.ratio(f"{name}, ops/s, against dLSM", f"{name}, ops/s", dlsm,
                    ">= 4" if name == "readseq" else ">= 2")
    print(f"resident on {NODES} nodes: {before:,.0f} MiB before the first key, {after:,.0f} after")


if __name__ == "__main__":
    main()
