"""Nacre against RocksDB: runs both in turns and writes the table of targets.

Each round runs every chain of benchmarks (workload.py) on Nacre over four nacre-memnode processes
of this host, on RocksDB in both profiles and on LMDB; which one is first rotates. A row shows
medians over the rounds, and how many times better Nacre is than RocksDB's better profile.
"""

import argparse
import datetime
import importlib.util
import json
import pathlib
import shutil
import signal
import sys
import tempfile
import time
from typing import Callable

import durability
import followers
import machine
import members
import redundancy
import remote
import server
import sharded
import table
import tails
import ycsb_server
from papers import sheet
from measure import Bench, end_all, engine_of, peers_in
from table import RAW_READ, RowResult
from workload import (NACRE, Chain, CompareError, Row, chains_of, check_found,
                      select_rows)

BEGIN_MARK = "<!-- ./run compare --update-docs writes what is between these two lines: begin -->"
END_MARK = "<!-- end -->"
KEYS_OF_THE_TARGETS = 1_000_000


class Progress:
    """A line on a terminal that says what runs and how long all of it will take."""

    def __init__(self, total: int):
        self.total = total
        self.done = 0
        self.start = time.monotonic()
        self.shown = sys.stdout.isatty()

    def show(self, what: str) -> None:
        if not self.shown:
            return
        left = ""
        if self.done > 0:
            elapsed = time.monotonic() - self.start
            rest = int(elapsed * (self.total - self.done) / self.done)
            left = f"  about {datetime.timedelta(seconds=rest)} left"
        print(f"\r{self.done * 100 // self.total:3d} %  {what}{left}\033[K", end="", flush=True)

    def line(self, text: str) -> None:
        """One that stays."""
        print(("\r\033[K" if self.shown else "") + text, flush=True)

    def clear(self) -> None:
        if self.shown:
            print("\r\033[K", end="", flush=True)


