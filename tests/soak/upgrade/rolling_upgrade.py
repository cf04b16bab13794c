"""Rolls a pool, its owner and its followers to another release and back while they are in use.

usage: rolling_upgrade.py OLD_BIN NEW_BIN [SECONDS]

OLD_BIN and NEW_BIN are folders of nacre-memnode and upgrade_worker of two releases, the second one
with nacre-ctl. Six nodes over tcp, which keep their memory in files, an owner that writes and
reads and two followers that read go from the old release to the new one, back to the old one, and
forward again, one program at a time, with SECONDS (3) between two steps. Nodes are restarted as
planned ('nacre-ctl maintenance') where the owner is of a release that knows of that. No program may
see an error or a wrong answer, and after each step the redundancy must be whole. Then the upgrade
is finalized, which has to be refused as long as a program of the old release is left; from then on
an owner and a node of the old release have to be refused by name. Answers 1 at the first thing that
is wrong.
"""

import json
import mmap
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[3] / "db_bench" / "compare"))
from free_ports import free_ports  # noqa: E402

NODES = 6
SPARE = 2  # Of rs(3,2), which upgrade_worker asks for.
START_SECONDS = 60
WHOLE_SECONDS = 180
DATABASE = "rolled"
OWNER, FOLLOWERS = 0, (1, 2)  # Slots of the model.


class Failed(Exception):
    """Something was not as it has to be."""


