"""Goal: each call of the Python package does what its docstring says, and misuse raises as it says.

Method: every test works on a pool of its own, of embedded nodes or of nacre-memnode processes (the
binary that NACRE_MEMNODE names), and holds what it reads against a dict or a sorted list of it.
Threads of one test meet at barriers, not at times. Run by wheel_test.py from an installed wheel.
"""

import importlib.metadata
import inspect
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import unittest

import nacre

EMBEDDED = "embedded:?nodes=3&size=1GiB"
SLABS = {"slab_size": 1 << 20}  # For the nodes that are processes.


class MemoryNodes:
    """Processes of nacre-memnode; killed at the end of a `with`."""

    def __init__(self, count: int) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.processes = []
        paths = [os.path.join(self.folder.name, f"{i}.sock") for i in range(count)]
        for path in paths:
            self.processes.append(subprocess.Popen(
                [os.environ["NACRE_MEMNODE"], f"--listen=shm:{path}", "--size=128MiB",
                 "--slab_size=1MiB", "--workers=1"],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
        self.uri = "shm:" + ",".join(paths)
        for process in self.processes:
            while "ready: " not in (line := process.stdout.readline()):
                if not line:
                    raise RuntimeError("nacre-memnode did not start")

    def __enter__(self) -> "MemoryNodes":
        return self

    def __exit__(self, *_) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
            process.stdout.close()
        self.folder.cleanup()


class EmbeddedTest(unittest.TestCase):
    def setUp(self) -> None:
        self.pool = nacre.Pool(EMBEDDED)
        self.db = self.open("pearls", create_if_missing=True)

    def tearDown(self) -> None:
        self.db.close()
        self.pool.close()

    def open(self, name: str, **options) -> nacre.Database:
        return nacre.open(name, pool=self.pool, **options)

    def fill(self, count: int) -> list[tuple[bytes, bytes]]:
        entries = [(b"k%05d" % i, b"v%d" % i) for i in range(count)]
        with self.db.batch() as batch:
            for key, value in entries:
                batch[key] = value
        return entries


class VersionTest(unittest.TestCase):
    def test_installed_one_is_told(self) -> None:
        memnode = subprocess.run([os.environ["NACRE_MEMNODE"], "--version"], check=True,
                                 capture_output=True, text=True).stdout
        self.assertTrue(memnode.startswith(f"nacre-memnode {nacre.__version__} (commit "))
        self.assertRegex(nacre.version(with_commit=True), r"^\d+\.\d+\.\d+ \(commit \S+, \w")
        self.assertEqual(importlib.metadata.version("nacre"), nacre.__version__)


class MappingTest(EmbeddedTest):
    def test_get_put_delete(self) -> None:
        self.db[b"a"] = b"1"
        self.db.put(b"b", b"", sync=True)
        self.assertEqual(b"1", self.db[b"a"])
        self.assertEqual(b"", self.db.get(b"b"))
        self.assertIn(b"b", self.db)
        self.assertNotIn(b"c", self.db)
        self.assertIsNone(self.db.get(b"c"))
        self.assertEqual("none", self.db.get(b"c", "none"))
        with self.assertRaises(KeyError) as raised:
            self.db[b"c"]
        self.assertEqual((b"c",), raised.exception.args)
        del self.db[b"a"]
        self.assertNotIn(b"a", self.db)
        with self.assertRaises(KeyError):
            del self.db[b"a"]
        self.db.delete(b"a")
        self.assertEqual([b"b"], list(self.db))
        self.assertTrue(self.db)

    def test_any_bytes_are_taken(self) -> None:
        every = bytes(range(256))
        self.db[bytearray(b"x")] = memoryview(every)
        self.assertEqual(every, self.db[memoryview(b"x")])
        self.db[every] = bytearray(b"\0")
        self.assertEqual(b"\0", self.db[every])
        self.db[b"big"] = every * 4096
        self.assertEqual(every * 4096, self.db[b"big"])

    def test_multi_get(self) -> None:
        entries = self.fill(300)
        keys = [key for key, _ in entries] + [b"missing"]
        self.assertEqual([value for _, value in entries] + [None], self.db.multi_get(keys))
        self.assertEqual([None, b"v7"], self.db.multi_get(iter([b"x", b"k00007"])))
        self.assertEqual([], self.db.multi_get([]))

    def test_wrong_types_raise_type_error(self) -> None:
        db = self.db
        wrong = [
            lambda: db["text"], lambda: db.get(1), lambda: db.put("k", b"v"),
            lambda: db.put(b"k", "v"), lambda: db.put(b"k", None), lambda: "k" in db,
            lambda: db.delete(3.5), lambda: db.multi_get([b"k", "k"]), lambda: db.multi_get(b"k"),
            lambda: db.keys("a"), lambda: db.items(stop=4), lambda: db.values(prefix="a"),
            lambda: db.keys(b"a", prefix=b"a"), lambda: db.batch().put("k", b"v"),
            lambda: db.batch().delete(None), lambda: db.keys().seek("k"),
            lambda: db.compact_range("a"), lambda: db.approximate_sizes([(b"a", "b")]),
            lambda: db.get_property(b"x"), lambda: nacre.Pool(b"embedded:"),
            lambda: nacre.open("x", pool=7), lambda: nacre.open(b"x", pool=self.pool),
            lambda: self.open("x", no_such_option=1), lambda: self.open("x", num_levels="7"),
            lambda: self.open("x", create_if_missing=1), lambda: self.open("x", num_levels=True),
            lambda: self.open("x", operation_timeout="1"), lambda: self.open("x", redundancy=2),
        ]
        for call in wrong:
            with self.subTest(inspect.getsource(call).strip()), self.assertRaises(TypeError):
                call()
        self.assertEqual([], list(db))

    def test_batches(self) -> None:
        self.db[b"old"] = b"1"
        with self.db.batch(sync=True) as batch:
            batch.put(b"a", b"1")
            batch[b"b"] = b"2"
            batch.delete(b"old")
            del batch[b"never was"]
            self.assertEqual(4, len(batch))
            self.assertNotIn(b"a", self.db)
        self.assertEqual([(b"a", b"1"), (b"b", b"2")], list(self.db.items()))
        self.assertEqual(0, len(batch))
        with self.assertRaisesRegex(RuntimeError, "on purpose"):
            with self.db.batch() as batch:
                batch[b"c"] = b"3"
                raise RuntimeError("on purpose")
        self.assertNotIn(b"c", self.db)
        batch = self.db.batch()
        batch[b"c"] = b"3"
        batch.clear()
        batch[b"d"] = b"4"
        batch.write()
        self.assertEqual([b"a", b"b", b"d"], list(self.db.keys()))


class IteratorTest(EmbeddedTest):
    def test_every_range_both_ways(self) -> None:
        entries = self.fill(400)
        self.db.flush()
        draw = random.Random(301)
        ends = [None, b"", b"k", b"k00399", b"k004", b"z"]
        ends += [b"k%05d" % draw.randrange(400) for _ in range(20)]
        for _ in range(150):
            start, stop, reverse = draw.choice(ends), draw.choice(ends), draw.random() < 0.5
            expected = [entry for entry in entries
                        if (start is None or entry[0] >= start)
                        and (stop is None or entry[0] < stop)]
            if reverse:
                expected.reverse()
            how = {"start": start, "stop": stop, "reverse": reverse}
            with self.subTest(how):
                self.assertEqual(expected, list(self.db.items(**how)))
                self.assertEqual([key for key, _ in expected], list(self.db.keys(**how)))
                self.assertEqual([value for _, value in expected], list(self.db.values(**how)))

    def test_prefixes(self) -> None:
        keys = [b"", b"a", b"a\xfe", b"a\xff", b"a\xff\xff", b"b",
                b"\xff", b"\xff\xff", b"\xff\xffa"]
        for key in keys:
            self.db[key] = key
        for prefix in keys:
            expected = sorted(key for key in keys if key.startswith(prefix))
            with self.subTest(prefix):
                self.assertEqual(expected, list(self.db.keys(prefix=prefix)))
                self.assertEqual(expected[::-1], list(self.db.keys(prefix=prefix, reverse=True)))

    def test_seek(self) -> None:
        self.fill(100)
        with self.db.keys(b"k00010", b"k00090") as keys:
            self.assertEqual(b"k00010", next(keys))
            keys.seek(b"k00050x")
            self.assertEqual([b"k%05d" % i for i in range(51, 90)], list(keys))
            keys.seek(b"k00000")
            self.assertEqual(b"k00010", next(keys))
            keys.seek(b"z")
            self.assertIsNone(next(keys, None))
        with self.db.keys(b"k00010", b"k00090", reverse=True) as keys:
            keys.seek(b"k00050x")
            self.assertEqual(b"k00050", next(keys))
            keys.seek(b"z")
            self.assertEqual(b"k00089", next(keys))
            keys.seek(b"a")
            self.assertIsNone(next(keys, None))

    def test_sees_one_moment(self) -> None:
        entries = self.fill(1000)
        items = self.db.items()
        first = next(items)
        for key, _ in entries:
            self.db[key] = b"later"
        self.db[b"k99999"] = b"later"
        self.assertEqual(entries, [first, *items])


class SnapshotTest(EmbeddedTest):
    def test_keeps_its_state(self) -> None:
        entries = self.fill(100)
        with self.db.snapshot() as snapshot:
            self.assertEqual(self.db.latest_sequence_number, snapshot.sequence_number)
            self.db[b"k00000"] = b"later"
            self.db.delete(b"k00001")
            self.db[b"new"] = b"later"
            self.db.compact_range()
            self.assertEqual(b"v0", snapshot[b"k00000"])
            self.assertEqual(b"v1", snapshot.get(b"k00001"))
            self.assertNotIn(b"new", snapshot)
            self.assertEqual([b"v0", b"v1", None],
                             snapshot.multi_get([b"k00000", b"k00001", b"new"]))
            self.assertEqual(entries, list(snapshot.items()))
            items = snapshot.items()
        self.assertEqual(entries, list(items))  # It has the state by itself.
        with self.assertRaises(nacre.ClosedError):
            snapshot.get(b"k00000")
        self.assertEqual(b"later", self.db[b"k00000"])
        self.assertEqual(0, self.db.get_int_property("nacre.num-snapshots"))


class ClosingTest(EmbeddedTest):
    def test_everything_raises_after_close(self) -> None:
        self.fill(1000)
        db, keys, snapshot, batch = (
            self.db, self.db.keys(), self.db.snapshot(), self.db.batch())
        batch[b"x"] = b"y"
        self.assertEqual(b"k00000", next(keys))
        self.assertFalse(db.closed)
        self.assertEqual("<nacre.Database 'pearls'>", repr(db))
        db.close()
        db.close()
        self.assertTrue(db.closed)
        self.assertIn("closed", repr(db))
        calls = [
            lambda: db[b"a"], lambda: db.get(b"a"), lambda: db.put(b"a", b"b"),
            lambda: db.delete(b"a"), lambda: b"a" in db, lambda: db.multi_get([b"a"]),
            lambda: db.keys(), lambda: list(keys), lambda: keys.seek(b"a"), lambda: db.snapshot(),
            lambda: snapshot[b"a"], lambda: snapshot.items(), lambda: batch.write(),
            lambda: db.flush(), lambda: db.flush_wal(), lambda: db.compact_range(),
            lambda: db.wait_for_compact(), lambda: db.verify_checksum(), lambda: db.catch_up(),
            lambda: db.get_property("nacre.stats"), lambda: db.get_int_property("nacre.stats"),
            lambda: db.approximate_sizes([]), lambda: db.latest_sequence_number,
            lambda: db.checkpoint("/nonexistent"),
        ]
        for call in calls:
            with self.subTest(inspect.getsource(call).strip()):
                with self.assertRaises(nacre.ClosedError):
                    call()
        del keys, snapshot
        with self.open("pearls") as again:
            self.assertEqual(b"v7", again[b"k00007"])

    def test_closed_iterators_and_pools(self) -> None:
        self.fill(10)
        keys = self.db.keys()
        keys.close()
        with self.assertRaises(nacre.ClosedError):
            next(keys)
        with nacre.Pool(EMBEDDED) as pool:
            self.assertEqual((EMBEDDED, 3), (pool.uri, pool.node_count))
        with self.assertRaises(nacre.ClosedError):
            nacre.open("x", pool=pool)

    def test_closing_while_others_read(self) -> None:
        entries = self.fill(2000)
        started = threading.Barrier(5)
        strange = []

        def read(number: int) -> None:
            started.wait()
            try:
                while True:
                    if number % 2 == 0:
                        if list(self.db.items()) != entries:
                            strange.append("not what was written")
                    elif self.db[b"k00123"] != b"v123":
                        strange.append("another value")
            except nacre.ClosedError:
                pass
            except Exception as error:  # pylint: disable=broad-except
                strange.append(repr(error))

        threads = [threading.Thread(target=read, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        started.wait()
        self.db.close()
        for thread in threads:
            thread.join()
        self.assertEqual([], strange)


class ThreadsTest(EmbeddedTest):
    def test_writers_and_readers_together(self) -> None:
        wrong = []

        def work(number: int) -> None:
            try:
                for i in range(300):
                    key = b"%d-%d" % (number, i)
                    self.db[key] = key * 2
                    if self.db[key] != key * 2:
                        wrong.append(key)
                if len(list(self.db.keys(prefix=b"%d-" % number))) != 300:
                    wrong.append(number)
            except Exception as error:  # pylint: disable=broad-except
                wrong.append(repr(error))

        threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([], wrong)
        self.assertEqual(1800, len(list(self.db)))

    def test_threads_share_an_iterator(self) -> None:
        entries = self.fill(3000)
        items = self.db.items()
        found = [[] for _ in range(4)]

        def take(mine: list) -> None:
            mine.extend(items)

        threads = [threading.Thread(target=take, args=(mine,)) for mine in found]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(entries, sorted(entry for mine in found for entry in mine))


class UpkeepTest(EmbeddedTest):
    def test_tables_and_properties(self) -> None:
        self.fill(5000)
        self.db.flush()
        self.db.flush(wait=False)
        self.db.flush_wal()
        self.db.compact_range(b"k", b"l")
        self.db.wait_for_compact()
        self.db.verify_checksum()
        self.assertGreaterEqual(self.db.get_int_property("nacre.num-live-tables"), 1)
        self.assertIn("Flushes: ", self.db.get_property("nacre.stats"))
        self.assertIsNone(self.db.get_property("nacre.nonsense"))
        self.assertIsNone(self.db.get_int_property("nacre.stats"))
        sizes = self.db.approximate_sizes([(b"k", b"l"), (b"x", b"y")])
        self.assertGreater(sizes[0], 0)
        self.assertEqual(0, sizes[1])
        self.assertEqual("pearls", self.db.name)

    def test_errors_by_status(self) -> None:
        with self.assertRaisesRegex(nacre.InvalidArgumentError, "create_if_missing"):
            self.open("missing")
        with self.assertRaises(ValueError):
            self.open("pearls2", create_if_missing=True, redundancy="rep(99)")
        with self.assertRaisesRegex(nacre.InvalidArgumentError, "num_levels"):
            self.open("pearls2", create_if_missing=True, num_levels=1 << 80)
        with self.assertRaisesRegex(nacre.InvalidArgumentError, "auto, compute"):
            self.open("pearls2", compaction="nowhere")
        with self.assertRaises(nacre.BusyError):
            self.open("pearls")
        with self.assertRaises(nacre.NotFoundError) as raised:
            nacre.follow("missing", pool=self.pool)
        self.assertIsInstance(raised.exception, KeyError)
        self.assertNotIn('"', str(raised.exception))
        with self.assertRaises(nacre.NotSupportedError):
            self.db.catch_up()
        with self.assertRaises(nacre.UnavailableError):
            nacre.Pool("shm:/nonexistent.sock")
        with self.assertRaises(nacre.Error):
            self.db.put(b"k" * (2 << 20), b"")
        os.environ.pop("NACRE_POOL", None)
        with self.assertRaisesRegex(nacre.InvalidArgumentError, "NACRE_POOL"):
            nacre.open("x")
        for name in nacre.__all__:
            if name.endswith("Error"):
                self.assertTrue(issubclass(getattr(nacre, name), nacre.Error))

    def test_options(self) -> None:
        with self.open("reversed", create_if_missing=True, comparator="reverse_bytewise",
                       compaction="compute", near_data_flush="off", operation_timeout=7.5,
                       wal_recovery_mode="absolute_consistency", redundancy="rep(2)",
                       write_buffer_size=1 << 20, max_bytes_for_level_multiplier=8,
                       max_subcompactions=2) as db:
            db[b"a"], db[b"b"] = b"1", b"2"
            self.assertEqual([b"b", b"a"], list(db))
        with self.assertRaisesRegex(nacre.InvalidArgumentError, "comparator"):
            self.open("reversed")

    def test_names(self) -> None:
        self.open("other", create_if_missing=True).close()
        self.assertEqual(["other", "pearls"], nacre.list_databases(self.pool))
        nacre.destroy("other", self.pool)
        nacre.destroy("never was", self.pool)
        with self.assertRaises(nacre.BusyError):
            nacre.destroy("pearls", self.pool)
        self.assertEqual(["pearls"], nacre.list_databases(self.pool))

    def test_checkpoints(self) -> None:
        entries = self.fill(1000)
        with tempfile.TemporaryDirectory() as folder:
            number = self.db.checkpoint(pathlib.Path(folder) / "copies")
            self.db[b"k00000"] = b"later"
            nacre.restore("copy", os.path.join(folder, "copies"), self.pool, checkpoint=number)
            with self.assertRaises(nacre.NotFoundError):
                nacre.restore("copy2", os.path.join(folder, "copies"), self.pool,
                              checkpoint=number + 1)
        with self.open("copy") as copy:
            self.assertEqual(entries, list(copy.items()))


class ProcessesTest(unittest.TestCase):
    """With nodes that outlive who uses them."""

    def test_followers(self) -> None:
        with MemoryNodes(3) as nodes:
            how = {"redundancy": "rep(2)", **SLABS}
            owner = nacre.open("pearls", pool=nodes.uri, create_if_missing=True, **how)
            owner[b"a"] = b"1"
            with nacre.follow("pearls", pool=nodes.uri, **how) as follower, \
                    nacre.open_read_only("pearls", pool=nodes.uri, **how) as frozen:
                owner[b"a"] = b"2"
                self.assertEqual(b"2", follower.get(b"a", linearizable=True))
                owner[b"b"] = b"3"
                follower.catch_up()
                self.assertEqual([(b"a", b"2"), (b"b", b"3")], list(follower.items()))
                self.assertEqual([b"2"], follower.multi_get([b"a"], linearizable=True))
                self.assertEqual([(b"a", b"1")], list(frozen.items()))
                with self.assertRaises(nacre.NotSupportedError):
                    follower[b"c"] = b"4"
            owner.close()

    def test_the_pool_of_the_environment_and_the_end_of_a_process(self) -> None:
        program = ("import nacre\n"
                   "db = nacre.open('pearls', create_if_missing=True, slab_size=1 << 20)\n"
                   "db[b'key'] = b'value'\n"
                   "items = db.items()\n")  # Nothing is closed.
        with MemoryNodes(2) as nodes:
            environment = {**os.environ, "NACRE_POOL": nodes.uri}
            subprocess.run([sys.executable, "-B", "-c", program], check=True, env=environment)
            self.assertEqual(["pearls"], nacre.list_databases(nodes.uri, **SLABS))
            with nacre.open("pearls", pool=nodes.uri, **SLABS) as db:
                self.assertEqual(b"value", db[b"key"])
            nacre.destroy("pearls", nodes.uri, **SLABS)
            self.assertEqual([], nacre.list_databases(nodes.uri, **SLABS))

    def test_lost_nodes_raise(self) -> None:
        with MemoryNodes(2) as nodes:
            db = nacre.open("pearls", pool=nodes.uri, create_if_missing=True,
                            operation_timeout=2, **SLABS)
            db[b"key"] = b"value"
            db.flush()
            for process in nodes.processes:
                process.kill()
                process.wait()
            with self.assertRaises((nacre.UnavailableError, nacre.TimedOutError)):
                while True:
                    db.put(b"key", b"value")
            try:
                db.close()
            except nacre.Error:
                pass
            self.assertTrue(db.closed)


class PackageTest(unittest.TestCase):
    def test_it_is_documented_and_typed(self) -> None:
        folder = pathlib.Path(nacre.__file__).parent
        self.assertTrue((folder / "py.typed").exists())
        self.assertTrue((folder / "_core.pyi").exists())
        for name in nacre.__all__:
            thing = getattr(nacre, name)
            if name != "BytesLike":
                self.assertTrue(thing.__doc__, name)
            if inspect.isfunction(thing):
                self.assertIn("return", thing.__annotations__, name)


if __name__ == "__main__":
    unittest.main()
