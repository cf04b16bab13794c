"""The table of nacre-server: Redis's protocol over a pool, beside Redis itself.

Each round fills a keyspace in nacre-server over three nacre-memnode processes of this host, and in
redis-server with appendfsync always, whose file is in tmpfs or on a disk, and without persistence;
which is first rotates. redis-benchmark of Debian's then drives SET and GET over random keys, with
pipelines of several depths, GET when what the SETs before have left is done. It tells rates and
latencies, the kernel the processor time of servers and nodes. Runs of their own tell the memory
that a million keys take, copies and logs included.
"""

import argparse
import contextlib
import csv
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from dataclasses import dataclass
from typing import Callable, Iterator, Optional

import rounds
from free_ports import free_port
from measure import SLAB_BYTES, await_end, end, run as run_process, start
from rounds import RATIO_AT_LEAST, Result, Row, select_among
from table import format_number, wrap_prose
from workload import CompareError

BINARY = "nacre-server"
REDIS, BENCHMARK = "redis-server", "redis-benchmark"
NODES = 3
REDUNDANCY = "rs(2,1)"
CLIENTS = 50
PIPELINES = (1, 16, 64)
VALUES = (100, 1024)
COMMANDS = ("SET", "GET")
MEMORY_VALUE = 100
KEY_FORMAT = "key:%012d"  # As redis-benchmark has them.
# Targets of rates at pipelines of 1, and of more.
ALONE_RATIO, PIPELINED_RATIO = 1.0, 1.5
FILL_PIPELINE = 1000
START_SECONDS = 60
SETTLE_SECONDS_MAX = 60
# Processes are at rest that take so much of a processor for so long.
REST_SHARE, REST_SECONDS = 0.05, 0.5
ROOM = 6  # Times what is written, for parity, level 0 and what compaction makes of it.
NACRE = "nacre"
# Labels of nacre_db_space_bytes.
SPACE_PARTS = {"tables": "stored", "log": "log"}


@dataclass(frozen=True)
class Peer:
    """A way to run Redis."""
    name: str
    title: str
    durable: bool
    on_disk: bool = False


TMPFS = Peer("redis-tmpfs", "Redis, fsync always, tmpfs", True)
DISK = Peer("redis-disk", "Redis, fsync always, disk", True, on_disk=True)
VOLATILE = Peer("redis-volatile", "Redis, no persistence", False)
PEERS = (TMPFS, DISK, VOLATILE)


@dataclass(frozen=True)
class Run:
    """One server, filled with values of one size."""
    engine: str  # NACRE, or the name of a peer.
    value_bytes: int
    memory: bool = False  # How much of it the keys take is all that is measured.

    @property
    def name(self) -> str:
        return f"{self.engine} {'memory' if self.memory else f'{self.value_bytes} B'}"


@dataclass(frozen=True)
class Measured:
    """Of one command with one pipeline."""
    rate: float
    p50_ms: float
    p99_ms: float
    server_us: float  # Processor time for each operation.
    nodes_us: float  # Of all memory nodes together.


Loads = dict[tuple[str, int], Measured]  # By command and pipeline.
Memory = dict[str, float]  # Bytes for each key, by what they are.
MEMORY = {engine: Run(engine, MEMORY_VALUE, memory=True) for engine in (NACRE, TMPFS.name,
                                                                     VOLATILE.name)}
RUNS = (*(Run(engine, size) for size in VALUES for engine in (NACRE, *(p.name for p in PEERS))),
        *MEMORY.values())


def load_name(command: str, pipeline: int, size: int) -> str:
    return f"{command}, pipeline {pipeline}, {size} B"


def load_rows(command: str, pipeline: int, size: int) -> Iterator[Row]:
    """Rates, latencies and processor time against each peer."""
    load, own = (command, pipeline), Run(NACRE, size).name
    title = load_name(*load, size)

    def against(peer: Peer, what: str, unit: str, read: Callable[[Measured], float],
                target: Optional[float] = None) -> Row:
        other = Run(peer.name, size).name
        return Row(f"{title}: {what}, {peer.title}", unit,
                   lambda reports, _: (read(reports[own][load]), read(reports[other][load])),
                   (own, other), target, RATIO_AT_LEAST, peer.title)

    target = ALONE_RATIO if pipeline == 1 else PIPELINED_RATIO
    for peer in PEERS:
        yield against(peer, "rate", "ops/s", lambda load: load.rate,
                      target if peer.durable else None)
        yield against(peer, "p50", "ms", lambda load: load.p50_ms)
        yield against(peer, "p99", "ms", lambda load: load.p99_ms)
        yield against(peer, "processor time", "us", lambda load: load.server_us)
    yield Row(f"{title}: processor time, memory nodes", "us",
              lambda reports, _: (reports[own][load].nodes_us, None), (own,))


