"""Goal: `./run compare` ends all that it started, writes its table, and fails in one clear line.

Method: the whole tool runs on small stand-ins for the binaries, which report what the test tells
them to. Nothing is measured.
"""

import contextlib
import importlib.util
import json
import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "db_bench" / "compare"
sys.path.insert(0, str(FOLDER))
import compare  # noqa: E402
import workload  # noqa: E402
from measure import DB_BENCH  # noqa: E402
from workload import LMDB, NACRE, PROFILES  # noqa: E402

HAS_MATPLOTLIB = importlib.util.find_spec("matplotlib") is not None


# Reports N operations in one second for each benchmark, where N and what is found depend on the
# engine; FAKE tells an engine to fail or to find less.
FAKE_DB_BENCH = """
import json, os, sys
flags = dict(argument[2:].split("=", 1) for argument in sys.argv[1:])
engine = flags.get("rocksdb_profile", flags["engine"])
fake = os.environ.get("FAKE", "")
if fake == "fail " + engine:
    sys.exit("something\\ndb_bench: IO error: no luck")
if fake == "hang " + engine:
    import time
    time.sleep(600)
if engine == "nacre":
    for path in flags["pool"].split(":", 1)[1].split(","):
        assert os.path.exists(path + ".alive"), path
speed = {"nacre": 600, "default": 100, "inmemory": 200, "lmdb": 300}[engine]
found = 5 if fake == "lose " + engine else 6
step = {"ops": speed, "seconds": 1, "ops_per_sec": speed, "found": found, "lookups": found,
        "background_ops": speed, "p999_us": 1 / speed, "background_p99_us": 1 / speed}
json.dump({"engine": {"name": engine, "description": engine + " 7.8.3, fast, x", "warning": ""},
           "benchmarks": [step | {"name": name} for name in flags["benchmarks"].split(",")],
           "space": {"user_bytes": 4200, "index_bytes": 80},
           "compaction": {"bytes_read": speed << 20, "cpu_seconds": 1}}, open(flags["json"], "w"))
"""
FAKE_MEMNODE = """
import sys, time
path = sys.argv[1].split(":", 1)[1]
open(path + ".alive", "w").close()
print("ready: here", flush=True)
time.sleep(600)
"""
FAKE_MICRO = """
import json
print(json.dumps({"benchmarks": [{"name": "BM_Get", "items_per_second": 50},
                                 {"name": "BM_RawRead", "items_per_second": 100}]}))
"""


class ToolTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)
        for name, text in ((DB_BENCH, FAKE_DB_BENCH), ("nacre-memnode", FAKE_MEMNODE),
                           ("micro_db", FAKE_MICRO)):
            binary = self.path / name
            binary.write_text(f"#!{sys.executable}\n{text}")
            binary.chmod(binary.stat().st_mode | stat.S_IXUSR)
        self.command = [sys.executable, "-B", str(FOLDER / "compare.py"), f"--bin={self.path}",
                        f"--out={self.path / 'out'}"]
        if not HAS_MATPLOTLIB:
            self.command.append("--no-plot")

    def run_tool(self, *arguments: str, fake: str = "") -> subprocess.CompletedProcess:
        return subprocess.run([*self.command, *arguments], env=os.environ | {"FAKE": fake},
                              capture_output=True, text=True, check=False, timeout=300)

    def assert_nothing_is_left(self):
        """No process of the binaries, and nothing in memory."""
        left = []
        for process in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                left += [process] if str(self.path).encode() in process.read_bytes() else []
        self.assertEqual([], left)

    def test_whole_table(self):
        docs = self.path / "page.md"
        docs.write_text(f"{compare.BEGIN_MARK}\n{compare.END_MARK}\n")
        done = self.run_tool("--rounds=2", "--update-docs", f"--docs={docs}")
        self.assertEqual(0, done.returncode, done.stderr)
        out = self.path / "out"
        report = json.loads((out / "compare.json").read_text())
        self.assertEqual(2, report["rounds"])
        rows = {f"{r['name']} {r['threads']}": r for r in report["rows"]}
        self.assertEqual(len(workload.ROWS), len(rows))
        self.assertEqual({NACRE: [600, 600], PROFILES[0]: [100, 100], PROFILES[1]: [200, 200]},
                         rows["fillrandom 2"]["values"])
        self.assertEqual(3.0, rows["fillrandom 2"]["ratio"])
        self.assertEqual(3.0, rows["compaction input per core 1"]["ratio"])
        self.assertAlmostEqual(3.0, rows["readwhilewriting, p99 of Put 1"]["ratio"])
        self.assertEqual(8.0, rows["memory for tables per key 1"]["medians"][NACRE])
        self.assertEqual(0.5, rows["Get against a raw read of its bytes 1"]["ratio"])
        for engine in ("rocksdb", "lmdb"):
            self.assertEqual("7.8.3 (fast)", report["machine"][engine])
        self.assertEqual(2.0, rows["readseq against LMDB 1"]["ratio"])
        self.assertEqual(3.0, rows["YCSB E 1"]["ratio"])
        markdown = (out / "compare.md").read_text()
        self.assertIn("\n| fillrandom | 2 | ops/s | 600 | 100 | 200 | - | 3.00 | >= 4 | no |\n",
                      markdown)
        self.assertIn(markdown, docs.read_text())
        plot = out / "compare.png"
        self.assertEqual(HAS_MATPLOTLIB, plot.exists() and plot.read_bytes()[:4] == b"\x89PNG")
        self.assertEqual(HAS_MATPLOTLIB, (self.path / "headline.png").exists())
        self.assert_nothing_is_left()

    def test_failures_are_named_in_one_line(self):
        cases = (
            ((), "fail default", "rocksdb default, read, round 1: exit code 1: db_bench: IO error: "
             "no luck"),
            ((), "lose inmemory", "nacre found 6 of 6, rocksdb inmemory 5 of 5"),
            (("--rounds=0",), "", "--rounds"),
            (("--only=nothing like it",), "", "--only=nothing like it is found in none of"),
            (("--update-docs", "--num=5"), "", "--update-docs"),
            (("--bin=/nowhere",), "", "there is no /nowhere/db_bench_peer"),
        )
        for arguments, fake, message in cases:
            with self.subTest(message):
                done = self.run_tool(*arguments, fake=fake)
                self.assertEqual(1, done.returncode)
                self.assertIn(message, done.stderr)
                self.assertEqual(1, done.stderr.count("\n"), done.stderr)
                self.assert_nothing_is_left()

    def test_interruption_ends_all_processes(self):
        def nodes() -> set:
            return set(pathlib.Path("/dev/shm").glob("nacre-compare-*/n3.sock.alive"))
        of_others = nodes()
        tool = subprocess.Popen(self.command, env=os.environ | {"FAKE": "hang nacre"},
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while nodes() <= of_others:
            self.assertIsNone(tool.poll(), "ended by itself")
            time.sleep(0.02)
        tool.terminate()
        _, errors = tool.communicate(timeout=60)
        self.assertEqual((1, "compare: interrupted\n"), (tool.returncode, errors))
        self.assert_nothing_is_left()


if __name__ == "__main__":
    unittest.main()
