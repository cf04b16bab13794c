"""The table of tails: what a slow memory node costs.

Each round runs four threads, half of whose operations are reads and half logged writes, over six
nacre-memnode processes of this host that are reached by tcp: with all nodes well, with one node
stopped (SIGSTOP) for two seconds at a time, each in turn, with two at a time, and with one that
takes ten milliseconds for everything (the nic model; the other five are reached over shm then).
With --before every run is repeated, in turn, with the binaries of another commit.
"""

import argparse
import contextlib
import json
import pathlib
import signal
import socket
import subprocess
import threading
import time
from dataclasses import dataclass, field
from typing import Callable, Iterator, Optional

import rounds
from measure import run as run_process
from rounds import RATIO_AT_LEAST, RATIO_AT_MOST, Row, select_among
from workload import KEY_BYTES, VALUE_BYTES, CompareError

NODES = 6
NODE_SIZE = "1536MiB"
THREADS = 4
SECONDS = 16
STOP_SECONDS = 2.0
BETWEEN_SECONDS = 0.5
FIRST_STOP_SECONDS = 1.0
CODED, COPIES = "rs(4,2)", "rep(3)"
SLOW_MICROS = 10_000
MIXED = "readrandomwriterandom"
BINARY = "db_bench"


@dataclass(frozen=True)
class Run:
    """What happens to the nodes while the load runs."""
    name: str
    redundancy: str
    stopped: int = 0  # Nodes at a time.
    slow: bool = False  # The last one, all the time.
    over_shm: bool = False  # All but the last.
    before: bool = False  # With the binaries of another commit.


@dataclass
class Measured:
    rate: float
    put: dict  # Latencies in microseconds: p50_us, p99_us, p999_us, max_us.
    get: dict
    sent: float  # Bytes that the compute node sent for each operation.
    cpu_us: float  # Processor time of the compute node for each operation.


Reports = dict[str, Measured]


def name_of(redundancy: str, what: str, before: bool) -> str:
    return f"{redundancy} {what}" + (" before" if before else "")


def runs_of(redundancy: str, before: bool) -> list[Run]:
    def make(what: str, **arguments) -> Run:
        return Run(name_of(redundancy, what, before), redundancy, before=before, **arguments)
    return [make("well"), make("one stopped", stopped=1), make("two stopped", stopped=2),
            make("well over shm", over_shm=True), make("one slow", over_shm=True, slow=True)]


RUNS = tuple(run for before in (False, True) for redundancy in (CODED, COPIES)
             for run in runs_of(redundancy, before))


def rows_of(redundancy: str, before: bool) -> Iterator[Row]:
    def name(what: str) -> str:
        return name_of(redundancy, what, before)

    suffix = ", the commit before" if before else ""
    well, stopped, two = name("well"), name("one stopped"), name("two stopped")
    shm, slow = name("well over shm"), name("one slow")

    def own(run: str, read: Callable[[Measured], float]) -> Callable:
        return lambda reports, _: (read(reports[run]), None)

    def against(run: str, peer: str, read: Callable[[Measured], float]) -> Callable:
        return lambda reports, _: (read(reports[run]), read(reports[peer]))

    def target(value: float) -> Optional[float]:
        return None if before else value

    def put_max(run: Measured) -> float:
        return run.put["max_us"] / 1000

    def get_max(run: Measured) -> float:
        return run.get["max_us"] / 1000

    for nodes, run, most in (("one", stopped, 20), ("two", two, 100)):
        yield Row(f"{redundancy}, {nodes} stopped for {STOP_SECONDS:g} s, each in turn: "
                  f"longest Put{suffix}", "ms", own(run, put_max), (run,), target(most))
        yield Row(f"{redundancy}, {nodes} stopped for {STOP_SECONDS:g} s, each in turn: "
                  f"longest Get{suffix}", "ms", own(run, get_max), (run,), target(most))
    yield Row(f"{redundancy}, one stopped: operations{suffix}", "ops/s",
              against(stopped, well, lambda run: run.rate), (stopped, well), target(0.9),
              RATIO_AT_LEAST, "none stopped")
    for what, read in (("Put", lambda run: run.put["p99_us"]),
                       ("Get", lambda run: run.get["p99_us"])):
        yield Row(f"{redundancy}, one node {SLOW_MICROS / 1000:g} ms slow: p99 of {what}{suffix}",
                  "us", against(slow, shm, read), (slow, shm), target(1.5), RATIO_AT_MOST,
                  "none slow")


def rows_beside_before(redundancy: str) -> Iterator[Row]:
    now, then = (name_of(redundancy, "well", before) for before in (False, True))
    yield Row(f"{redundancy}, all well: operations", "ops/s",
              lambda reports, _: (reports[now].rate, reports[then].rate), (now, then), 0.97,
              RATIO_AT_LEAST, "the commit before")
    for what, unit, read in (("bytes sent for an operation", "B", lambda run: run.sent),
                             ("processor time for an operation", "us", lambda run: run.cpu_us)):
        yield Row(f"{redundancy}, all well: {what}", unit,
                  lambda reports, _, read=read: (read(reports[now]), read(reports[then])),
                  (now, then), 1.03, RATIO_AT_MOST, "the commit before", exact=True)


