"""The table of keyspaces: what several shards in one process cost and gain against one database.

Each round runs Nacre over four nacre-memnode processes of this host as one database and as
keyspaces of 1, 2, 4 and 8 shards; which is first rotates. A row shows medians over the rounds.
"""

import argparse
import json
from dataclasses import dataclass
from typing import Callable

import rounds
from measure import NODES, SLAB_BYTES, run as run_process
from rounds import RATIO_AT_LEAST, Row, select_among
from workload import KEY_BYTES, VALUE_BYTES, CompareError

BINARY = "db_bench"  # No peer's is needed.
THREADS = 2
MULTIGET_KEYS = 32
SHARDS = (1, 2, 4, 8)
DATABASE = "one database"
MOST_SHARDS_RATIO = 0.95
STEPS = ("fillrandom", "waitforcompaction", "readrandom", "multireadrandom", "readseq",
         "seekrandom", "readrandomwriterandom")
MEASURED = tuple(step for step in STEPS if step != "waitforcompaction")
ROOM = 4  # Times what is written, for level 0 and for what compaction makes of it.


@dataclass(frozen=True)
class Run:
    """One process of db_bench and its nodes."""
    shards: int  # 0: a database.

    @property
    def name(self) -> str:
        return f"{self.shards} shards" if self.shards else DATABASE


RUNS = (Run(0), *(Run(shards) for shards in SHARDS))
Reports = dict[str, dict[str, float]]  # By run and step: operations a second.


def row(step: str, shards: int) -> Row:
    name = Run(shards).name
    target = MOST_SHARDS_RATIO if shards == SHARDS[-1] else None
    return Row(f"{step}, {name}", "ops/s",
               lambda reports, _: (reports[name][step], reports[DATABASE][step]),
               (name, DATABASE), target, RATIO_AT_LEAST, DATABASE)


ROWS = tuple(row(step, shards) for step in MEASURED for shards in SHARDS)
TABLE = rounds.Table("sharded", "keyspace", ROWS, RUNS, (), "", "")


class Bench(rounds.Bench):
    bench_binary = BINARY

    def run(self, what: Run, number: int) -> dict[str, float]:
        path = self.path(what, number, "json")
        path.unlink(missing_ok=True)
        title = f"{what.name}, round {number}"
        written = THREADS * self.num * (KEY_BYTES + VALUE_BYTES)
        size = (ROOM * written // NODES // SLAB_BYTES + 16) * SLAB_BYTES
        sharded = (f"--sharded={what.shards}",) if what.shards else ()
        with self.pool(NODES, size, "") as (uri, _):
            run_process(
                [self.binaries / BINARY, "--engine=nacre", f"--pool={uri}",
                 f"--key_size={KEY_BYTES}", f"--value_size={VALUE_BYTES}", f"--num={self.num}",
                 f"--threads={THREADS}", f"--seed={1000 * number}", "--disable_wal=true",
                 f"--reads={self.num // 2}", f"--seeks={self.num // 50}", "--seek_nexts=50",
                 f"--multiread_batch={MULTIGET_KEYS}",
                 "--benchmarks=" + ",".join(STEPS), *sharded, f"--json={path}"], title)
        try:
            steps = json.loads(path.read_text())["benchmarks"]
            if [step["name"] for step in steps] != list(STEPS):
                raise CompareError(f"{title}: {path} tells of other benchmarks than were run")
            return {step["name"]: step["ops_per_sec"] for step in steps}
        except (OSError, ValueError, KeyError) as error:
            raise CompareError(f"{title}: {path}: {error}") from error

    def micro(self, name: str, _number: int) -> float:
        raise CompareError(f"no row is of the microbenchmark {name}")


def heading(options: argparse.Namespace) -> str:
    return (f"{options.num:,} keys of {KEY_BYTES} B with {VALUE_BYTES} B values, {THREADS} "
            f"threads, no log, {NODES} `nacre-memnode` processes on shm, all of this machine. "
            "Each shard has the options of the database. MultiGets have "
            f"{MULTIGET_KEYS} keys of all shards, a seek is followed by 50 steps. "
            f"Medians of {options.rounds}.\n")


def run(options: argparse.Namespace, progress_of: Callable) -> None:
    """`progress_of`: makes the line that says how far it is, of the number of runs."""
    TABLE.run(options, select_among(ROWS, options.only), Bench, progress_of, heading(options), None)
