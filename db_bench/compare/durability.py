"""The table of durability: what the log, the manifest and a takeover cost.

Each round runs, in turn, takeovers (a process fills a database over four nacre-memnode processes of
this host and is killed with what was not flushed yet in its log; another one opens the database and
compares every record that was acknowledged), fills with and without a log, RocksDB with its own,
and microbenchmarks. A row shows medians over the rounds.
"""

import argparse
import json
import os
import pathlib
import select
import shutil
import subprocess
import time
from dataclasses import dataclass
from typing import Callable

import machine
import rounds
from measure import (DB_BENCH, NODES, PROCESS_SECONDS_MAX, SLAB_BYTES, end, run as run_process,
                     start)
from rounds import RATIO_AT_LEAST, RATIO_AT_MOST, Row, select_among
from workload import ENGINE_FLAGS, KEY_BYTES, PROFILES, VALUE_BYTES, CompareError

LARGE = 10  # Times as many keys, of --large.
TAIL_BYTES = 64 << 20
PAIR, COPIES = "rep(2)", "rep(3)"
NETWORK = "rtt_us=2"


@dataclass(frozen=True)
class Takeover:
    """An owner that is killed, and the next one."""
    name: str
    keys: int = 1  # Times --num.
    node_too: bool = False  # As many nodes are killed with the owner as may be lost.


@dataclass(frozen=True)
class Fill:
    """A process that writes --num keys in random order; what it measures is its last step."""
    name: str
    flags: tuple[str, ...]
    network: str = ""
    nodes: int = NODES  # 0: an engine that needs none.
    steps: tuple[str, ...] = ("fillrandom",)
    keys: int = 1  # Times --num.
    before: tuple[str, ...] = ()  # Steps of a process before it, without `last_flags`.
    last_flags: tuple[str, ...] = ()


OWNER, WITH_NODE, LARGER = (Takeover("takeover"), Takeover("takeover, a node lost", node_too=True),
                            Takeover("takeover of more keys", keys=LARGE))
NACRE_FLAGS = ("--engine=nacre", f"--redundancy={COPIES}")
LOGGED = Fill("log", NACRE_FLAGS)
UNLOGGED = Fill("no log", NACRE_FLAGS + ("--disable_wal=true",))
DISTANT = Fill(f"log, {NETWORK}", NACRE_FLAGS, network=NETWORK)
RAW_WRITE = Fill(f"raw write, {NETWORK}", NACRE_FLAGS, network=NETWORK, steps=("rawwrite",))
# A database of a thousand tables of 64 MiB that takes 192 MiB a second, each size a 64th of that.
MANY_TABLES = Fill(
    "many tables", NACRE_FLAGS + ("--write_buffer_size=1048576", "--target_file_size_base=1048576",
                                  "--max_bytes_for_level_base=4194304"),
    steps=("overwrite",), keys=3, before=("fillseq", "waitforcompaction"),
    last_flags=("--use_existing_db", "--duration=15", "--benchmark_write_rate_limit=3145728"))
# To the end of the last flush.
NEAR_DATA, HERE = (Fill(f"flush {where}", ("--engine=nacre", "--redundancy=rs(4,2)",
                                           f"--near_data_flush={option}"),
                        nodes=6, steps=("fillrandom", "flush", "waitforcompaction"))
                   for where, option in (("near the data", "on"), ("here", "off")))
ROCKSDB = tuple(Fill(profile, ENGINE_FLAGS[profile], nodes=0) for profile in PROFILES)
RUNS = (OWNER, WITH_NODE, LARGER, LOGGED, UNLOGGED, DISTANT, RAW_WRITE, MANY_TABLES, NEAR_DATA,
        HERE) + ROCKSDB
RECOVERY, IMAGE_UPDATE = "manifest recovery alone", "image update"
MICROBENCHMARKS = {RECOVERY: "BM_ManifestRecovery/256/real_time",
                   IMAGE_UPDATE: "BM_ManifestImageUpdate/10/real_time"}
NANOS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}


@dataclass(frozen=True)
class Measured:
    """What one process of db_bench said of its last benchmark, and what its engine had counted
    before and after it; and of all its benchmarks."""
    steps: list[dict]
    step: dict
    durability: dict
    before: dict

    def rate(self) -> float:
        return self.step["ops_per_sec"]

    def sent_per_user_byte(self) -> float:
        """By the compute node; what memory nodes send one another is not."""
        sent = sum(step["network"]["compute_written"] for step in self.steps)
        return sent / (self.steps[0]["ops"] * (KEY_BYTES + VALUE_BYTES))

    def cpu_us_per_put(self) -> float:
        """Of all threads of the compute node."""
        cpu = sum(step["process_cpu_seconds"] for step in self.steps)
        return cpu * 1e6 / self.steps[0]["ops"]

    def takeover_ms(self, what: str) -> float:
        return self.step["takeover"][f"first_{what}_us"] / 1000

    def image_update_share(self) -> float:
        """Percent of the image that an update of it sends."""
        sent, updates = (self.durability[name] - self.before.get(name, 0)
                             for name in ("manifest.delta-bytes", "manifest.image-updates"))
        return 100 * sent / max(1, updates) / self.durability["manifest.image-bytes"]


