"""Goal: the tables of `./run compare --server` and `--ycsb-server` say what was measured and which
targets are met.

Method: numbers that stand in for servers. Nothing is measured.
"""

import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "db_bench" / "compare"))
import server  # noqa: E402
import ycsb_server  # noqa: E402
from rounds import select_among  # noqa: E402
from server import NACRE, TMPFS, VOLATILE  # noqa: E402
from workload import CompareError  # noqa: E402


class Silence:
    done = 0

    def show(self, _text): pass

    def line(self, _text): pass

    def clear(self): pass


class Bench:
    """Nacre is 1.2 times as fast as Redis."""

    def run(self, what: server.Run, _number: int) -> server.Loads | server.Memory:
        if what.memory:
            return {"leased": 300, "tables": 200, "log": 50, "resident": 100, "used": 180,
                    "all": 400}
        nacre = what.engine == NACRE
        return {(command, pipeline): server.Measured(120e3 if nacre else 100e3, 0.5, 2.0,
                                                     7.0 if nacre else 9.0, 3.0 if nacre else 0.0)
                for command in server.COMMANDS for pipeline in server.PIPELINES}


class ServerTableTest(unittest.TestCase):
    def markdown(self, only: str = "") -> str:
        rows = select_among(server.ROWS, only)
        return server.TABLE.markdown(server.TABLE.measure(Bench(), rows, 1, Silence()))

    def test_tables(self):
        text = self.markdown()
        for line in (
                "| SET, pipeline 1, 100 B | 120 k | 100 k: 1.20 (met) | 100 k: 1.20 (met) | "
                "100 k: 1.20 |",
                "| GET, pipeline 64, 1024 B | 120 k | 100 k: 1.20 (missed) | 100 k: 1.20 (missed) "
                "| 100 k: 1.20 |",
                "| SET, pipeline 16, 100 B | 0.50 / 2.00 | 0.50 / 2.00 | 0.50 / 2.00 | "
                "0.50 / 2.00 |",
                "| SET, pipeline 16, 100 B | 7.00 | 3.00 | 9.00 | 9.00 | 9.00 |",
                "| Nacre: leased and resident together | 400 |"):
            self.assertIn(line + "\n", text)
        self.assertIn("8 of 24 are met; missed: SET,", " ".join(text.split()))
        self.assertIn("pipeline 16, 100 B: rate, Redis, fsync always, tmpfs (1.20 of 1.5)",
                      " ".join(text.split()))

    def test_part_of_the_rows(self):
        text = self.markdown(f"GET, pipeline 1, 100 B: rate, {TMPFS.title}")
        self.assertIn("| GET, pipeline 1, 100 B | 120 k | 100 k: 1.20 (met) | - | - |\n", text)
        self.assertIn("1 of 1 are met.", " ".join(text.split()))
        self.assertNotIn("memory for a key", text)
        self.assertIn("None of these rows has a target.",
                      self.markdown(f"GET, pipeline 1, 100 B: rate, {VOLATILE.title}"))

    def test_only_what_rows_need_is_run(self):
        needed = server.TABLE.needed(select_among(server.ROWS, f"100 B: p99, {TMPFS.title}"))
        self.assertEqual([f"{NACRE} 100 B", f"{TMPFS.name} 100 B"], [run.name for run in needed])

    def test_page_of_this_project_has_the_marks(self):
        self.assertTrue(all(server.TABLE.split_docs(ROOT / "docs" / "performance.md")))


class YcsbTableTest(unittest.TestCase):
    OUTPUT = ("[OVERALL], RunTime(ms), 1000\n[OVERALL], Throughput(ops/sec), 12345.5\n"
              "[READ], 99thPercentileLatency(us), 1500\n[READ], Return=OK, 10\n")

    def test_output_of_ycsb(self):
        workload = ycsb_server.WORKLOADS[0]
        self.assertEqual(ycsb_server.Measured(12345.5, 1.5),
                         ycsb_server.read_output(self.OUTPUT, workload, "it"))
        with self.assertRaisesRegex(CompareError, "it, A: 3 times ERROR"):
            ycsb_server.read_output(self.OUTPUT + "[UPDATE], Return=ERROR, 3\n", workload, "it")
        with self.assertRaisesRegex(CompareError, "it: YCSB says nothing of .SCAN."):
            ycsb_server.read_output(self.OUTPUT, ycsb_server.WORKLOADS[-1], "it")

    def test_tables(self):
        class Ycsb:
            def run(self, what: ycsb_server.Run, _number: int) -> dict:
                rate = 3000 if what.engine == NACRE else 2000
                return {each.name: ycsb_server.Measured(rate, 1.25)
                        for each in ycsb_server.WORKLOADS}

        rows = select_among(ycsb_server.ROWS, "YCSB [AE]")
        text = ycsb_server.TABLE.markdown(ycsb_server.TABLE.measure(Ycsb(), rows, 1, Silence()))
        self.assertIn("| YCSB E | 3000 | 2000: 1.50 | 2000: 1.50 | 2000: 1.50 |\n", text)
        self.assertIn("| YCSB A of a read | 1.25 | 1.25: 1.00 | 1.25: 1.00 | 1.25: 1.00 |\n", text)
        self.assertNotIn("YCSB B", text)

    def test_parts_of_workloads_are_whole(self):
        for workload in ycsb_server.WORKLOADS:
            self.assertAlmostEqual(1.0, sum(part for _, part in workload.parts))
        self.assertTrue(all(ycsb_server.TABLE.split_docs(ROOT / "docs" / "performance.md")))


if __name__ == "__main__":
    unittest.main()
