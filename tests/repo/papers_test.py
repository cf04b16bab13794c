"""Goal: `./run compare --paper` measures the figures that it says with flags and benchmarks that
there are, keeps and finds again what came out, and makes the right page of it.

Method: every figure runs on a laboratory whose jobs answer numbers that the test knows; then the
whole tool runs one figure on small stand-ins for the binaries. Nothing is measured.
"""

import argparse
import json
import os
import pathlib
import re
import stat
import subprocess
import sys
import tempfile
import unittest
from dataclasses import replace

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "db_bench" / "compare"))
from compare_tool_test import FOLDER, HAS_MATPLOTLIB  # noqa: E402
from measure import DB_BENCH  # noqa: E402
from papers import sheet  # noqa: E402
from papers.figures import Figure, Paper, Result, markdown_figure, markdown_table  # noqa: E402
from papers.lab import (Job, Lab, Report, rate_together, rocksdb, size_name,  # noqa: E402
                        sum_of_rates)  # noqa: E402
from papers.swarm import mean_reads, reads_at  # noqa: E402
from workload import CompareError  # noqa: E402

PAPERS = [sheet.paper_of(key) for key in sheet.PAPERS]
# The figures and tables of their evaluations, as the papers number them.
NUMBERS = {
    "dlsm": "7a 7b 8 9 10 11 12 13 14a 14b 15",
    "aceso": "8 9 10 11 12 13 14 15 16 17-18 19 20 T2 T3",
    "fusee": "2 3 10 11 12 13 14 15 16 17 18 19 20 21 T1",
    "swarm": "5 6 7 8 9 10 11 12 13 S T2 T3",
    "microec": "2 4 10 11 12 13 14a 14b 15 16a 16b 17a 17b 18 19 20",
}
LATENCY = {"p50_us": 2, "p99_us": 9, "p999_us": 20, "samples": 10, "remote_reads": [1, 8, 1]}


def step(name: str, ops: int, seconds: float = 2) -> dict:
    return {"name": name, "ops": ops, "seconds": seconds, "ops_per_sec": ops / seconds,
            "process_cpu_seconds": seconds / 2, "cpu_seconds": 1, "mb_per_sec": 3,
            "micros_per_op": 7, "found": 5, "lookups": 9,
            "latencies": {kind: LATENCY for kind in ("read", "write", "delete")},
            "network": {"compute_read": 10, "compute_written": 20},
            "durability": {"log.writes": 4 if name == "ycsbc" else 14}}


def report_of(job: Job) -> Report:
    speed = 100 if "rocksdb" in job.engine.flags[0] else 600
    return Report({"benchmarks": [step(name, speed * job.threads) for name in job.steps],
                   "space": {"user_bytes": 100, "stored_bytes": 150, "index_bytes": 700,
                             "parts": {f"{part}-bytes": 20 for part in (
                                 "parity", "header", "remote-index", "padding", "log")}},
                   "encoding": {"data_bytes": 10 ** 9, "cpu_seconds": 0.5}}, "nowhere", 1, 4)


class FakeReport(Report):
    def percentiles(self, name, operation, wanted):
        self.step(name)
        return [(p, p / 10) for p in wanted]

    def timeline(self, name):
        return [{"secs_elapsed": at, "interval_qps": 100 + at, "p50_us": 1, "p99_us": 2,
                 "max_us": 3} for at in range(12)]


class FakeLab(Lab):
    """Notes the jobs that it is asked for."""

    def __init__(self, folder: pathlib.Path):
        for name in sheet.BINARIES:
            (folder / name).touch()
        super().__init__(folder, folder, folder, 400_000, lambda text: None)
        self.jobs: list[Job] = []

    def _measure(self, job: Job) -> Report:
        self.jobs.append(job)
        made = report_of(job)
        return FakeReport(made.data, made.files, made.node_cpu_seconds, made.seconds)

    def together(self, job, count, *phases):
        return [[self._measure(replace(job, steps=steps)) for _ in range(count)]
                for steps in (job.steps, *phases)]

    def takeover(self, job, tail_bytes, kills=0):
        self.jobs.append(job)
        return {"steps": {"pool": 1000, "total": 3000}, "first_get_us": 4000, "first_put_us": 5000}

    def followers(self, job, spans, interval):
        self.jobs.append(job)
        return [1, 2]

    def perf(self, operation, size, network="", depth=1, seconds=0.5):
        return {"p50_us": 2, "p99_us": 3}

    def micro_millis(self, binary, benchmark, argument):
        return argument / 1000


class FiguresTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)

    def figure(self, key: str, number: str, rounds: int = 1) -> Result:
        figure = next(f for f in sheet.paper_of(key).figures if f.number == number)
        return sheet.measure(figure, FakeLab(self.path), rounds)

    def test_no_figure_is_missing(self):
        for paper in PAPERS:
            self.assertEqual(sorted(NUMBERS[paper.key].split()),
                             sorted(figure.number for figure in paper.figures), paper.key)
            for figure in paper.figures:
                self.assertTrue(figure.title and figure.showed and figure.here, figure.number)

    def test_every_figure_has_a_full_table(self):
        for paper in PAPERS:
            for figure in paper.select(""):
                with self.subTest(f"{paper.key} {figure.number}"):
                    result = sheet.measure(figure, FakeLab(self.path), 3)
                    for cells in result.values.values():
                        self.assertTrue(all(len(values) == 3 for values in cells.values()))
                    columns = len(result.columns()) + 1
                    for line in markdown_table(figure, result).splitlines():
                        self.assertEqual(columns + 1, line.count("|"), line)

    def test_jobs_ask_for_what_db_bench_has(self):
        sources = "".join(path.read_text() for path in (ROOT / "db_bench").rglob("*.cc"))
        flags = set(re.findall(r"DEFINE_\w+\(\s*(\w+)", sources))
        benchmarks = set(re.findall(r'\.name = "(\w+)"', sources))
        self.assertIn("num", flags)
        for paper in PAPERS:
            lab = FakeLab(self.path)
            for figure in paper.select(""):
                sheet.measure(figure, lab, 1)
            for job in lab.jobs:
                self.assertLessEqual({*job.steps, *job.before}, benchmarks)
                command = lab.command(job, "files", "uri", job.steps)
                used = {str(word)[2:].partition("=")[0] for word in command[1:]}
                self.assertLessEqual(used, flags, paper.key)
                copies = job.room * job.copies()
                self.assertGreater(job.node_bytes() * job.nodes,
                                   copies * job.keys * (job.key_bytes + job.value_bytes))

    def test_figures_of_the_same_jobs_share_them(self):
        lab = FakeLab(self.path)
        dlsm = sheet.paper_of("dlsm")
        for figure in dlsm.select("7a,8,11"):
            sheet.measure(figure, lab, 2)
        self.assertEqual(len(lab.jobs), len(lab.reports))
        # 5 numbers of threads with 3 engines, and one more engine with one thread; 2 rounds.
        self.assertEqual(2 * 16, len(lab.jobs))
        self.assertEqual(2, len({engine.name for engine in
                                 (lab.jobs[0].engine, lab.jobs[16].engine)}),
                         "another engine is first in the second round")

    def test_what_is_known_is_not_measured_again(self):
        shelf = sheet.Shelf(self.path / "shelf", {"keys": 1, "rounds": 1})
        shelf.folder.mkdir()
        paper, lines = sheet.paper_of("fusee"), []

        def jobs_of(**changes) -> int:
            options = argparse.Namespace(**({"figure": "", "again": False, "known": False,
                                             "rounds": 1, "remark": ""} | changes))
            lab = FakeLab(self.path)
            sheet.measure_paper(options, paper, lab, shelf, {"commit": "abc"}, lines.append)
            return len(lab.jobs)

        self.assertEqual(0, jobs_of(known=True))
        every = jobs_of()
        self.assertGreater(every, 20)
        self.assertEqual(0, jobs_of())
        self.assertEqual("fusee Table 1: kept", lines[-1])
        self.assertEqual(2, jobs_of(figure="10"))
        shelf.path(paper, paper.figures[2]).unlink()  # As if that figure had failed.
        self.assertEqual(2, jobs_of())
        self.assertEqual(every, jobs_of(again=True))
        about = shelf.get(paper, paper.figures[2]).about
        self.assertEqual("abc", about["machine"]["commit"])

    def test_values(self):
        threads = self.figure("dlsm", "7a", 3)
        self.assertEqual(4800, threads.median("nacre", "16"))
        self.assertEqual(9600, threads.median("nacre, for a processor second", "16"))
        self.assertEqual(50, threads.median("RocksDB, blocks of 8 KiB", "1"))
        sites = self.figure("dlsm", "12")
        self.assertEqual(150, sites.median("in the compute node", "1"))
        self.assertEqual(25, sites.median("on the node, 1 of its cores: percent of them in use",
                                          "1"))
        self.assertEqual(1200, self.figure("dlsm", "15").median("readrandom", "4C4M"))
        self.assertEqual(1.5, self.figure("aceso", "12").median("all that is stored", "rs(3,2)"))
        self.assertEqual(2, self.figure("aceso", "T2").median("encoding, GB/s", "rs(4,1)"))
        self.assertEqual(4, self.figure("fusee", "T1").median("nacre", "first Get"))
        trips = self.figure("swarm", "T2")
        self.assertEqual(1, trips.median("indexes in memory", "get, B, mean"))
        self.assertEqual(2, trips.median("indexes in memory", "get, B, p99"))
        self.assertEqual(1, trips.median("indexes in memory", "update, mean"))
        self.assertEqual(1, self.figure("microec", "10").median("rs(4,2)", "1 MiB"))

    def test_round_trips_of_a_percentile(self):
        self.assertEqual(0, reads_at([50, 50], 50))
        self.assertEqual(1, reads_at([49, 51], 50))
        self.assertEqual(2, reads_at([0, 98, 2], 99))
        self.assertEqual(1.02, mean_reads([0, 98, 2]))

    def test_rates_of_timelines_are_summed_where_they_overlap(self):
        rows = [{"interval_qps": rate} for rate in (1, 2, 3, 4)]
        self.assertEqual([1, 2, 4, 6], sum_of_rates([(rows, 0), (rows, 1)], 2, 0.5))

    def test_processes_that_began_together_end_with_the_slowest(self):
        reports = [Report({"benchmarks": [step("fillseq", 100, fill), step("flush", 1, flush)]},
                          "", 0, 0) for fill, flush in ((1, 1), (3, 1), (2, 3))]
        self.assertEqual(100, rate_together(reports, "fillseq"))
        self.assertEqual(60, rate_together(reports, "fillseq", "flush"))

    def test_names_of_sizes(self):
        self.assertEqual(["512 B", "1 KiB", "1025 B", "16 MiB"],
                         [size_name(size) for size in (512, 1024, 1025, 16 << 20)])
        self.assertEqual("RocksDB, blocks of 8 KiB", rocksdb(8192).name)


