"""The table of erasure coding: what it stores, sends and costs against copies and against none.

Each round runs Nacre over six nacre-memnode processes of this host under each redundancy, and over
seven where one is rebuilt; which run is first rotates. A row shows medians over the rounds.
"""

import argparse
import contextlib
import importlib.util
import json
import pathlib
import re
import shutil
import statistics
import tempfile
import time
from dataclasses import dataclass, field
from typing import Callable, Iterator, Optional

import machine
import repair
from measure import (NODE_START_SECONDS, SLAB_BYTES, await_ready, end, end_all, run as run_process,
                     start)
from table import format_number
from workload import KEY_BYTES, VALUE_BYTES, CompareError

NODES, NODES_OF_REBUILDS = 6, 7
LARGE_VALUE_BYTES = 1000
CODE, COPIES, NONE = "rs(4,2)", "rep(3)", "none"
TABLES_ONLY = ("--disable_wal=true",)  # The log is copied whatever tables are coded with.
NETWORK = "rtt_us=5&gbps=4"  # Of each port: the compute node's and each memory node's.
READS_PER_KEY = 3  # A second or two: shorter runs differ by a sixth from one another.
PLOT = "rebuild.png"
PLOT_TEXT = "Throughput and latency over time while a node is killed and rebuilt"

BEGIN_MARK = "<!-- ./run compare --redundancy --update-docs writes what is between these: begin -->"
END_MARK = "<!-- redundancy end -->"


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
    timeline: Optional[repair.Timeline] = None  # Of the runs that are killed a node meanwhile.

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


@dataclass(frozen=True)
class Row:
    name: str
    unit: str
    # Of a round: its own number, and what it is compared with.
    measure: Measure
    peer: str
    needs: tuple[str, ...]  # Names of runs, or of MICROBENCHMARKS.
    target: Optional[float] = None
    # The target is an upper bound of its own number; else a lower one of the ratio to the peer's.
    absolute: bool = False


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
    Row("stored bytes per user byte after compaction", "B", stored("random"), COPIES,
        both("random", CODE, COPIES), 1.56, absolute=True),
    Row(f"stored bytes per user byte, values of {LARGE_VALUE_BYTES} B", "B",
        stored(f"sequence {LARGE_VALUE_BYTES}"), COPIES,
        both(f"sequence {LARGE_VALUE_BYTES}", CODE, COPIES), 1.56, absolute=True),
    Row("bytes a flush sends per user byte", "B", sent(VALUE_BYTES), COPIES,
        both(f"sequence {VALUE_BYTES}", CODE, COPIES), 1.53, absolute=True),
    Row(f"bytes a flush sends per user byte, values of {LARGE_VALUE_BYTES} B", "B",
        sent(LARGE_VALUE_BYTES), COPIES, both(f"sequence {LARGE_VALUE_BYTES}", CODE, COPIES),
        1.53, absolute=True),
    Row("fillrandom", "ops/s", lambda reports, _: (reports[f"random {CODE}"].rate(FILL),
                                                   reports[f"random {NONE}"].rate(FILL)),
        NONE, both("random", CODE, NONE), 0.85),
    Row("fillrandom, 4 Gbit/s a port", "ops/s",
        lambda reports, _: (reports[f"network {CODE}"].rate(FILL),
                            reports[f"network {COPIES}"].rate(FILL)),
        COPIES, both("network", CODE, COPIES), 1.7),
    Row("readrandom", "ops/s", lambda reports, _: (reports[f"random {CODE}"].rate(READ),
                                                   reports[f"random {NONE}"].rate(READ)),
        NONE, both("random", CODE, NONE), 0.97),
    Row("encoding in a flush, per core", "GB/s",
        lambda reports, micros: (reports[f"random {CODE}"].encode_rate(), micros[ISA_L]), ISA_L,
        (f"random {CODE}", ISA_L), 0.8),
    Row("readrandom, one of six nodes lost", "ops/s",
        lambda reports, _: (reports[f"random {CODE}"].rate(DEGRADED),
                            reports[f"random {CODE}"].rate(READ)),
        "all six", both("random", CODE), 0.70),
    Row("rebuild of one of seven nodes, per core", "GB/s", rebuilt("cpu_seconds"), MEMORY_COPY,
        (REBUILD.name, MEMORY_COPY), 0.15),
    Row("rebuild of one of seven nodes, by the clock", "GB/s", rebuilt("seconds"), MEMORY_COPY,
        (REBUILD.name, MEMORY_COPY)),
    Row("longest operation after a node is killed, 8 clients", "ms", stall(KILL_WITH_EIGHT),
        BEFORE_KILL, (KILL_WITH_EIGHT.name,), 10, absolute=True),
    Row("longest operation after a node is killed, 1 client", "ms", stall(KILL_WITH_ONE),
        BEFORE_KILL, (KILL_WITH_ONE.name,), 10, absolute=True),
    Row(f"{MIXED} during a rebuild at the default limit", "ops/s", foreground, BEFORE_KILL,
        (KILL_WITH_ONE.name,), 0.75),
)


