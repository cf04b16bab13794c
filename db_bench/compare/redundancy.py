"""The table of erasure coding: what it stores, sends and costs against copies and against none.

Each round runs Nacre over six nacre-memnode processes of this host under each redundancy, and over
seven where one is rebuilt; which run is first rotates. A row shows medians over the rounds.
"""

import argparse
import json
from dataclasses import dataclass
from typing import Callable, Optional

import repair
import rounds
from measure import DB_BENCH, SLAB_BYTES, run as run_process
from rounds import OWN_AT_MOST, RATIO_AT_LEAST, Row, select_among
from workload import KEY_BYTES, VALUE_BYTES, CompareError

NODES, NODES_OF_REBUILDS = 6, 7
LARGE_VALUE_BYTES = 1000
CODE, COPIES, NONE = "rs(4,2)", "rep(3)", "none"
TABLES_ONLY = ("--disable_wal=true",)  # The log is copied whatever tables are coded with.
NETWORK = "rtt_us=5&gbps=4"  # The network of each port: the compute node's and each memory node's.
READS_PER_KEY = 3  # A second or two: shorter runs differ by a sixth from one another.


@dataclass(frozen=True)
class Run:
    """One process of db_bench and its nodes."""
    chain: str
    redundancy: str
    steps: tuple[str, ...]  # Benchmarks, in order.
    value_bytes: int = VALUE_BYTES
    network: str = ""
    nodes: int = NODES
    keys: float = 1  # Times --num.
    threads: int = 1
    flags: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.chain} {self.redundancy}"

    def node_bytes(self, num: int) -> int:
        """Room for all copies, for those that compaction makes of them, and for level 0."""
        copies = 3 if self.redundancy == COPIES else 2
        written = int(num * self.keys) * self.threads * (KEY_BYTES + self.value_bytes)
        return ((2 * copies * written + (3 << 30)) // self.nodes // SLAB_BYTES + 1) * SLAB_BYTES


@dataclass
class Report:
    """What a run measured."""
    steps: list[dict]
    space: dict
    sent_bytes: int  # By the compute node in the whole run, compactions by memory nodes apart.
    num: int
    value_bytes: int
    timeline: Optional[repair.Timeline] = None  # Set for runs in which a node is killed.

    def rate(self, number: int) -> float:
        return self.steps[number]["ops_per_sec"]

    def stored_per_user(self) -> float:
        return self.space["stored_bytes"] / self.space["user_bytes"]

    def sent_per_user(self) -> float:
        return self.sent_bytes / (self.num * (KEY_BYTES + self.value_bytes))

    def encode_rate(self) -> float:
        """GB of data a second of a processor."""
        data = sum(step["encoding"]["data_bytes"] for step in self.steps)
        return data / sum(step["encoding"]["cpu_seconds"] for step in self.steps) / 1e9

    def repaired_bytes(self) -> float:
        return self.steps[-1]["mb_per_sec"] * self.steps[-1]["seconds"] * (1 << 20)


FILL, READ, DEGRADED = 0, 3, 5  # Steps of the chain "random".
MIXED = "readrandomwriterandom"


def kill_run(chain: str, keys: float, threads: int) -> Run:
    """A node is killed while clients read and write. Every thread writes every key first."""
    return Run(chain, CODE, ("fillseq", "flush", "waitforcompaction", MIXED),
               nodes=NODES_OF_REBUILDS, keys=keys, threads=threads, flags=repair.FLAGS)


KILL_WITH_ONE, KILL_WITH_EIGHT = kill_run("kill 1", 4, 1), kill_run("kill 8", 0.5, 8)
REBUILD = Run("rebuild", CODE, ("fillrandom", "waitforcompaction", "compact", "kill",
                                "waitforrepair"),
              nodes=NODES_OF_REBUILDS, keys=2,
              flags=("--repair_bytes_per_second=0", *TABLES_ONLY))
RUNS = (
    Run("random", NONE, ("fillrandom", "waitforcompaction", "compact", "readrandom"),
        flags=TABLES_ONLY),
    Run("random", COPIES, ("fillrandom", "waitforcompaction", "compact"), flags=TABLES_ONLY),
    Run("random", CODE, ("fillrandom", "waitforcompaction", "compact", "readrandom", "kill",
                         "readrandom"), flags=TABLES_ONLY),
    *(Run(f"sequence {size}", redundancy, ("fillseq", "flush", "compact"), value_bytes=size,
          flags=TABLES_ONLY)
      for size in (VALUE_BYTES, LARGE_VALUE_BYTES) for redundancy in (COPIES, CODE)),
    *(Run("network", redundancy, ("fillrandom",), network=NETWORK, flags=TABLES_ONLY)
      for redundancy in (COPIES, CODE)),
    REBUILD, KILL_WITH_EIGHT, KILL_WITH_ONE,
)
ISA_L, MEMORY_COPY = "ISA-L alone", "memory copy"
MICROBENCHMARKS = {ISA_L: "BM_IsalEncodeUpdate", MEMORY_COPY: "BM_MemoryCopy"}
Reports = dict[str, Report]
Micros = dict[str, float]  # GB/s of MICROBENCHMARKS.
Measure = Callable[[Reports, Micros], tuple[float, float]]


def bounded(name: str, unit: str, measure: Measure, peer: str, needs: tuple[str, ...],
            target: float) -> Row:
    """Its own number is at most `target`."""
    return Row(name, unit, measure, needs, target, OWN_AT_MOST, peer, exact=True)


def compared(name: str, unit: str, measure: Measure, peer: str, needs: tuple[str, ...],
             target: Optional[float] = None) -> Row:
    """The ratio to the peer's is at least `target`."""
    return Row(name, unit, measure, needs, target, RATIO_AT_LEAST, peer)


def stored(chain: str) -> Measure:
    return lambda reports, _: (reports[f"{chain} {CODE}"].stored_per_user(),
                               reports[f"{chain} {COPIES}"].stored_per_user())


def sent(size: int) -> Measure:
    return lambda reports, _: tuple(
        reports[f"sequence {size} {redundancy}"].sent_per_user() for redundancy in (CODE, COPIES))


def rebuilt(seconds: str) -> Measure:
    """GB of fragments for each of those seconds."""
    return lambda reports, micros: (
        reports[REBUILD.name].repaired_bytes() / reports[REBUILD.name].steps[-1][seconds] / 1e9,
        micros[MEMORY_COPY])


def stall(what: Run) -> Measure:
    def measure(reports: Reports, _: Micros) -> tuple[float, float]:
        timeline = reports[what.name].timeline
        return repair.longest_ms(timeline.after), repair.longest_ms(timeline.before)
    return measure


def foreground(reports: Reports, _: Micros) -> tuple[float, float]:
    timeline = reports[KILL_WITH_ONE.name].timeline
    return repair.rate(timeline.rebuild()), repair.rate(timeline.before)


def both(chain: str, *redundancies: str) -> tuple[str, ...]:
    return tuple(f"{chain} {redundancy}" for redundancy in redundancies)


BEFORE_KILL = "before the kill"
ROWS = (
    bounded("stored bytes per user byte after compaction", "B", stored("random"), COPIES,
        both("random", CODE, COPIES), 1.56),
    bounded(f"stored bytes per user byte, values of {LARGE_VALUE_BYTES} B", "B",
        stored(f"sequence {LARGE_VALUE_BYTES}"), COPIES,
        both(f"sequence {LARGE_VALUE_BYTES}", CODE, COPIES), 1.56),
    bounded("bytes a flush sends per user byte", "B", sent(VALUE_BYTES), COPIES,
        both(f"sequence {VALUE_BYTES}", CODE, COPIES), 1.53),
    bounded(f"bytes a flush sends per user byte, values of {LARGE_VALUE_BYTES} B", "B",
        sent(LARGE_VALUE_BYTES), COPIES, both(f"sequence {LARGE_VALUE_BYTES}", CODE, COPIES),
        1.53),
    compared("fillrandom", "ops/s", lambda reports, _: (reports[f"random {CODE}"].rate(FILL),
                                                   reports[f"random {NONE}"].rate(FILL)),
        NONE, both("random", CODE, NONE), 0.85),
    compared("fillrandom, 4 Gbit/s a port", "ops/s",
        lambda reports, _: (reports[f"network {CODE}"].rate(FILL),
                            reports[f"network {COPIES}"].rate(FILL)),
        COPIES, both("network", CODE, COPIES), 1.7),
    compared("readrandom", "ops/s", lambda reports, _: (reports[f"random {CODE}"].rate(READ),
                                                   reports[f"random {NONE}"].rate(READ)),
        NONE, both("random", CODE, NONE), 0.97),
    compared("encoding in a flush, per core", "GB/s",
        lambda reports, micros: (reports[f"random {CODE}"].encode_rate(), micros[ISA_L]), ISA_L,
        (f"random {CODE}", ISA_L), 0.8),
    compared("readrandom, one of six nodes lost", "ops/s",
        lambda reports, _: (reports[f"random {CODE}"].rate(DEGRADED),
                            reports[f"random {CODE}"].rate(READ)),
        "all six", both("random", CODE), 0.70),
    compared("rebuild of one of seven nodes, per core", "GB/s", rebuilt("cpu_seconds"), MEMORY_COPY,
        (REBUILD.name, MEMORY_COPY), 0.15),
    compared("rebuild of one of seven nodes, by the clock", "GB/s", rebuilt("seconds"), MEMORY_COPY,
        (REBUILD.name, MEMORY_COPY)),
    bounded("longest operation after a node is killed, 8 clients", "ms", stall(KILL_WITH_EIGHT),
        BEFORE_KILL, (KILL_WITH_EIGHT.name,), 10),
    bounded("longest operation after a node is killed, 1 client", "ms", stall(KILL_WITH_ONE),
        BEFORE_KILL, (KILL_WITH_ONE.name,), 10),
    compared(f"{MIXED} during a rebuild at the default limit", "ops/s", foreground, BEFORE_KILL,
        (KILL_WITH_ONE.name,), 0.75),
)
TABLE = rounds.Table("redundancy", CODE, ROWS, RUNS, tuple(MICROBENCHMARKS), "rebuild.png",
                     "Throughput and latency over time while a node is killed and rebuilt")


class Bench(rounds.Bench):
    micro_binary = "micro_util"

    def run(self, what: Run, number: int) -> Report:
        path = self.path(what, number, "json")
        timeline = self.path(what, number, "csv")
        num = int(self.num * what.keys)
        for file in (path, timeline):
            file.unlink(missing_ok=True)
        title = f"{what.name}, round {number}"
        with self.pool(what.nodes, what.node_bytes(self.num), what.network) as (uri, nodes):
            victim = nodes[what.nodes // 2].pid
            run_process(
                [self.binaries / DB_BENCH, "--engine=nacre", f"--redundancy={what.redundancy}",
                 f"--key_size={KEY_BYTES}", f"--value_size={what.value_bytes}",
                 f"--num={num}", f"--reads={max(1, int(num * READS_PER_KEY))}",
                 f"--threads={what.threads}", f"--report_file={timeline}", *what.flags,
                 f"--seed={1000 * number}", "--benchmarks=" + ",".join(what.steps),
                 f"--pool={uri}", f"--kill_pid={victim}", f"--json={path}"], title)
        try:
            report = json.loads(path.read_text())
            steps = report["benchmarks"]
            if [step["name"] for step in steps] != list(what.steps):
                raise CompareError(f"{title}: {path} tells of other benchmarks than were run")
            found = {step["found"] for step in steps if step["name"] == "readrandom"}
            if what.redundancy == CODE and len(found) > 2:
                raise CompareError(f"{title}: readrandom found {sorted(found)}")
            measured = Report(steps, report["space"], report["network"]["compute_written"], num,
                              what.value_bytes)
        except (OSError, ValueError, KeyError) as error:
            raise CompareError(f"{title}: {path}: {error}") from error
        if MIXED in what.steps:
            measured.timeline = repair.read_timeline(timeline, MIXED,
                                                     must_repair=what is KILL_WITH_ONE)
        if what is REBUILD and measured.repaired_bytes() == 0:
            raise CompareError(f"{title}: nothing was repaired")
        return measured

    def micro(self, name: str, number: int) -> float:
        """GB/s of one of MICROBENCHMARKS."""
        return self.micro_result(MICROBENCHMARKS[name], number)["bytes_per_second"] / 1e9


def heading(options: argparse.Namespace) -> str:
    return (f"{options.num:,} keys of {KEY_BYTES} B with {VALUE_BYTES} B values where nothing else "
            "is said, one thread, no log but where a client works while a node is killed; six "
            "`nacre-memnode` processes on shm, all of this machine; "
            f"`{NETWORK}` where a port has a rate, at both ends. Rebuilds: seven nodes, "
            f"{int(options.num * REBUILD.keys):,} keys for the rates of the rebuild alone, "
            f"{int(options.num * KILL_WITH_ONE.keys):,} with one client, "
            f"{int(options.num * KILL_WITH_EIGHT.keys):,} with eight. "
            f"Medians of {options.rounds}.\n")


def run(options: argparse.Namespace, progress_of: Callable) -> None:
    """`progress_of`: makes the line that says how far it is, of the number of runs."""
    rows = select_among(ROWS, options.only)

    def draw(bench: Bench, about: str, file: str) -> None:
        import plot  # Takes a while to load.
        timeline = bench.path(KILL_WITH_ONE, options.rounds, "csv")
        plot.write_timeline(repair.read_timeline(timeline, MIXED), about, file)

    plotted = not options.no_plot and KILL_WITH_ONE in TABLE.needed(rows)
    TABLE.run(options, rows, Bench, progress_of, heading(options), draw if plotted else None)