class PageTest(unittest.TestCase):
    def setUp(self):
        self.paper = Paper("key", "Title", "Theirs.", "Ours.")
        self.paper.figure("1", "rates", "threads", "ops/s", "Fast.", "Also.", in_docs=True)(
            lambda lab: iter(()))
        self.paper.without("2", "locks", "Slow.", "nothing to measure.")

    def result(self) -> Result:
        result = Result(about={"machine": sheet.machine.describe({}), "remark": "a busy machine",
                               "warnings": ["it is slow"],
                               "settings": {"keys": 400_000, "rounds": 3}})
        for value in (5000, 1, 3_000_000):
            result.add("nacre", 1, value)
            result.add("nacre", 2, 2 * value)
        result.add("other", 2, 7)
        return result

    def test_figure(self):
        text = markdown_figure(self.paper, self.paper.figures[0], self.result())
        for line in ("### key Figure 1: rates", "Paper: Fast.", "Here: Also.",
                     "| threads; ops/s | 1 | 2 |", "| nacre | 5000 | 10 k |", "| other | - | 7 |",
                     "![rates](key-1.png)"):
            self.assertIn(line, text.splitlines())
        self.assertIn("Not measured yet.", markdown_figure(self.paper, self.paper.figures[0], None))
        without = markdown_figure(self.paper, self.paper.figures[1], None)
        self.assertNotIn("Not measured yet.", without)
        self.assertIn("Here: nothing to measure.", without)

    def test_conditions_are_told(self):
        text = sheet.markdown_paper(self.paper, {"1": self.result()}).replace("\n", " ")
        self.assertIn("; a busy machine; 400,000 keys where nothing else is said; medians of 3. "
                      "Note: it is slow.", text)
        self.assertNotIn("medians", sheet.markdown_paper(self.paper, {}))

    def test_page_keeps_what_was_not_measured_this_time(self):
        measured = sheet.markdown_paper(self.paper, {"1": self.result()})
        self.assertEqual(measured, sheet.markdown_paper(self.paper, {}, measured))
        self.assertIn("Not measured yet.", sheet.markdown_paper(self.paper, {}, "### key other\n"))
        newer = self.result()
        newer.add("third", 1, 4321)
        text = sheet.markdown_paper(self.paper, {"1": newer}, measured)
        self.assertIn("| third | 4321 | - |", text)
        self.assertEqual(1, text.count("### key Figure 1:"))

    def test_selection(self):
        self.assertEqual(["1"], [figure.number for figure in self.paper.select("")])
        for numbers in ("2", "1,3"):
            with self.assertRaisesRegex(CompareError, "--figure="):
                self.paper.select(numbers)

    def test_table_of_a_paper_is_called_so(self):
        self.assertEqual("Table 3", Figure("T3", "", "", "").name)
        self.assertEqual("Figure 14a", Figure("14a", "", "", "").name)

    def test_shelf_gives_what_has_the_same_settings(self):
        with tempfile.TemporaryDirectory() as folder:
            figure, result = self.paper.figures[0], self.result()
            shelf = sheet.Shelf(pathlib.Path(folder), result.about["settings"])
            self.assertIsNone(shelf.get(self.paper, figure))
            shelf.put(self.paper, figure, result)
            self.assertEqual(result, shelf.get(self.paper, figure))
            other = sheet.Shelf(pathlib.Path(folder), {"keys": 1, "rounds": 3})
            self.assertIsNone(other.get(self.paper, figure))
            shelf.path(self.paper, figure).write_text("{")
            self.assertIsNone(shelf.get(self.paper, figure))

    def test_page_has_a_place_for_every_paper(self):
        page = (ROOT / "docs" / "evaluation.md").read_text()
        for paper in PAPERS:
            before, part, after = sheet.split_page(page, paper)
            self.assertTrue(before and part and after)
        with self.assertRaisesRegex(CompareError, "no place for key"):
            sheet.split_page(page, self.paper)

    def test_sizes(self):
        options = argparse.Namespace(num=1_000_000, quick=False)
        self.assertEqual(400_000, sheet.keys_of(options))
        options.quick = True
        self.assertEqual(20_000, sheet.keys_of(options))


