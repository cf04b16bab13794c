"""The table of tails: what a slow memory node costs.

Each round runs four threads, half of whose operations are reads and half logged writes, over six
nacre-memnode processes of this host that are reached by tcp: with all nodes well, with one node
stopped (SIGSTOP) for two seconds at a time, each in turn, with two at a time, with one that loses
one packet in a hundred (nftables, in a network namespace of the run's own), and with one that takes
ten milliseconds for everything (the nic model; the other five are reached over shm then). One table
that four processes read, of one replica and of three, shows what spreading its reads is worth.
With --before the runs with all nodes well and with one stopped are repeated, in turn, with the
binaries of another commit. Nodes are filled without the log, and while all are well.
"""

import argparse
import contextlib
import json
import os
import pathlib
import signal
import statistics
import subprocess
import threading
import time
from dataclasses import dataclass, field
from typing import Callable, Iterator, Optional

import rounds
from free_ports import free_port
from measure import await_end, start
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
LOST_PERCENT = 1
HOT_READERS = 4
HOT_KEYS, HOT_VALUE_BYTES = 400, 16384  # One table.
HOT_THREADS = 4  # Of each reader.
HOT_PORT = "rtt_us=2&port_gbps=10"
HOT_NODE_SIZE = "256MiB"
HOT_BENCHMARK = "readrandom"
HOT_READS = 40_000
MIXED = "readrandomwriterandom"
PING_PONG = "bare ping-pong over tcp"
PING_PONG_OF_THREE = "bare ping-pong over tcp with three at once"  # As a Put's replicas are.
WRITERS = (1, 8, 64)
BINARY = "db_bench"
# Of four operations that wait for a node a sample would rarely have one.
ALL_LATENCIES = ("--latency_sample_period=1",)


@dataclass(frozen=True)
class Run:
    """What happens to the nodes while the load runs."""
    name: str
    redundancy: str
    stopped: int = 0  # Nodes at a time.
    slow: bool = False  # The last one, all the time.
    over_shm: bool = False  # All but the last.
    loses: bool = False  # The last one, packets of both directions.
    before: bool = False  # With the binaries of another commit.


@dataclass(frozen=True)
class HotTable:
    """Processes read one table at the same time, whose nodes' ports they share."""
    name: str
    redundancy: str


@dataclass
class Measured:
    rate: float
    put: dict  # Latencies in microseconds: p50_us, p99_us, p999_us, max_us.
    get: dict
    sent: float  # Bytes that the compute node sent for each operation.
    cpu_us: float  # Processor time of the compute node for each operation.


Reports = dict[str, Measured | float]  # Of a hot table: reads a second.
HOT_ONE = HotTable("hot table of one replica", "rep(1)")
HOT_THREE = HotTable("hot table of three replicas", "rep(3)")


def writers_name(threads: int) -> str:
    return f"Put over tcp, {threads} threads"


MICROBENCHMARKS = {PING_PONG: "BM_BarePingPongOverTcp/sockets:1/real_time",
                   PING_PONG_OF_THREE: "BM_BarePingPongOverTcp/sockets:3/real_time"} | {
    writers_name(threads): f"BM_PutOverTcp/real_time/threads:{threads}" for threads in WRITERS}


def name_of(redundancy: str, what: str, before: bool) -> str:
    return f"{redundancy} {what}" + (" before" if before else "")


def runs_of(redundancy: str, before: bool) -> list[Run]:
    def make(what: str, **arguments) -> Run:
        return Run(name_of(redundancy, what, before), redundancy, before=before, **arguments)
    runs = [make("well"), make("one stopped", stopped=1)]
    if not before:
        runs += [make("two stopped", stopped=2), make("one loses packets", loses=True),
                 make("well over shm", over_shm=True), make("one slow", over_shm=True, slow=True)]
    return runs


