"""What is compared: the processes that each engine runs, and the rows of the table they fill.

A chain is one process of db_bench that runs several benchmarks on one database; a step is one of
them. Rows take their numbers from the steps of one chain.
"""

import re
from dataclasses import dataclass, replace
from typing import Callable, Optional

NACRE = "nacre"
PROFILES = ("rocksdb default", "rocksdb inmemory")
LMDB = "lmdb"
ENGINES = (NACRE,) + PROFILES + (LMDB,)

KEY_BYTES = 20
VALUE_BYTES = 400
DATABASE_FLAGS = (
    f"--key_size={KEY_BYTES}", f"--value_size={VALUE_BYTES}", f"--write_buffer_size={64 << 20}",
    "--max_background_jobs=2", "--disable_wal=true")
ENGINE_FLAGS = {
    NACRE: ("--engine=nacre", "--redundancy=none"),
    PROFILES[0]: ("--engine=rocksdb", "--rocksdb_profile=default"),
    PROFILES[1]: ("--engine=rocksdb", "--rocksdb_profile=inmemory"),
    LMDB: ("--engine=lmdb",),
}


class CompareError(Exception):
    """What ends the comparison, in one line."""


@dataclass(frozen=True)
class Step:
    label: str  # Unique in its chain.
    benchmark: str
    # Whether what it finds is the same for all engines, whatever their speed.
    same_found: bool = False


@dataclass(frozen=True)
class Chain:
    name: str
    threads: int
    steps: tuple[Step, ...]
    flags: Callable[[int], tuple[str, ...]]  # Takes the number of keys.
    engines: tuple[str, ...] = (NACRE,) + PROFILES

    def until(self, labels: set[str]) -> "Chain":
        """Without the steps after the last one of `labels`."""
        last = max(i for i, step in enumerate(self.steps) if step.label in labels)
        return replace(self, steps=self.steps[:last + 1])


@dataclass(frozen=True)
class Report:
    """What one process of db_bench measured."""
    steps: dict[str, dict]  # By label, as in its JSON.
    space: dict
    compaction: dict


@dataclass(frozen=True)
class Row:
    name: str
    unit: str
    chain: Optional[str]  # None: measured by the microbenchmark.
    steps: tuple[str, ...]  # That it needs; all that come before them are run as well.
    measure: Optional[Callable[[Report], Optional[float]]]
    target: Optional[float] = None
    lower_is_better: bool = False
    # The target is an upper bound of Nacre's own number, not of a ratio.
    absolute: bool = False
    threads: int = 1
    peers: tuple[str, ...] = PROFILES  # The ratio is over the best of them.

    @property
    def title(self) -> str:
        return self.name if self.threads == 1 else f"{self.name}, {self.threads} threads"


# ---- Chains -------------------------------------------------------------------------------------

# Slow operations are fewer, for all engines alike: rates need no more.
READS_PER_KEY = 0.3
SEEKS_PER_KEY = 0.02
READWRITES_PER_KEY = 0.4
# Scans are over soon, so there are several.
REPEATS = (1, 2, 3)
YCSB_OPS_PER_KEY = 1.0
YCSB_SCANS_PER_KEY = 0.03
# All engines read and write for the same time, so that all of them flush and compact beside it.
READ_WHILE_WRITING_SECONDS = 3


def one_thread(num: int) -> tuple[str, ...]:
    return (f"--reads={max(1, int(num * READS_PER_KEY))}",
            f"--seeks={max(1, int(num * SEEKS_PER_KEY))}",
            f"--readwrites={max(1, int(num * READWRITES_PER_KEY))}",
            "--multiread_batch=32", "--multiread_batched=true", "--seek_nexts=50",
            "--readwritepercent=50")


def two_threads(num: int) -> tuple[str, ...]:
    # Together the threads do what one does in the other chains.
    return ("--threads=2", f"--writes={max(1, num // 2)}",
            f"--reads={max(1, int(num * READS_PER_KEY / 2))}",
            f"--readwrites={max(1, int(num * READWRITES_PER_KEY / 2))}", "--readwritepercent=50")


def ycsb(num: int) -> tuple[str, ...]:
    return (f"--readwrites={max(1, int(num * YCSB_OPS_PER_KEY))}",)


def ycsb_scans(num: int) -> tuple[str, ...]:
    return (f"--readwrites={max(1, int(num * YCSB_SCANS_PER_KEY))}",)