def memory_row(title: str, engine: str, part: str) -> Row:
    name = MEMORY[engine].name
    return Row(f"memory for a key, {title}", "B", lambda reports, _: (reports[name][part], None),
               (name,))


LOADS = tuple((command, pipeline, size) for command in COMMANDS for size in VALUES
              for pipeline in PIPELINES)
MEMORY_ROWS = (
    memory_row("Nacre: slabs leased at the nodes", NACRE, "leased"),
    memory_row("Nacre: tables with their parity", NACRE, "tables"),
    memory_row("Nacre: the log, in all its replicas", NACRE, "log"),
    memory_row("Nacre: resident memory of the server", NACRE, "resident"),
    memory_row("Nacre: leased and resident together", NACRE, "all"),
    memory_row("Redis, no persistence: used_memory", VOLATILE.name, "used"),
    memory_row("Redis, no persistence: resident memory", VOLATILE.name, "resident"),
    memory_row("Redis, fsync always, tmpfs: resident memory and the file", TMPFS.name, "all"))
ROWS = (*(row for load in LOADS for row in load_rows(*load)), *MEMORY_ROWS)


class Table(rounds.Table):
    """Its rows are cells: a line for each load, with columns for each way to run Redis."""

    def markdown(self, results: list[Result]) -> str:
        cells = {result.row.name: result for result in results}
        tables = (rates_of(cells), latencies_of(cells), processors_of(cells), memory_of(cells))
        return "\n".join([*filter(None, tables), wrap_prose(targets_of(results) + "\n")])


def table_of(headings: tuple, lines: list[list[str]]) -> str:
    """Nothing without lines."""
    if not lines:
        return ""
    head, *rest = ("| " + " | ".join(row) + " |\n" for row in (headings, *lines))
    return head + "|---" * len(headings) + "|\n" + "".join(rest)


def own_of(cells: dict[str, Result], name: str, load: tuple) -> Optional[float]:
    """Nacre's number, which stands in the rows of each peer."""
    for peer in PEERS:
        if result := cells.get(f"{load_name(*load)}: {name}, {peer.title}"):
            return result.medians()[0]
    return None


def rates_of(cells: dict[str, Result]) -> str:
    lines = []
    for load in LOADS:
        own = own_of(cells, "rate", load)
        if own is None:
            continue
        line = [load_name(*load), format_number(own)]
        for peer in PEERS:
            result = cells.get(f"{load_name(*load)}: rate, {peer.title}")
            line.append("-" if result is None else
                        f"{format_number(result.medians()[1])}: {result.ratio():.2f}"
                        + {None: "", True: " (met)", False: " (missed)"}[result.met()])
        lines.append(line)
    return table_of(("operations a second", "Nacre", *(f"{peer.title}: ratio" for peer in PEERS)),
                    lines)


def latencies_of(cells: dict[str, Result]) -> str:
    lines = []
    for load in LOADS:
        own = [own_of(cells, name, load) for name in ("p50", "p99")]
        if None in own:
            continue
        line = [load_name(*load), " / ".join(f"{value:.2f}" for value in own)]
        for peer in PEERS:
            both = [cells.get(f"{load_name(*load)}: {name}, {peer.title}")
                    for name in ("p50", "p99")]
            line.append("-" if None in both else
                        " / ".join(f"{result.medians()[1]:.2f}" for result in both))
        lines.append(line)
    return table_of(("p50 / p99 of a pipeline, ms", "Nacre", *(peer.title for peer in PEERS)),
                    lines)


