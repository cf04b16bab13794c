"""Runs what figures need: processes of db_bench over fresh memory nodes of this host.

Figures that need the same job in the same round share it.
"""

import contextlib
import csv
import hashlib
import json
import os
import pathlib
import re
import subprocess
import time
from dataclasses import dataclass, replace
from typing import Any, Iterator, Optional, Sequence

import rounds
from durability import await_tail
from followers import cpu_list, pin
from measure import (DB_BENCH, PROCESS_SECONDS_MAX, SLAB_BYTES, end, run as run_process, start)
from workload import CompareError

LEAST_SLABS = 4
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
PIECES = re.compile(r"(rep|rs)\((\d+)(?:,(\d+))?\)")


@dataclass(frozen=True)
class Engine:
    name: str
    flags: tuple[str, ...] = ()


NACRE = Engine("nacre", ("--engine=nacre",))


def rocksdb(block_bytes: int) -> Engine:
    """RocksDB with its files in the pool of the same nodes."""
    return Engine(f"RocksDB, blocks of {size_name(block_bytes)}",
                  ("--engine=rocksdb", f"--block_size={block_bytes}", "--cache_size=0"))


def size_name(size: int) -> str:
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


@dataclass(frozen=True)
class Job:
    """A process of db_bench and its nodes."""
    steps: tuple[str, ...]  # Benchmarks, in order.
    keys: int
    engine: Engine = NACRE
    flags: tuple[str, ...] = ()
    key_bytes: int = 20
    value_bytes: int = 400
    threads: int = 1
    nodes: int = 4
    redundancy: str = "none"
    log: bool = False
    network: str = ""
    node_cores: int = 0  # How many processors the nodes may use, and workers they have; 0: all.
    room: float = 1  # How many times the bytes of all keys are written.
    before: tuple[str, ...] = ()  # Steps of a process before it, with one thread.
    kills: int = 0  # How many nodes are killed between the two.
    kill_at: float = 0  # Seconds from the start of the step that runs for --duration.
    latencies: bool = False  # Whether all latencies are kept, for Report.percentiles.

    def copies(self) -> float:
        """Stored bytes for each byte of a table."""
        match = PIECES.fullmatch(self.redundancy)
        if match is None:
            return 1
        kind, first, second = match.groups()
        return int(first) if kind == "rep" else (int(first) + int(second)) / int(first)

    def node_bytes(self) -> int:
        """Room for what is written, and for compacting all of it."""
        written = self.room * self.keys * (self.key_bytes + self.value_bytes)
        pool = 2 * self.copies() * written + (2 << 30)
        return max(LEAST_SLABS, int(pool / self.nodes / SLAB_BYTES) + 1) * SLAB_BYTES


class Report:
    """What a process of db_bench measured, and what its nodes took."""

    def __init__(self, data: dict, files: str, node_cpu_seconds: float, seconds: float):
        self.data = data
        self.files = files  # What the paths of its other files begin with.
        self.node_cpu_seconds = node_cpu_seconds
        self.seconds = seconds

    @property
    def space(self) -> dict:
        return self.data["space"]

    def steps(self, name: str) -> list[dict]:
        found = [step for step in self.data["benchmarks"] if step["name"] == name]
        if not found:
            raise CompareError(f"{self.files}: no benchmark {name}")
        return found

    def step(self, name: str) -> dict:
        """The last one of this name."""
        return self.steps(name)[-1]

    def rate(self, name: str) -> float:
        """Operations a second, over all steps of this name."""
        return (sum(step["ops"] for step in self.steps(name))
                / sum(step["seconds"] for step in self.steps(name)))

    def rate_per_cpu(self, name: str) -> float:
        """Operations for each processor second of the compute node."""
        cpu = sum(step["process_cpu_seconds"] for step in self.steps(name))
        return sum(step["ops"] for step in self.steps(name)) / max(cpu, 1e-9)

    def latency(self, name: str, operation: str, percentile: str = "p50_us") -> float:
        """Microseconds; `operation` is "read", "write" or "delete"."""
        return self.step(name)["latencies"][operation][percentile]

    def percentiles(self, name: str, operation: str,
                    wanted: Sequence[float]) -> list[tuple[float, float]]:
        """(percentile, microseconds) of a job with `latencies`."""
        at = max(i for i, step in enumerate(self.data["benchmarks"]) if step["name"] == name)
        lines = pathlib.Path(f"{self.files}-{at + 1}-{name}-{operation}.hgrm").read_text()
        shares = [tuple(map(float, line.split()[:2])) for line in lines.splitlines()[2:]
                  if line and not line.startswith("#")]
        return [(p, next(micros for micros, share in shares if 100 * share >= p - 1e-9))
                for p in wanted]

    def timeline(self, name: str) -> list[dict[str, float]]:
        """The intervals of a job that reports them; seconds count from the step's first one."""
        with open(f"{self.files}.csv", encoding="utf-8") as file:
            lines = [line for line in csv.DictReader(file) if line["benchmark"] == name]
        rows = [{key: float(value) for key, value in line.items() if key != "benchmark"}
                for line in lines]
        for row in rows[::-1]:
            row["secs_elapsed"] -= rows[0]["secs_elapsed"]
        return rows

    def remote_reads(self, name: str, operation: str) -> list[int]:
        """How many operations read nodes' memory 0, 1, 2 ... times."""
        return self.step(name)["latencies"][operation]["remote_reads"]


