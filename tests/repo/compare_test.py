"""Goal: `./run compare` makes the right table of what it measured.

Method: the code between measuring and the table gets values whose medians and ratios are known by
hand. Nothing is measured.
"""

import os
import pathlib
import socket
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "db_bench" / "compare"
sys.path.insert(0, str(FOLDER))
import compare  # noqa: E402
import durability  # noqa: E402
import followers  # noqa: E402
import redundancy  # noqa: E402
import remote  # noqa: E402
import repair  # noqa: E402
import rounds  # noqa: E402
import table  # noqa: E402
import tails  # noqa: E402
import workload  # noqa: E402
from measure import DB_BENCH  # noqa: E402
from table import RowResult  # noqa: E402
from workload import LMDB, NACRE, PROFILES, CompareError, Row  # noqa: E402


def row(**changes) -> Row:
    return Row(**({"name": "thing", "unit": "ops/s", "chain": "read", "steps": ("fill",),
                   "measure": lambda report: None, "target": 3.0} | changes))


def result(of: Row, nacre: list, default: list, inmemory: list) -> RowResult:
    made = RowResult(of)
    for engine, values in zip((NACRE,) + PROFILES, (nacre, default, inmemory)):
        for value in values:
            made.add(engine, value)
    return made


class TableTest(unittest.TestCase):
    def test_ratio_is_of_medians_over_the_better_profile(self):
        # The mean of Nacre's values, or their maximum, would meet the target.
        made = result(row(), [290, 9000, 10], [50, 60, 1000], [100, 100, 1])
        self.assertEqual(290, made.median(NACRE))
        self.assertEqual(PROFILES[1], made.best_peer())
        self.assertEqual(2.9, made.ratio())
        self.assertIs(False, made.met())

    def test_ratio_is_over_the_peers_of_the_row(self):
        made = result(row(peers=(LMDB,)), [90], [1], [1])
        self.assertIsNone(made.ratio())
        made.add(LMDB, 30)
        self.assertEqual(LMDB, made.best_peer())
        self.assertEqual(3.0, made.ratio())
        other = result(row(), [90], [1], [2])
        other.add(LMDB, 30)
        self.assertEqual(45.0, other.ratio())

    def test_even_number_of_rounds(self):
        self.assertEqual(2.5, result(row(), [2, 3], [1], []).median(NACRE))

    def test_ratio_is_inverted_where_lower_is_better(self):
        made = result(row(lower_is_better=True, target=2.0), [5], [30], [10])
        self.assertEqual(PROFILES[1], made.best_peer())
        self.assertEqual(2.0, made.ratio())
        self.assertIs(True, made.met())

    def test_absolute_target_is_an_upper_bound(self):
        of = row(absolute=True, lower_is_better=True, target=8.0, unit="B")
        self.assertIs(True, result(of, [8.0], [1], [1]).met())
        self.assertIs(False, result(of, [8.1], [100], [100]).met())
        self.assertIsNone(result(of, [8.0], [1], [1]).ratio())

    def test_without_numbers_nothing_is_claimed(self):
        for made in (result(row(), [], [1], [1]), result(row(), [1], [], []),
                     result(row(), [None], [1], [None]), result(row(), [1], [0], [0]),
                     result(row(target=None), [9], [1], [1])):
            self.assertIsNone(made.met())
        self.assertEqual("1 of 2 targets met", table.summary(
            [result(row(), [9], [1], [1]), result(row(), [], [1], [1]),
             result(row(target=None), [9], [1], [1])]))

    def test_markdown(self):
        lines = table.markdown_table(
            [result(row(threads=2), [3_210_000], [999_600], [12_345]),
             result(row(target=None, unit="s"), [0.01234], [], [])]).splitlines()
        self.assertEqual("| benchmark | threads | unit | nacre | rocksdb default | "
                         "rocksdb inmemory | lmdb | ratio | target | met |", lines[0])
        self.assertEqual("| thing | 2 | ops/s | 3.21 M | 1 M | 12.3 k | - | 3.21 | >= 3 | yes |",
                         lines[2])
        self.assertEqual("| thing | 1 | s | 0.0123 | - | - | - | - | - | - |", lines[3])

    def test_numbers_keep_three_digits(self):
        for value, text in ((0, "0"), (7.289, "7.29"), (99.96, "100"), (9994, "9994"),
                            (9995, "9.99 k"), (87_654, "87.7 k"), (999_499, "999 k"),
                            (999_500, "1 M"), (12_345_678, "12.3 M")):
            self.assertEqual(text, table.format_number(value))