def ycsb_two_threads(num: int) -> tuple[str, ...]:
    return "--threads=2", f"--readwrites={max(1, int(num * YCSB_OPS_PER_KEY / 2))}"


def while_writing(_num: int) -> tuple[str, ...]:
    # Ends readwhilewriting only: fillseq goes by numbers.
    return (f"--duration={READ_WHILE_WRITING_SECONDS}", "--latency_sample_period=5")


CHAINS = (
    Chain("read", 1, (
        Step("fill", "fillrandom"),
        Step("read level 0", "readrandom", True),
        Step("compact", "compact"),
        Step("read", "readrandom", True),
        Step("missing", "readmissing", True),
        Step("multi", "multireadrandom", True),
        *(Step(f"forward {i}", "readseq", True) for i in REPEATS),
        *(Step(f"backward {i}", "readreverse", True) for i in REPEATS),
        Step("seek", "seekrandom", True),
        Step("mixed", "readrandomwriterandom", True),
        Step("compact again", "compact")), one_thread, ENGINES),
    Chain("write", 1, (
        Step("fill", "fillrandom"),
        Step("wait after fill", "waitforcompaction"),
        Step("overwrite 1", "overwrite"),
        Step("overwrite 2", "overwrite"),
        Step("overwrite 3", "overwrite"),
        Step("wait", "waitforcompaction")), one_thread),
    Chain("sequence", 1, (
        Step("fill", "fillseq"),
        Step("wait", "waitforcompaction"),
        Step("while writing", "readwhilewriting")), while_writing),
    Chain("threads", 2, (
        Step("fill", "fillrandom"),
        Step("compact", "compact"),
        Step("read", "readrandom", True),
        Step("mixed", "readrandomwriterandom")), two_threads),
    # In the order that YCSB recommends, since D and E add records.
    Chain("ycsb", 1, (
        Step("load", "ycsbload"),
        Step("wait", "waitforcompaction"),
        *(Step(letter, f"ycsb{letter}", True) for letter in "abcfd")), ycsb, ENGINES),
    Chain("ycsb-scans", 1, (
        Step("load", "ycsbload"),
        Step("wait", "waitforcompaction"),
        Step("e", "ycsbe", True)), ycsb_scans, ENGINES),
    Chain("ycsb-threads", 2, (
        Step("load", "ycsbload"),
        Step("wait", "waitforcompaction"),
        Step("a", "ycsba"),
        Step("c", "ycsbc", True)), ycsb_two_threads, ENGINES),
)


def chain_named(name: str) -> Chain:
    return next(chain for chain in CHAINS if chain.name == name)


# ---- Rows ---------------------------------------------------------------------------------------

def rate(name: str, chain: str, target: Optional[float], *labels: str,
         peers: tuple[str, ...] = PROFILES) -> Row:
    return Row(name, "ops/s", chain, labels,
               lambda report: sum(report.steps[label]["ops"] for label in labels)
               / sum(report.steps[label]["seconds"] for label in labels),
               target, threads=chain_named(chain).threads, peers=peers)


def seconds(name: str, chain: str, labels: tuple[str, ...], target: Optional[float] = None) -> Row:
    return Row(name, "s", chain, labels,
               lambda report: sum(report.steps[label]["seconds"] for label in labels), target,
               lower_is_better=True)


def latency(name: str, member: str, target: float) -> Row:
    return Row(name, "us", "sequence", ("while writing",),
               lambda report: report.steps["while writing"][member], target, lower_is_better=True)


def writes_beside_reads(report: Report) -> Optional[float]:
    step = report.steps["while writing"]
    return step["background_ops"] / step["seconds"]


def index_bytes_per_key(report: Report) -> Optional[float]:
    keys = report.space["user_bytes"] / (KEY_BYTES + VALUE_BYTES)
    return report.space["index_bytes"] / keys if keys > 0 else None


def compaction_rate(report: Report) -> Optional[float]:
    cpu_seconds = report.compaction["cpu_seconds"]
    return report.compaction["bytes_read"] / (1 << 20) / cpu_seconds if cpu_seconds > 0 else None


READ_STEPS = tuple(step.label for step in chain_named("read").steps)
FORWARD = tuple(f"forward {i}" for i in REPEATS)
BACKWARD = tuple(f"backward {i}" for i in REPEATS)
OVERWRITE_STEPS = ("overwrite 1", "overwrite 2", "overwrite 3", "wait")