@dataclass
class Result:
    row: Row
    own: list[float] = field(default_factory=list)
    peer: list[float] = field(default_factory=list)

    def medians(self) -> tuple[float, float]:
        return statistics.median(self.own), statistics.median(self.peer)

    def ratio(self) -> float:
        own, peer = self.medians()
        return own / peer

    def met(self) -> Optional[bool]:
        """None without a target."""
        if self.row.target is None:
            return None
        if self.row.absolute:
            return self.medians()[0] <= self.row.target
        return self.ratio() >= self.row.target

    def to_json(self) -> dict:
        own, peer = self.medians()
        return {"name": self.row.name, "unit": self.row.unit, "peer": self.row.peer,
                "values": self.own, "peer_values": self.peer, "median": own, "peer_median": peer,
                "ratio": self.ratio(), "target": self.row.target,
                "target_is_absolute": self.row.absolute, "met": self.met()}


HEADINGS = ("measure", "unit", CODE, "against", "", "ratio", "target", "met")


def cells(result: Result) -> list[str]:
    row, (own, peer) = result.row, result.medians()
    number = (lambda value: f"{value:.3f}") if row.absolute else format_number
    target = "-"
    if row.target is not None:
        target = f"<= {row.target:g} {row.unit}" if row.absolute else f">= {row.target:g}"
    return [row.name, row.unit, number(own), row.peer, number(peer), f"{result.ratio():.2f}",
            target, {None: "-", True: "yes", False: "no"}[result.met()]]


def markdown_table(results: list[Result]) -> str:
    lines = ["| " + " | ".join(HEADINGS) + " |", "|---" * len(HEADINGS) + "|"]
    lines += ["| " + " | ".join(cells(result)) + " |" for result in results]
    return "\n".join(lines) + "\n"


def select_among(all_rows: tuple, only: str) -> list:
    """Those of the rows, of any table, whose names `only` is found in."""
    try:
        rows = [row for row in all_rows if re.search(only, row.name)]
    except re.error as error:
        raise CompareError(f"--only={only}: {error}") from error
    if not rows:
        raise CompareError(f"--only={only} is found in none of: "
                           + "; ".join(row.name for row in all_rows))
    return rows


def select_rows(only: str) -> list[Row]:
    return select_among(ROWS, only)