class WorkloadTest(unittest.TestCase):
    def test_rows_need_steps_that_exist(self):
        self.assertEqual(len(workload.ROWS), len({of.title for of in workload.ROWS}))
        for of in workload.ROWS:
            if of.chain is not None:
                labels = {step.label for step in workload.chain_named(of.chain).steps}
                self.assertLessEqual(set(of.steps), labels, of.title)
        for chain in workload.CHAINS:
            self.assertEqual(len(chain.steps), len({step.label for step in chain.steps}))

    def test_only_what_rows_need_is_run(self):
        chains = workload.chains_of(workload.select_rows("^readrandom after compaction$"))
        self.assertEqual([("read", "read")], [(c.name, c.steps[-1].label) for c in chains])
        self.assertEqual([], workload.chains_of(workload.select_rows("^Get against")))
        self.assertEqual(list(workload.CHAINS), workload.chains_of(list(workload.ROWS)))
        for bad in ("(", "no such row"):
            with self.assertRaisesRegex(CompareError, "--only="):
                workload.select_rows(bad)

    def test_engines_that_find_different_keys_are_named(self):
        chain = workload.chain_named("read")

        def report(found: int) -> workload.Report:
            return workload.Report({step.label: {"found": found, "lookups": 9}
                                    for step in chain.steps}, {}, {})
        workload.check_found(chain, 1, {NACRE: report(6), PROFILES[0]: report(6)})
        with self.assertRaisesRegex(CompareError, "nacre found 6 of 9, rocksdb default 7 of 9"):
            workload.check_found(chain, 1, {NACRE: report(6), PROFILES[0]: report(7)})

    def test_every_engine_is_first_in_turn(self):
        firsts = [compare.rotated(workload.ENGINES, by)[0] for by in range(8)]
        self.assertEqual(list(workload.ENGINES) * 2, firsts)