RUNS = tuple(run for before in (False, True) for redundancy in (CODED, COPIES)
             for run in runs_of(redundancy, before)) + (HOT_ONE, HOT_THREE)


def rows_of(redundancy: str, before: bool) -> Iterator[Row]:
    def name(what: str) -> str:
        return name_of(redundancy, what, before)

    suffix = ", the commit before" if before else ""
    well, stopped, two = name("well"), name("one stopped"), name("two stopped")
    shm, slow, loses = name("well over shm"), name("one slow"), name("one loses packets")

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

    for nodes, run, most in (("one", stopped, 20), ("two", two, 100))[:1 if before else 2]:
        yield Row(f"{redundancy}, {nodes} stopped for {STOP_SECONDS:g} s, each in turn: "
                  f"longest Put{suffix}", "ms", own(run, put_max), (run,), target(most))
        yield Row(f"{redundancy}, {nodes} stopped for {STOP_SECONDS:g} s, each in turn: "
                  f"longest Get{suffix}", "ms", own(run, get_max), (run,), target(most))
    yield Row(f"{redundancy}, one stopped: operations{suffix}", "ops/s",
              against(stopped, well, lambda run: run.rate), (stopped, well), target(0.9),
              RATIO_AT_LEAST, "none stopped")
    if before:
        return
    for what, read in (("Put", lambda run: run.put["p99_us"]),
                       ("Get", lambda run: run.get["p99_us"])):
        yield Row(f"{redundancy}, one node {SLOW_MICROS / 1000:g} ms slow: p99 of {what}{suffix}",
                  "us", against(slow, shm, read), (slow, shm), target(1.5), RATIO_AT_MOST,
                  "none slow")
    for what, read in (("Put", lambda run: run.put["p999_us"]),
                       ("Get", lambda run: run.get["p999_us"])):
        yield Row(f"{redundancy}, one node loses {LOST_PERCENT} % of its packets: p99.9 of "
                  f"{what}{suffix}", "us", against(loses, well, read), (loses, well), target(2),
                  RATIO_AT_MOST, "none lost")


def rows_of_writers() -> Iterator[Row]:
    alone = writers_name(1)
    for peer, target in ((PING_PONG, 1.3), (PING_PONG_OF_THREE, None)):
        beside = "" if target is not None else ", beside three peers"
        yield Row(f"logged Put over tcp, 1 thread: p50{beside}", "us",
                  lambda _, micros, peer=peer: (micros[alone]["p50_us"], micros[peer]["p50_us"]),
                  (alone, peer), target, RATIO_AT_MOST, peer)
    for threads in WRITERS[1:]:
        name = writers_name(threads)
        yield Row(f"logged Puts over tcp, {threads} threads", "ops/s",
                  lambda _, micros, name=name: (micros[name]["items_per_second"],
                                                micros[alone]["items_per_second"]),
                  (name, alone), None, RATIO_AT_LEAST, "1 thread")


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
    result.append(Row(
        f"{COPIES}, hot table, {HOT_READERS} reader processes: {HOT_BENCHMARK}", "ops/s",
        lambda reports, _: (reports[HOT_THREE.name], reports[HOT_ONE.name]),
        (HOT_THREE.name, HOT_ONE.name), 2.5, RATIO_AT_LEAST, "one replica"))
    result += rows_of_writers()
    if with_before:
        result += [row for redundancy in (CODED, COPIES) for row in rows_of(redundancy, True)]
        result += [row for redundancy in (CODED, COPIES) for row in rows_beside_before(redundancy)]
    return tuple(result)


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


def read_benchmark(path: pathlib.Path, title: str) -> dict:
    """What db_bench reports of the one benchmark that it ran."""
    try:
        (report,) = json.loads(path.read_text())["benchmarks"]
        return report
    except (OSError, ValueError, KeyError) as error:
        raise CompareError(f"{title}: {path}: {error}") from error


