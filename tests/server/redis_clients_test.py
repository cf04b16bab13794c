"""Clients that are not ours find in nacre-server what they expect: redis-py, redis-cli and
redis-benchmark, of Debian's packages.

usage: redis_clients_test.py FOLDER_OF_BINARIES

Answers 77 if none of them is here; it says which are missing.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from redis_suite import SKIPPED, Server  # pylint: disable=wrong-import-position

try:
    import redis
    import redis.sentinel
except ImportError:
    redis = None
BINARIES = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()


class ClientsTest(unittest.TestCase):
    """Each test has a server of its own."""

    def setUp(self):
        server = Server(BINARIES)
        self.port = server.port
        self.addCleanup(server.__exit__)

    def run_program(self, *command):
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=120, check=True).stdout

    @unittest.skipIf(redis is None, "there is no python3-redis")
    def test_redis_py_finds_the_server_as_a_sentinel_tells(self):
        with Server(BINARIES, "--standby") as server:
            sentinel = redis.sentinel.Sentinel([("127.0.0.1", server.port)])
            self.assertEqual(sentinel.discover_master("redis"), ("127.0.0.1", server.port))
            master = sentinel.master_for("redis")
            self.assertTrue(master.set("found", 1))
            self.assertEqual(sentinel.discover_slaves("redis"), [])

    @unittest.skipIf(redis is None, "there is no python3-redis")
    def test_redis_py(self):
        client = redis.Redis(port=self.port, decode_responses=True)
        self.assertTrue(client.ping())
        self.assertEqual(client.info("server")["redis_mode"], "standalone")
        client.set("text", "value", ex=100)
        self.assertTrue(90 < client.ttl("text") <= 100)
        client.hset("hash", mapping={"a": 1, "b": 2})
        self.assertEqual(client.hgetall("hash"), {"a": "1", "b": "2"})
        client.zadd("scores", {"x": 1.5, "y": -2})
        self.assertEqual(client.zrange("scores", 0, -1, withscores=True), [("y", -2), ("x", 1.5)])
        with client.pipeline(transaction=True) as pipe:
            pipe.incr("counter").rpush("list", "a", "b").lrange("list", 0, -1)
            self.assertEqual(pipe.execute(), [1, 2, ["a", "b"]])
        client.mset({f"key{i}": i for i in range(1000)})
        self.assertEqual(len(set(client.scan_iter("key*", count=100))), 1000)
        # A lock and an optimistic transaction, as the client builds them.
        with client.pipeline() as pipe:
            pipe.watch("counter")
            value = int(pipe.get("counter"))
            client.incr("counter")
            pipe.multi()
            pipe.set("counter", value + 10)
            self.assertRaises(redis.WatchError, pipe.execute)
        channel = client.pubsub(ignore_subscribe_messages=True)
        channel.subscribe("news")
        channel.get_message(timeout=5)
        client.publish("news", "hello")
        message = channel.get_message(timeout=5)
        self.assertEqual((message["channel"], message["data"]), ("news", "hello"))
        channel.close()
        self.assertRaises(redis.ResponseError, client.lpush, "text", "x")

    @unittest.skipIf(shutil.which("redis-cli") is None, "there is no redis-cli")
    def test_redis_cli(self):
        def cli(*words):
            return self.run_program("redis-cli", "-p", str(self.port), *words)
        self.assertEqual(cli("set", "a", "1"), "OK\n")
        self.assertEqual(cli("-3", "hello").split()[1].strip('"'), "redis")
        self.assertEqual(cli("--scan"), "a\n")

    @unittest.skipUnless(shutil.which("openssl"), "there is no openssl")
    @unittest.skipIf(redis is None or shutil.which("redis-cli") is None, "there are no clients")
    def test_clients_with_tls(self):
        with tempfile.TemporaryDirectory() as folder:
            certificate, key = f"{folder}/server.pem", f"{folder}/server.key"
            self.run_program(
                "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out",
                certificate)
            with Server(BINARIES, f"--tls_cert_file={certificate}",
                        f"--tls_key_file={key}") as server:
                client = redis.Redis(port=server.port, ssl=True, ssl_ca_certs=certificate)
                self.assertTrue(client.set("a", b"x" * 1_000_000))
                self.assertEqual(client.strlen("a"), 1_000_000)
                self.assertEqual(client.get("a"), b"x" * 1_000_000)
                words = ("-p", str(server.port), "--tls", "--cacert", certificate)
                self.assertEqual(self.run_program("redis-cli", *words, "strlen", "a"),
                                 "1000000\n")
                output = self.run_program("redis-benchmark", *words, "-n", "2000", "-c", "20",
                                          "-P", "8", "-q", "-t", "set,get")
                self.assertRegex(output, r"GET.* requests per second")
                with self.assertRaises(redis.ConnectionError):
                    redis.Redis(port=server.port).ping()

    @unittest.skipIf(shutil.which("redis-cli") is None, "there is no redis-cli")
    def test_the_page_has_the_commands(self):
        page = (pathlib.Path(__file__).parents[2] / "docs/server.md").read_text()
        rows = page.partition("| commands | differs |\n|---|---|\n")[2].partition("\n\n")[0]
        named = [word for row in rows.splitlines()
                 for word in re.findall(r"`([A-Z_]+)`", row.split("|")[1])]
        known = self.run_program("redis-cli", "-p", str(self.port), "command", "list").split()
        self.assertEqual(sorted(word.lower() for word in named), sorted(known))

    @unittest.skipIf(shutil.which("redis-benchmark") is None, "there is no redis-benchmark")
    def test_redis_benchmark(self):
        output = self.run_program("redis-benchmark", "-p", str(self.port), "-n", "2000", "-c", "20",
                                  "-P", "8", "-q", "-t", "set,get,incr,lpush,rpop,sadd,hset,mset")
        for name in ("SET", "GET", "INCR", "LPUSH", "RPOP", "SADD", "HSET", "MSET"):
            self.assertRegex(output, name + r".* requests per second")


if __name__ == "__main__":
    if redis is None and shutil.which("redis-cli") is None:
        print("skipped: there are neither python3-redis nor redis-tools")
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1])