def processors_of(cells: dict[str, Result]) -> str:
    lines = []
    for load in LOADS:
        own = own_of(cells, "processor time", load)
        nodes = cells.get(f"{load_name(*load)}: processor time, memory nodes")
        if own is None or nodes is None:
            continue
        line = [load_name(*load), f"{own:.2f}", f"{nodes.medians()[0]:.2f}"]
        for peer in PEERS:
            result = cells.get(f"{load_name(*load)}: processor time, {peer.title}")
            line.append("-" if result is None else f"{result.medians()[1]:.2f}")
        lines.append(line)
    return table_of(("processor time for an operation, us", "nacre-server", "its memory nodes",
                     *(peer.title for peer in PEERS)), lines)


def memory_of(cells: dict[str, Result]) -> str:
    lines = [[row.name.removeprefix("memory for a key, "),
              format_number(cells[row.name].medians()[0])]
             for row in MEMORY_ROWS if row.name in cells]
    return table_of((f"memory for a key with a value of {MEMORY_VALUE} B", "bytes"), lines)


def targets_of(results: list[Result]) -> str:
    """Which are met, and which are missed by how much."""
    judged = [result for result in results if result.met() is not None]
    missed = [f"{result.row.name} ({result.ratio():.2f} of {result.row.target:g})"
              for result in judged if not result.met()]
    if not judged:
        return "None of these rows has a target."
    text = (f"Targets: rates of at least {ALONE_RATIO:g} times those of Redis with appendfsync "
            f"always at a pipeline of 1, and {PIPELINED_RATIO:g} times at longer ones. "
            f"{len(judged) - len(missed)} of {len(judged)} are met")
    return text + (f"; missed: {'; '.join(missed)}." if missed else ".")


# ---- Measuring ---------------------------------------------------------------------------------


def processor_seconds(process: subprocess.Popen) -> float:
    """Of all its threads, and of children that have ended."""
    # The name in the second field may have spaces.
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def resident_bytes(process: subprocess.Popen) -> int:
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status).group(1)) << 10


def await_rest(processes: list[subprocess.Popen]) -> None:
    """Until they do hardly anything any more, as far as they come to that."""
    deadline = time.monotonic() + SETTLE_SECONDS_MAX
    while time.monotonic() < deadline:
        before = sum(map(processor_seconds, processes))
        time.sleep(REST_SECONDS)
        if sum(map(processor_seconds, processes)) - before < REST_SHARE * REST_SECONDS:
            return


class Connection:
    """Commands to a server, for what redis-benchmark does not do."""

    def __init__(self, port: int):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=START_SECONDS)

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_) -> None:
        self.socket.close()

    def fill(self, num: int, value_bytes: int) -> None:
        """Each key of the benchmark once, in an order that is not theirs."""
        value = b"x" * value_bytes
        step = next(step for step in range(int(num * 0.618) | 1, num + 2, 2) if coprime(step, num))
        key = 0
        for first in range(0, num, FILL_PIPELINE):
            count = min(FILL_PIPELINE, num - first)
            commands = []
            for _ in range(count):
                name = (KEY_FORMAT % key).encode()
                commands.append(b"*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n"
                                % (len(name), name, value_bytes, value))
                key = (key + step) % num
            self.socket.sendall(b"".join(commands))
            answer = b""
            while len(answer) < count * 5:
                more = self.socket.recv(1 << 16)
                if not more:
                    raise CompareError("the server closed while it was filled")
                answer += more
            if answer != b"+OK\r\n" * count:
                raise CompareError(f"a SET was answered {answer[:200]!r}")

    def info(self, section: str) -> dict[str, str]:
        self.socket.sendall(b"INFO %s\r\n" % section.encode())
        answer = b""
        while b"\r\n" not in answer or len(answer) < self.whole(answer):
            answer += self.socket.recv(1 << 16)
        lines = (line.partition(":") for line in answer.decode().splitlines() if ":" in line)
        return {name: value for name, _, value in lines}

    @staticmethod
    def whole(answer: bytes) -> int:
        """The length that the answer, a bulk string, has when it is complete."""
        head, _, _ = answer.partition(b"\r\n")
        return len(head) + 4 + int(head[1:])


def coprime(a: int, b: int) -> bool:
    while b:
        a, b = b, a % b
    return a == 1


@dataclass
class Serving:
    """A server that serves, and its memory nodes."""
    port: int
    process: subprocess.Popen
    nodes: list[subprocess.Popen]
    metrics: tuple[int, ...] = ()  # Ports of the nodes', and then of the server's.
    file: Optional[pathlib.Path] = None  # The folder of Redis's file.