class Bench(rounds.Bench):
    before: Optional[pathlib.Path] = None
    bench_binary = BINARY
    micro_binary = "micro_db"

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.longest: dict[str, list[tuple[float, float]]] = {}  # Milliseconds of Put and Get.

    def median_longest(self) -> dict[str, dict[str, float]]:
        """Milliseconds by operation, by run in their order."""
        return {run.name: {operation: statistics.median(each[i] for each in self.longest[run.name])
                           for i, operation in enumerate(("Put", "Get"))}
                for run in RUNS if run.name in self.longest}

    def micro(self, name: str, number: int) -> dict:
        """One of MICROBENCHMARKS."""
        return self.micro_result(MICROBENCHMARKS[name], number)

    @contextlib.contextmanager
    def tcp_pool(self, what: Run, binaries: pathlib.Path
                 ) -> Iterator[tuple[str, list[subprocess.Popen]]]:
        """Fresh memory nodes; gives the URI of their pool, and their processes."""
        addresses = [f"tcp:127.0.0.1:{free_port()}" for _ in range(NODES)]
        if what.over_shm:
            addresses[:-1] = [f"shm:{self.free_socket(i)}" for i in range(NODES - 1)]
        with self.nodes(addresses, NODE_SIZE, binaries) as nodes:
            if what.over_shm:
                yield "mixed:" + ",".join(addresses), nodes
            else:
                yield "tcp:" + ",".join(each.removeprefix("tcp:") for each in addresses), nodes

    @contextlib.contextmanager
    def network_of_its_own(self, title: str) -> Iterator[None]:
        """What is started within this has a loopback device that nothing else has."""
        name = f"nacre-tails-{os.getpid()}"
        run_process(["ip", "netns", "add", name], title)
        try:
            run_process(["ip", "-n", name, "link", "set", "lo", "up"], title)
            self.prefix = ("ip", "netns", "exec", name)
            yield
        finally:
            self.prefix = ()
            run_process(["ip", "netns", "del", name], title)

    def lose_packets_of(self, port: str, title: str) -> None:
        """From here on, one in a hundred, each way, at random."""
        rules = [f"add rule inet tails output tcp {end} {port} numgen random mod 100 < "
                 f"{LOST_PERCENT} drop" for end in ("sport", "dport")]
        run_process([*self.prefix, "nft", "; ".join(
            ["add table inet tails",
             "add chain inet tails output { type filter hook output priority 0 ; }", *rules])],
            title)

    def read_hot_table(self, what: HotTable, number: int) -> float:
        """Reads a second of all readers together."""
        title = f"{what.name}, round {number}"
        ports = self.scratch / "ports"
        ports.unlink(missing_ok=True)
        addresses = [f"shm:{self.free_socket(i)}" for i in range(NODES)]
        with self.nodes(addresses, HOT_NODE_SIZE, self.binaries):
            command = [self.binaries / BINARY, "--engine=nacre", f"--num={HOT_KEYS}",
                       f"--key_size={KEY_BYTES}", f"--value_size={HOT_VALUE_BYTES}",
                       f"--redundancy={what.redundancy}", "--pool=shm:"
                       + ",".join(each.removeprefix("shm:") for each in addresses)
                       + f"?{HOT_PORT}&ports={ports}"]
            run_process([*command, "--disable_wal", "--max_background_jobs=1",
                         "--benchmarks=fillseq,flush"], title)
            paths = [self.path(what, number, f"{i}.json") for i in range(HOT_READERS)]
            readers = [start([*command, "--use_existing_db", "--use_secondary_db",
                              f"--benchmarks={HOT_BENCHMARK}", f"--reads={HOT_READS}",
                              f"--threads={HOT_THREADS}",
                              f"--seed={1000 * number + i}", f"--json={path}"],
                             stderr=subprocess.PIPE) for i, path in enumerate(paths)]
            for reader in readers:
                await_end(reader, title)
        return sum(read_benchmark(path, title)["ops_per_sec"] for path in paths)

    def run(self, what: Run | HotTable, number: int) -> Measured | float:
        if isinstance(what, HotTable):
            return self.read_hot_table(what, number)
        title = f"{what.name}, round {number}"
        path = self.path(what, number, "json")
        path.unlink(missing_ok=True)
        binaries = self.before if what.before else self.binaries
        network = self.network_of_its_own(title) if what.loses else contextlib.nullcontext()
        with network, self.tcp_pool(what, binaries) as (uri, nodes):
            command = [*self.prefix, binaries / BINARY, "--engine=nacre", f"--num={self.num}",
                       f"--key_size={KEY_BYTES}", f"--value_size={VALUE_BYTES}",
                       f"--redundancy={what.redundancy}", f"--seed={1000 * number}"]
            run_process([*command, f"--pool={uri}", "--disable_wal",
                         "--benchmarks=fillrandom,flush,waitforcompaction"], title)
            delay = f"?tcp.rtt_us={SLOW_MICROS}" if what.slow else ""
            if what.loses:
                self.lose_packets_of(uri.rpartition(":")[2], title)
            stopper = Stopper(nodes, what.stopped)
            thread = threading.Thread(target=stopper.run)
            if what.stopped > 0:
                thread.start()
            try:
                run_process([*command, f"--pool={uri}{delay}", "--use_existing_db",
                             f"--benchmarks={MIXED}",
                             f"--threads={THREADS}", "--readwritepercent=50",
                             f"--duration={SECONDS}", *ALL_LATENCIES, f"--json={path}"], title)
            finally:
                stopper.ending.set()
                if what.stopped > 0:
                    thread.join()
        report = read_benchmark(path, title)
        latencies = report["latencies"]
        self.longest.setdefault(what.name, []).append(
            (latencies["write"]["max_us"] / 1000, latencies["read"]["max_us"] / 1000))
        return Measured(report["ops_per_sec"], latencies["write"], latencies["read"],
                        report["network"]["compute_written"] / report["ops"],
                        report["process_cpu_seconds"] * 1e6 / report["ops"])


