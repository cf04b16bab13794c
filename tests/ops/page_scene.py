"""A place in which the commands of a page's sections can be run: a folder, ports, a pool of memory
nodes, and what has happened before a command by what the page says."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time
import urllib.request

from live_pool import await_true, free_ports
from page_commands import Command, difference
from page_shell import Shell

NODES_MAX = 6
# What long commands say to a pipe.
PROGRESS = re.compile(r"^ *\d+ %: ")
SMALL = ("--num=20000 --value_size=100 --write_buffer_size=1048576 "
         "--target_file_size_base=1048576 --max_bytes_for_level_base=4194304")
SECONDS_TO_PRINT_MAX = 60


class Scene:
    """Everything of it ends with `close`."""

    def __init__(self, binaries: pathlib.Path, folder: pathlib.Path):
        self.binaries = binaries
        self.folder = folder
        self.processes: list[subprocess.Popen] = []
        self.nodes: list[subprocess.Popen] = []
        ports = free_ports(NODES_MAX + 5)
        self.names = {f"node{i}": f"127.0.0.1:{port}" for i, port in enumerate(ports[:NODES_MAX])}
        for name, port in zip(("perf", "console", "etcd", "etcd_peers", "spare"),
                              ports[NODES_MAX:]):
            self.names[name] = f"127.0.0.1:{port}"
            self.names[f"{name}_port"] = str(port)
        self.names |= {"root": str(folder), "binaries": str(binaries), "small": SMALL,
                       "user": subprocess.check_output(["id", "-un"], text=True).strip()}
        # Paths that pages name.
        for each in ("etc/nacre", "etc/modules-load.d", "var/lib/nacre", "backup", "run/nacre",
                     "dev"):
            (folder / each).mkdir(parents=True)
        self.environment = {"PATH": f"{binaries}:/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C",
                            "HOME": str(folder), "TZ": "UTC"}
        self.shell = Shell(folder, self.environment)
        self.parameters = ""  # Of the pool's URI.

    def close(self) -> None:
        self.shell.close()
        for process in self.processes:
            process.send_signal(signal.SIGCONT)
            process.kill()
        for process in self.processes:
            process.wait()

    # ---- What has happened before ----

    def start(self, name: str, *arguments: str) -> subprocess.Popen:
        with open(self.folder / f"{name}.log", "ab") as output:
            process = subprocess.Popen(arguments, stdout=output, stderr=output, cwd=self.folder,
                                       stdin=subprocess.DEVNULL, env=self.environment)
        self.processes.append(process)
        return process

    def program(self, name: str) -> str:
        path = self.binaries / name
        return str(path) if path.exists() else name

    def log_of(self, name: str) -> str:
        path = self.folder / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def await_true_of(self, name: str, what: str, condition, process: subprocess.Popen) -> None:
        try:
            await_true(what, condition, [process])
        except AssertionError as error:
            raise AssertionError(f"{error}; {name} said:\n{self.log_of(name)}") from error

    def await_log(self, name: str, text: str, process: subprocess.Popen) -> None:
        self.await_true_of(name, f"'{text}' of {name}", lambda: text in self.log_of(name), process)

    def start_node(self, index: int, *flags: str, scheme: str = "tcp") -> None:
        """With what it had, if it is one that was killed and keeps its memory."""
        where = (self.names[f"node{index}"] if scheme == "tcp"
                 else f"{self.folder}/run/nacre/n{index}.sock")
        process = self.start(
            f"node{index}", self.program("nacre-memnode"),
            f"--listen={scheme}:{where}{self.parameters}", "--size=64MiB", "--slab_size=1MiB",
            f"--domain=rack{index + 1}", *flags)
        self.nodes[index:index + 1] = [process]
        self.await_log(f"node{index}", "ready:", process)

    def start_nodes(self, count: int, keep: bool = False) -> None:
        for index in range(count):
            own = [f"--region_file={self.folder}/n{index}.region"] if keep else []
            self.start_node(index, *own)
        self.use_pool(count)

    def use_pool(self, count: int) -> None:
        """`{pool}` in commands is one of the first `count` nodes from here on."""
        self.names["pool"] = "tcp:" + ",".join(
            self.names[f"node{i}"] for i in range(count)) + self.parameters

    def end(self, process: subprocess.Popen) -> None:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait()
        self.processes.remove(process)

    def bench(self, database: str = "orders", redundancy: str = "rep(2)") -> None:
        """Makes a database, which is closed afterwards."""
        done = subprocess.run(
            [self.program("db_bench"), f"--pool={self.names['pool']}", f"--db={database}",
             f"--redundancy={redundancy}", *SMALL.split(),
             "--benchmarks=fillrandom,waitforcompaction"],
            capture_output=True, text=True, timeout=120, check=False, cwd=self.folder,
            env=self.environment)
        if done.returncode != 0:
            raise AssertionError(f"db_bench ended with {done.returncode}:\n{done.stdout}"
                                 f"{done.stderr}")

    def start_owner(self, database: str = "orders", redundancy: str = "rep(2)") -> None:
        """Makes the database, and then opens it and reads and writes until it is ended."""
        self.bench(database=database, redundancy=redundancy)
        process = self.start(
            "owner", self.program("db_bench"), f"--pool={self.names['pool']}", f"--db={database}",
            f"--redundancy={redundancy}", *SMALL.split(), "--target_ops_per_second=2000",
            "--use_existing_db", "--slab_size=1048576", "--readwrites=1000000000",
            "--benchmarks=readrandomwriterandom")

        def is_open() -> bool:
            databases = json.loads(self.ctl("status", "--json").stdout)["database_list"]
            return any(each["name"] == database and each["open"] for each in databases)
        self.await_true_of("owner", f"{database} is open", is_open, process)

    def start_etcd(self) -> None:
        url, peers = (f"http://{self.names[name]}" for name in ("etcd", "etcd_peers"))
        etcd = self.start(
            "etcd", "etcd", "--name=one", f"--data-dir={self.folder}/etcd.data",
            f"--listen-client-urls={url}", f"--advertise-client-urls={url}",
            f"--listen-peer-urls={peers}", f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=one={peers}", "--logger=zap", "--log-outputs=stderr")
        self.await_log("etcd", "serving client traffic", etcd)

    def start_keyspace(self) -> None:
        """The keyspace `accounts` of four shards, which two processes own and a third one uses."""
        self.start_etcd()
        for index in range(3):
            self.start_node(index, "--size=4GiB", "--slab_size=64MiB")
        self.use_pool(3)
        coordinator = f"--coordinator=etcd:{self.names['etcd']}"
        owner = self.start(
            "owner", self.program("db_bench"), f"--pool={self.names['pool']}", coordinator,
            "--db=accounts", "--redundancy=rep(2)", "--sharded=4", "--members=2",
            "--member_address=none", "--other_member_address=tcp:127.0.0.1:0", "--num=4000",
            "--target_ops_per_second=2000", "--readwrites=1000000000",
            "--benchmarks=fillrandom,readrandomwriterandom")
        self.await_log("owner", "fillrandom   :", owner)
        done = subprocess.run(
            [self.program("nacre-ctl"), "balance", "accounts", "resume", coordinator],
            capture_output=True, text=True, timeout=60, check=False, env=self.environment)
        assert done.returncode == 0, done.stderr

    def ctl(self, *arguments: str, pool: str = "") -> subprocess.CompletedProcess:
        return subprocess.run(
            [self.program("nacre-ctl"), *arguments, f"--pool={pool or self.names['pool']}"],
            capture_output=True, text=True, timeout=60, check=False, cwd=self.folder,
            env=self.environment)

    def fetch(self, name: str, path: str, **headers: str) -> str:
        request = urllib.request.Request(f"http://{self.names[name]}{path}", headers=headers)
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.read().decode()

    # ---- The page's commands ----

    def put_in(self, text: str, substitutions: dict[str, str]) -> tuple[str, dict[str, str]]:
        """`text` with what is here in the place of what the page has; and which of the
        substitutions were used."""
        used: dict[str, str] = {}

        def value(match: re.Match) -> str:
            used[match.group(0)] = substitutions[match.group(0)].format_map(self.names)
            return used[match.group(0)]
        longest_first = sorted(substitutions, key=len, reverse=True)
        return re.sub("|".join(map(re.escape, longest_first)), value, text), used

    def as_shown(self, text: str, substitutions: dict[str, str]) -> list[str]:
        """Lines of output with the page's names in the place of those that are here."""
        for shown, real in sorted(substitutions.items(), key=lambda each: -len(each[1])):
            if len(real) > 3:
                text = text.replace(real, shown)
        for index in range(NODES_MAX):
            text = text.replace(self.names[f"node{index}"], f"10.0.0.{index + 1}:7000")
        text = text.replace(self.names["root"], "")
        return [line for line in text.splitlines() if not PROGRESS.match(line)]

    def await_output(self, command: Command, path: pathlib.Path, used: dict[str, str],
                     optional: tuple[str, ...], varying: tuple[str, ...], ended) -> str:
        """How it differs from what is shown; waits for what is printed later. Lines that begin as
        a pattern of `optional` says may be missing on either side."""
        end = time.monotonic() + SECONDS_TO_PRINT_MAX
        while True:
            over = ended() or time.monotonic() > end
            text = path.read_text(errors="replace")
            differs = looks_different(command, self.as_shown(text, used), optional, varying)
            if not differs or over:
                return differs and f"{differs}\nit printed:\n{text}"
            time.sleep(0.05)

    def is_running(self, process: int) -> bool:
        try:
            os.kill(process, 0)
            state = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
            return state != "Z"
        except (ProcessLookupError, FileNotFoundError):
            return False


