"""Goal: ops/cluster_bench measures figures on the machines of a hosts file, and leaves nothing
running or lying there: not after a failure, an interruption, or its own death.

Method: first stand-ins for the binaries, on "hosts" that are shells of this machine; then the real
binaries over tcp on four hosts that are network namespaces with a bridge between them, where only
the addresses of the hosts file reach a node. The namespaces are made inside others of the test's
own, so it needs root only where users may have none; then that part is skipped, and says so.

usage: cluster_bench_test.py FOLDER_OF_BINARIES [TEST...]

Exit code 77: something was skipped.
"""

import json
import os
import pathlib
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = ROOT / "ops" / "cluster_bench" / "cluster_bench.py"
sys.path[:0] = [str(TOOL.parent), str(ROOT / "db_bench" / "compare")]
import hosts  # noqa: E402
from measure import end  # noqa: E402
from shells import Shell  # noqa: E402
from workload import CompareError  # noqa: E402

BINARIES = pathlib.Path()  # Set by main.
SECONDS_MAX = 240
SKIPPED = 77
NETWORK = """
set -e
mount -t tmpfs tmpfs /run
ip link add bridge type bridge
ip link set bridge up
for i in 1 2 3 4; do
  ip netns add host$i
  ip link add veth$i type veth peer name eth0 netns host$i
  ip link set veth$i master bridge up
  ip -n host$i addr add 10.77.0.$i/24 dev eth0
  ip -n host$i link set eth0 up
  ip -n host$i link set lo up
done
exec "$@"
"""


def commands_with(text: str) -> list[str]:
    """Of the processes of this machine, but for this one's shell."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if text in line:
            found.append(line)
    return found


class HostsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "hosts"

    def read(self, text: str) -> hosts.Hosts:
        self.path.write_text(text)
        return hosts.read_hosts(self.path)

    def test_roles(self):
        read = self.read("# a cluster\n\nmemory m1\nmemory m2 port=9 address=10.0.0.2 # fast\n"
                         "compute c1\ncompute m1\n")
        self.assertEqual((hosts.MemoryHost("m1", "m1", 7100),
                          hosts.MemoryHost("m2", "10.0.0.2", 9)), read.memory)
        self.assertEqual(("c1", "m1"), read.compute)
        self.assertEqual(["m1", "m2", "c1"], read.names())

    def test_mistakes_are_named_with_their_line(self):
        for text, message in (("memory a\ncompute\n", "hosts:2: 'compute' without a host"),
                              ("memory a size=3\n", "hosts:1: 'size=3' is neither"),
                              ("memory a port=x\n", "hosts:1: port=x is no port"),
                              ("memory a port=65536\n", "hosts:1: port=65536 is no port"),
                              ("memory a address=\n", "hosts:1: 'address=' is neither"),
                              ("compute a b\n", "hosts:1: a line is"),
                              ("client a\n", "hosts:1: a line is"),
                              ("compute a\n", "no host with the role memory"),
                              ("memory a\n", "no host with the role compute"),
                              ("memory a\ncompute b\ncompute b\n", "same compute host twice")):
            with self.assertRaisesRegex(CompareError, message):
                self.read(text)
        with self.assertRaisesRegex(CompareError, "nowhere"):
            hosts.read_hosts(pathlib.Path("/nowhere"))


class ShellTest(unittest.TestCase):
    """With this machine's shell in the place of a remote one."""

    def setUp(self):
        self.shell = Shell("env TEST_HOST={host}")

    def run_there(self, *command: str) -> tuple[int, bytes]:
        process = self.shell.start("here", list(command), {"TEST_WORD": "it's \"$HOME\""})
        try:
            output, _ = process.communicate(timeout=SECONDS_MAX)
        finally:
            end(process)
        return process.returncode, output

    def test_words_arrive_as_they_are(self):
        self.assertEqual((0, b"here it's \"$HOME\" a  b;*'\n"), self.run_there(
            "sh", "-c", 'echo "$TEST_HOST $TEST_WORD $1"', "sh", "a  b;*'"))

    def test_exit_code_arrives(self):
        self.assertEqual((3, b"no\n"), self.run_there("sh", "-c", "echo no; exit 3"))
        with self.assertRaisesRegex(CompareError, "here: false"):
            self.shell.call("here", ["false"])
        with self.assertRaisesRegex(CompareError, "has no {host}"):
            Shell("ssh")

    def test_process_ends_with_its_input(self):
        process = self.shell.start("here", ["sh", "-c", "echo ready: 1; exec sleep 4321"], {})
        process.await_text(b"ready:", time.monotonic() + SECONDS_MAX)
        self.assertTrue(pathlib.Path(f"/proc/{process.pid_there}").exists())
        end(process)
        self.assertEqual([], commands_with("sleep 4321"))

    def test_process_that_ends_early_says_why(self):
        process = self.shell.start("here", ["sh", "-c", "echo too bad; exit 1"], {})
        with self.assertRaisesRegex(CompareError, "here: sh: too bad"):
            process.await_text(b"ready:", time.monotonic() + SECONDS_MAX)
        end(process)