def run(options: argparse.Namespace, progress_of: Callable) -> None:
    Bench.before = options.before
    all_rows = rows(options.before is not None)
    table = rounds.Table("tails", "nacre", all_rows, RUNS, tuple(MICROBENCHMARKS), "tails.png",
                         "The longest operations while nodes are slow, in milliseconds")
    chosen = select_among(all_rows, options.only)
    plotted = not options.no_plot and any(isinstance(what, Run) for what in table.needed(chosen))
    heading = (f"{options.num:,} keys of {KEY_BYTES} B with {VALUE_BYTES} B values; "
               f"{NODES} `nacre-memnode` processes over tcp on this machine; {THREADS} threads, "
               f"half of whose operations are Gets and half Puts with the log, for {SECONDS} s. "
               "Stopped: SIGSTOP. Packets are dropped by nftables. "
               f"{SLOW_MICROS / 1000:g} ms slow: five nodes over shm, and one over tcp behind the "
               f"nic model (`tcp.rtt_us={SLOW_MICROS}`), for all its one-sided operations. "
               f"Hot table: {HOT_KEYS:,} values of {HOT_VALUE_BYTES:,} B over shm behind the nic "
               f"model (`{HOT_PORT}`), its ports shared by the {HOT_READERS} processes of "
               f"{HOT_THREADS} threads, "
               "which follow the database. Logged Puts over tcp: of 400 B to three nodes, the "
               "ping-pong of as many bytes over one blocking socket (`micro_db`). "
               f"Medians of {options.rounds} rounds.")

    def draw(bench: Bench, about: str, file: str) -> None:
        import plot  # Needs matplotlib.
        plot.write_tails(bench.median_longest(), about, file)

    table.run(options, chosen, Bench, progress_of, heading, draw if plotted else None)
