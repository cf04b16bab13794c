"""Goal: keyspaces of the Python package are maps over several shards, which processes own together.

Method: as python_api.py; with a coordinator, an etcd and two processes that are members.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

import nacre
from python_api import EMBEDDED, SLABS, MemoryNodes

# Another process that is a member until its input ends.
MEMBER = """
import sys, nacre
pool, coordinator = sys.argv[1:]
keyspace = nacre.Keyspace(coordinator=coordinator, member_address="shm:@")
with nacre.open("reef", pool=pool, keyspace=keyspace, create_if_missing=True, slab_size=1 << 20):
    print("ready", flush=True)
    sys.stdin.read()
"""


class Etcd:
    """A process of etcd; killed at the end of a `with`."""

    def __enter__(self) -> str:
        self.folder = tempfile.TemporaryDirectory()
        client, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
        self.process = subprocess.Popen(
            ["etcd", "--name=only", f"--data-dir={self.folder.name}/data",
             f"--listen-client-urls={client}", f"--advertise-client-urls={client}",
             f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}",
             f"--initial-cluster=only={peer}", "--logger=zap",
             f"--log-outputs={self.folder.name}/log"], stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while True:
            try:
                with urllib.request.urlopen(client + "/health", timeout=1) as answer:
                    if b'"true"' in answer.read():
                        return "etcd:" + client.removeprefix("http://")
            except OSError:
                if time.monotonic() > deadline:
                    raise
            time.sleep(0.05)

    def __exit__(self, *_) -> None:
        self.process.kill()
        self.process.wait()
        self.folder.cleanup()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class KeyspaceTest(unittest.TestCase):
    keys = [b"anna", b"kim", b"zoe"]

    def check_borders(self, db: nacre.Database) -> None:
        with db.batch() as batch:
            for key in self.keys:
                batch[key] = b"1"
        self.assertEqual(list(db.keys()), self.keys)
        self.assertEqual(list(reversed(self.keys)), list(db.keys(reverse=True)))
        self.assertEqual(db[b"kim"], b"1")

    def test_shards_of_one_process(self) -> None:
        pool = nacre.Pool(EMBEDDED)
        keyspace = nacre.Keyspace(boundaries=[b"h", bytearray(b"p")])
        with self.assertRaises(nacre.InvalidArgumentError):
            nacre.open("reef", pool=pool, keyspace=keyspace)
        for transactions in (None, "optimistic", "pessimistic"):
            with nacre.open("reef", pool=pool, keyspace=keyspace, transactions=transactions,
                            families=["more"], create_if_missing=True,
                            create_missing_column_families=True) as db:
                self.assertEqual(db.get_int_property("nacre.shards"), 3)
                self.check_borders(db)
                more = db.family("more")
                more[b"zoe"] = b"2"
                self.assertEqual((db[b"zoe"], more[b"zoe"]), (b"1", b"2"))
                if transactions:
                    with db.transaction() as transaction:
                        transaction[b"anna"] = b"3"
                        transaction[b"zoe"] = b"3"
                    self.assertEqual((db[b"anna"], db[b"zoe"]), (b"3", b"3"))
        self.assertEqual(nacre.list_databases(pool), ["reef@0", "reef@1", "reef@2", "reef@map"])
        nacre.destroy("reef", pool, keyspace=keyspace)
        self.assertEqual(nacre.list_databases(pool), [])
        pool.close()

    def test_what_is_wrong_is_named(self) -> None:
        with self.assertRaisesRegex(nacre.InvalidArgumentError, "boundaries"):
            nacre.open("reef", pool=EMBEDDED, create_if_missing=True,
                       keyspace=nacre.Keyspace(boundaries=[b"p", b"h"]))
        with self.assertRaisesRegex(nacre.InvalidArgumentError, "coordinator"):
            nacre.open("reef", pool=EMBEDDED, create_if_missing=True,
                       keyspace=nacre.Keyspace(member_address="shm:@"))
        with self.assertRaises(TypeError):
            nacre.open("reef", pool=EMBEDDED, keyspace=nacre.Keyspace(coordinator=1))

    @unittest.skipUnless(shutil.which("etcd"), "etcd is not installed")
    def test_processes_own_shards_together(self) -> None:
        with MemoryNodes(3) as nodes, Etcd() as coordinator:
            other = subprocess.Popen([sys.executable, "-c", MEMBER, nodes.uri, coordinator],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                     env=os.environ)
            try:
                self.assertEqual(other.stdout.readline(), "ready\n")
                with nacre.open("reef", pool=nodes.uri, create_if_missing=True, **SLABS,
                                keyspace=nacre.Keyspace(coordinator=coordinator)) as db:
                    self.check_borders(db)
            finally:
                other.communicate("", timeout=60)
            self.assertEqual(other.returncode, 0)


if __name__ == "__main__":
    unittest.main()
