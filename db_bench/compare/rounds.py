"""A table whose rows compare runs with one another: the redundancy and the durability of Nacre.

Each round makes every run that a row needs once, in an order that rotates; a row shows medians over
the rounds.
"""

import argparse
import contextlib
import importlib.util
import json
import pathlib
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Iterator, Optional

import machine
from measure import (DB_BENCH, NODE_START_SECONDS, await_ready, end, end_all, peers_in,
                     run as run_process, start)
from table import format_number, wrap_prose
from workload import CompareError

OWN_AT_MOST, RATIO_AT_MOST, RATIO_AT_LEAST = "own", "ratio <=", "ratio >="


@dataclass(frozen=True)
class Row:
    name: str
    unit: str
    # Gives a round's own number, and what it is compared with, if anything, from the results of the
    # runs and of the microbenchmarks, by name.
    measure: Callable[[dict, dict], tuple[float, Optional[float]]]
    needs: tuple[str, ...]  # Names of runs and of microbenchmarks.
    target: Optional[float] = None
    bound: str = OWN_AT_MOST
    peer: str = ""
    exact: bool = False  # With three decimals.


@dataclass
class Result:
    row: Row
    own: list[float] = field(default_factory=list)
    peer: list[float] = field(default_factory=list)

    def medians(self) -> tuple[float, Optional[float]]:
        return statistics.median(self.own), statistics.median(self.peer) if self.peer else None

    def ratio(self) -> Optional[float]:
        own, peer = self.medians()
        return own / peer if peer else None

    def met(self) -> Optional[bool]:
        """None without a target."""
        if self.row.target is None:
            return None
        if self.row.bound == OWN_AT_MOST:
            return self.medians()[0] <= self.row.target
        if self.row.bound == RATIO_AT_MOST:
            return self.ratio() <= self.row.target
        return self.ratio() >= self.row.target

    def target(self) -> str:
        if self.row.target is None:
            return "-"
        return {OWN_AT_MOST: f"<= {self.row.target:g} {self.row.unit}",
                RATIO_AT_MOST: f"<= {self.row.target:g}",
                RATIO_AT_LEAST: f">= {self.row.target:g}"}[self.row.bound]

    def cells(self) -> list[str]:
        row, (own, peer), ratio = self.row, self.medians(), self.ratio()
        number = (lambda value: f"{value:.3f}") if row.exact else format_number
        return [row.name, row.unit, number(own), row.peer or "-",
                "-" if peer is None else number(peer), "-" if ratio is None else f"{ratio:.2f}",
                self.target(), {None: "-", True: "yes", False: "no"}[self.met()]]

    def to_json(self) -> dict:
        own, peer = self.medians()
        return {"name": self.row.name, "unit": self.row.unit, "values": self.own,
                "peer": self.row.peer, "peer_values": self.peer, "median": own,
                "peer_median": peer, "ratio": self.ratio(), "target": self.row.target,
                "bound": self.row.bound, "met": self.met()}


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


class Bench:
    """The binaries in `binaries`, with what they write in `scratch` (in memory, removed by the
    caller) and `runs` (kept). Tables add run(what, number) and micro(name, number)."""

    bench_binary = DB_BENCH
    micro_binary = ""  # None.
    prefix: tuple[str, ...] = ()  # Words before the command of each process.

    def __init__(self, binaries: pathlib.Path, scratch: pathlib.Path, runs: pathlib.Path,
                 num: int):
        self.binaries = binaries
        self.scratch = scratch
        self.runs = runs
        self.num = num
        self.check_binaries()

    def check_binaries(self) -> None:
        for binary in filter(None, (self.bench_binary, "nacre-memnode", self.micro_binary)):
            if not (self.binaries / binary).exists():
                raise CompareError(f"there is no {self.binaries / binary}")

    def path(self, what: Any, number: int, suffix: str) -> pathlib.Path:
        return self.runs / f"{what.name.replace(' ', '-')}-{number}.{suffix}"

    @contextlib.contextmanager
    def pool(self, count: int, size: int, network: str,
             flags: tuple[str, ...] = ()) -> Iterator[tuple[str, list[subprocess.Popen]]]:
        """Fresh memory nodes; gives the URI of their pool, and their processes. `flags`: more of
        nacre-memnode's."""
        parameters = f"?{network}" if network else ""
        sockets = [self.free_socket(i) for i in range(count)]
        addresses = [f"shm:{socket}{parameters}" for socket in sockets]
        with self.nodes(addresses, str(size), self.binaries, flags) as nodes:
            yield "shm:" + ",".join(str(socket) for socket in sockets) + parameters, nodes

    def free_socket(self, number: int) -> pathlib.Path:
        """The path of a node's socket, at which none is."""
        path = self.scratch / f"n{number}.sock"
        path.unlink(missing_ok=True)
        return path

    @contextlib.contextmanager
    def nodes(self, addresses: list[str], size: str, binaries: pathlib.Path,
              flags: tuple[str, ...] = ()) -> Iterator[list[subprocess.Popen]]:
        """Fresh memory nodes that listen there, ready; they end with this, stopped or not."""
        nodes: list[subprocess.Popen] = []
        try:
            for address in addresses:
                nodes.append(start([*self.prefix, binaries / "nacre-memnode", f"--size={size}",
                                    f"--listen={address}", "--populate", *flags],
                                   stderr=subprocess.STDOUT))
            deadline = time.monotonic() + NODE_START_SECONDS
            for node in nodes:
                await_ready(node, deadline)
            yield nodes
        finally:
            for node in nodes:
                end(node)

    def micro_result(self, benchmark: str, number: int) -> dict:
        """What the microbenchmark of this name says."""
        output = run_process(
            [self.binaries / self.micro_binary, f"--benchmark_filter=^{benchmark}$",
             "--benchmark_format=json"], f"{self.micro_binary}, round {number}")
        try:
            return json.loads(output)["benchmarks"][0]
        except (ValueError, KeyError, IndexError) as error:
            raise CompareError(f"{self.micro_binary}: its output makes no sense: "
                               f"{error}") from error


