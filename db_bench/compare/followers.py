"""The table of followers: what they cost the owner of the database that they follow.

Each round runs an owner that overwrites, over four nacre-memnode processes of this host, in turn
alone, with eight followers, and with eight readers of another database: these take
as much of the machine's caches and memory, but have nothing to do with this owner. Owner and nodes
have one processor, the readers the others. A row shows medians over the rounds.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import time
from dataclasses import dataclass
from typing import Callable

import rounds
from measure import DB_BENCH, NODES, SLAB_BYTES, end, run as run_process, start
from rounds import RATIO_AT_LEAST, RATIO_AT_MOST, Row, select_among
from workload import KEY_BYTES, VALUE_BYTES, CompareError

FOLLOWERS = 8
COPIES = "rep(2)"
OWNER_SECONDS = 10
READY_SECONDS_MAX = 120
FOLLOW_SECONDS = 0.1
REPORT_SECONDS = 0.25
FOLLOWED, OTHER = "followed", "other"  # Databases.
LISTENING = {"unix": (3, "00010000"), "tcp": (3, "0A"), "tcp6": (3, "0A")}  # Column, and what.


@dataclass(frozen=True)
class Run:
    """An owner, and who reads beside it."""
    name: str
    readers: int = 0
    database: str = FOLLOWED  # That they read.


ALONE = Run("alone")
FOLLOWING = Run("followers", FOLLOWERS)
ELSEWHERE = Run("readers of another database", FOLLOWERS, OTHER)
RUNS = (FOLLOWING, ELSEWHERE, ALONE)


@dataclass(frozen=True)
class Measured:
    rate: float  # Puts of the owner a second.
    cpu_us_per_put: float  # CPU time of all threads of its process.
    listening: int  # Sockets at which it takes requests.
    reads: float  # Reads of all readers a second, while the owner wrote.


Reports = dict[str, Measured]


def beside(measure: Callable[[Measured], float], peer: Run) -> Callable:
    return lambda reports, _: (measure(reports[FOLLOWING.name]), measure(reports[peer.name]))


def needs(*runs: Run) -> tuple[str, ...]:
    return tuple(run.name for run in runs)


ROWS = (
    Row(f"overwrite of the owner, {FOLLOWERS} followers", "ops/s",
        beside(lambda run: run.rate, ELSEWHERE), needs(FOLLOWING, ELSEWHERE), 0.98,
        RATIO_AT_LEAST, f"{FOLLOWERS} {ELSEWHERE.name}"),
    Row("processor time of the owner for a Put", "us",
        beside(lambda run: run.cpu_us_per_put, ELSEWHERE), needs(FOLLOWING, ELSEWHERE), 1.02,
        RATIO_AT_MOST, f"{FOLLOWERS} {ELSEWHERE.name}", exact=True),
    Row("overwrite of the owner, the same", "ops/s", beside(lambda run: run.rate, ALONE),
        needs(FOLLOWING, ALONE), peer="nobody beside it"),
    Row("processor time of the owner for a Put, the same", "us",
        beside(lambda run: run.cpu_us_per_put, ALONE), needs(FOLLOWING, ALONE),
        peer="nobody beside it", exact=True),
    Row("sockets at which the owner takes requests", "-",
        lambda reports, _: (reports[FOLLOWING.name].listening, None), needs(FOLLOWING), 0),
    Row("reads of the followers meanwhile", "ops/s",
        lambda reports, _: (reports[FOLLOWING.name].reads, None), needs(FOLLOWING)),
)
TABLE = rounds.Table("followers", f"{FOLLOWERS} followers", ROWS, RUNS, (), "", "")


def listening_sockets(pid: int) -> int:
    """At which the process, which is one of ours, takes connections."""
    names = {os.readlink(link) for link in pathlib.Path(f"/proc/{pid}/fd").iterdir()
             if link.is_symlink()}
    count = 0
    for kind, (column, value) in LISTENING.items():
        inode = 6 if kind == "unix" else 9
        path = pathlib.Path(f"/proc/{pid}/net/{kind}")
        lines = path.read_text().splitlines()[1:] if path.exists() else []
        for fields in (line.split() for line in lines):
            count += fields[column] == value and f"socket:[{fields[inode]}]" in names
    return count


def reads_between(path: pathlib.Path, begin: float, finish: float) -> float:
    """A second, of one reader's report that was begun `begin` seconds before the owner's."""
    lines = [line.split(",") for line in path.read_text().splitlines()[1:]]
    rates = [float(line[1]) for line in lines if begin <= float(line[0]) <= finish]
    return statistics.mean(rates) if rates else 0.0


class Bench(rounds.Bench):
    def command(self, uri: str, number: int, *flags: str) -> list:
        return [self.binaries / DB_BENCH, f"--num={self.num}", f"--key_size={KEY_BYTES}",
                f"--value_size={VALUE_BYTES}", f"--seed={1000 * number}", f"--pool={uri}",
                f"--redundancy={COPIES}", *flags]

    def node_bytes(self) -> int:
        """Room for two databases, and for what is overwritten and compacted."""
        return ((12 * self.num * (KEY_BYTES + VALUE_BYTES) + (4 << 30)) // NODES // SLAB_BYTES
                + 1) * SLAB_BYTES

    def run(self, what: Run, number: int) -> Measured:
        title = f"{what.name}, round {number}"
        path = self.path(what, number, "json")
        path.unlink(missing_ok=True)
        own, others = processors()
        readers: list[subprocess.Popen] = []
        with self.pool(NODES, self.node_bytes(), "") as (uri, nodes):
            for node in nodes:
                pin(node.pid, own)
            try:
                for database in sorted({FOLLOWED, what.database}):
                    run_process([*self.command(uri, number, f"--db={database}"),
                                 "--benchmarks=fillrandom,waitforcompaction"], title)
                began = {}
                for i in range(what.readers):
                    report = self.path(what, number, f"reader{i}.csv")
                    report.unlink(missing_ok=True)
                    readers.append(self.start_reader(uri, number, what.database, report, others))
                    began[report] = None
                for reader, report in zip(readers, began):
                    began[report] = await_reports(reader, report, title)
                measured = self.run_owner(uri, number, path, own, title)
                for reader in readers:
                    if reader.poll() is not None:
                        raise CompareError(f"{title}: a reader ended: {last_line(reader)}")
                now = time.monotonic()
                reads = sum(reads_between(report, now - OWNER_SECONDS - start_at, now - start_at)
                            for report, start_at in began.items())
            finally:
                for reader in readers:
                    end(reader)
        return Measured(measured["ops_per_sec"],
                        measured["process_cpu_seconds"] * 1e6 / measured["ops"],
                        measured["listening"], reads)

    def start_reader(self, uri: str, number: int, database: str, report: pathlib.Path,
                     cpus: set[int]) -> subprocess.Popen:
        return start(
            ["taskset", "-c", cpu_list(cpus),
             *self.command(uri, number, f"--db={database}", "--use_existing_db",
                           "--use_secondary_db", f"--secondary_update_interval={FOLLOW_SECONDS}",
                           "--duration=100000", f"--report_file={report}",
                           f"--report_interval_seconds={REPORT_SECONDS}",
                           "--benchmarks=readrandom")], stderr=subprocess.STDOUT)

    def run_owner(self, uri: str, number: int, path: pathlib.Path, cpus: set[int],
                  title: str) -> dict:
        """Its benchmark's report, and how many sockets it listens at."""
        owner = start(["taskset", "-c", cpu_list(cpus),
                       *self.command(uri, number, f"--db={FOLLOWED}", "--use_existing_db",
                                     f"--duration={OWNER_SECONDS}", "--benchmarks=overwrite",
                                     f"--json={path}")], stderr=subprocess.STDOUT)
        try:
            # Halfway it has all the sockets that it will have.
            time.sleep(OWNER_SECONDS / 2)
            if owner.poll() is not None:
                raise CompareError(f"{title}: {last_line(owner)}")
            listening = listening_sockets(owner.pid)
            output, _ = owner.communicate(timeout=10 * OWNER_SECONDS + READY_SECONDS_MAX)
        except subprocess.TimeoutExpired as error:
            raise CompareError(f"{title}: the owner does not end") from error
        finally:
            end(owner)
        if owner.returncode != 0:
            lines = output.decode(errors="replace").strip().splitlines()
            raise CompareError(f"{title}: {lines[-1] if lines else 'the owner said nothing'}")
        try:
            return json.loads(path.read_text())["benchmarks"][0] | {"listening": listening}
        except (OSError, ValueError, KeyError, IndexError) as error:
            raise CompareError(f"{title}: {path}: {error}") from error


