"""The table of members: what it costs that another process owns a shard, and that a shard moves.

Each round runs db_bench over four nacre-memnode processes and an etcd of this host: with a process
that owns all shards, and with one that owns none, so that it sends each Get and Put to another
process that owns them, and reads them again from the memory nodes as a follower; with memory and
requests over shm, and over tcp, and with the round trip of a network before the memory (rtt_us),
which requests between members know nothing of. Then three members, of which one serves the threads,
move shards, and one is killed. One, two and three members share the shards evenly, while threads of
one of them read and write all keys. A row shows medians over the rounds.
"""

import argparse
import contextlib
import json
import shutil
import subprocess
import time
import urllib.request
from dataclasses import dataclass
from typing import Callable, Iterator

import rounds
from free_ports import free_port
from measure import NODES, SLAB_BYTES, end, run as run_process, start
from rounds import Row, select_among
from workload import KEY_BYTES, VALUE_BYTES, CompareError

BINARY = "db_bench"  # The one that etcd is linked with.
SHARDS = 8
MEMBERS = 3
THREADS = 2  # Of the run with moves.
MOVES = 40
KEYS_PART = 4  # Of --num: a forwarded Put takes a while.
ROOM = 6  # Times what is written, for level 0 and for what compaction makes of it.
ETCD_SECONDS = 30

RTT = "rtt_us=2"
# How memory is reached, and the other members.
NETWORKS = {"shm": ("shm", "", "shm:@"), "tcp": ("tcp", "", "tcp:127.0.0.1:0"),
            "nic": ("shm", RTT, "shm:@")}
PUT, GET = "overwrite", "readrandom"
# Gets are of tables.
SETTLE = ("flush", "waitforcompaction")
BENCHMARKS = ("fillrandom", *SETTLE, PUT, *SETTLE, GET)
MOVING = ("fillrandom", *SETTLE, "moves", "failover")


@dataclass(frozen=True)
class Run:
    """One process of db_bench, and those that it starts."""
    network: str
    kind: str  # "own", "forwarded", "following", "moving" or "sharing".
    members: int = 1  # Of "sharing".

    @property
    def name(self) -> str:
        return f"{self.kind} {self.network}" + (f" {self.members}" if self.members > 1 else "")

    @property
    def benchmarks(self) -> tuple[str, ...]:
        return MOVING if self.kind == "moving" else BENCHMARKS

    def flags(self, num: int) -> tuple[str, ...]:
        address = NETWORKS[self.network][2]
        if self.kind == "moving":
            return f"--members={MEMBERS}", f"--threads={THREADS}", f"--moves={MOVES}", \
                "--readwritepercent=50", f"--writes={max(1, num // THREADS)}"
        if self.kind == "sharing":
            return f"--members={self.members}", f"--threads={THREADS}", \
                f"--writes={max(1, num // THREADS)}", f"--reads={max(1, num // THREADS)}"
        if self.kind == "own":
            return "--members=1", "--threads=1"
        follow = ("--read_from_follower",) if self.kind == "following" else ()
        return "--members=1", "--threads=1", "--member_address=none", \
            f"--other_member_address={address}", *follow


RUNS = (*(Run(network, kind) for network in NETWORKS for kind in ("own", "forwarded", "following")),
        Run("shm", "moving"), *(Run("shm", "sharing", members) for members in range(1, 4)))
Report = dict[str, dict]  # By benchmark.


def forwarded(benchmark: str, network: str, percentile: str) -> Row:
    own, other = Run(network, "own").name, Run(network, "forwarded").name
    title = {PUT: "Put", GET: "Get"}[benchmark]
    return Row(f"{title} to another member, {network}, {percentile}", "us",
               lambda reports, _: (reports[other][benchmark][f"{percentile}_us"],
                                   reports[own][benchmark][f"{percentile}_us"]),
               (other, own), peer="own shard")


def following(network: str, percentile: str) -> Row:
    own, follower = Run(network, "own").name, Run(network, "following").name
    return Row(f"Get of another member's shard as a follower, {network}, {percentile}", "us",
               lambda reports, _: (reports[follower][GET][f"{percentile}_us"],
                                   reports[own][GET][f"{percentile}_us"]),
               (follower, own), peer="own shard")


def moving(title: str, benchmark: str, figure: str, value: str) -> Row:
    name = Run("shm", "moving").name
    return Row(title, "ms",
               lambda reports, _: (reports[name][benchmark]["members"][figure][value] / 1000, None),
               (name,))


def sharing(benchmark: str, members: int) -> Row:
    alone, shared = Run("shm", "sharing").name, Run("shm", "sharing", members).name
    title = {PUT: "Put", GET: "Get"}[benchmark]
    return Row(f"{title}, {THREADS} threads of one of {members} members", "us",
               lambda reports, _: (THREADS * 1e6 / reports[shared][benchmark]["ops_per_sec"],
                                   THREADS * 1e6 / reports[alone][benchmark]["ops_per_sec"]),
               (shared, alone), peer="the only member")


