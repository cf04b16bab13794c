"""The table of keyspaces: what several shards in one process cost and gain against one database.

Each round runs Nacre over four nacre-memnode processes of this host as one database and as
keyspaces of 1, 2, 4 and 8 shards, and as 8 with as much memory for MemTables as the database has;
writes 8 shards with and without nodes that are their homes, which shows what compactions move
between nodes; and commits transactions with locks, logged, whose two keys lie in one shard, or in
two. Which is first rotates. A row shows medians over the rounds.
"""

import argparse
import json
from dataclasses import dataclass
from typing import Callable

import rounds
from measure import NODES, SLAB_BYTES, run as run_process
from rounds import RATIO_AT_LEAST, RATIO_AT_MOST, Row, select_among
from workload import KEY_BYTES, VALUE_BYTES, CompareError

BINARY = "db_bench"  # No peer's is needed.
THREADS = 2
MULTIGET_KEYS = 32
SHARDS = (1, 2, 4, 8)
DATABASE = "one database"
# MemTables of a database: those of one that takes writes, and one that is flushed.
BUDGET = 2 * (64 << 20)
SMALL_MEMTABLE = 8 << 20
MEMORY_UNIT = 1_000_000
MOST_SHARDS_RATIO = 0.95
STEPS = ("fillrandom", "waitforcompaction", "readrandom", "multireadrandom", "readseq",
         "seekrandom", "readrandomwriterandom")
MEASURED = tuple(step for step in STEPS if step != "waitforcompaction")
ROOM = 3  # Times what is written, for level 0 and for what compaction makes of it.


TRANSACTION = "randomtransaction"
WRITTEN = ("fillrandom", "overwrite", "waitforcompaction")


@dataclass(frozen=True)
class Run:
    """One process of db_bench and its nodes."""
    shards: int  # 0: a database.
    kind: str = ""  # "budget", "homes", "spread" or "transactions".

    @property
    def name(self) -> str:
        title = f"{self.shards} shards" if self.shards else DATABASE
        return f"{title}, {self.kind}" if self.kind else title

    @property
    def steps(self) -> tuple[str, ...]:
        return {"homes": WRITTEN, "spread": WRITTEN, "transactions": (TRANSACTION,)}.get(
            self.kind, STEPS)

    @property
    def flags(self) -> tuple[str, ...]:
        if self.kind == "transactions":
            return "--transaction_db", "--transaction_sets=2"
        # Small MemTables, so that shards have something to compact.
        small = f"--write_buffer_size={SMALL_MEMTABLE}"
        own = {"budget": (f"--db_write_buffer_size={BUDGET}",), "homes": (small, "--home_nodes"),
               "spread": (small,)}
        return "--disable_wal=true", *own.get(self.kind, ())


MOST = SHARDS[-1]
BUDGETED = Run(MOST, "budget")
HOMES, SPREAD = Run(MOST, "homes"), Run(MOST, "spread")
ONE_SHARD, TWO_SHARDS = Run(1, "transactions"), Run(2, "transactions")
RUNS = (Run(0), *(Run(shards) for shards in SHARDS), BUDGETED, SPREAD, HOMES, ONE_SHARD,
        TWO_SHARDS)
Reports = dict[str, dict]  # By run, what db_bench reports.
BETWEEN_NODES_RATIO = 0.1


def rate(report: dict, step: str) -> float:
    return report["steps"][step]["ops_per_sec"]


def row(step: str, run: Run) -> Row:
    target = MOST_SHARDS_RATIO if run.shards == MOST else None
    title = f"{run.shards} shards" + (", memory of one database" if run.kind else "")
    return Row(f"{step}, {title}", "ops/s",
               lambda reports, _: (rate(reports[run.name], step), rate(reports[DATABASE], step)),
               (run.name, DATABASE), target, RATIO_AT_LEAST, DATABASE)


def process_row(title: str, unit: str, figure: str, scale: float, run: Run) -> Row:
    return Row(f"{title}, {run.name}", unit,
               lambda reports, _: (reports[run.name]["process"][figure] / scale,
                                   reports[DATABASE]["process"][figure] / scale),
               (run.name, DATABASE), peer=DATABASE)


def between_nodes(report: dict) -> float:
    network = report["network"]
    return (network["memnode_read"] + network["memnode_written"]) / MEMORY_UNIT