def looks_different(command: Command, printed: list[str], optional: tuple[str, ...],
                    varying: tuple[str, ...]) -> str:
    if not command.output:
        return ""
    ignored = re.compile("|".join(varying) or "(?!)")

    def comparable(lines) -> list[str]:
        return [ignored.sub("<*>", line) for line in lines
                if not any(re.match(pattern, line) for pattern in optional)]
    shown, printed = comparable(command.output), comparable(printed)
    if not command.text.startswith("db_bench"):
        return difference(shown, printed)
    # Pages show an excerpt of what it prints.
    windows = [difference(shown, printed[at:at + len(shown)]) for at in range(len(printed))
               if printed[at].split()[:1] == shown[0].split()[:1]]
    if "" in windows:
        return ""
    return windows[-1] if windows else f"it does not print: {shown[0]}"


def needs_etcd(binaries: pathlib.Path) -> str:
    """What is missing here for keyspaces; empty: nothing."""
    if shutil.which("etcd") is None:
        return "not installed: etcd-server"
    done = subprocess.run(
        [str(binaries / "nacre-ctl"), "shards", "any", "--coordinator=etcd:127.0.0.1:1"],
        capture_output=True, text=True, timeout=60, check=False)
    return "built without etcd" if "NotSupported" in done.stderr else ""