def rows(with_before: bool) -> tuple[Row, ...]:
    result = [row for redundancy in (CODED, COPIES) for row in rows_of(redundancy, False)]
    if with_before:
        result += [row for redundancy in (CODED, COPIES) for row in rows_of(redundancy, True)]
        result += [row for redundancy in (CODED, COPIES) for row in rows_beside_before(redundancy)]
    return tuple(result)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@dataclass
class Stopper:
    """Stops nodes in turn, on a thread, until it is told to end."""
    nodes: list[subprocess.Popen]
    at_a_time: int
    ending: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        first = 0
        if self.ending.wait(FIRST_STOP_SECONDS):
            return
        while not self.ending.is_set():
            chosen = [self.nodes[(first + i) % len(self.nodes)] for i in range(self.at_a_time)]
            first += self.at_a_time
            for node in chosen:
                node.send_signal(signal.SIGSTOP)
            self.ending.wait(STOP_SECONDS)
            for node in chosen:
                node.send_signal(signal.SIGCONT)
            self.ending.wait(BETWEEN_SECONDS)


class Bench(rounds.Bench):
    before: Optional[pathlib.Path] = None

    def check_binaries(self) -> None:
        for binary in (BINARY, "nacre-memnode"):
            if not (self.binaries / binary).exists():
                raise CompareError(f"there is no {self.binaries / binary}")

    @contextlib.contextmanager
    def tcp_pool(self, what: Run, binaries: pathlib.Path
                 ) -> Iterator[tuple[str, list[subprocess.Popen]]]:
        """Fresh memory nodes; gives the URI of their pool, and their processes."""
        addresses = [f"tcp:127.0.0.1:{free_port()}" for _ in range(NODES)]
        if what.over_shm:
            addresses[:-1] = [f"shm:{self.free_socket(i)}" for i in range(NODES - 1)]
        with self.nodes(addresses, NODE_SIZE, binaries) as nodes:
            if what.over_shm:
                delay = f"?tcp.rtt_us={SLOW_MICROS}" if what.slow else ""
                yield "mixed:" + ",".join(addresses) + delay, nodes
            else:
                yield "tcp:" + ",".join(each.removeprefix("tcp:") for each in addresses), nodes

    def run(self, what: Run, number: int) -> Measured:
        title = f"{what.name}, round {number}"
        path = self.path(what, number, "json")
        path.unlink(missing_ok=True)
        binaries = self.before if what.before else self.binaries
        with self.tcp_pool(what, binaries) as (uri, nodes):
            command = [binaries / BINARY, "--engine=nacre", f"--num={self.num}",
                       f"--key_size={KEY_BYTES}", f"--value_size={VALUE_BYTES}", f"--pool={uri}",
                       f"--redundancy={what.redundancy}", f"--seed={1000 * number}"]
            fill = ["--benchmarks=fillrandom,flush,waitforcompaction"]
            run_process([*command, *fill], title)
            stopper = Stopper(nodes, what.stopped)
            thread = threading.Thread(target=stopper.run)
            if what.stopped > 0:
                thread.start()
            try:
                run_process([*command, "--use_existing_db", f"--benchmarks={MIXED}",
                             f"--threads={THREADS}", "--readwritepercent=50",
                             f"--duration={SECONDS}", f"--json={path}"], title)
            finally:
                stopper.ending.set()
                if what.stopped > 0:
                    thread.join()
        try:
            (report,) = json.loads(path.read_text())["benchmarks"]
            latencies = report["latencies"]
            return Measured(report["ops_per_sec"], latencies["write"], latencies["read"],
                            report["network"]["compute_written"] / report["ops"],
                            report["process_cpu_seconds"] * 1e6 / report["ops"])
        except (OSError, ValueError, KeyError) as error:
            raise CompareError(f"{title}: {path}: {error}") from error


def run(options: argparse.Namespace, progress_of: Callable) -> None:
    Bench.before = options.before
    all_rows = rows(options.before is not None)
    table = rounds.Table("tails", "nacre", all_rows, RUNS, (), "", "")
    heading = (f"{options.num:,} keys of {KEY_BYTES} B with {VALUE_BYTES} B values; "
               f"{NODES} `nacre-memnode` processes over tcp on this machine; {THREADS} threads, "
               f"half of whose operations are Gets and half Puts with the log, for {SECONDS} s. "
               f"Stopped: SIGSTOP. {SLOW_MICROS / 1000:g} ms slow: five nodes over shm, and one "
               f"over tcp behind the nic model (`tcp.rtt_us={SLOW_MICROS}`), for all its one-sided "
               f"operations. Medians of {options.rounds} rounds.")
    table.run(options, select_among(all_rows, options.only), Bench, progress_of, heading, None)