class Program:
    """A process with its output in a file."""

    def __init__(self, arguments: list, output: pathlib.Path):
        self.name = output.stem
        self.output = output
        self.start = output.stat().st_size if output.exists() else 0
        with output.open("a") as file:
            self.process = subprocess.Popen([str(each) for each in arguments], stdout=file,
                                            stderr=subprocess.STDOUT)

    def said(self) -> str:
        with self.output.open() as file:
            file.seek(self.start)
            return file.read()

    def check(self) -> None:
        if self.process.poll() is not None:
            raise Failed(f"{self.name} has ended with {self.process.returncode}: {self.said()}")

    def await_text(self, text: str) -> None:
        deadline = time.monotonic() + START_SECONDS
        while text not in self.said():
            self.check()
            if time.monotonic() > deadline:
                raise Failed(f"{self.name} does not say '{text}': {self.said()}")
            time.sleep(0.05)

    def end(self) -> None:
        """By SIGTERM, which has to do it."""
        self.check()
        self.process.terminate()
        if self.process.wait(START_SECONDS) != 0:
            raise Failed(f"{self.name} ended with {self.process.returncode}: {self.said()}")

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class Pool:
    """The nodes, the owner and the followers, each of one release or the other."""

    def __init__(self, old: pathlib.Path, new: pathlib.Path, folder: pathlib.Path, seconds: float):
        self.old, self.new, self.folder, self.seconds = old, new, folder, seconds
        self.addresses = [f"127.0.0.1:{port}" for port in free_ports(NODES)]
        self.uri = "tcp:" + ",".join(self.addresses)
        self.programs: dict[str, Program] = {}
        self.release: dict[str, pathlib.Path] = {}
        for node in range(NODES):
            self.start_node(node, old)
        self.start_worker("owner", OWNER, old)
        for slot in FOLLOWERS:
            self.start_worker("follower", slot, old)

    # ---- Programs -----------------------------------------------------------------------------

    def start(self, name: str, arguments: list, release: pathlib.Path, ready: str) -> None:
        self.programs[name] = Program(arguments, self.folder / f"{name}.out")
        self.release[name] = release
        self.programs[name].await_text(ready)

    def start_node(self, node: int, release: pathlib.Path) -> None:
        self.start(f"node{node}",
                   [release / "nacre-memnode", f"--listen=tcp:{self.addresses[node]}",
                    "--size=192MiB", "--slab_size=1MiB",
                    f"--region_file={self.folder / f'node{node}.region'}"], release, "ready")

    def worker(self, role: str, slot: int, release: pathlib.Path) -> list:
        return [release / "upgrade_worker", role, self.uri, self.folder / "model", slot]

    def start_worker(self, role: str, slot: int, release: pathlib.Path) -> None:
        self.start(f"{role}{slot}", self.worker(role, slot, release), release, "ready")

    def check(self) -> None:
        for program in self.programs.values():
            program.check()

    def progress(self) -> list[tuple[int, int]]:
        """Operations and the longest one in microseconds, by slot."""
        with (self.folder / "model").open("rb") as file:
            with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as model:
                return [struct.unpack_from("QQ", model, 16 * slot) for slot in range(3)]

    def run_on(self) -> None:
        """Some time passes, in which each worker gets on."""
        before = self.progress()
        time.sleep(self.seconds)
        deadline = time.monotonic() + START_SECONDS
        while any(now[0] == then[0] for now, then in zip(self.progress(), before)):
            self.check()
            if time.monotonic() > deadline:
                raise Failed(f"a worker stands still: {before}, {self.progress()}")
            time.sleep(0.1)
        self.check()

    def stop_all(self) -> None:
        for program in self.programs.values():
            program.kill()

    # ---- nacre-ctl ----------------------------------------------------------------------------

    def ctl(self, *arguments: str, seconds: int = 60) -> subprocess.CompletedProcess:
        return subprocess.run([self.new / "nacre-ctl", *arguments, f"--pool={self.uri}"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=seconds)

    def nodes(self) -> list[dict]:
        return json.loads(self.ctl("nodes", "--json").stdout)["nodes"]

    def await_whole(self) -> None:
        deadline = time.monotonic() + WHOLE_SECONDS
        while True:
            self.check()
            fsck = self.ctl("fsck", DATABASE, "--json").stdout
            if f'"spare_nodes": {SPARE},' in fsck and all(n["reachable"] for n in self.nodes()):
                return
            if time.monotonic() > deadline:
                status = self.ctl("status").stdout
                raise Failed(f"the redundancy is not whole again: {fsck}\n{status}")
            time.sleep(0.5)

    def expect_refusal(self, *culprits: str) -> None:
        result = self.ctl("finalize-upgrade")
        if result.returncode != 1 or not all(each in result.stdout for each in culprits):
            raise Failed(f"finalize-upgrade does not name {culprits}: {result.stdout}")

    # ---- Steps --------------------------------------------------------------------------------

    def roll_node(self, node: int, release: pathlib.Path) -> None:
        if self.release["owner0"] == self.new:
            order = self.ctl("maintenance", f"tcp:{self.addresses[node]}", "--for=5min")
            if order.returncode != 0 or "can be stopped" not in order.stdout:
                raise Failed(f"maintenance of node {node}: {order.stdout}")
        self.programs[f"node{node}"].end()
        del self.programs[f"node{node}"]
        self.run_on()
        self.start_node(node, release)
        self.await_whole()
        self.run_on()

    def roll_nodes(self, release: pathlib.Path, nodes=range(NODES)) -> None:
        for node in nodes:
            self.roll_node(node, release)
            self.tell(f"node {node}")

    def roll_worker(self, role: str, slot: int, release: pathlib.Path, kill: bool = False) -> None:
        program = self.programs.pop(f"{role}{slot}")
        program.kill() if kill else program.end()
        self.start_worker(role, slot, release)
        self.run_on()
        self.tell(f"{role} {slot}" + (", which was killed" if kill else ""))

    def tell(self, what: str) -> None:
        operations = sum(each[0] for each in self.progress())
        print(f"  {what}; {operations} operations so far", flush=True)


def roll_workers(pool: Pool, release: pathlib.Path, kill: bool) -> None:
    """The owner between the followers, so that it meets followers of both releases."""
    pool.roll_worker("follower", FOLLOWERS[0], release)
    pool.roll_worker("owner", OWNER, release, kill)
    pool.roll_worker("follower", FOLLOWERS[1], release)
    pool.await_whole()


def roll(pool: Pool) -> None:
    """Nodes are restarted under workers of the new release: those of 0.2.0 take a node for lost
    when they first use a connection again that its restart has ended, which may be at the moment
    when the next node is away."""
    old, new = pool.old, pool.new
    pool.await_whole()
    pool.run_on()
    print("forward", flush=True)
    roll_workers(pool, new, kill=False)
    pool.roll_nodes(new, range(NODES // 2))
    doctor = pool.ctl("doctor").stdout
    releases = {node["release"] for node in pool.nodes()}
    if len(releases) != 2 or "upgrade the other nodes" not in doctor:
        raise Failed(f"the mixture is not shown: {doctor}")
    pool.expect_refusal(f"tcp:{pool.addresses[NODES - 1]} (", "does not know")
    pool.roll_nodes(new, range(NODES // 2, NODES))
    print("back, workers first", flush=True)
    roll_workers(pool, old, kill=True)
    pool.expect_refusal(f"the owner of '{DATABASE}' does not know",
                        "which has no database open for writing, does not know")
    roll_workers(pool, new, kill=True)
    print("back, nodes first", flush=True)
    pool.roll_nodes(old)
    roll_workers(pool, old, kill=False)
    print("forward", flush=True)
    roll_workers(pool, new, kill=True)
    pool.roll_nodes(new)


def finalize(pool: Pool) -> None:
    print("finalized", flush=True)
    result = pool.ctl("finalize-upgrade")
    if result.returncode != 0 or "turned on: " not in result.stdout:
        raise Failed(f"finalize-upgrade: {result.stdout}")
    feature = result.stdout.split("turned on: ")[1].split(";")[0]
    pool.run_on()
    # A node of the old release is not used, and named.
    node = NODES - 1
    order = pool.ctl("maintenance", f"tcp:{pool.addresses[node]}", "--for=5min")
    if order.returncode != 0:
        raise Failed(f"maintenance of node {node}: {order.stdout}")
    pool.programs.pop(f"node{node}").end()
    pool.start_node(node, pool.old)
    refused = pool.nodes()[node]
    if refused["reachable"] or feature not in refused["error"]:
        raise Failed(f"a node of the old release is taken: {refused}")
    pool.tell(f"an older node is refused: {refused['error']}")
    pool.run_on()
    pool.programs.pop(f"node{node}").end()
    pool.start_node(node, pool.new)
    pool.await_whole()
    # An owner of the old release is refused, and told why.
    pool.programs.pop("owner0").end()
    older = Program(pool.worker("owner", OWNER, pool.old), pool.folder / "older_owner.out")
    try:
        if older.process.wait(START_SECONDS) == 0 or feature not in older.said():
            raise Failed(f"an owner of the old release is taken: {older.said()}")
    finally:
        older.kill()
    pool.tell(f"an older owner is refused: {older.said().strip()}")
    pool.start_worker("owner", OWNER, pool.new)
    pool.run_on()
    pool.await_whole()
    for name in ("owner0", *(f"follower{slot}" for slot in FOLLOWERS)):
        pool.programs.pop(name).end()
    fsck = pool.ctl("fsck", "--full", seconds=300)
    if fsck.returncode != 0:
        raise Failed(f"fsck: {fsck.stdout}")


def main() -> int:
    if len(sys.argv) not in (3, 4):
        print(__doc__, file=sys.stderr)
        return 2
    old, new = (pathlib.Path(each).resolve() for each in sys.argv[1:3])
    seconds = float(sys.argv[3]) if len(sys.argv) == 4 else 3
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = pathlib.Path(tempfile.mkdtemp(prefix="nacre_upgrade.", dir=memory))
    for release in (old, new):
        print(subprocess.run([release / "nacre-memnode", "--version"], check=True, text=True,
                             stdout=subprocess.PIPE).stdout.strip(), flush=True)
    pool = None
    try:
        pool = Pool(old, new, folder, seconds)
        roll(pool)
        finalize(pool)
    except (Failed, subprocess.TimeoutExpired) as failure:
        print(f"FAILED: {failure}", file=sys.stderr)
        for output in sorted(folder.glob("*.out")):
            print(f"---- {output.name}\n{output.read_text()[-2000:]}", file=sys.stderr)
        return 1
    finally:
        if pool is not None:
            pool.stop_all()
            for slot, (operations, longest) in enumerate(pool.progress()):
                print(f"slot {slot}: {operations} operations, the longest {longest / 1e3:.0f} ms")
        shutil.rmtree(folder, ignore_errors=True)
    print("no error was seen, and nothing was lost")
    return 0


if __name__ == "__main__":
    sys.exit(main())