Reports = dict[str, Measured]
Micros = dict[str, dict]  # By name of MICROBENCHMARKS; with "nanos", what one iteration takes.


def takeover_row(what: str, run: Takeover, target: float) -> Row:
    suffix = ", one of the nodes killed too" if run.node_too else ""
    return Row(f"owner killed: Open to the first {what}{suffix}", "ms",
               lambda reports, _: (reports[run.name].takeover_ms(what.lower()), None),
               (run.name,), target)


ROWS = (
    takeover_row("Get", OWNER, 60),
    takeover_row("Put", OWNER, 120),
    takeover_row("Get", WITH_NODE, 60),
    takeover_row("Put", WITH_NODE, 120),
    Row(f"{LARGE} times the keys: Open to the first Get", "ms",
        lambda reports, _: (reports[LARGER.name].takeover_ms("get"),
                            reports[OWNER.name].takeover_ms("get")),
        (LARGER.name, OWNER.name), 1.5, RATIO_AT_MOST, "a tenth of them"),
    Row("manifest recovery alone, 10,000 tables", "ms",
        lambda _, micros: (micros[RECOVERY]["nanos"] / 1e6, None), (RECOVERY,), 20),
    Row("an image update's bytes of the image's, 10 edits, 10,000 tables", "%",
        lambda _, micros: (100 * micros[IMAGE_UPDATE]["delta_bytes"]
                           / micros[IMAGE_UPDATE]["image_bytes"], None), (IMAGE_UPDATE,), 2),
    Row("the same in overwrite, a thousand tables", "%",
        lambda reports, _: (reports[MANY_TABLES.name].image_update_share(), None),
        (MANY_TABLES.name,), 2),
    Row("the same in fillrandom, all of it written in seconds", "%",
        lambda reports, _: (reports[LOGGED.name].image_update_share(), None), (LOGGED.name,), 2),
    Row("fillrandom with a log of 3 copies", "ops/s",
        lambda reports, _: (reports[LOGGED.name].rate(), reports[UNLOGGED.name].rate()),
        (LOGGED.name, UNLOGGED.name), 0.6, RATIO_AT_LEAST, "no log"),
    Row(f"Put in the log, {NETWORK}, p50", "us",
        lambda reports, _: (reports[DISTANT.name].step["p50_us"],
                                 reports[RAW_WRITE.name].step["p50_us"]),
        (DISTANT.name, RAW_WRITE.name), 1.3, RATIO_AT_MOST, "raw write to 3 copies"),
    Row("log and rs(4,2): bytes that the compute node sends for a user byte, flushes near the data",
        "B", lambda reports, _: (reports[NEAR_DATA.name].sent_per_user_byte(),
                                 reports[HERE.name].sent_per_user_byte()),
        (NEAR_DATA.name, HERE.name), 0.7, RATIO_AT_MOST, "flushes here", exact=True),
    Row("processor time of the compute node for a Put, the same", "us",
        lambda reports, _: (reports[NEAR_DATA.name].cpu_us_per_put(),
                            reports[HERE.name].cpu_us_per_put()),
        (NEAR_DATA.name, HERE.name), 0.85, RATIO_AT_MOST, "flushes here", exact=True),
    Row("fillrandom, RocksDB with its log too", "ops/s",
        lambda reports, _: (reports[LOGGED.name].rate(),
                            max(reports[run.name].rate() for run in ROCKSDB)),
        (LOGGED.name, *(run.name for run in ROCKSDB)), 2.5, RATIO_AT_LEAST, "RocksDB, tmpfs"),
)
TABLE = rounds.Table("durability", "nacre", ROWS, RUNS, tuple(MICROBENCHMARKS), "takeover.png",
                     "What a takeover does, step by step")


def node_bytes(nodes: int, keys: int, copies: int) -> int:
    """Room for what compaction makes anew, too; keys that came in order it does not."""
    return ((copies * keys * (KEY_BYTES + VALUE_BYTES) + (5 << 30)) // nodes // SLAB_BYTES
            + 1) * SLAB_BYTES