class Bench:
    def __init__(self, binaries: pathlib.Path, scratch: pathlib.Path, runs: pathlib.Path,
                 num: int):
        self.binaries = binaries
        self.scratch = scratch
        self.runs = runs
        self.num = num
        for binary in ("db_bench", "nacre-memnode", "micro_util"):
            if not (binaries / binary).exists():
                raise CompareError(f"there is no {binaries / binary}")

    @contextlib.contextmanager
    def pool(self, what: Run) -> Iterator[tuple[str, int]]:
        """Fresh memory nodes; gives the URI of their pool, and the process of one of them."""
        nodes = []
        sockets = [self.scratch / f"n{i}.sock" for i in range(what.nodes)]
        parameters = f"?{what.network}" if what.network else ""
        try:
            for socket in sockets:
                socket.unlink(missing_ok=True)
                nodes.append(start(
                    [self.binaries / "nacre-memnode", f"--listen=shm:{socket}{parameters}",
                     f"--size={what.node_bytes(self.num)}", "--populate"]))
            deadline = time.monotonic() + NODE_START_SECONDS
            for node in nodes:
                await_ready(node, deadline)
            yield ("shm:" + ",".join(str(socket) for socket in sockets) + parameters,
                   nodes[what.nodes // 2].pid)
        finally:
            for node in nodes:
                end(node)

    def path(self, what: Run, number: int, suffix: str) -> pathlib.Path:
        return self.runs / f"{what.name.replace(' ', '-')}-{number}.{suffix}"

    def run(self, what: Run, number: int) -> Report:
        path = self.path(what, number, "json")
        timeline = self.path(what, number, "csv")
        num = int(self.num * what.keys)
        for file in (path, timeline):
            file.unlink(missing_ok=True)
        title = f"{what.name}, round {number}"
        with self.pool(what) as (uri, victim):
            run_process(
                [self.binaries / "db_bench", "--engine=nacre", f"--redundancy={what.redundancy}",
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
        output = run_process(
            [self.binaries / "micro_util", f"--benchmark_filter=^{MICROBENCHMARKS[name]}$",
             "--benchmark_format=json"], f"micro_util, round {number}")
        try:
            return json.loads(output)["benchmarks"][0]["bytes_per_second"] / 1e9
        except (ValueError, KeyError, IndexError) as error:
            raise CompareError(f"micro_util: its output makes no sense: {error}") from error


def measure_all(bench: Bench, rows: list[Row], rounds: int, progress) -> list[Result]:
    results = [Result(row) for row in rows]
    needed = {need for row in rows for need in row.needs}
    runs = [what for what in RUNS if what.name in needed]
    for number in range(1, rounds + 1):
        began = time.monotonic()
        turn = (number - 1) % len(runs) if runs else 0
        reports: Reports = {}
        for what in runs[turn:] + runs[:turn]:
            progress.show(f"round {number}  {what.name}")
            reports[what.name] = bench.run(what, number)
            progress.done += 1
        progress.show(f"round {number}  micro_util")
        micros = {name: bench.micro(name, number) for name in MICROBENCHMARKS if name in needed}
        for result in results:
            own, peer = result.row.measure(reports, micros)
            result.own.append(own)
            result.peer.append(peer)
        progress.line(f"round {number} of {rounds}   ok {time.monotonic() - began:5.0f} s")
    progress.clear()
    return results


def heading(options: argparse.Namespace, about: dict[str, str]) -> str:
    return (f"{machine.sentence(about)}.\n\n"
            f"{options.num:,} keys of {KEY_BYTES} B with {VALUE_BYTES} B values where nothing else "
            "is said, one thread, no log but where a client works while a node is killed; six "
            "`nacre-memnode` processes on shm, all of this machine; "
            f"`{NETWORK}` where a port has a rate, at both ends. Rebuilds: seven nodes, "
            f"{int(options.num * REBUILD.keys):,} keys for the rates of the rebuild alone, "
            f"{int(options.num * KILL_WITH_ONE.keys):,} with one client, "
            f"{int(options.num * KILL_WITH_EIGHT.keys):,} with eight. "
            f"Medians of {options.rounds}.\n")


def split_docs(path: pathlib.Path) -> tuple[str, str]:
    page = path.read_text()
    before, begin, rest = page.partition(BEGIN_MARK)
    _, finish, after = rest.partition(END_MARK)
    if not begin or not finish:
        raise CompareError(f"{path} has no place for the table: '{BEGIN_MARK}' and '{END_MARK}'")
    return before + begin, finish + after


def run(options: argparse.Namespace, progress_of: Callable) -> None:
    """`progress_of`: makes the line that says how far it is, of the number of runs."""
    rows = select_rows(options.only)
    plotted = not options.no_plot and any(KILL_WITH_ONE.name in row.needs for row in rows)
    # Better now than after all is measured.
    if plotted and importlib.util.find_spec("matplotlib") is None:
        raise CompareError("the plot needs matplotlib (Debian: python3-matplotlib); or --no-plot")
    if options.update_docs:
        if not plotted:
            raise CompareError("--update-docs wants the plot too: without --no-plot")
        split_docs(options.docs)
    runs = options.out / "redundancy-runs"
    shutil.rmtree(runs, ignore_errors=True)
    runs.mkdir(parents=True)
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="nacre-compare-", dir="/dev/shm"))
    try:
        bench = Bench(options.bin, scratch, runs, options.num)
        needed = {need for row in rows for need in row.needs}
        total = options.rounds * sum(what.name in needed for what in RUNS)
        results = measure_all(bench, rows, options.rounds, progress_of(max(1, total)))
    finally:
        end_all()
        shutil.rmtree(scratch, ignore_errors=True)
    about = machine.describe(None)
    text = heading(options, about) + "\n" + markdown_table(results)
    files = [options.out / f"redundancy.{suffix}" for suffix in ("json", "md")]
    files[0].write_text(json.dumps(
        {"machine": about, "rounds": options.rounds, "num": options.num,
         "rows": [result.to_json() for result in results]}, indent=1) + "\n")
    files[1].write_text(text)
    if plotted:
        import plot  # Takes a while to load.
        files.append(options.out / PLOT)
        plot.write_timeline(repair.read_timeline(bench.path(KILL_WITH_ONE, options.rounds, "csv"),
                                                 MIXED), machine.sentence(about), str(files[-1]))
    if options.update_docs:
        before, after = split_docs(options.docs)
        shutil.copyfile(options.out / PLOT, options.docs.parent / PLOT)
        options.docs.write_text(f"{before}\n\n{text}\n![{PLOT_TEXT}]({PLOT})\n\n{after}")
        files.append(options.docs)
    with_target = [result for result in results if result.met() is not None]
    met = sum(result.met() for result in with_target)
    print(f"\n{markdown_table(results)}\n{met} of {len(with_target)} targets met; written: "
          + ", ".join(str(file) for file in files))
