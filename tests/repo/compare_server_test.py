"""Goal: the tables of `./run compare --server` say what was measured and which targets are met.

Method: numbers that stand in for servers. Nothing is measured.
"""

import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "db_bench" / "compare"))
import server  # noqa: E402
from rounds import select_among  # noqa: E402
from server import NACRE, TMPFS, VOLATILE  # noqa: E402


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


if __name__ == "__main__":
    unittest.main()
