"""Goal: whatever is killed, stock clients of nacre-server lose nothing that was acknowledged, read
nothing that is stale, and are served again soon.

usage: kill_test.py FOLDER_OF_BINARIES [SECONDS]

Method: processes with redis-py write, read and count in registers with values that are written once
each, through two addresses, while servers are killed (-9) and started again at their address, as
systemd would, or are taken over by one at the other address that is told to, or that waits there
for the end or the standstill of the first one, and memory nodes are killed and come back empty, one
at a time. What each client saw is a history: tests/history/checker, which is
porcupine, looks for an order that explains it; counters are checked here. Without SECONDS each kind
of harm is done once. With it, harm is done at random for so long, and the longest gap is told in
which a client with redis-py's own retries was not answered. NACRE_TEST_SEED replays the choice of
harm, not its timing.

Answers 77 if redis-py or the checker is not here.
"""

import functools
import os
import pathlib
import random
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "db_bench" / "compare"))
from free_ports import free_ports  # noqa: E402
from redis_histories import (ANSWER_SECONDS, PATIENCE_SECONDS, Failure, Harm,  # noqa: E402
                             eventually, kill_process, longest_gaps, run_under_harm, start_process)

try:
    import redis
    from redis.backoff import ConstantBackoff
    from redis.retry import Retry
except ImportError:
    redis = None

SKIPPED = 77
NODES = 4
REDUNDANCY = "rs(2,1)"
DOWN_AFTER_MS = 1000
SMALL = ("--slab_size=1MiB", "--size=192MiB")
SERVER_FLAGS = ("--slab_size=1048576", "--write_buffer_size=262144", "--threads=2")


# ---- Clients ------------------------------------------------------------------------------------


def run_stock_client(ports, folder, stop):
    """A client whose retries are redis-py's own, at two addresses; notes how long commands took."""
    def connect(port):
        retry = Retry(ConstantBackoff(0.01), 5)
        return redis.Redis(port=port, socket_timeout=ANSWER_SECONDS, retry=retry,
                           retry_on_error=[redis.ConnectionError, redis.TimeoutError])
    servers = [connect(port) for port in ports]
    current, number, last = 0, 0, time.monotonic()
    with (folder / "gaps").open("w") as file:
        while not stop.is_set():
            try:
                servers[current].set("stock", number)
                servers[current].get("stock")
                now = time.monotonic()
                file.write(f"{last} {now - last}\n")
                last = now
                number += 1
            except (redis.RedisError, OSError):
                current = 1 - current
            time.sleep(0.001)


# ---- Servers and nodes --------------------------------------------------------------------------


