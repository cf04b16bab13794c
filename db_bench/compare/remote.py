"""The table of remote memory: Nacre against RocksDB's own stack over the same memory nodes.

RocksDB's files lie in the pool, too (adapters/rocksdb_fs): its block-based tables are written,
read and compacted by its own code over one-sided operations, as in the baselines of dLSM. Each
round runs both on fresh nodes, RocksDB with each size of blocks, with the memory of this machine as
it is and with the round trip of a network before it; who is first rotates. A row shows medians over
the rounds.
"""

import argparse
import json
from dataclasses import dataclass
from typing import Callable, Optional

import rounds
from measure import DB_BENCH, NODES, node_bytes, run as run_process
from rounds import RATIO_AT_LEAST, Row, select_among
from workload import DATABASE_FLAGS, KEY_BYTES, READS_PER_KEY, REPEATS, VALUE_BYTES, CompareError

NETWORKS = {"shm": "", "nic": "rtt_us=2"}
BLOCKS = (8192, 2048)
# With 8 MiB of it RocksDB was as fast with blocks of 8 KiB, and slower with those of 2 KiB.
CACHE_BYTES = 0

FILL, READ, SCAN = "fillrandom", "readrandom", "readseq"
BENCHMARKS = (FILL, "waitforcompaction", "compact", READ, *(SCAN for _ in REPEATS))
TARGETS = {FILL: 2.5, READ: 3.0, SCAN: 2.5}


@dataclass(frozen=True)
class Run:
    """An engine over a network."""
    network: str
    block: Optional[int] = None  # RocksDB's block size; None: Nacre.

    @property
    def name(self) -> str:
        engine = "nacre" if self.block is None else f"rocksdb {self.block >> 10} KiB"
        return f"{engine} {self.network}"


RUNS = tuple(Run(network, block) for network in NETWORKS for block in (None, *BLOCKS))


def rate(report: list[dict], benchmark: str) -> float:
    """Operations a second, of all that this benchmark did."""
    steps = [step for step in report if step["name"] == benchmark]
    return sum(step["ops"] for step in steps) / sum(step["seconds"] for step in steps)


def row(network: str, benchmark: str, block: int) -> Row:
    ours, theirs = Run(network), Run(network, block)

    def measure(reports: dict, _micros: dict) -> tuple[float, float]:
        return rate(reports[ours.name], benchmark), rate(reports[theirs.name], benchmark)

    return Row(f"{benchmark}, {network}, blocks of {block >> 10} KiB", "ops/s", measure,
               (ours.name, theirs.name), TARGETS[benchmark], RATIO_AT_LEAST,
               f"RocksDB, {block >> 10} KiB")


ROWS = tuple(row(network, benchmark, block)
             for network in NETWORKS for benchmark in TARGETS for block in BLOCKS)
TABLE = rounds.Table("remote", "nacre", ROWS, RUNS, (), "", "")


class Bench(rounds.Bench):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.found: dict[int, tuple[str, list]] = {}  # By round: who was first, and what it found.

    def run(self, what: Run, number: int) -> list[dict]:
        """The reports of its benchmarks."""
        title = f"{what.name}, round {number}"
        path = self.path(what, number, "json")
        path.unlink(missing_ok=True)
        engine = (("--engine=nacre", "--redundancy=none") if what.block is None else
                  ("--engine=rocksdb", f"--block_size={what.block}", f"--cache_size={CACHE_BYTES}"))
        with self.pool(NODES, node_bytes(self.num), NETWORKS[what.network]) as (uri, _):
            run_process(
                [self.binaries / DB_BENCH, *engine, *DATABASE_FLAGS, f"--num={self.num}",
                 f"--seed={1000 * number}", f"--pool={uri}",
                 f"--reads={max(1, int(self.num * READS_PER_KEY))}",
                 "--benchmarks=" + ",".join(BENCHMARKS), f"--json={path}"], title)
        report = read_report(path, title)
        self.check_found(title, number, report)
        return report

    def check_found(self, title: str, number: int, report: list[dict]) -> None:
        """All that run in a round must find the same."""
        found = [(step["found"], step["lookups"]) for step in report if step["name"] == READ]
        first, expected = self.found.setdefault(number, (title, found))
        if found != expected:
            raise CompareError(f"{title}: found {found} of its keys, {first}: {expected}")


def read_report(path, title: str) -> list[dict]:
    try:
        report = json.loads(path.read_text())["benchmarks"]
        if tuple(step["name"] for step in report) != BENCHMARKS:
            raise CompareError(f"{title}: {path} tells of other benchmarks than were run")
        return report
    except (OSError, ValueError, KeyError) as error:
        raise CompareError(f"{title}: {path}: {error}") from error


def heading(options: argparse.Namespace) -> str:
    cache = f"block cache of {CACHE_BYTES >> 20} MiB" if CACHE_BYTES else "no block cache"
    return (f"{options.num:,} keys of {KEY_BYTES} B with {VALUE_BYTES} B values, one thread, no "
            f"log, no copies, 64 MiB write buffers, 2 background jobs; {NODES} `nacre-memnode` "
            f"processes on shm for both; nic: `?{NETWORKS['nic']}`. RocksDB's files are in the "
            f"pool; filters of 10 bits, {cache}, readahead of 2 MiB. Reads and scans after "
            f"compaction. Medians of {options.rounds}.\n")


def run(options: argparse.Namespace, progress_of: Callable) -> None:
    """`progress_of`: makes the line that says how far it is, of the number of runs."""
    TABLE.run(options, select_among(ROWS, options.only), Bench, progress_of, heading(options),
              None)