ROWS = (
    rate("fillrandom", "read", 4.0, "fill"),
    rate("fillrandom", "threads", 4.0, "fill"),
    seconds("fillrandom, then waitforcompaction", "write", ("fill", "wait after fill")),
    rate("fillseq", "sequence", 4.0, "fill"),
    seconds("overwrite x 3, then waitforcompaction", "write", OVERWRITE_STEPS, 2.0),
    rate("readrandom after compaction", "read", 6.0, "read"),
    rate("readrandom after compaction", "threads", 3.0, "read"),
    rate("readrandom right after fillrandom", "read", 4.0, "read level 0"),
    rate("readmissing", "read", 5.0, "missing"),
    rate("multireadrandom, batch 32", "read", 9.0, "multi"),
    rate("readseq", "read", 4.0, *FORWARD),
    rate("readreverse", "read", 4.0, *BACKWARD),
    rate("seekrandom, 50 nexts", "read", 3.0, "seek"),
    rate("readrandomwriterandom 50 %", "read", 2.5, "mixed"),
    rate("readrandomwriterandom 50 %", "threads", 2.5, "mixed"),
    rate("readrandom against LMDB", "read", 5.0, "read", peers=(LMDB,)),
    rate("readseq against LMDB", "read", 4.0, *FORWARD, peers=(LMDB,)),
    rate("seekrandom against LMDB, 50 nexts", "read", 3.0, "seek", peers=(LMDB,)),
    rate("YCSB load, a new database", "ycsb", None, "load"),
    rate("YCSB load, a new database", "ycsb-threads", None, "load"),
    *(rate(f"YCSB {letter.upper()}", "ycsb-scans" if letter == "e" else "ycsb", target, letter)
      for letter, target in zip("abcdef", (4.0, 5.0, 5.0, 5.0, 3.0, 4.0))),
    rate("YCSB A", "ycsb-threads", None, "a"),
    rate("YCSB C", "ycsb-threads", None, "c"),
    Row("Get against a raw read of its bytes", "ops/s", None, (), None, 0.7),
    Row("memory for tables per key", "B", "read", READ_STEPS, index_bytes_per_key, 7.0,
        lower_is_better=True, absolute=True),
    latency("readwhilewriting, p99 of Put", "background_p99_us", 3.0),
    latency("readwhilewriting, p99.9 of Get", "p999_us", 3.0),
    rate("readwhilewriting, Gets", "sequence", None, "while writing"),
    Row("readwhilewriting, Puts", "ops/s", "sequence", ("while writing",), writes_beside_reads),
    Row("compaction input per core", "MB/s", "write",
        OVERWRITE_STEPS, compaction_rate, 2.0),
)


def select_rows(only: str) -> list[Row]:
    """The rows whose title `only` (a regular expression) is found in."""
    try:
        rows = [row for row in ROWS if re.search(only, row.title)]
    except re.error as error:
        raise CompareError(f"--only={only}: {error}") from error
    if not rows:
        raise CompareError(f"--only={only} is found in none of: "
                           + "; ".join(row.title for row in ROWS))
    return rows


def chains_of(rows: list[Row]) -> list[Chain]:
    """The chains that `rows` need, each without the steps after the last one needed."""
    chains = []
    for chain in CHAINS:
        labels = {label for row in rows if row.chain == chain.name for label in row.steps}
        if labels:
            chains.append(chain.until(labels))
    return chains


def check_found(chain: Chain, round_number: int, reports: dict[str, Report]) -> None:
    """All engines must have found the same. Raises CompareError naming two that did not."""
    for step in chain.steps:
        if step.same_found:
            found = {}
            for engine, report in reports.items():
                result = report.steps[step.label]
                found[engine] = (result["found"], result["lookups"])
            first = next(iter(found))
            for engine in found:
                if found[engine] != found[first]:
                    raise CompareError(
                        f"{step.benchmark} ({chain.name}, round {round_number}): {first} found "
                        "{} of {}, {} {} of {}".format(*found[first], engine, *found[engine]))
        elif step.benchmark == "readwhilewriting":
            for engine, report in reports.items():
                result = report.steps[step.label]
                if result["found"] != result["lookups"]:
                    raise CompareError(
                        f"{step.benchmark} (round {round_number}): {engine} found "
                        f"{result['found']} of {result['lookups']} keys that are all there")
