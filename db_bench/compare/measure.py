"""Runs the processes that are measured, and the memory nodes they need."""

import contextlib
import ctypes
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import time
from typing import Iterator

from machine import PEERS
from workload import (DATABASE_FLAGS, ENGINE_FLAGS, KEY_BYTES, NACRE, VALUE_BYTES, Chain,
                      CompareError, Report)

# db_bench with the newest RocksDB as a release (db_bench/peer).
DB_BENCH = "db_bench_peer"
NODES = 4
NODE_START_SECONDS = 60
PROCESS_SECONDS_MAX = 1800
SLAB_BYTES = 64 << 20
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)


STOP_SIGNALS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
running: set[subprocess.Popen] = set()


def start(command: list, make: type = subprocess.Popen, **arguments) -> subprocess.Popen:
    """A process that ends with this one, however that ends. `end` it, or `end_all`. `make`: what
    stands for it."""
    parent = os.getpid()

    def in_child() -> None:
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # It ended before that.
            os.kill(os.getpid(), signal.SIGKILL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)

    # No interruption between the start and the note of it.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        process = make(command, stdout=subprocess.PIPE, preexec_fn=in_child,
                       **({"stdin": subprocess.DEVNULL} | arguments))
        running.add(process)
        return process
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)


def end(process: subprocess.Popen) -> None:
    if process.poll() is None:
        process.kill()
    process.wait()
    process.stdout.close()
    if process.stdin is not None:
        process.stdin.close()
    running.discard(process)


def end_all() -> None:
    for process in list(running):
        end(process)


def node_bytes(num: int) -> int:
    """Room for what overwriting piles up in level 0, and for compacting all of it."""
    pool = 4 * num * (KEY_BYTES + VALUE_BYTES) + (4 << 30)
    return (pool // NODES // SLAB_BYTES + 1) * SLAB_BYTES


class Bench:
    """The binaries in `binaries`, with what they write in `scratch` (in memory, removed by the
    caller) and `runs` (kept)."""

    def __init__(self, binaries: pathlib.Path, scratch: pathlib.Path, runs: pathlib.Path,
                 num: int, pool_parameters: str):
        self.binaries = binaries
        self.scratch = scratch
        self.runs = runs
        self.num = num
        self.pool_parameters = pool_parameters
        for binary in (DB_BENCH, "nacre-memnode", "micro_db"):
            if not (binaries / binary).exists():
                raise CompareError(f"there is no {binaries / binary}")

    @contextlib.contextmanager
    def pool(self) -> Iterator[str]:
        """Fresh memory nodes; gives the URI of their pool."""
        nodes = []
        sockets = [self.scratch / f"n{i}.sock" for i in range(NODES)]
        try:
            for socket in sockets:
                socket.unlink(missing_ok=True)
                nodes.append(start(
                    [self.binaries / "nacre-memnode", f"--listen=shm:{socket}",
                     f"--size={node_bytes(self.num)}", "--populate"], stderr=subprocess.STDOUT))
            deadline = time.monotonic() + NODE_START_SECONDS
            for node in nodes:
                await_ready(node, deadline)
            uri = "shm:" + ",".join(str(socket) for socket in sockets)
            yield uri + (f"?{self.pool_parameters}" if self.pool_parameters else "")
        finally:
            for node in nodes:
                end(node)

    def run_chain(self, chain: Chain, engine: str, round_number: int) -> Report:
        """Raises CompareError naming the engine and what it ran."""
        what = f"{engine}, {chain.name}, round {round_number}"
        path = self.runs / f"{chain.name}-{engine.replace(' ', '-')}-{round_number}.json"
        path.unlink(missing_ok=True)
        command = [
            self.binaries / DB_BENCH, *ENGINE_FLAGS[engine], *DATABASE_FLAGS,
            *chain.flags(self.num), f"--num={self.num}", f"--seed={1000 * round_number}",
            "--benchmarks=" + ",".join(step.benchmark for step in chain.steps), f"--json={path}"]
        if engine == NACRE:
            with self.pool() as uri:
                run([*command, f"--pool={uri}"], what)
        else:
            folder = self.scratch / "folder"
            try:
                run([*command, f"--db={folder}"], what)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
        return read_report(path, chain, what)

    def run_micro(self, round_number: int) -> tuple[float, float]:
        """Gets, and raw reads of the same bytes, a second."""
        what = f"micro_db, round {round_number}"
        with self.pool() as uri:
            output = run(
                [self.binaries / "micro_db", "--benchmark_filter=^BM_(Get|RawRead)$",
                 "--benchmark_format=json"], what, {"NACRE_BENCH_POOL": uri})
        (self.runs / f"micro_db-{round_number}.json").write_text(output)
        try:
            rates = {result["name"]: result["items_per_second"]
                     for result in json.loads(output)["benchmarks"]}
            return rates["BM_Get"], rates["BM_RawRead"]
        except (ValueError, KeyError) as error:
            raise CompareError(f"{what}: its output makes no sense: {error}") from error


def await_ready(node: subprocess.Popen, deadline: float) -> None:
    """Until it says so."""
    readable, _, _ = select.select([node.stdout], [], [], max(0, deadline - time.monotonic()))
    line = node.stdout.readline().decode(errors="replace").strip() if readable else "no answer"
    if not line.startswith("ready:"):
        raise CompareError(f"nacre-memnode: {line or 'ended'}")


def run(command: list, what: str, environment: dict[str, str] | None = None) -> str:
    """What it wrote on its standard output."""
    return await_end(
        start(command, stderr=subprocess.PIPE, env=os.environ | (environment or {})), what)


def await_end(process: subprocess.Popen, what: str) -> str:
    """What it wrote on its standard output; its standard error is a pipe."""
    try:
        output, errors = process.communicate(timeout=PROCESS_SECONDS_MAX)
    except subprocess.TimeoutExpired as error:
        raise CompareError(f"{what}: not done after {PROCESS_SECONDS_MAX} s") from error
    finally:
        end(process)
        process.stderr.close()
    if process.returncode != 0:
        lines = errors.decode(errors="replace").strip().splitlines()
        reason = lines[-1] if lines else "it said nothing"
        raise CompareError(f"{what}: exit code {process.returncode}: {reason}")
    return output.decode(errors="replace")


def read_report(path: pathlib.Path, chain: Chain, what: str) -> Report:
    try:
        report = json.loads(path.read_text())
        results = report["benchmarks"]
        if [result["name"] for result in results] != [step.benchmark for step in chain.steps]:
            raise CompareError(f"{what}: {path} tells of other benchmarks than were run")
        return Report({step.label: result for step, result in zip(chain.steps, results)},
                      report["space"], report["compaction"])
    except (OSError, ValueError, KeyError) as error:
        raise CompareError(f"{what}: {path}: {error}") from error


def engine_of(path: pathlib.Path) -> dict:
    """Name, description and warning of the engine that wrote `path`."""
    return json.loads(path.read_text())["engine"]


def peers_in(runs: pathlib.Path) -> dict[str, str]:
    """Version and build of each engine but Nacre that ran, by its name."""
    peers = {}
    for peer in PEERS:
        for path in sorted(runs.glob(f"*{peer}*.json"))[:1]:
            # "rocksdb 11.8.1, release build, profile ..."
            name, build, *_ = engine_of(path)["description"].split(", ")
            peers[peer] = f"{name.split()[-1]} ({build})"
    return peers