def processors() -> tuple[set[int], set[int]]:
    """The owner's and its nodes', and the readers'."""
    first, *others = sorted(os.sched_getaffinity(0))
    if not others:
        raise CompareError("--followers needs two processors: one is the owner's alone")
    return {first}, set(others)


def cpu_list(cpus: set[int]) -> str:
    return ",".join(str(cpu) for cpu in sorted(cpus))


def pin(pid: int, cpus: set[int]) -> None:
    """All threads that the process has; those that they make inherit it."""
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(task.name), cpus)


def last_line(process: subprocess.Popen) -> str:
    """Of one that has ended."""
    lines = process.stdout.read().decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"


def await_reports(reader: subprocess.Popen, report: pathlib.Path, title: str) -> float:
    """Until it reads. When its report began, by the monotonic clock, as exact as is needed here."""
    deadline = time.monotonic() + READY_SECONDS_MAX
    while time.monotonic() < deadline:
        if reader.poll() is not None:
            raise CompareError(f"{title}: a reader ended: {last_line(reader)}")
        lines = report.read_text().splitlines()[1:] if report.exists() else []
        if lines and lines[-1].count(",") == 6:
            return time.monotonic() - float(lines[-1].split(",")[0])
        time.sleep(REPORT_SECONDS / 5)
    raise CompareError(f"{title}: a reader does not begin")


def heading(options: argparse.Namespace) -> str:
    return (f"{options.num:,} keys of {KEY_BYTES} B with {VALUE_BYTES} B values, `{COPIES}`, with "
            f"a log; {NODES} `nacre-memnode` processes on shm. The owner overwrites for "
            f"{OWNER_SECONDS} s with one thread, on one processor together with the nodes; "
            f"{FOLLOWERS} processes with one thread each read on the other(s), and catch up "
            f"{FOLLOW_SECONDS:g} s after they last did. Readers of another database do the same to "
            "one that nobody writes: what they cost is what any neighbour on the machine does. "
            f"Medians of {options.rounds}.\n")


def run(options: argparse.Namespace, progress_of: Callable) -> None:
    """`progress_of`: makes the line that says how far it is, of the number of runs."""
    processors()
    TABLE.run(options, select_among(ROWS, options.only), Bench, progress_of, heading(options),
              None)