FAKE_DB_BENCH = """
import json, sys
flags = dict(argument[2:].partition("=")[::2] for argument in sys.argv[1:])
if flags.get("block_size") == "2048" and "fail" in open(sys.argv[0] + ".mode").read():
    sys.exit("something\\ndb_bench: IO error: no luck")
speed = {"nacre": 600, "rocksdb": 100}[flags["engine"]]
step = {"ops": speed, "seconds": 1}
open(sys.argv[0] + ".runs", "a").write("run\\n")
json.dump({"engine": {"name": flags["engine"], "description": "rocksdb 7.8.3, fast, x",
                      "warning": "with assertions"},
           "benchmarks": [step | {"name": name} for name in flags["benchmarks"].split(",")],
           "space": {}}, open(flags["json"], "w"))
"""
FAKE_MEMNODE = """
import time
print("ready: here", flush=True)
time.sleep(600)
"""


class ToolTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)
        for name, text in ((DB_BENCH, FAKE_DB_BENCH), ("nacre-memnode", FAKE_MEMNODE),
                           ("nacre-perf", "")):
            binary = self.path / name
            binary.write_text(f"#!{sys.executable}\n{text}")
            binary.chmod(binary.stat().st_mode | stat.S_IXUSR)
        self.page = self.path / "page.md"
        self.page.write_text("\n".join(sheet.marks(sheet.paper_of("dlsm"))))
        self.mode("well")

    def mode(self, mode: str) -> None:
        (self.path / f"{DB_BENCH}.mode").write_text(mode)

    def runs(self) -> int:
        path = self.path / f"{DB_BENCH}.runs"
        return path.read_text().count("run") if path.exists() else 0

    def run_tool(self, *arguments: str) -> subprocess.CompletedProcess:
        plots = () if HAS_MATPLOTLIB else ("--no-plot",)
        return subprocess.run(
            [sys.executable, "-B", str(FOLDER / "compare.py"), f"--bin={self.path}",
             f"--out={self.path / 'out'}", f"--page={self.page}", *plots, "--paper=dlsm",
             *arguments], env=os.environ, capture_output=True, text=True, check=False, timeout=300)

    def test_figure_is_measured_kept_and_written(self):
        docs = ("--update-docs",) if HAS_MATPLOTLIB else ()
        done = self.run_tool("--figure=11", "--rounds=2", "--quick", *docs)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual(8, self.runs())
        out = self.path / "out" / "papers"
        kept = json.loads((out / "dlsm-11.json").read_text())
        self.assertEqual([600, 600], kept["values"]["nacre"]["1"])
        self.assertEqual([100, 100], kept["values"]["RocksDB, blocks of 512 B"]["1"])
        self.assertEqual("7.8.3 (fast)", kept["about"]["machine"]["rocksdb"])
        self.assertIn("| nacre | 600 |", (out / "dlsm.md").read_text())
        self.assertIn("Note: with assertions.", (out / "dlsm.md").read_text())
        if HAS_MATPLOTLIB:
            self.assertEqual(b"\x89PNG", (out / "dlsm-11.png").read_bytes()[:4])
            self.assertIn("| nacre | 600 |", self.page.read_text())
            self.assertIn("Not measured yet.", self.page.read_text())
        self.assertEqual(0, self.run_tool("--known", "--rounds=2", "--quick").returncode)
        self.assertEqual(8, self.runs())
        # Asked for by its number it is measured anew.
        self.assertEqual(0, self.run_tool("--figure=11", "--rounds=2", "--quick").returncode)
        self.assertEqual(16, self.runs())

    def test_run_that_failed_goes_on_where_it_stopped(self):
        self.assertEqual(0, self.run_tool("--figure=11", "--rounds=1", "--quick").returncode)
        self.mode("fail")
        done = self.run_tool("--figure=13", "--rounds=1", "--quick")
        self.assertEqual(1, done.returncode)
        self.assertRegex(done.stderr, "^compare: RocksDB, blocks of 2 KiB: fillrandom.*round 1: "
                                      "exit code 1: db_bench: IO error: no luck\n$")
        self.assertTrue((self.path / "out" / "papers" / "dlsm-11.json").exists())

    def test_failures_are_named_in_one_line(self):
        for arguments, message in ((("--figure=99",), "--figure=99"),
                                   (("--paper=all", "--figure=8"), "--figure is of one --paper"),
                                   (("--paper=none",), "--paper"),
                                   (("--bin=/nowhere",), "there is no /nowhere"),
                                   (("--update-docs", "--no-plot"), "--update-docs")):
            with self.subTest(message):
                done = self.run_tool(*arguments)
                self.assertEqual(1, done.returncode)
                self.assertIn(message, done.stderr)
                self.assertEqual(1, done.stderr.count("\n"), done.stderr)
        self.assertEqual(0, self.runs())


if __name__ == "__main__":
    unittest.main()