class RedundancyTest(unittest.TestCase):
    """With numbers that stand in for processes."""

    class Bench:
        def __init__(self):
            self.order = []

        def run(self, what: redundancy.Run, number: int) -> redundancy.Report:
            self.order.append((number, what.name))
            speed = {redundancy.CODE: 90, redundancy.COPIES: 50, redundancy.NONE: 100}
            step = {"ops_per_sec": speed[what.redundancy] * number,
                    "encoding": {"data_bytes": 6e9, "cpu_seconds": 1},
                    "mb_per_sec": 1000 / 1.048576, "seconds": 3, "cpu_seconds": 2}
            steps = [dict(step) for _ in what.steps]
            if what.chain == "random" and len(steps) > redundancy.DEGRADED:
                steps[redundancy.DEGRADED]["ops_per_sec"] /= 2
            stored = {redundancy.CODE: 155, redundancy.COPIES: 310, redundancy.NONE: 103}
            user = 10 * (redundancy.KEY_BYTES + what.value_bytes)
            return redundancy.Report(
                steps, {"user_bytes": 100, "stored_bytes": stored[what.redundancy]},
                user * stored[what.redundancy] // 100, 10, what.value_bytes,
                repair.Timeline([repair.Interval(0, 4, 100, 5, 2000, 0)],
                                [repair.Interval(4, 5, 80, 9, 30000, 1000),
                                 repair.Interval(5, 6, 20, 9, 3000, 1000)]))

        def micro(self, name: str, _number: int) -> float:
            return {redundancy.ISA_L: 8.0, redundancy.MEMORY_COPY: 6.0}[name]

    class Silence:
        done = 0

        def show(self, _text): pass

        def line(self, _text): pass

        def clear(self): pass

    def test_table(self):
        bench = self.Bench()
        results = redundancy.TABLE.measure(bench, list(redundancy.ROWS), 3, self.Silence())
        by_name = {result.row.name: result for result in results}
        stored = by_name["stored bytes per user byte after compaction"]
        self.assertEqual((1.55, 3.1), stored.medians())
        self.assertTrue(stored.met())
        sent = by_name["bytes a flush sends per user byte"]
        self.assertEqual((1.55, 3.1), sent.medians())
        self.assertFalse(sent.met())
        self.assertEqual(0.9, by_name["fillrandom"].ratio())
        self.assertTrue(by_name["fillrandom"].met())
        self.assertFalse(by_name["readrandom"].met())
        self.assertEqual(1.8, by_name["fillrandom, 4 Gbit/s a port"].ratio())
        self.assertEqual((6.0, 8.0), by_name["encoding in a flush, per core"].medians())
        self.assertEqual(0.5, by_name["readrandom, one of six nodes lost"].ratio())
        rebuild = by_name["rebuild of one of seven nodes, per core"]
        self.assertEqual((1.5, 6.0), tuple(round(value, 6) for value in rebuild.medians()))
        self.assertTrue(rebuild.met())
        self.assertIsNone(by_name["rebuild of one of seven nodes, by the clock"].met())
        stall = by_name["longest operation after a node is killed, 8 clients"]
        self.assertEqual((30, 2), stall.medians())
        self.assertFalse(stall.met())
        self.assertEqual(
            0.8, by_name["readrandomwriterandom during a rebuild at the default limit"].ratio())
        self.assertIn("| GB/s | 1 | memory copy | 6 | 0.17 | - | - |\n",
                      redundancy.TABLE.markdown(results))
        self.assertIn("| fillrandom | ops/s | 180 | none | 200 | 0.90 | >= 0.85 | yes |\n",
                      redundancy.TABLE.markdown(results))
        # Everybody is first in turn.
        first = [next(name for at, name in bench.order if at == number) for number in (1, 2, 3)]
        self.assertEqual([what.name for what in redundancy.RUNS[:3]], first)

    def test_only_what_rows_need_is_run(self):
        bench = self.Bench()
        rows = rounds.select_among(redundancy.ROWS, "^readrandom$")
        redundancy.TABLE.measure(bench, rows, 1, self.Silence())
        self.assertEqual({"random rs(4,2)", "random none"}, {name for _, name in bench.order})
        with self.assertRaisesRegex(CompareError, "--only=nothing is found in none of"):
            rounds.select_among(redundancy.ROWS, "nothing")

    def test_nodes_have_room_for_what_is_written(self):
        for what in redundancy.RUNS:
            self.assertGreater(what.node_bytes(1_000_000) * what.nodes,
                               what.keys * what.threads * 3 * 420_000_000)

    def test_docs_have_a_place_for_it(self):
        before, after = redundancy.TABLE.split_docs(ROOT / "docs" / "performance.md")
        self.assertTrue(before and after)


