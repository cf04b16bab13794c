"""The table of YCSB over nacre-server: workloads A to F by Jedis, beside Redis itself.

Each round loads the records into nacre-server over three nacre-memnode processes of this host, and
into redis-server with appendfsync always, whose file is in tmpfs or on a disk, and without
persistence; which is first rotates. YCSB's own client (tests/server/java has the binding) then runs
A, B, C, F and D in this order, as its authors have it, and E on records that are loaded anew. E
scans by NRANGE of nacre-server's, and by a sorted set of all keys in Redis, which has no ranges of
keys.
"""

import argparse
import pathlib
import re
from dataclasses import dataclass
from typing import Callable, Iterator

import rounds
import server
from measure import run as run_process
from rounds import RATIO_AT_LEAST, Result, Row, select_among
from server import NACRE, PEERS, Peer, Serving, table_of
from table import format_number
from workload import CompareError

JAVA = pathlib.Path("build/java")  # tests/server/java/pom.xml names it.
VALUE_BYTES = 1024
THREADS = 50
SCAN_RECORDS_MAX = 100
# Of --num.
RECORDS_PART, OPERATIONS_PART, SCANS_PART = 5, 5, 50


@dataclass(frozen=True)
class Workload:
    """One of YCSB's core workloads: its parts by operation, and which records it asks for."""
    name: str
    parts: tuple[tuple[str, float], ...]
    measured: str  # The operation whose latency is told.
    distribution: str = "zipfian"

    def flags(self) -> list[str]:
        parts = {"read": 0.0, "update": 0.0, "scan": 0.0, "insert": 0.0,
                 "readmodifywrite": 0.0} | dict(self.parts)
        flags = [f"{name}proportion={part}" for name, part in parts.items()]
        return [*flags, f"requestdistribution={self.distribution}",
                f"maxscanlength={SCAN_RECORDS_MAX}"]


WORKLOADS = (
    Workload("A", (("read", 0.5), ("update", 0.5)), "READ"),
    Workload("B", (("read", 0.95), ("update", 0.05)), "READ"),
    Workload("C", (("read", 1.0),), "READ"),
    Workload("F", (("read", 0.5), ("readmodifywrite", 0.5)), "READ"),
    Workload("D", (("read", 0.95), ("insert", 0.05)), "READ", "latest"),
    Workload("E", (("scan", 0.95), ("insert", 0.05)), "SCAN"))


@dataclass(frozen=True)
class Run:
    """One server, with the records, and the workloads that it is for."""
    engine: str
    scans: bool

    @property
    def name(self) -> str:
        return f"{self.engine} {'scans' if self.scans else 'records'}"

    @property
    def value_bytes(self) -> int:
        return VALUE_BYTES

    @property
    def memory(self) -> bool:
        return False


@dataclass(frozen=True)
class Measured:
    rate: float
    p99_ms: float


RUNS = tuple(Run(engine, scans) for scans in (False, True)
             for engine in (NACRE, *(peer.name for peer in PEERS)))


def latency_of(workload: Workload) -> str:
    return f"p99 of a {workload.measured.lower()}"


def rows_of(workload: Workload) -> Iterator[Row]:
    scans = workload.name == "E"
    own = Run(NACRE, scans).name

    def against(peer: Peer, what: str, unit: str, read: Callable[[Measured], float]) -> Row:
        other = Run(peer.name, scans).name
        return Row(f"YCSB {workload.name}: {what}, {peer.title}", unit,
                   lambda reports, _: (read(reports[own][workload.name]),
                                       read(reports[other][workload.name])),
                   (own, other), None, RATIO_AT_LEAST, peer.title)

    for peer in PEERS:
        yield against(peer, "rate", "ops/s", lambda measured: measured.rate)
    for peer in PEERS:
        yield against(peer, latency_of(workload), "ms", lambda measured: measured.p99_ms)


ROWS = tuple(row for workload in sorted(WORKLOADS, key=lambda each: each.name)
             for row in rows_of(workload))


class Table(rounds.Table):
    """Its rows are cells: a line for each workload, with columns for each way to run Redis."""

    def markdown(self, results: list[Result]) -> str:
        cells = {result.row.name: result for result in results}
        return "\n".join(filter(None, (
            cells_of(cells, "operations a second", lambda _: "rate", format_number),
            cells_of(cells, "p99, ms", latency_of, lambda value: f"{value:.2f}"))))