FAKE_DB_BENCH = """
import json, sys, time
flags = dict(argument[2:].partition("=")[::2] for argument in sys.argv[1:])
mode = open(sys.argv[0] + ".mode").read()
if mode == "fail":
    sys.exit("something\\ndb_bench: IO error: no luck")
if mode == "hang":
    open(sys.argv[0] + ".hangs", "w").close()
    time.sleep(600)
step = {"ops": 600, "seconds": 1}
json.dump({"benchmarks": [step | {"name": name} for name in flags["benchmarks"].split(",")],
           "space": {}}, open(flags["json"], "w"))
"""
FAKE_MEMNODE = """
import os, time
assert len(open(os.environ["NACRE_SECRET_FILE"]).read()) == 64
print("ready: here", flush=True)
time.sleep(600)
"""


class StandInTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)
        for name, text in (("db_bench", FAKE_DB_BENCH), ("nacre-memnode", FAKE_MEMNODE)):
            binary = self.path / name
            binary.write_text(f"#!{sys.executable}\n{text}")
            binary.chmod(binary.stat().st_mode | stat.S_IXUSR)
        (self.path / "hosts").write_text("memory a\nmemory b\ncompute c\ncompute d\n")
        self.scratch = self.path / "scratch"
        self.scratch.mkdir()
        self.mode("well")

    def mode(self, mode: str) -> None:
        (self.path / "db_bench.mode").write_text(mode)

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-B", str(TOOL), f"--hosts={self.path / 'hosts'}",
                "--shell=env TEST_HOST={host}", f"--bin={self.path}",
                f"--out={self.path / 'out'}", "--no-plot", "--paper=dlsm", "--figure=15",
                "--rounds=1", "--quick", *arguments]

    def run_tool(self, *arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run(self.command(*arguments), capture_output=True, text=True,
                              check=False, timeout=SECONDS_MAX, env=self.environment())

    def environment(self) -> dict[str, str]:
        return os.environ | {"TMPDIR": str(self.scratch)}

    def assert_no_processes(self):
        deadline = time.monotonic() + 60
        while left := commands_with(str(self.path)):
            self.assertLess(time.monotonic(), deadline, left)
            time.sleep(0.02)

    def assert_nothing_is_left(self):
        self.assert_no_processes()
        self.assertEqual([], list(self.scratch.iterdir()))

    def test_figure(self):
        done = self.run_tool()
        self.assertEqual(0, done.returncode, done.stderr)
        kept = json.loads((self.path / "out" / "dlsm-15.json").read_text())
        self.assertEqual({"1C1M": [600], "2C2M": [1200]}, kept["values"]["fillrandom"])
        self.assertEqual("2 compute and 2 memory hosts over tcp", kept["about"]["remark"])
        self.assertIn("| fillrandom | 600 | 1200 |", (self.path / "out" / "dlsm.md").read_text())
        self.assert_nothing_is_left()

    def test_failures_are_named_in_one_line(self):
        missing = self.path / "missing"
        missing.mkdir()
        for mode, arguments, message in (
                ("fail", (), "1C1M|fillrandom.*: db_bench: IO error: no luck"),
                ("well", (f"--bin={missing}",), "there is no .*missing/nacre-memnode"),
                ("well", (f"--copy={missing}",), "there is no .*missing/nacre-memnode"),
                ("well", ("--shell=ssh",), "--shell=ssh has no {host}"),
                ("well", ("--shell=/nowhere/ssh {host}",), "a: sh: No such file"),
                ("well", ("--figure=99",), "--figure=99"),
                ("well", (f"--hosts={missing}",), "missing")):
            with self.subTest(message):
                self.mode(mode)
                done = self.run_tool(*arguments)
                self.assertEqual(1, done.returncode)
                self.assertRegex(done.stderr, f"^cluster_bench: .*({message})")
                self.assertEqual(1, done.stderr.count("\n"), done.stderr)
                self.assert_nothing_is_left()

    def stop_while_it_measures(self, number: signal.Signals) -> subprocess.Popen:
        self.mode("hang")
        tool = subprocess.Popen(self.command(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                text=True, env=self.environment())
        while not (self.path / "db_bench.hangs").exists():
            self.assertIsNone(tool.poll(), "ended by itself")
            time.sleep(0.02)
        tool.send_signal(number)
        _, errors = tool.communicate(timeout=60)
        self.assertEqual("cluster_bench: interrupted\n" if number == signal.SIGTERM else "", errors)
        return tool

    def test_interruption_ends_all_processes(self):
        self.stop_while_it_measures(signal.SIGTERM)
        self.assert_nothing_is_left()

    def test_processes_end_even_if_the_tool_is_killed(self):
        self.stop_while_it_measures(signal.SIGKILL)
        self.assert_no_processes()


class NamespacesTest(unittest.TestCase):
    """Real binaries, on hosts that are network namespaces."""

    def test_figures_over_tcp(self):
        inside = ["unshare", "-Urnm", "sh", "-c", NETWORK, "sh"]
        probe = subprocess.run([*inside, "true"], capture_output=True, text=True, check=False,
                               timeout=60)
        if probe.returncode != 0:
            self.skipTest(f"no network namespaces here: {probe.stderr.strip()}")
        port = 20000 + os.getpid() % 10000  # Of no other test that runs now.
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            (path / "hosts").write_text(
                f"memory host1 address=10.77.0.1 port={port}\n"
                f"memory host2 address=10.77.0.2 port={port}\n"
                "compute host3\ncompute host4\n")
            done = subprocess.run(
                [*inside, sys.executable, "-B", str(TOOL), f"--hosts={path / 'hosts'}",
                 "--shell=ip netns exec {host}", f"--copy={BINARIES}", f"--out={path / 'out'}",
                 "--no-plot", "--paper=fusee", "--figure=20,21,T1,14", "--rounds=1", "--quick",
                 "--num=100000"],
                capture_output=True, text=True, check=False, timeout=SECONDS_MAX,
                env=os.environ | {"TMPDIR": folder})
            self.assertEqual(0, done.returncode, done.stderr)
            self.assertEqual([], list(path.glob("nacre-cluster-*")))
            kept = {path.stem: json.loads(path.read_text())["values"]
                    for path in (path / "out").glob("fusee-*.json")}
        # Figure 20 kills a node from db_bench, which is on another host.
        self.assertEqual({"fusee-14", "fusee-21", "fusee-T1"}, set(kept))
        self.assertIn("Figure 20: not on a cluster", done.stdout)
        self.assertEqual(["2", "3", "4", "5"], list(kept["fusee-14"]["YCSB C"]))
        self.assertTrue(all(value > 0 for cells in kept["fusee-14"].values()
                            for values in cells.values() for value in values))
        self.assertGreater(kept["fusee-T1"]["nacre"]["first Get"][0], 0)
        self.assertGreater(sum(values[0] for values in
                               kept["fusee-21"]["readrandom of all followers"].values()), 0)
        self.assertEqual([], commands_with(f"10.77.0.1:{port}"))


if __name__ == "__main__":
    BINARIES = pathlib.Path(sys.argv.pop(1)).resolve()
    done = unittest.main(verbosity=2, exit=False).result
    sys.exit(1 if not done.wasSuccessful() else SKIPPED if done.skipped else 0)