def node_cpu_seconds(nodes: list[subprocess.Popen]) -> float:
    """User and system time of those that live."""
    ticks = 0
    for node in nodes:
        with contextlib.suppress(OSError):
            text = pathlib.Path(f"/proc/{node.pid}/stat").read_text()
            ticks += sum(map(int, text.rpartition(")")[2].split()[11:13]))
    return ticks / TICKS_PER_SECOND


def rate_together(reports: Sequence[Report], *steps: str) -> float:
    """Operations a second of processes that began together: all that the first of the steps did,
    by the time that the slowest process took for all of the steps."""
    return (sum(report.step(steps[0])["ops"] for report in reports)
            / max(sum(report.step(step)["seconds"] for step in steps) for report in reports))


def sum_of_rates(timelines: Sequence[tuple[list[dict[str, float]], float]], seconds: float,
                 interval: float) -> list[float]:
    """Of timelines that begin after so many seconds, what they did together in each interval."""
    totals = [0.0] * round(seconds / interval)
    for rows, begin in timelines:
        for at, row in enumerate(rows):
            index = round(begin / interval) + at
            if index < len(totals):
                totals[index] += row["interval_qps"]
    return totals


class Lab(rounds.Bench):
    """`num`: the keys of a figure of ordinary size. Where processes run is what `pool` and the
    methods behind it decide: here, on this host."""

    db_bench = DB_BENCH

    def __init__(self, binaries: pathlib.Path, scratch: pathlib.Path, runs: pathlib.Path, num: int,
                 show: Any):
        super().__init__(binaries, scratch, runs, num)
        self.show = show  # Takes what is run now, as text.
        self.round = 1
        self.reports: dict[tuple[int, Job], Report] = {}

    def turn(self, items: Sequence) -> list:
        """The items, from another one on in each round."""
        by = (self.round - 1) % len(items)
        return [*items[by:], *items[:by]]

    def job(self, *steps: str, keys: float = 1, **more: Any) -> Job:
        """`keys`: times `num`."""
        return Job(steps, max(100, int(self.num * keys)), **more)

    def run(self, *steps: str, keys: float = 1, **more: Any) -> Report:
        return self.report_of(self.job(*steps, keys=keys, **more))

    def report_of(self, job: Job) -> Report:
        known = self.reports.get((self.round, job))
        if known is None:
            known = self.reports[(self.round, job)] = self._measure(job)
        return known

    # ---- Where processes run --------------------------------------------------------------------

    def cores(self, most: int) -> list[int]:
        """1, 2, 4 ... up to `most` and to what the machine of a node has."""
        least = min(most, len(os.sched_getaffinity(0)))
        return [count for count in (1, 2, 4, 8, 16) if count <= least]

    def computes(self) -> Sequence[int]:
        """How many compute nodes figures with several of them have."""
        return 1, 2, 4

    def memories(self) -> Sequence[int]:
        """How many memory nodes figures with a growing number of them have."""
        return 1, 2, 4, 8

    def hold_to(self, nodes: list[subprocess.Popen], cores: int) -> None:
        """Lets memory nodes use so many processors."""
        for node in nodes:
            pin(node.pid, set(sorted(os.sched_getaffinity(0))[-cores:]))

    def cpu_seconds(self, nodes: list[subprocess.Popen]) -> float:
        return node_cpu_seconds(nodes)

    def execute(self, command: list, title: str, files: str) -> None:
        """Runs db_bench to its end; what it writes begins with `files`."""
        run_process(command, title)

    def launch(self, command: list, number: int = 0) -> subprocess.Popen:
        """Starts db_bench as the compute node of this number; `end` it."""
        return start(command, stderr=subprocess.STDOUT)

    def collect(self, files: str, number: int = 0) -> None:
        """Fetches what a process that was launched there has written."""

    def kill_flags(self, job: Job, nodes: list[subprocess.Popen]) -> list[str]:
        """What makes db_bench kill the second node by itself."""
        return [f"--kill_pid={nodes[1].pid}", f"--kill_at_seconds={job.kill_at}"]

    # ---- One process ----------------------------------------------------------------------------

    def buffer_bytes(self) -> int:
        """A MemTable of a tenth of the keys, so that sizes of all kinds have the same levels."""
        return max(1 << 20, 1 << (self.num * 420 // 10).bit_length() - 1)

    def command(self, job: Job, files: str, uri: str, steps: tuple[str, ...]) -> list:
        share = max(1, job.keys // job.threads)
        buffer = self.buffer_bytes()
        report = [f"--report_file={files}.csv"] if job.kill_at else []
        latencies = [f"--latency_files={files}-"] if job.latencies else []
        return [self.binaries / self.db_bench, *job.engine.flags, f"--redundancy={job.redundancy}",
                f"--num={job.keys}", f"--key_size={job.key_bytes}",
                f"--value_size={job.value_bytes}", f"--threads={job.threads}",
                f"--writes={share}", f"--deletes={share}", f"--reads={max(1, share // 3)}",
                f"--readwrites={max(1, share // 3)}", f"--seeks={max(1, share // 30)}",
                f"--write_buffer_size={buffer}", f"--target_file_size_base={buffer}",
                f"--max_bytes_for_level_base={4 * buffer}", "--max_background_jobs=2",
                f"--disable_wal={'false' if job.log else 'true'}", f"--seed={1000 * self.round}",
                f"--pool={uri}", f"--json={files}.json", *report, *latencies, *job.flags,
                "--benchmarks=" + ",".join(steps)]

    def files_of(self, job: Job) -> str:
        engine = job.engine.flags[0].partition("=")[2]
        digest = hashlib.sha1(repr(job).encode()).hexdigest()[:12]
        return str(self.runs / f"{engine}-{digest}-{self.round}")

    def title(self, job: Job) -> str:
        return f"{job.engine.name}: {','.join(job.steps)}, round {self.round}"

    @contextlib.contextmanager
    def nodes_of(self, job: Job) -> Iterator[tuple[str, list[subprocess.Popen]]]:
        flags = (f"--workers={job.node_cores}",) if job.node_cores else ()
        with self.pool(job.nodes, job.node_bytes(), job.network, flags) as (uri, nodes):
            if job.node_cores:
                self.hold_to(nodes, job.node_cores)
            yield uri, nodes

    def _measure(self, job: Job) -> Report:
        self.show(self.title(job))
        files = self.files_of(job)
        with self.nodes_of(job) as (uri, nodes):
            more = []
            if job.before:
                self.execute(self.command(replace(job, kill_at=0, threads=1, latencies=False),
                                          files, uri, job.before), self.title(job), files)
                more.append("--use_existing_db")
            for node in nodes[1:1 + job.kills]:
                node.kill()
                node.wait()
            if job.kill_at or "kill" in job.steps:
                more += self.kill_flags(job, nodes)
            cpu, began = self.cpu_seconds(nodes), time.monotonic()
            self.execute([*self.command(job, files, uri, job.steps), *more], self.title(job),
                         files)
            cpu, seconds = self.cpu_seconds(nodes) - cpu, time.monotonic() - began
        return self._read(job, files, cpu, seconds)

    def _read(self, job: Job, files: str, cpu: float, seconds: float) -> Report:
        try:
            data = json.loads(pathlib.Path(f"{files}.json").read_text())
            data["benchmarks"], data["space"]
        except (OSError, ValueError, KeyError) as error:
            raise CompareError(f"{self.title(job)}: {files}.json: {error}") from error
        return Report(data, files, cpu, seconds)

    # ---- Several --------------------------------------------------------------------------------

    def together(self, job: Job, count: int, *phases: tuple[str, ...]) -> list[list[Report]]:
        """So many processes at the same time over the same nodes, a database each: first all of
        them do the steps of the job, then all of them those of each phase, on what is there."""
        self.show(f"{count} x {self.title(job)}")
        with self.nodes_of(replace(job, room=job.room * count)) as (uri, _):
            return [self._at_once(replace(job, steps=steps), count, uri,
                                  ("--use_existing_db",) if phase else ())
                    for phase, steps in enumerate((job.steps, *phases))]

    def _at_once(self, job: Job, count: int, uri: str, more: tuple[str, ...]) -> list[Report]:
        files = [f"{self.files_of(job)}-{i}" for i in range(count)]
        processes = []
        try:
            for i in range(count):
                processes.append(self.launch([*self.command(job, files[i], uri, job.steps),
                                              f"--db=db{i}", *more], i))
            return [self._await(job, files[i], process, i) for i, process in enumerate(processes)]
        finally:
            for process in processes:
                end(process)

    def _await(self, job: Job, files: str, process: subprocess.Popen, number: int) -> Report:
        try:
            output, _ = process.communicate(timeout=PROCESS_SECONDS_MAX)
        except subprocess.TimeoutExpired as error:
            raise CompareError(f"{self.title(job)}: it does not end") from error
        if process.returncode != 0:
            lines = output.decode(errors="replace").strip().splitlines()
            raise CompareError(f"{self.title(job)}: {lines[-1] if lines else 'no word'}")
        self.collect(files, number)
        return self._read(job, files, 0, 0)

    def takeover(self, job: Job, tail_bytes: int, kills: int = 0) -> dict:
        """An owner fills and is killed with `tail_bytes` in its log alone, and as many nodes as
        said with it; gives what the next one took: microseconds by step, "first_get_us" and
        "first_put_us"."""
        self.show(f"takeover, round {self.round}")
        files = self.files_of(job)
        with self.nodes_of(job) as (uri, nodes):
            more = [f"--tail_bytes={tail_bytes}",
                    f"--write_buffer_size={max(2 * tail_bytes, 1 << 20)}"]
            owner = self.launch([*self.command(job, files, uri, (*job.steps, "tail", "awaitkill")),
                                 *more])
            try:
                await_tail(owner, self.title(job))
                for process in [owner, *nodes[1:1 + kills]]:
                    process.kill()
                    process.wait()
                self.execute([*self.command(job, files, uri, ("takeover",)), *more,
                              "--use_existing_db"], self.title(job), files)
            finally:
                end(owner)
        return self._read(job, files, 0, 0).step("takeover")["takeover"]

    def followers(self, job: Job, spans: Sequence[tuple[int, int]],
                  interval: float) -> list[float]:
        """Reads a second of all followers together, in each interval. `spans`: when each of them
        begins and ends, in seconds."""
        self.show(f"{len(spans)} followers, round {self.round}")
        files = self.files_of(job)
        reports = [f"{files}-{i}" for i in range(len(spans))]
        with self.nodes_of(job) as (uri, _):
            processes = [self.launch(
                [*self.command(job, files, uri, (*job.steps, "tail", "awaitkill")),
                 "--tail_bytes=1024"])]
            try:
                await_tail(processes[0], self.title(job))
                began = time.monotonic()
                for report, (begin, finish) in zip(reports, spans):
                    time.sleep(max(0, began + begin - time.monotonic()))
                    processes.append(self.launch(
                        [*self.command(job, report, uri, ("readrandom",)), "--use_existing_db",
                         "--use_secondary_db", f"--report_file={report}.csv",
                         f"--report_interval_seconds={interval}", f"--duration={finish - begin}"],
                        len(processes)))
                measured = [self._await(job, report, process, i + 1)
                            for i, (report, process) in enumerate(zip(reports, processes[1:]))]
            finally:
                for process in processes:
                    end(process)
        return sum_of_rates([(report.timeline("readrandom"), begin)
                             for report, (begin, _) in zip(measured, spans)],
                            max(finish for _, finish in spans), interval)

    def perf(self, operation: str, size: int, network: str = "", depth: int = 1,
             seconds: float = 0.5) -> dict:
        """nacre-perf's JSON: what the transport does by itself."""
        self.show(f"nacre-perf {operation} {size}")
        uri = "shm:" + (f"?{network}" if network else "")
        output = run_process(
            [self.binaries / "nacre-perf", operation, uri, f"--size={size}", f"--depth={depth}",
             "--region=256MiB", f"--seconds={seconds}", "--json"], f"nacre-perf {operation}")
        return json.loads(output)

    def micro_millis(self, binary: str, benchmark: str, argument: int) -> float:
        """What one iteration of a microbenchmark takes by the clock."""
        self.show(f"{benchmark}/{argument}")
        output = run_process(
            [self.binaries / binary, f"--benchmark_filter=^{benchmark}/{argument}/",
             "--benchmark_format=json"], benchmark)
        result = json.loads(output)["benchmarks"][0]
        return result["real_time"] * {"ns": 1e-6, "us": 1e-3, "ms": 1}[result["time_unit"]]