class DurabilityTest(unittest.TestCase):
    """With numbers that stand in for processes."""

    class Bench:
        def __init__(self):
            self.order = []

        def run(self, what, number: int) -> durability.Measured:
            self.order.append((number, what.name))
            step = {"ops_per_sec": {"log": 60, "no log": 110, "rocksdb default": 10,
                                    "rocksdb inmemory": 20}.get(what.name, 1) * number,
                    "p50_us": 4 if what is durability.RAW_WRITE else 5,
                    "takeover": {"first_get_us": 50_000, "first_put_us": 130_000}}
            near_data = what is durability.NEAR_DATA
            step |= {"ops": 10, "network": {"compute_written": 4_200 if near_data else 8_400},
                     "process_cpu_seconds": 9e-6 if near_data else 1e-5}
            if what is durability.LARGER:
                step["takeover"] = {"first_get_us": 75_000, "first_put_us": 0}
            before = ({"manifest.image-updates": 2, "manifest.delta-bytes": 10}
                      if what is durability.MANY_TABLES else {})
            return durability.Measured([step, step], step,
                                       {"manifest.image-updates": 4, "manifest.delta-bytes": 40,
                                        "manifest.image-bytes": 1000}, before)

        def micro(self, name: str, _number: int) -> dict:
            return {durability.RECOVERY: {"nanos": 21e6},
                    durability.IMAGE_UPDATE: {"delta_bytes": 3, "image_bytes": 100}}[name]

    def test_table(self):
        bench = self.Bench()
        results = durability.TABLE.measure(bench, list(durability.ROWS), 3,
                                           RedundancyTest.Silence())
        lines = durability.TABLE.markdown(results)
        for line in (
                "| owner killed: Open to the first Get | ms | 50 | - | - | - | <= 60 ms | yes |",
                "| owner killed: Open to the first Put | ms | 130 | - | - | - | <= 120 ms | no |",
                "| ms | 75 | a tenth of them | 50 | 1.50 | <= 1.5 | yes |",
                "| manifest recovery alone, 10,000 tables | ms | 21 | - | - | - | <= 20 ms | no |",
                "10 edits, 10,000 tables | % | 3 | - | - | - | <= 2 % | no |",
                "| the same in overwrite, a thousand tables | % | 1.5 | - | - | - | <= 2 % | yes |",
                "| the same in fillrandom, all of it written in seconds | % | 1 | - | - | - | <= 2",
                "| ops/s | 120 | no log | 220 | 0.55 | >= 0.6 | no |",
                "| us | 5 | raw write to 3 copies | 4 | 1.25 | <= 1.3 | yes |",
                "flushes near the data | B | 2.000 | flushes here | 4.000 | 0.50 | <= 0.7 | yes |",
                "| us | 1.800 | flushes here | 2.000 | 0.90 | <= 0.85 | no |",
                "| ops/s | 120 | RocksDB, tmpfs | 40 | 3.00 | >= 2.5 | yes |"):
            self.assertIn(line, lines)
        # Everybody is first in turn.
        first = [next(name for at, name in bench.order if at == number) for number in (1, 2, 3)]
        self.assertEqual([what.name for what in durability.RUNS[:3]], first)

    def test_docs_have_a_place_for_it(self):
        before, after = durability.TABLE.split_docs(ROOT / "docs" / "performance.md")
        self.assertTrue(before and after)