def positive(text: str) -> int:
    value = int(text)
    if value <= 0:
        raise ValueError
    return value


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    class Parser(argparse.ArgumentParser):
        def error(self, message: str):
            raise CompareError(message)

    parser = Parser(prog="./run compare", description=__doc__,
                    formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--redundancy", action="store_true",
                        help="instead: Nacre under rs(4,2) against itself under rep(3) and none, "
                             "and what the loss of a node costs")
    parser.add_argument("--durability", action="store_true",
                        help="instead: what the log and the manifest cost, and how long a new "
                             "owner takes after the last one was killed")
    parser.add_argument("--followers", action="store_true",
                        help="instead: what eight followers cost the owner")
    parser.add_argument("--tails", action="store_true",
                        help="instead: what a node costs that is slow, or stopped again and again")
    parser.add_argument("--before", type=pathlib.Path, metavar="BIN",
                        help="with --tails: folder of the binaries of a commit before, to be "
                             "measured beside these")
    parser.add_argument("--remote", action="store_true",
                        help="instead: Nacre against RocksDB with its files in the same pool")
    parser.add_argument("--sharded", action="store_true",
                        help="instead: keyspaces of 1 to 8 shards against one database")
    parser.add_argument("--server", action="store_true",
                        help="instead: nacre-server against Redis, by redis-benchmark")
    parser.add_argument("--ycsb-server", action="store_true",
                        help="instead: nacre-server against Redis, by YCSB and Jedis")
    parser.add_argument("--members", action="store_true",
                        help="instead: a keyspace of several processes: requests between them, "
                             "moves and a failover (needs etcd)")
    parser.add_argument("--paper", choices=(*sheet.PAPERS, "all"),
                        help="instead: the figures of a paper that Nacre's ideas come from, for "
                             "docs/evaluation.md")
    parser.add_argument("--figure", default="", metavar="NUMBER,...",
                        help="with --paper: these figures alone, and anew")
    parser.add_argument("--quick", action="store_true",
                        help="with --paper: a twentieth of the keys, to try it")
    parser.add_argument("--again", action="store_true",
                        help="with --paper: measure what is known from an earlier run, too")
    parser.add_argument("--known", action="store_true",
                        help="with --paper: measure nothing, write what is known")
    parser.add_argument("--remark", default="", metavar="TEXT",
                        help="with --paper: what is to be said of the machine, such as \"busy\"")
    parser.add_argument("--large", action="store_true",
                        help="with --durability: takeovers of ten times --num keys, too (15 GiB)")
    parser.add_argument("--rounds", type=positive,
                        help=f"default: 5; with --paper {sheet.ROUNDS}")
    parser.add_argument("--num", type=positive, default=KEYS_OF_THE_TARGETS,
                        help="keys (default: %(default)s)")
    parser.add_argument("--only", default="", metavar="REGEX", help="rows to measure, by title")
    parser.add_argument("--pool-parameters", default="", metavar="PARAMETERS",
                        help='of the pool\'s URI, such as "rtt_us=2&gbps=100"')
    parser.add_argument("--no-plot", action="store_true",
                        help="without the picture, and so without matplotlib")
    parser.add_argument("--update-docs", action="store_true",
                        help="put the table into docs/performance.md, and a plot beside it")
    parser.add_argument("--bin", type=pathlib.Path, default="build/release/bin",
                        help="folder of the binaries (default: %(default)s)")
    parser.add_argument("--out", type=pathlib.Path, default="build/compare",
                        help="folder of what is written (default: %(default)s)")
    parser.add_argument("--docs", type=pathlib.Path, default="docs/performance.md",
                        help=argparse.SUPPRESS)
    parser.add_argument("--page", type=pathlib.Path, default="docs/evaluation.md",
                        help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.rounds is None:
        options.rounds = sheet.ROUNDS if options.paper else 5
    if options.update_docs and not options.paper and (options.only or options.pool_parameters
                                or options.num != KEYS_OF_THE_TARGETS):
        raise CompareError("--update-docs wants the whole table: without --only, --num and "
                           "--pool-parameters")
    return options


def rotated(engines: tuple[str, ...], by: int) -> list[str]:
    by %= len(engines)
    return list(engines[by:] + engines[:by])


def measure_round(bench: Bench, number: int, chains: list[Chain], results: list[RowResult],
                  progress: Progress) -> None:
    for chain in chains:
        reports = {}
        for engine in rotated(chain.engines, number - 1):
            progress.show(f"round {number}  {chain.name}  {engine}")
            reports[engine] = bench.run_chain(chain, engine, number)
            progress.done += 1
        check_found(chain, number, reports)
        for result in results:
            if result.row.chain == chain.name:
                for engine in chain.engines:
                    result.add(engine, result.row.measure(reports[engine]))
    for result in results:
        if result.row.chain is None:
            progress.show(f"round {number}  micro_db")
            get, raw_read = bench.run_micro(number)
            result.add(NACRE, get)
            result.add(RAW_READ, raw_read)
            progress.done += 1


def measure_all(bench: Bench, rows: list[Row], rounds: int) -> list[RowResult]:
    results = [RowResult(row) for row in rows]
    chains = chains_of(rows)
    per_round = (sum(len(chain.engines) for chain in chains)
                 + sum(row.chain is None for row in rows))
    progress = Progress(per_round * rounds)
    try:
        for number in range(1, rounds + 1):
            start = time.monotonic()
            measure_round(bench, number, chains, results, progress)
            progress.line(f"round {number} of {rounds}   ok {time.monotonic() - start:5.0f} s")
    finally:
        progress.clear()
    return results


def heading(options: argparse.Namespace, about: dict[str, str], warnings: list[str]) -> str:
    """What stands above the table, in Markdown."""
    pool = f" (`?{options.pool_parameters}`)" if options.pool_parameters else ""
    text = (f"{machine.sentence(about)}.\n\n"
            f"{options.num:,} keys of 20 B with 400 B values, no log, 64 MiB write buffers, 2 "
            f"background jobs; Nacre over 4 `nacre-memnode` processes on shm{pool}, RocksDB and "
            f"LMDB on tmpfs. Medians of {options.rounds}; the ratio says how many times better "
            "Nacre is than RocksDB's better profile, or than LMDB where the row says so.\n")
    return table.wrap_prose(text + "".join(f"\nNote: {warning}.\n" for warning in warnings))


def split_docs(path: pathlib.Path) -> tuple[str, str]:
    """What stands up to the mark of the beginning, and what from the mark of the end on."""
    try:
        page = path.read_text()
    except OSError as error:
        raise CompareError(f"{path}: {error.strerror}") from error
    before, begin, rest = page.partition(BEGIN_MARK)
    _, end, after = rest.partition(END_MARK)
    if not begin or not end:
        raise CompareError(f"{path} has no place for the table: '{BEGIN_MARK}' and '{END_MARK}'")
    return before + begin, end + after


def update_docs(path: pathlib.Path, text: str) -> None:
    """Replaces what is between the marks."""
    before, after = split_docs(path)
    path.write_text(f"{before}\n\n{text}\n{after}")


def write_outputs(options: argparse.Namespace, bench: Bench,
                  results: list[RowResult]) -> list[pathlib.Path]:
    """The files that it wrote."""
    engines = [engine_of(path) for path in sorted(bench.runs.glob("*rocksdb*.json"))]
    about = machine.describe(peers_in(bench.runs))
    warnings = sorted({engine["warning"] for engine in engines if engine["warning"]})
    report = {"machine": about, "warnings": warnings, "rounds": options.rounds, "num": options.num,
              "pool_parameters": options.pool_parameters,
              "rows": [result.to_json() for result in results]}
    text = heading(options, about, warnings) + "\n" + table.markdown_table(results)
    files = [options.out / f"compare.{suffix}" for suffix in ("json", "md", "png")]
    files[0].write_text(json.dumps(report, indent=1) + "\n")
    files[1].write_text(text)
    plotted = not options.no_plot and any(result.ratio() is not None for result in results)
    if not plotted:
        files.pop().unlink(missing_ok=True)
    else:
        import plot  # Takes a while to load, and needs matplotlib.
        plot.write_plot(results, machine.sentence(about), str(files[2]))
    if options.update_docs:
        update_docs(options.docs, text)
        files.append(options.docs)
        if plotted:
            files.append(options.docs.parent / plot.HEADLINE_FILE)
            plot.write_headline(results, str(files[-1]))
    return files


def run(arguments: list[str]) -> None:
    options = parse_arguments(arguments)
    if options.paper:
        sheet.run(options, Progress)
        return
    if options.durability:
        durability.run(options, Progress)
        return
    if options.tails:
        tails.run(options, Progress)
        return
    if options.followers:
        followers.run(options, Progress)
        return
    if options.remote:
        remote.run(options, Progress)
        return
    if options.sharded:
        sharded.run(options, Progress)
        return
    if options.server:
        server.run(options, Progress)
        return
    if options.ycsb_server:
        ycsb_server.run(options, Progress)
        return
    if options.members:
        members.run(options, Progress)
        return
    if options.redundancy:
        redundancy.run(options, Progress)
        return
    rows = select_rows(options.only)
    # Better now than after all is measured.
    if not options.no_plot and importlib.util.find_spec("matplotlib") is None:
        raise CompareError("the plot needs matplotlib (Debian: python3-matplotlib); or --no-plot")
    if options.update_docs:
        split_docs(options.docs)
    runs = options.out / "runs"
    shutil.rmtree(runs, ignore_errors=True)
    try:
        runs.mkdir(parents=True)
        scratch = pathlib.Path(tempfile.mkdtemp(prefix="nacre-compare-", dir="/dev/shm"))
    except OSError as error:
        raise CompareError(f"{error.filename}: {error.strerror}") from error
    try:
        bench = Bench(options.bin, scratch, runs, options.num, options.pool_parameters)
        results = measure_all(bench, rows, options.rounds)
    finally:
        end_all()
        shutil.rmtree(scratch, ignore_errors=True)
    files = write_outputs(options, bench, results)
    print(f"\n{table.text_table(results)}\n{table.summary(results)}; written: "
          + ", ".join(str(file) for file in files))


def stop(_signal: int, _frame: object) -> None:
    raise KeyboardInterrupt


def run_tool(name: str, work: Callable[[list[str]], None]) -> int:
    """Does `work` with the command line; what fails or interrupts it is said in one line. Answers
    the exit status."""
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGHUP, stop)
    try:
        work(sys.argv[1:])
        return 0
    except CompareError as error:
        print(f"{name}: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(run_tool("compare", run))