ROWS = (
    *(forwarded(benchmark, network, percentile) for network in NETWORKS
      for benchmark in (GET, PUT) for percentile in ("p50", "p99")),
    *(following(network, percentile) for network in NETWORKS for percentile in ("p50", "p99")),
    *(sharing(benchmark, members) for benchmark in (GET, PUT) for members in (2, 3)),
    *(moving(f"longest operation in a move, {value}", "moves", "longest_operation", f"{value}_us")
      for value in ("p50", "p99", "max")),
    moving("a move, p50", "moves", "move", "p50_us"),
    *(moving(f"first Get of a shard of a killed member, {value}", "failover", "failover",
             f"{value}_us") for value in ("p50", "max")))
TABLE = rounds.Table("members", "members", ROWS, RUNS, (), "", "")


class Bench(rounds.Bench):
    bench_binary = BINARY

    def run(self, what: Run, number: int) -> Report:
        path = self.path(what, number, "json")
        path.unlink(missing_ok=True)
        title = f"{what.name}, round {number}"
        num = keys(self.num)
        size = (ROOM * num * (KEY_BYTES + VALUE_BYTES) // NODES // SLAB_BYTES + 16) * SLAB_BYTES
        with self.nodes_over(what.network, size) as uri, self.etcd() as endpoint:
            run_process(
                [self.binaries / BINARY, "--engine=nacre", f"--pool={uri}",
                 f"--coordinator=etcd:{endpoint}", f"--sharded={SHARDS}",
                 f"--key_size={KEY_BYTES}", f"--value_size={VALUE_BYTES}", f"--num={num}",
                 f"--seed={1000 * number}", "--benchmarks=" + ",".join(what.benchmarks),
                 *what.flags(num), f"--json={path}"], title)
        return read_report(path, what, title)

    def micro(self, name: str, _number: int) -> float:
        raise CompareError(f"no row is of the microbenchmark {name}")

    @contextlib.contextmanager
    def nodes_over(self, network: str, size: int) -> Iterator[str]:
        """Fresh memory nodes; gives the URI of their pool."""
        transport, parameters, _ = NETWORKS[network]
        if transport == "shm":
            with self.pool(NODES, size, parameters) as (uri, _):
                yield uri
            return
        addresses = [f"127.0.0.1:{free_port()}" for _ in range(NODES)]
        with self.nodes([f"{transport}:{each}" for each in addresses], str(size), self.binaries):
            yield f"{transport}:" + ",".join(addresses)

    @contextlib.contextmanager
    def etcd(self) -> Iterator[str]:
        """A fresh etcd; gives its endpoint."""
        folder = self.scratch / "etcd"
        shutil.rmtree(folder, ignore_errors=True)
        endpoint, peer = f"127.0.0.1:{free_port()}", f"http://127.0.0.1:{free_port()}"
        try:
            process = start(
                ["etcd", "--name=only", f"--data-dir={folder}",
                 f"--listen-client-urls=http://{endpoint}",
                 f"--advertise-client-urls=http://{endpoint}", f"--listen-peer-urls={peer}",
                 f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=only={peer}",
                 "--logger=zap", f"--log-outputs={self.scratch / 'etcd.log'}"],
                stderr=subprocess.DEVNULL)
        except OSError as error:
            raise CompareError(f"etcd: {error.strerror} (Debian: etcd-server)") from error
        try:
            await_health(endpoint)
            yield endpoint
        finally:
            end(process)
            shutil.rmtree(folder, ignore_errors=True)


def keys(num: int) -> int:
    return max(SHARDS, num // KEYS_PART)


def await_health(endpoint: str) -> None:
    deadline = time.monotonic() + ETCD_SECONDS
    while True:
        try:
            with urllib.request.urlopen(f"http://{endpoint}/health", timeout=1) as answer:
                if json.load(answer).get("health") == "true":
                    return
        except (OSError, ValueError) as error:
            if time.monotonic() > deadline:
                raise CompareError(f"etcd does not answer at {endpoint}: {error}") from error
        time.sleep(0.05)


def read_report(path, what: Run, title: str) -> Report:
    try:
        steps = json.loads(path.read_text())["benchmarks"]
        if [step["name"] for step in steps] != list(what.benchmarks):
            raise CompareError(f"{title}: {path} tells of other benchmarks than were run")
        return {step["name"]: step for step in steps}
    except (OSError, ValueError, KeyError) as error:
        raise CompareError(f"{title}: {path}: {error}") from error


def heading(options: argparse.Namespace) -> str:
    return (f"{keys(options.num):,} keys of {KEY_BYTES} B with {VALUE_BYTES} B values in {SHARDS} "
            f"shards, logged, no copies, {NODES} `nacre-memnode` processes and an etcd, all of "
            "this machine. Gets, which read tables, and Puts are those of one thread, in a process "
            "that owns no shards, against a process that owns them all. Memory and members are "
            f"reached over shm or tcp; nic: memory with `?{RTT}`, members over shm without it, as "
            f"a member's address takes no parameters. {MOVES} moves among {MEMBERS} members while "
            f"{THREADS} threads of one of them read and write. A member that does not lead is "
            f"killed. Of 2 or 3 members that share the shards, each owns as many; the time of an "
            f"operation is that of one of {THREADS} threads, on all processors of the machine. "
            f"Medians of {options.rounds}.\n")


def run(options: argparse.Namespace, progress_of: Callable) -> None:
    """`progress_of`: makes the line that says how far it is, of the number of runs."""
    TABLE.run(options, select_among(ROWS, options.only), Bench, progress_of, heading(options), None)
