"""Goal: whatever of a cluster of nacre-servers is killed, drained or moved, stock cluster clients
lose nothing that was acknowledged, read nothing that is stale, and are served again soon.

usage: cluster_test.py FOLDER_OF_BINARIES [SECONDS]

Method: processes with redis-py's cluster client, and others with its plain client, for which one of
the servers forwards what is elsewhere, write, read and count in registers with values that are
written once each, while of three servers one is killed (-9), frozen until the others have its
shards, or ended by SIGTERM, which drains it, and started again; while shards are moved and split;
and while memory nodes are killed and come back empty, one at a time. What each client saw is a
history: tests/history/checker, which is porcupine, looks for an order that explains it; counters
are checked here. Without SECONDS each kind of harm is done once. With it, harm is done at random
for so long, and the longest gap is told in which a client was not answered. NACRE_TEST_SEED replays
the choice of harm, not its timing.

Answers 77 if redis-py, etcd or the checker is not here.
"""

import functools
import json
import logging
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "db_bench" / "compare"))
from free_ports import free_ports  # noqa: E402
from redis_histories import (ANSWER_SECONDS, Failure, Harm, end_with_parent,  # noqa: E402
                             eventually, kill_process, longest_gaps, run_under_harm,
                             start_process)

try:
    import redis
    from redis.cluster import ClusterNode, RedisCluster
except ImportError:
    redis = None

SKIPPED = 77
NODES = 4
SERVERS = 3
SHARDS = 6
REDUNDANCY = "rs(2,1)"
FROZEN_SECONDS = 4.0
CTL_SECONDS = 60
SMALL = ("--slab_size=256KiB", "--size=256MiB")
SERVER_FLAGS = ("--slab_size=262144", "--write_buffer_size=262144", "--threads=2",
                f"--shards={SHARDS}")


def connect_to(ports, number):
    """A cluster client that begins with one of the servers."""
    nodes = [ClusterNode("127.0.0.1", port) for port in ports[number:] + ports[:number]]
    return RedisCluster(startup_nodes=nodes, socket_timeout=ANSWER_SECONDS, decode_responses=True)