class Bench(rounds.Bench):
    micro_binary = "micro_db"

    def command(self, num: int, number: int, *flags: str) -> list:
        return [self.binaries / DB_BENCH, f"--num={num}", f"--key_size={KEY_BYTES}",
                f"--value_size={VALUE_BYTES}", f"--seed={1000 * number}",
                "--max_background_jobs=2", *flags]

    def run(self, what: Takeover | Fill, number: int) -> Measured:
        path = self.path(what, number, "json")
        path.unlink(missing_ok=True)
        title = f"{what.name}, round {number}"
        if isinstance(what, Takeover):
            self.run_takeover(what, number, path, title)
        else:
            self.run_fill(what, number, path, title)
        try:
            report = json.loads(path.read_text())
            *earlier, last = report["benchmarks"]
            return Measured([*earlier, last], last, last["durability"],
                            earlier[-1]["durability"] if earlier else {})
        except (OSError, ValueError, KeyError, IndexError) as error:
            raise CompareError(f"{title}: {path}: {error}") from error

    def run_fill(self, what: Fill, number: int, path: pathlib.Path, title: str) -> None:
        num = self.num * what.keys
        command = self.command(num, number, *what.flags, "--benchmarks=" + ",".join(what.steps),
                               f"--json={path}")
        if what.nodes == 0:
            folder = self.scratch / "rocksdb"
            try:
                run_process([*command, f"--db={folder}"], title)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            return
        # Everything is written once more by compactions.
        with self.pool(what.nodes, node_bytes(what.nodes, num, 6), what.network) as (uri, _):
            if what.before:
                run_process([*self.command(num, number, *what.flags, f"--pool={uri}"),
                             "--benchmarks=" + ",".join(what.before)], title)
            run_process([*command, *what.last_flags, f"--pool={uri}"], title)

    def run_takeover(self, what: Takeover, number: int, path: pathlib.Path, title: str) -> None:
        num = self.num * what.keys
        with self.pool(NODES, node_bytes(NODES, num, 2), "") as (uri, nodes):
            # The tail is not flushed before the owner is killed.
            command = self.command(
                num, number, "--engine=nacre", f"--redundancy={PAIR}", f"--pool={uri}",
                f"--tail_bytes={TAIL_BYTES}", f"--write_buffer_size={2 * TAIL_BYTES}")
            owner = start([*command, "--benchmarks=fillseq,flush,waitforcompaction,tail,awaitkill"],
                          stderr=subprocess.STDOUT)
            try:
                await_tail(owner, title)
                owner.kill()
                if what.node_too:
                    nodes[number % NODES].kill()
                    nodes[number % NODES].wait()
                owner.wait()
                # All that was acknowledged is there, or this fails.
                run_process([*command, "--use_existing_db", "--benchmarks=takeover",
                             f"--json={path}"], title)
            finally:
                end(owner)

    def micro(self, name: str, number: int) -> dict:
        """One of MICROBENCHMARKS."""
        result = self.micro_result(MICROBENCHMARKS[name], number)
        return result | {"nanos": result["real_time"] * NANOS[result["time_unit"]]}


def await_tail(owner: subprocess.Popen, title: str) -> None:
    """Until it says that what is to be found by the next owner is acknowledged."""
    deadline = time.monotonic() + PROCESS_SECONDS_MAX
    said = b""
    while b"\nready: " not in said:
        readable, _, _ = select.select([owner.stdout], [], [], max(0, deadline - time.monotonic()))
        more = os.read(owner.stdout.fileno(), 1 << 16) if readable else b""
        if not more:
            lines = said.decode(errors="replace").strip().splitlines()
            raise CompareError(f"{title}: {lines[-1] if lines else 'the owner said nothing'}")
        said += more


def heading(options: argparse.Namespace) -> str:
    return (f"{options.num:,} keys of {KEY_BYTES} B with {VALUE_BYTES} B values, one thread; "
            f"{NODES} `nacre-memnode` processes on shm, all of this machine. Takeovers: `{PAIR}`, "
            f"the owner is killed (-9) with {TAIL_BYTES >> 20} MiB of keys and values in its log "
            "and in no table; a new process connects, opens, and has every record of them. Fills: "
            f"`{COPIES}`; RocksDB with its log on tmpfs, in the better of two profiles. Overwrite: "
            "the log and the manifest of a database of 64 GiB in tables of 64 MiB that takes 192 "
            "MiB a second, with a 64th of each of these. "
            f"Medians of {options.rounds}.\n")


def check_memory(options: argparse.Namespace) -> None:
    needed = NODES * node_bytes(NODES, LARGE * options.num, 2) + (3 << 30)
    free = int((machine.first_value("/proc/meminfo", "MemAvailable") or "0").split()[0]) << 10
    if options.large and free < needed:
        raise CompareError(f"--large needs {needed / (1 << 30):.0f} GiB of memory, "
                           f"{free / (1 << 30):.0f} are free")


def takeovers_of(bench: Bench, number: int) -> dict[str, dict]:
    """Of a round, what its takeovers measured, by name."""
    paths = {what.name: bench.path(what, number, "json")
             for what in RUNS if isinstance(what, Takeover)}
    return {name: json.loads(path.read_text())["benchmarks"][-1]["takeover"]
            for name, path in paths.items() if path.exists()}


def run(options: argparse.Namespace, progress_of: Callable) -> None:
    """`progress_of`: makes the line that says how far it is, of the number of runs."""
    rows = [row for row in select_among(ROWS, options.only)
            if options.large or LARGER.name not in row.needs]
    check_memory(options)

    def draw(bench: Bench, about: str, file: str) -> None:
        import plot  # Takes a while to load.
        plot.write_takeovers(takeovers_of(bench, options.rounds), about, file)

    plotted = not options.no_plot and OWNER in TABLE.needed(rows)
    TABLE.run(options, rows, Bench, progress_of, heading(options), draw if plotted else None)