def await_line(process: subprocess.Popen, wanted: str, what: str) -> str:
    """The first line of its output that has `wanted`."""
    lines = []
    while line := process.stdout.readline().decode(errors="replace"):
        lines.append(line.strip())
        if wanted in line:
            return line.strip()
    raise CompareError(f"{what} ended: {lines[-1] if lines else 'it said nothing'}")


def metric(port: int, name: str, labels: str = "") -> float:
    """The sum of those that have these labels."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=START_SECONDS) as page:
        lines = page.read().decode().splitlines()
    found = [line for line in lines if re.match(rf"{name}(\{{|\s)", line) and labels in line]
    if not found:
        raise CompareError(f"the page at port {port} has no {name} with '{labels}'")
    return sum(float(line.rsplit(" ", 1)[1]) for line in found)


class Bench(rounds.Bench):
    bench_binary = BINARY
    loads = LOADS  # That rows are of.

    @staticmethod
    def require_programs() -> None:
        for program in (REDIS, BENCHMARK):
            if shutil.which(program) is None:
                raise CompareError(f"there is no {program} (Debian: redis-server, redis-tools)")

    @contextlib.contextmanager
    def serve_nacre(self, what: Run) -> Iterator[Serving]:
        written = self.num * (what.value_bytes + 50)
        size = (ROOM * written // NODES // SLAB_BYTES + 16) * SLAB_BYTES
        ports = tuple(free_port() for _ in range(NODES + 1)) if what.memory else ()
        sockets = [self.free_socket(i) for i in range(NODES)]
        with contextlib.ExitStack() as stack:
            nodes = []
            for i, path in enumerate(sockets):
                flags = (f"--metrics=127.0.0.1:{ports[i]}",) if ports else ()
                nodes += stack.enter_context(
                    self.nodes([f"shm:{path}"], str(size), self.binaries, flags))
            # Its own page has it take times, so that it is for memory alone.
            flags = [f"--metrics=127.0.0.1:{ports[-1]}"] if ports else []
            server = start([self.binaries / BINARY, f"--redundancy={REDUNDANCY}",
                            "--pool=shm:" + ",".join(map(str, sockets)),
                            "--listen=127.0.0.1:0", *flags], stderr=subprocess.STDOUT)
            stack.callback(end, server)
            line = await_line(server, "serving ", BINARY)
            yield Serving(int(line.rpartition(":")[2]), server, nodes, ports)

    @contextlib.contextmanager
    def serve_redis(self, peer: Peer) -> Iterator[Serving]:
        folder = (self.runs if peer.on_disk else self.scratch) / "redis"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        if peer.on_disk and file_system_of(folder) == "tmpfs":
            raise CompareError(f"{folder} is in memory: --out wants a folder on a disk")
        port = free_port()
        how = ["--appendonly", "no"]
        if peer.durable:
            # A log that is written anew meanwhile would take processor time from what is measured.
            how = ["--appendonly", "yes", "--appendfsync", "always",
                   "--auto-aof-rewrite-percentage", "0"]
        server = start([REDIS, "--port", str(port), "--bind", "127.0.0.1", "--dir", folder,
                        "--save", "", *how], stderr=subprocess.STDOUT)
        try:
            await_line(server, "Ready to accept connections", REDIS)
            yield Serving(port, server, [], (), folder)
        finally:
            server.send_signal(signal.SIGKILL)
            end(server)
            shutil.rmtree(folder, ignore_errors=True)

    def serve(self, what: Run) -> contextlib.AbstractContextManager:
        if what.engine == NACRE:
            return self.serve_nacre(what)
        return self.serve_redis(next(peer for peer in PEERS if peer.name == what.engine))

    def run(self, what: Run, number: int) -> Loads | Memory:
        title = f"{what.name}, round {number}"
        with self.serve(what) as serving:
            with Connection(serving.port) as connection:
                connection.fill(self.num, what.value_bytes)
            if what.memory:
                return self.memory_of(serving)
            return {(command, pipeline): self.drive(serving, command, pipeline, what.value_bytes,
                                                    title)
                    for pipeline in PIPELINES for command in COMMANDS
                    if (command, pipeline, what.value_bytes) in self.loads}

    def drive(self, serving: Serving, command: str, pipeline: int, value_bytes: int,
              title: str) -> Measured:
        if command == "GET":
            # The work that the SETs before have left is none of its own.
            await_rest([serving.process, *serving.nodes])
        operations = max(CLIENTS * pipeline, self.num // (5 if pipeline == 1 else 2))
        before = [processor_seconds(each) for each in (serving.process, *serving.nodes)]
        output = await_end(start(
            [BENCHMARK, "-h", "127.0.0.1", "-p", str(serving.port), "-c", str(CLIENTS),
             "-P", str(pipeline), "-d", str(value_bytes), "-r", str(self.num),
             "-n", str(operations), "-t", command.lower(), "--csv"], stderr=subprocess.PIPE), title)
        after = [processor_seconds(each) for each in (serving.process, *serving.nodes)]
        spent = [(b - a) * 1e6 / operations for a, b in zip(before, after)]
        lines = output[output.find('"test"'):].splitlines()
        for line in csv.DictReader(lines):
            if line["test"] == command:
                return Measured(float(line["rps"]), float(line["p50_latency_ms"]),
                                float(line["p99_latency_ms"]), spent[0], sum(spent[1:]))
        raise CompareError(f"{title}: {BENCHMARK} says nothing of {command}: {output[-200:]}")

    def memory_of(self, serving: Serving) -> Memory:
        """For each key, once nothing changes any more."""
        resident = resident_bytes(serving.process) / self.num
        if not serving.metrics:
            with Connection(serving.port) as connection:
                used = int(connection.info("memory")["used_memory"]) / self.num
            file = sum(path.stat().st_size for path in serving.file.rglob("*") if path.is_file())
            return {"used": used, "resident": resident, "all": resident + file / self.num}
        nodes, own = serving.metrics[:-1], serving.metrics[-1]
        deadline = time.monotonic() + SETTLE_SECONDS_MAX
        while metric(own, "nacre_db_running_compactions") + metric(
                own, "nacre_db_running_flushes") > 0 and time.monotonic() < deadline:
            time.sleep(0.2)
        leased = sum(metric(port, "nacre_slabs_leased") * metric(port, "nacre_slab_bytes")
                     for port in nodes) / self.num
        parts = {part: metric(own, "nacre_db_space_bytes", f'part="{name}"') / self.num
                 for part, name in SPACE_PARTS.items()}
        resident = resident_bytes(serving.process) / self.num
        return {"leased": leased, "resident": resident, "all": leased + resident, **parts}

    def micro(self, name: str, _number: int) -> float:
        raise CompareError(f"no row is of the microbenchmark {name}")


def file_system_of(folder: pathlib.Path) -> str:
    """The kind of the file system that it is in."""
    best = ("", "")
    for line in pathlib.Path("/proc/mounts").read_text().splitlines():
        _, point, kind, *_ = line.split()
        if folder.resolve().is_relative_to(point) and len(point) >= len(best[0]):
            best = (point, kind)
    return best[1]


def redis_version() -> str:
    """As "7.0.15"."""
    found = re.search(r" v=(\S+)", run_process([REDIS, "--version"], REDIS))
    if found is None:
        raise CompareError(f"{REDIS} does not tell its version")
    return found[1]


def heading(options: argparse.Namespace) -> str:
    return (f"{options.num:,} keys; `redis-benchmark` with {CLIENTS} clients on one thread over "
            "loopback, random keys, all of them there; `nacre-server` over "
            f"{NODES} `nacre-memnode` processes on shm with {REDUNDANCY}, Redis "
            f"{redis_version()} with its own settings but that no log is written anew meanwhile; "
            "all on this machine. Redis's one copy in tmpfs or on a disk stands beside Nacre's, "
            "which outlives any node. GETs begin when the servers and nodes are at rest, so that "
            "they do not share the processors with what SETs before them have left. Latencies are "
            "from when a pipeline is sent until all of it is answered. "
            f"Medians of {options.rounds}.\n")


TABLE = Table("server", "nacre", ROWS, RUNS, (), "", "")


def run(options: argparse.Namespace, progress_of: Callable) -> None:
    """`progress_of`: makes the line that says how far it is, of the number of runs."""
    chosen = select_among(ROWS, options.only)
    Bench.loads = tuple(load for load in LOADS
                        if any(row.name.startswith(load_name(*load) + ":") for row in chosen))
    Bench.require_programs()
    TABLE.run(options, chosen, Bench, progress_of, heading(options), None)