@dataclass(frozen=True)
class Table:
    name: str  # The name of its option and files, and of its place in the docs.
    own: str  # What the rows' own numbers are of.
    rows: tuple[Row, ...]
    runs: tuple[Any, ...]  # Each has a name.
    microbenchmarks: tuple[str, ...]
    plot: str  # File; none if empty.
    plot_text: str

    def markdown(self, results: list[Result]) -> str:
        headings = ("measure", "unit", self.own, "against", "", "ratio", "target", "met")
        lines = ["| " + " | ".join(headings) + " |", "|---" * len(headings) + "|"]
        lines += ["| " + " | ".join(result.cells()) + " |" for result in results]
        return "\n".join(lines) + "\n"

    def needed(self, rows: list[Row]) -> list:
        """The runs that these rows take."""
        needs = {need for row in rows for need in row.needs}
        return [what for what in self.runs if what.name in needs]

    def measure(self, bench: Any, rows: list[Row], rounds: int, progress: Any) -> list[Result]:
        results = [Result(row) for row in rows]
        runs = self.needed(rows)
        needs = {need for row in rows for need in row.needs}
        for number in range(1, rounds + 1):
            began = time.monotonic()
            turn = (number - 1) % len(runs) if runs else 0
            reports = {}
            for what in runs[turn:] + runs[:turn]:
                progress.show(f"round {number}  {what.name}")
                reports[what.name] = bench.run(what, number)
                progress.done += 1
            progress.show(f"round {number}  microbenchmarks")
            micros = {name: bench.micro(name, number)
                      for name in self.microbenchmarks if name in needs}
            for result in results:
                own, peer = result.row.measure(reports, micros)
                result.own.append(own)
                if peer is not None:
                    result.peer.append(peer)
            progress.line(f"round {number} of {rounds}   ok {time.monotonic() - began:5.0f} s")
        progress.clear()
        return results

    def split_docs(self, path: pathlib.Path) -> tuple[str, str]:
        """The page before and behind the table."""
        page = path.read_text()
        marks = (f"<!-- ./run compare --{self.name} --update-docs writes what is between these: "
                 "begin -->", f"<!-- {self.name} end -->")
        before, begin, rest = page.partition(marks[0])
        _, finish, after = rest.partition(marks[1])
        if not begin or not finish:
            raise CompareError(f"{path} has no place for the table: '{marks[0]}' and '{marks[1]}'")
        return before + begin, finish + after

    def check_options(self, options: argparse.Namespace, plotted: bool) -> None:
        """Better now than after all is measured."""
        if plotted and importlib.util.find_spec("matplotlib") is None:
            raise CompareError("the plot needs matplotlib (Debian: python3-matplotlib); "
                               "or --no-plot")
        if options.update_docs:
            if self.plot and not plotted:
                raise CompareError("--update-docs wants the plot too: without --no-plot")
            self.split_docs(options.docs)

    def run(self, options: argparse.Namespace, rows: list[Row], make_bench: Callable,
            progress_of: Callable, heading: str, draw: Optional[Callable]) -> None:
        """`progress_of`: makes the line that says how far it is, of the number of runs. `draw`:
        the plot of a bench, about a machine, into a file; None: there is none."""
        self.check_options(options, draw is not None)
        runs = options.out / f"{self.name}-runs"
        shutil.rmtree(runs, ignore_errors=True)
        runs.mkdir(parents=True)
        scratch = pathlib.Path(tempfile.mkdtemp(prefix="nacre-compare-", dir="/dev/shm"))
        try:
            bench = make_bench(options.bin, scratch, runs, options.num)
            total = options.rounds * len(self.needed(rows))
            results = self.measure(bench, rows, options.rounds, progress_of(max(1, total)))
        finally:
            end_all()
            shutil.rmtree(scratch, ignore_errors=True)
        about = machine.describe(peers_in(runs))
        text = wrap_prose(f"{machine.sentence(about)}.\n\n{heading}\n") + self.markdown(results)
        files = [options.out / f"{self.name}.{suffix}" for suffix in ("json", "md")]
        files[0].write_text(json.dumps(
            {"machine": about, "rounds": options.rounds, "num": options.num,
             "rows": [result.to_json() for result in results]}, indent=1) + "\n")
        files[1].write_text(text)
        if draw is not None:
            files.append(options.out / self.plot)
            draw(bench, machine.sentence(about), str(files[-1]))
        if options.update_docs:
            before, after = self.split_docs(options.docs)
            if draw is not None:
                shutil.copyfile(options.out / self.plot, options.docs.parent / self.plot)
                text += f"\n![{self.plot_text}]({self.plot})\n"
            options.docs.write_text(f"{before}\n\n{text}\n{after}")
            files.append(options.docs)
        with_target = [result for result in results if result.met() is not None]
        met = sum(result.met() for result in with_target)
        print(f"\n{self.markdown(results)}\n{met} of {len(with_target)} targets met; written: "
              + ", ".join(str(file) for file in files))