class RemoteTest(unittest.TestCase):
    """With numbers that stand in for processes."""

    @staticmethod
    def report(ops: int, found: int = 5) -> list[dict]:
        return [{"name": name, "ops": ops, "seconds": 1 + at % 2, "found": found, "lookups": 9}
                for at, name in enumerate(remote.BENCHMARKS)]

    class Bench:
        def __init__(self):
            self.order = []

        def run(self, what, number: int) -> list[dict]:
            self.order.append((number, what.name))
            return RemoteTest.report({None: 600, 8192: 200, 2048: 300}[what.block])

    def test_table(self):
        bench = self.Bench()
        results = remote.TABLE.measure(bench, list(remote.ROWS), 2, RedundancyTest.Silence())
        lines = remote.TABLE.markdown(results)
        for line in (
                "| fillrandom, shm, blocks of 8 KiB | ops/s | 600 | RocksDB, 8 KiB | 200 | 3.00 "
                "| >= 2.5 | yes |",
                "| readrandom, nic, blocks of 2 KiB | ops/s | 300 | RocksDB, 2 KiB | 150 | 2.00 "
                "| >= 3 | no |",
                "| readseq, nic, blocks of 2 KiB | ops/s | "):
            self.assertIn(line, lines)
        # Everybody runs once a round, and is first in turn.
        self.assertEqual(2 * len(remote.RUNS), len(set(bench.order)))
        self.assertEqual([remote.RUNS[0].name, remote.RUNS[1].name],
                         [bench.order[0][1], bench.order[len(remote.RUNS)][1]])

    def test_engines_must_find_the_same(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            for binary in (DB_BENCH, "nacre-memnode"):
                (path / binary).touch()
            bench = remote.Bench(path, path, path, 100)
            bench.check_found("first", 1, self.report(10))
            bench.check_found("second", 1, self.report(20))
            bench.check_found("of another round", 2, self.report(10, found=4))
            with self.assertRaisesRegex(CompareError, "third: found ..4, 9.* first: .*5, 9"):
                bench.check_found("third", 1, self.report(10, found=4))

    def test_docs_have_a_place_for_it(self):
        before, after = remote.TABLE.split_docs(ROOT / "docs" / "performance.md")
        self.assertTrue(before and after)


class FollowersTest(unittest.TestCase):
    """With numbers that stand in for processes, and with this process."""

    class Bench:
        def run(self, what, _number: int) -> followers.Measured:
            rate = {followers.ALONE: 200, followers.FOLLOWING: 97}.get(what, 100)
            return followers.Measured(rate, 1e2 / rate, 0, 40)

    def test_table(self):
        results = followers.TABLE.measure(self.Bench(), list(followers.ROWS), 3,
                                          RedundancyTest.Silence())
        lines = followers.TABLE.markdown(results)
        for line in (
                "| ops/s | 97 | 8 readers of another database | 100 | 0.97 | >= 0.98 | no |",
                "| us | 1.031 | 8 readers of another database | 1.000 | 1.03 | <= 1.02 | no |",
                "| ops/s | 97 | nobody beside it | 200 | 0.48 | - | - |",
                "requests | - | 0 | - | - | - | <= 0 - | yes |",
                "meanwhile | ops/s | 40 | - | - | - | - | - |"):
            self.assertIn(line, lines)

    def test_listening_sockets_are_counted(self):
        before = followers.listening_sockets(os.getpid())
        for family, address in ((socket.AF_INET, ("127.0.0.1", 0)), (socket.AF_UNIX, None)):
            with socket.socket(family) as listener, tempfile.TemporaryDirectory() as folder:
                listener.bind(address or os.path.join(folder, "s"))
                self.assertEqual(before, followers.listening_sockets(os.getpid()))
                listener.listen()
                self.assertEqual(before + 1, followers.listening_sockets(os.getpid()))

    def test_reads_are_those_of_the_time(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "report.csv"
            path.write_text("heading\n1.0,10,1,1,1,0,r\n2.0,30,1,1,1,0,r\n3.0,50,1,1,1,0,r\n")
            self.assertEqual(40, followers.reads_between(path, 1.5, 3.5))
            self.assertEqual(0, followers.reads_between(path, 4, 5))

    def test_docs_have_a_place_for_it(self):
        before, after = followers.TABLE.split_docs(ROOT / "docs" / "performance.md")
        self.assertTrue(before and after)


class TailsTest(unittest.TestCase):
    """With numbers that stand in for processes."""

    class Bench:
        def run(self, what, _number: int) -> tails.Measured | float:
            if isinstance(what, tails.HotTable):
                return {tails.HOT_ONE: 100, tails.HOT_THREE: 240}[what]
            held_up = what.before and what.stopped > 0
            times = {"p50_us": 1, "p99_us": 9 if what.slow else 10,
                     "p999_us": 50 if what.loses else 20,
                     "max_us": 2e6 if held_up else 9000 * (1 + what.stopped)}
            return tails.Measured(90 if what.stopped else 100, times, times, 1000, 7)

        def micro(self, name: str, _number: int) -> dict:
            return {"p50_us": 20 if name == tails.PING_PONG else 28, "items_per_second": 500}

    def test_table(self):
        chosen = tails.rows(with_before=True)
        made = rounds.Table("tails", "nacre", chosen, tails.RUNS, tuple(tails.MICROBENCHMARKS), "",
                            "")
        lines = made.markdown(made.measure(self.Bench(), chosen, 2, RedundancyTest.Silence()))
        for line in (
                "| rs(4,2), one stopped for 2 s, each in turn: longest Put | ms | 18 | - | - | - | "
                "<= 20 ms | yes |",
                "| rep(3), two stopped for 2 s, each in turn: longest Get | ms | 27 | - | - | - | "
                "<= 100 ms | yes |",
                "longest Put, the commit before | ms | 2000 | - | - | - | - | - |",
                "| ops/s | 90 | none stopped | 100 | 0.90 | >= 0.9 | yes |",
                "p99 of Put | us | 9 | none slow | 10 | 0.90 | <= 1.5 | yes |",
                "p99.9 of Get | us | 50 | none lost | 20 | 2.50 | <= 2 | no |",
                "readrandom | ops/s | 240 | one replica | 100 | 2.40 | >= 2.5 | no |",
                "| logged Put over tcp, 1 thread: p50 | us | 28 | bare ping-pong over tcp | 20 | "
                "1.40 | <= 1.3 | no |",
                "processor time for an operation | us | 7.000 | the commit before | 7.000 | 1.00 | "
                "<= 1.03 | yes |"):
            self.assertIn(line, lines)
        self.assertTrue(all(made.split_docs(ROOT / "docs" / "performance.md")))

    def test_without_a_commit_before_its_binaries_are_not_run(self):
        chosen = tails.rows(with_before=False)
        needed = rounds.Table("tails", "nacre", chosen, tails.RUNS, (), "", "").needed(chosen)
        self.assertFalse([what for what in needed if getattr(what, "before", False)])
        with_before = [what for what in tails.RUNS if getattr(what, "before", False)]
        self.assertEqual(len(tails.RUNS) - len(with_before), len(needed))


class TimelineTest(unittest.TestCase):
    def read(self, lines: list[str], **options: bool) -> repair.Timeline:
        heading = "secs_elapsed,interval_qps,p50_us,p99_us,max_us,repaired_bytes,benchmark"
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "report.csv"
            path.write_text("\n".join([heading] + lines) + "\n")
            return repair.read_timeline(path, "mixed", **options)

    def test_is_cut_at_the_kill_and_where_repair_ended(self):
        # The benchmark starts at 10 s, and is killed its node at 14 s.
        timeline = self.read(
            ["10.000,9,1,1,1,0,fill"]
            + [f"{10 + i / 4:.3f},100,1,2,{1000 + i},0,mixed" for i in range(1, 16)]
            + ["14.001,100,1,2,3000,0,mixed", "14.250,60,1,2,9000,0,mixed",
               "14.500,80,1,2,5000,7,mixed", "14.750,70,1,2,5000,9,mixed",
               "15.000,100,1,2,500,9,mixed"])
        self.assertEqual(16, len(timeline.before))
        self.assertEqual(3.0, repair.longest_ms(timeline.before))
        self.assertEqual(9.0, repair.longest_ms(timeline.after))
        self.assertEqual(4.75, timeline.rebuild_end())
        self.assertAlmostEqual(70, repair.rate(timeline.rebuild()), delta=0.1)
        self.assertAlmostEqual(100, repair.rate(timeline.before))

    def test_without_a_repair_nothing_is_claimed(self):
        lines = [f"{i / 4:.3f},100,1,2,3,0,mixed" for i in range(1, 33)]
        for wrong in ([], lines, lines[:8], ["1.0,x,1,1,1,0,mixed"], ["1.0,2"]):
            with self.assertRaisesRegex(CompareError, "report.csv"):
                self.read(wrong)
        self.assertEqual(16, len(self.read(lines, must_repair=False).before))
        with self.assertRaisesRegex(CompareError, "did not go on"):
            self.read(lines[:8], must_repair=False)


class DocsTest(unittest.TestCase):
    def test_place_between_the_marks_is_replaced(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "page.md"
            page.write_text(f"# A\n{compare.BEGIN_MARK}\nold\n{compare.END_MARK}\nprose\n")
            for _ in range(2):
                compare.update_docs(page, "new\n")
                self.assertEqual(f"# A\n{compare.BEGIN_MARK}\n\nnew\n\n{compare.END_MARK}\nprose\n",
                                 page.read_text())
            page.write_text("# A\n")
            with self.assertRaisesRegex(CompareError, "no place"):
                compare.update_docs(page, "new\n")

    def test_page_of_this_project_has_the_marks(self):
        compare.split_docs(ROOT / "docs" / "performance.md")


if __name__ == "__main__":
    unittest.main()