def cells_of(cells: dict[str, Result], title: str, what: Callable[[Workload], str],
             number: Callable[[float], str]) -> str:
    """A table of one figure."""
    lines = []
    for workload in sorted(WORKLOADS, key=lambda each: each.name):
        found = [cells.get(f"YCSB {workload.name}: {what(workload)}, {peer.title}")
                 for peer in PEERS]
        if own := next(filter(None, found), None):
            of = f" of a {workload.measured.lower()}" if what(workload) != "rate" else ""
            lines.append([f"YCSB {workload.name}{of}", number(own.medians()[0]),
                          *("-" if each is None else
                            f"{number(each.medians()[1])}: {each.ratio():.2f}" for each in found)])
    return table_of((title, "Nacre", *(f"{peer.title}: ratio" for peer in PEERS)), lines)


TABLE = Table("ycsb-server", "nacre", ROWS, RUNS, (), "", "")


class Bench(server.Bench):
    def check_binaries(self) -> None:
        super().check_binaries()
        if not (JAVA / "classes/nacre/YcsbBinding.class").exists():
            raise CompareError(f"YCSB's binding is not built in {JAVA} "
                               "(mvn -f tests/server/java/pom.xml package)")

    def ycsb(self, serving: Serving, what: Run, title: str, how: str, flags: list[str]) -> str:
        indexed = what.scans and what.engine != NACRE
        settings = [f"redis.port={serving.port}",
                    f"redis.ranges={'zset' if indexed else 'nrange'}",
                    "workload=site.ycsb.workloads.CoreWorkload", "fieldcount=1",
                    f"fieldlength={VALUE_BYTES}", f"recordcount={self.num // RECORDS_PART}", *flags]
        return run_process(
            ["java", "-cp", f"{JAVA / 'classes'}:{JAVA / 'jars'}/*", "site.ycsb.Client", how,
             "-db", "nacre.YcsbBinding", "-threads", str(THREADS),
             *(word for setting in settings for word in ("-p", setting))], title)

    def run(self, what: Run, number: int) -> dict[str, Measured]:
        with self.serve(what) as serving:
            title = f"{what.name}, round {number}"
            self.ycsb(serving, what, f"{title}, load", "-load", [])
            measured = {}
            for workload in WORKLOADS:
                if (workload.name == "E") != what.scans:
                    continue
                part = SCANS_PART if what.scans else OPERATIONS_PART
                output = self.ycsb(serving, what, f"{title}, {workload.name}", "-t", [
                    f"operationcount={self.num // part}", *workload.flags()])
                measured[workload.name] = read_output(output, workload, title)
            return measured


def read_output(output: str, workload: Workload, title: str) -> Measured:
    def figure(section: str, name: str) -> float:
        found = re.search(rf"^\[{section}\], {re.escape(name)}, ([\d.E+-]+)$", output, re.MULTILINE)
        if found is None:
            raise CompareError(f"{title}: YCSB says nothing of [{section}], {name}")
        return float(found[1])

    failed = re.search(r"^\[[A-Z-]+\], Return=(ERROR|NOT_FOUND|UNEXPECTED_STATE), (\d+)$", output,
                       re.MULTILINE)
    if failed is not None:
        raise CompareError(f"{title}, {workload.name}: {failed[2]} times {failed[1]}")
    return Measured(figure("OVERALL", "Throughput(ops/sec)"),
                    figure(workload.measured, "99thPercentileLatency(us)") / 1000)


def heading(options: argparse.Namespace) -> str:
    return (f"YCSB 0.17.0 by Jedis 5.1.5, Redis {server.redis_version()}, {THREADS} threads with a "
            f"connection each: {options.num // RECORDS_PART:,} records of one field of "
            f"{VALUE_BYTES:,} B, which are "
            f"strings; {options.num // OPERATIONS_PART:,} operations of each workload, "
            f"{options.num // SCANS_PART:,} of E. Servers and nodes as in the table above. "
            f"Medians of {options.rounds}.\n")


def run(options: argparse.Namespace, progress_of: Callable) -> None:
    """`progress_of`: makes the line that says how far it is, of the number of runs."""
    Bench.require_programs()
    TABLE.run(options, select_among(ROWS, options.only), Bench, progress_of, heading(options), None)