def commit_row(percentile: str) -> Row:
    def read(report: dict) -> float:
        return report["steps"][TRANSACTION][f"{percentile}_us"]

    return Row(f"a transaction of two shards, logged, {percentile}", "us",
               lambda reports, _: (read(reports[TWO_SHARDS.name]), read(reports[ONE_SHARD.name])),
               (TWO_SHARDS.name, ONE_SHARD.name), peer="of one shard")


ROWS = (*(row(step, Run(shards)) for step in MEASURED for shards in SHARDS),
        *(row(step, BUDGETED) for step in MEASURED),
        *(process_row("memory of the process", "MB", "anonymous_bytes", MEMORY_UNIT, run)
          for run in (Run(MOST), BUDGETED)),
        process_row("threads", "", "threads", 1, Run(MOST)),
        Row(f"bytes between nodes, {MOST} shards with homes", "MB",
            lambda reports, _: (between_nodes(reports[HOMES.name]),
                                between_nodes(reports[SPREAD.name])),
            (HOMES.name, SPREAD.name), BETWEEN_NODES_RATIO, RATIO_AT_MOST, "without homes"),
        *(commit_row(percentile) for percentile in ("p50", "p99")))
TABLE = rounds.Table("sharded", "keyspace", ROWS, RUNS, (), "", "")


class Bench(rounds.Bench):
    bench_binary = BINARY

    def run(self, what: Run, number: int) -> dict:
        path = self.path(what, number, "json")
        path.unlink(missing_ok=True)
        title = f"{what.name}, round {number}"
        written = 2 * THREADS * self.num * (KEY_BYTES + VALUE_BYTES)
        size = (ROOM * written // NODES // SLAB_BYTES + 16) * SLAB_BYTES
        sharded = (f"--sharded={what.shards}",) if what.shards else ()
        # Nodes of one host map one another otherwise, and nothing goes over a network.
        network = "map=0" if what in (HOMES, SPREAD) else ""
        with self.pool(NODES, size, network) as (uri, _):
            run_process(
                [self.binaries / BINARY, "--engine=nacre", f"--pool={uri}",
                 f"--key_size={KEY_BYTES}", f"--value_size={VALUE_BYTES}", f"--num={self.num}",
                 f"--threads={THREADS}", f"--seed={1000 * number}",
                 f"--reads={self.num // 2}", f"--seeks={self.num // 50}", "--seek_nexts=50",
                 f"--readwrites={self.num // 2}", f"--multiread_batch={MULTIGET_KEYS}",
                 "--benchmarks=" + ",".join(what.steps), *sharded, *what.flags,
                 f"--json={path}"], title)
        return read_report(path, what, title)

    def micro(self, name: str, _number: int) -> float:
        raise CompareError(f"no row is of the microbenchmark {name}")


def read_report(path, what: Run, title: str) -> dict:
    try:
        report = json.loads(path.read_text())
        if [step["name"] for step in report["benchmarks"]] != list(what.steps):
            raise CompareError(f"{title}: {path} tells of other benchmarks than were run")
        return {"steps": {step["name"]: step for step in report["benchmarks"]},
                "process": report["process"], "network": report["network"]}
    except (OSError, ValueError, KeyError) as error:
        raise CompareError(f"{title}: {path}: {error}") from error


def heading(options: argparse.Namespace) -> str:
    return (f"{options.num:,} keys of {KEY_BYTES} B with {VALUE_BYTES} B values, {THREADS} "
            f"threads, no log, {NODES} `nacre-memnode` processes on shm, all of this machine. "
            "Each shard has the options of the database, and MemTables of its own, but where it "
            f"says that all share the {BUDGET >> 20} MiB of the database's "
            "(`db_write_buffer_size`). MultiGets have "
            f"{MULTIGET_KEYS} keys of all shards, a seek is followed by 50 steps. Bytes between "
            "nodes are of fillrandom and overwrite with MemTables of "
            f"{SMALL_MEMTABLE >> 20} MiB by nodes that do not map one another, memory is without "
            "what the nodes have. A "
            "transaction locks, reads and writes two keys, the commits of two shards in two "
            "phases. "
            f"Medians of {options.rounds}.\n")


def run(options: argparse.Namespace, progress_of: Callable) -> None:
    """`progress_of`: makes the line that says how far it is, of the number of runs."""
    TABLE.run(options, select_among(ROWS, options.only), Bench, progress_of, heading(options), None)