def connect_either_way(ports, proxies, client, way):
    """Every other client knows no clusters."""
    if client % 2 == 0:
        return connect_to(ports, way)
    return redis.Redis(port=proxies[(client // 2 + way) % SERVERS], socket_timeout=ANSWER_SECONDS,
                       decode_responses=True)


def run_stock_client(ports, folder, stop):
    """A client whose retries are redis-py's own; notes how long commands took."""
    client, number, last = None, 0, time.monotonic()
    with (folder / "gaps").open("w") as file:
        while not stop.is_set():
            try:
                if client is None:
                    client = connect_to(ports, number % len(ports))
                client.set(f"stock{number % 16}", number)
                client.get(f"stock{number % 16}")
                now = time.monotonic()
                file.write(f"{last} {now - last}\n")
                last = now
                number += 1
            except (redis.RedisError, redis.exceptions.RedisClusterException, OSError):
                number += 1
            time.sleep(0.001)


def stacks_of(process):
    """Where its threads are, if elfutils are here to tell."""
    if shutil.which("eu-stack") is None:
        return "there is no eu-stack to say where it is"
    return subprocess.run(["eu-stack", "-p", str(process.pid)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False).stdout


class Cluster:
    """An etcd, memory nodes, and servers that share the slots."""

    def __init__(self, binaries, folder):
        self.binaries = binaries
        self.folder = folder
        ports = free_ports(2 * SERVERS + 2)
        self.ports = list(ports[:SERVERS])
        self.proxies = list(ports[SERVERS:2 * SERVERS])
        self.etcd_ports = ports[2 * SERVERS:]
        self.sockets = [folder / f"n{i}.sock" for i in range(NODES)]
        self.pool = "shm:" + ",".join(map(str, self.sockets))
        self.etcd = None
        self.nodes = [None] * NODES
        self.servers = [None] * SERVERS

    def __enter__(self):
        client, peer = (f"http://127.0.0.1:{port}" for port in self.etcd_ports)
        self.etcd = subprocess.Popen(
            ["etcd", "--name=only", f"--data-dir={self.folder / 'etcd'}",
             f"--listen-client-urls={client}", f"--advertise-client-urls={client}",
             f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}",
             f"--initial-cluster=only={peer}", "--logger=zap",
             f"--log-outputs={self.folder / 'etcd.log'}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=end_with_parent)
        for number in range(NODES):
            self.start_node(number)
        for number in range(SERVERS):
            self.start_server(number)
        self.spread()
        return self

    def __exit__(self, *_):
        for process in filter(None, (*self.servers, *self.nodes, self.etcd)):
            process.kill()
            process.wait()

    def start(self, ready, program, *flags):
        return start_process(ready, self.folder / f"{program}.log", self.binaries / program, *flags)

    def start_node(self, number):
        self.nodes[number] = self.start("ready:", "nacre-memnode",
                                        f"--listen=shm:{self.sockets[number]}", *SMALL)
        if self.nodes[number] is None:
            raise Failure(f"node {number} did not begin")

    def begin_server(self, number):
        self.servers[number] = self.start(
            "serving", "nacre-server", f"--pool={self.pool}", f"--redundancy={REDUNDANCY}",
            f"--coordinator=etcd:127.0.0.1:{self.etcd_ports[0]}",
            f"--listen=127.0.0.1:{self.ports[number]}",
            f"--proxy_listen=127.0.0.1:{self.proxies[number]}", *SERVER_FLAGS)
        return self.servers[number]

    def start_server(self, number):
        # Until it serves, as systemd would: nodes may be about to notice that one is gone.
        eventually(f"server {number} serves", lambda: self.begin_server(number))

    def kill_server(self, number):
        kill_process(self.servers[number])
        self.start_server(number)

    def end_server(self, number):
        """By SIGTERM: it gives its shards away first."""
        self.servers[number].send_signal(signal.SIGTERM)
        if self.servers[number].wait(timeout=60) != 0:
            raise Failure(f"server {number} ended with {self.servers[number].returncode}")
        self.servers[number].stdout.close()
        self.start_server(number)

    def freeze_server(self, number):
        self.servers[number].send_signal(signal.SIGSTOP)
        time.sleep(FROZEN_SECONDS)
        self.servers[number].send_signal(signal.SIGCONT)

    def kill_node(self, number):
        kill_process(self.nodes[number])
        self.start_node(number)

    def ctl(self, *arguments):
        command = [self.binaries / "nacre-ctl", *arguments]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, preexec_fn=end_with_parent) as process:
            try:
                return process.communicate(timeout=CTL_SECONDS)[0]
            except subprocess.TimeoutExpired:
                stacks = stacks_of(process)
                process.kill()
                raise Failure(f"{' '.join(map(str, command))} takes more than {CTL_SECONDS} s:\n"
                              f"{stacks}") from None

    def keyspace(self, *arguments):
        return self.ctl(*arguments, f"--coordinator=etcd:127.0.0.1:{self.etcd_ports[0]}")

    def told(self, what):
        """What nacre-ctl tells of the members, or the shards."""
        try:
            return json.loads(self.keyspace(what, "redis", "--json"))[what]
        except (ValueError, KeyError):
            return []

    def spread(self):
        """Gives each server its part of the shards: by itself the cluster would do it when the
        first one has had them for a while."""
        members = [member["id"] for member in self.told("members")]
        for number, shard in enumerate(self.told("shards")):
            self.keyspace("move", "redis", str(shard["id"]), members[number % SERVERS])
        eventually("each server has shards", lambda: len(
            {shard["owner"] for shard in self.told("shards")}) == SERVERS)

    def await_whole(self):
        """Until all shards have taken all nodes in, and a node may be lost again."""
        def is_whole():
            databases = re.findall(r"\bredis@\d+\b", self.ctl("status", f"--pool={self.pool}"))
            for database in sorted(set(databases)):
                if '"spare_nodes": 1,' not in self.ctl("fsck", database, "--json",
                                                           f"--pool={self.pool}"):
                    return False
            return bool(databases)
        eventually("the shards are whole again", is_whole)


class ClusterHarm(Harm):
    """What is done to a cluster."""

    KINDS = ("kill", "drain", "move", "split", "freeze", "node")

    def harm(self, kind):
        number = self.random.randrange(SERVERS)
        if kind == "kill":
            self.cluster.kill_server(number)
        elif kind == "drain":
            self.cluster.end_server(number)
        elif kind == "freeze":
            self.cluster.freeze_server(number)
        elif kind == "node":
            self.cluster.kill_node(self.random.randrange(NODES))
        else:
            self.reshape(kind)

    def reshape(self, kind):
        """What the cluster refuses, as the shard is on its way already, is no fault."""
        shards, members = self.cluster.told("shards"), self.cluster.told("members")
        if not shards or not members:
            return
        shard = str(self.random.choice(shards)["id"])
        if kind == "move":
            self.cluster.keyspace("move", "redis", shard, str(self.random.choice(members)["id"]))
        else:
            self.cluster.keyspace("split", "redis", shard)

    def all_kinds(self):
        for kind in self.KINDS:
            self.await_operations()
            self.do(kind)
            self.await_operations()
        self.cluster.await_whole()

    def at_random(self, seconds):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            time.sleep(self.random.uniform(0.5, 4))
            kind = self.random.choice(self.KINDS)
            self.do(kind)
            self.await_operations()
            if kind == "node":
                self.cluster.await_whole()


def run(binaries, seconds, seed, folder):
    print(f"NACRE_TEST_SEED={seed}", flush=True)
    with Cluster(binaries, folder) as cluster:
        harm = run_under_harm(
            binaries, folder, seconds,
            lambda acknowledged: ClusterHarm(cluster, acknowledged, seed),
            functools.partial(connect_either_way, cluster.ports, cluster.proxies),
            functools.partial(run_stock_client, cluster.ports),
            lambda: connect_to(cluster.ports, 0))
    print("longest gaps of a cluster client of redis-py: " + longest_gaps(folder, harm.done))


def main() -> int:
    logging.getLogger("redis.cluster").disabled = True  # It logs each answer that it follows.
    if len(sys.argv) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    binaries = pathlib.Path(sys.argv[1]).resolve()
    missing = [what for what, there in (
        ("redis-py", redis is not None), ("etcd", shutil.which("etcd") is not None),
        ("history_checker", (binaries / "history_checker").exists())) if not there]
    if missing:
        print(f"skipped: there is no {missing[0]}")
        return SKIPPED
    seconds = float(sys.argv[2]) if len(sys.argv) == 3 else 0.0
    seed = int(os.environ.get("NACRE_TEST_SEED") or random.randrange(1_000_000))
    folder = pathlib.Path(tempfile.mkdtemp(prefix="nacre-cluster-"))
    try:
        run(binaries, seconds, seed, folder)
        return 0
    except Failure as failure:
        print(f"failed: {failure}")
        for log in sorted(folder.glob("*.log")):
            if log.name != "etcd.log":
                print(f"{log.name} ends:\n{log.read_text()[-1000:]}")
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