class Cluster:
    """Memory nodes, and a server that owns the database, or two of which one does."""

    def __init__(self, binaries, folder):
        self.binaries = binaries
        self.folder = folder
        self.ports = tuple(free_ports(2))
        self.sockets = [folder / f"n{i}.sock" for i in range(NODES)]
        self.pool = "shm:" + ",".join(map(str, self.sockets))
        self.nodes = [None] * NODES
        self.servers = [None, None]
        self.active = 0
        self.active_has_waited = False

    def __enter__(self):
        for number in range(NODES):
            self.start_node(number)
        self.start_server(0)
        return self

    def __exit__(self, *_):
        for process in filter(None, (*self.servers, *self.nodes)):
            process.kill()
            process.wait()

    def start(self, ready, program, *flags):
        return start_process(ready, self.folder / f"{program}.log", self.binaries / program, *flags)

    def start_node(self, number):
        self.nodes[number] = self.start("ready:", "nacre-memnode",
                                        f"--listen=shm:{self.sockets[number]}", *SMALL)
        if self.nodes[number] is None:
            raise Failure(f"node {number} did not begin")

    def begin_server(self, number, ready, *flags):
        self.servers[number] = self.start(
            ready, "nacre-server", f"--pool={self.pool}", f"--redundancy={REDUNDANCY}",
            f"--listen=127.0.0.1:{self.ports[number]}", *SERVER_FLAGS, *flags)
        return self.servers[number]

    def start_server(self, number, *flags):
        # Until it serves, as systemd would: nodes may be about to notice that one is gone.
        eventually(f"server {number} serves", lambda: self.begin_server(number, "serving", *flags))
        self.active = number
        self.active_has_waited = False

    def kill_server(self):
        number = self.active
        kill_process(self.servers[number])
        self.start_server(number)

    def take_over(self):
        """The server at the other address takes the database; the old one is killed later."""
        old = self.active
        self.start_server(1 - old, "--take_over")
        time.sleep(0.3)  # Clients may still ask it.
        kill_process(self.servers[old])
        self.servers[old] = None

    def stand_by(self, harm):
        """A server that waits at the other address takes the database when this one is killed, or
        is stopped and goes on later."""
        old = self.servers[self.active]
        number = 1 - self.active
        eventually("a server waits", lambda: self.begin_server(
            number, "waiting", "--standby", f"--down_after_ms={DOWN_AFTER_MS}"))
        time.sleep(1.5)  # It learns which server it waits for, and has an answer of that one.
        old.send_signal(harm)
        output = self.servers[number].stdout
        ready, _, _ = select.select([output], [], [], PATIENCE_SECONDS)
        if not ready or "serving" not in output.readline():
            raise Failure("the server that waited does not serve")
        self.active = number
        if harm == signal.SIGSTOP:
            old.send_signal(signal.SIGCONT)
        if not self.active_has_waited:
            # It would go on, and answer that another server has the database.
            old.kill()
        try:
            old.wait(timeout=60)
        except subprocess.TimeoutExpired:
            raise Failure("the server that lost the database does not end") from None
        self.active_has_waited = True
        old.stdout.close()
        self.servers[1 - number] = None

    def kill_node(self, number):
        kill_process(self.nodes[number])
        self.start_node(number)

    def ctl(self, *arguments):
        return subprocess.run([self.binaries / "nacre-ctl", *arguments, f"--pool={self.pool}"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=60, check=False).stdout

    def await_whole(self):
        """Until the database has taken all nodes in, and a node may be lost again."""
        def is_whole():
            for _ in range(3):  # A table that was just made may show up a moment later.
                if '"spare_nodes": 1,' not in self.ctl("fsck", "redis", "--json"):
                    return False
                members = re.findall(r"^  member .* shm:", self.ctl("manifest", "redis"),
                                     re.MULTILINE)
                if len(members) != NODES:
                    return False
                time.sleep(0.2)
            return True
        eventually("the database is whole again", is_whole)


# ---- The test -----------------------------------------------------------------------------------


class ServerHarm(Harm):
    """What is done to a server and its nodes."""

    def harm(self, kind):
        if kind == "kill":
            self.cluster.kill_server()
        elif kind == "takeover":
            self.cluster.take_over()
        elif kind == "standby":
            self.cluster.stand_by(signal.SIGKILL)
        elif kind == "freeze":
            self.cluster.stand_by(signal.SIGSTOP)
        elif kind == "node":
            self.cluster.kill_node(self.random.randrange(NODES))
        else:  # A server that is started while a node is away.
            number = self.random.randrange(NODES)
            kill_process(self.cluster.nodes[number])
            self.cluster.kill_server()
            self.cluster.start_node(number)

    def all_kinds(self):
        for kind in ("kill", "node", "takeover", "standby", "freeze", "both"):
            self.await_operations()
            self.do(kind)
            self.await_operations()
            if kind in ("node", "both"):
                self.cluster.await_whole()

    def at_random(self, seconds):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            time.sleep(self.random.uniform(0.5, 4))
            kinds = ["kill", "takeover", "standby", "node", "both"]
            # The first one that waited has had the database tell who has it.
            if any(kind == "standby" for _, kind in self.done):
                kinds.append("freeze")
            kind = self.random.choice(kinds)
            self.do(kind)
            self.await_operations()
            if kind in ("node", "both"):
                self.cluster.await_whole()


def run(binaries, seconds, seed, folder):
    print(f"NACRE_TEST_SEED={seed}", flush=True)
    with Cluster(binaries, folder) as cluster:
        def connect(_client, way):
            return redis.Redis(port=cluster.ports[way], socket_timeout=ANSWER_SECONDS,
                               decode_responses=True)
        harm = run_under_harm(
            binaries, folder, seconds,
            lambda acknowledged: ServerHarm(cluster, acknowledged, seed), connect,
            functools.partial(run_stock_client, cluster.ports), lambda: connect(0, cluster.active))
    if seconds > 0:
        print("longest gaps of a client with redis-py's retries: "
              + longest_gaps(folder, harm.done))


def main() -> int:
    if len(sys.argv) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    binaries = pathlib.Path(sys.argv[1]).resolve()
    if redis is None or not (binaries / "history_checker").exists():
        print("skipped: there is no " + ("redis-py" if redis is None else "history_checker"))
        return SKIPPED
    seconds = float(sys.argv[2]) if len(sys.argv) == 3 else 0.0
    seed = int(os.environ.get("NACRE_TEST_SEED") or random.randrange(1_000_000))
    folder = pathlib.Path(tempfile.mkdtemp(prefix="nacre-kills-"))
    try:
        run(binaries, seconds, seed, folder)
        return 0
    except Failure as failure:
        print(f"failed: {failure}")
        for log in sorted(folder.glob("*.log")):
            print(f"{log.name} ends:\n{log.read_text()[-1000:]}")
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
