"""Goal: column families, merges, ranges of deletions, batches of all kinds and transactions of the
Python package do what their docstrings say, alone and used by threads at once.

Method: as python_api.py, whose pools these tests use. What transactions leave behind is compared
with a dict, or with a sum that only comes about if each of them took effect as a whole. Run by
wheel_test.py from an installed wheel.
"""

import inspect
import os
import struct
import subprocess
import sys
import threading
import unittest

import nacre
from python_api import SLABS, EmbeddedTest, MemoryNodes


def join_sorted(_key: bytes, value, operands: list) -> bytes:
    """A merge operator: the words of value and operands, in order."""
    words = [] if value is None else value.split()
    return b" ".join(sorted(words + operands))


def run_together(*works) -> list:
    """Calls each in a thread of its own; what they raise."""
    raised = []

    def run(work) -> None:
        try:
            work()
        except Exception as error:  # pylint: disable=broad-except
            raised.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


class FamiliesTest(EmbeddedTest):
    FAMILIES = {"fruit": {"merge_operator": "stringappend:;"}, "tea": {}}

    def basket(self, **options) -> nacre.Database:
        return self.open("basket", create_if_missing=True, create_missing_column_families=True,
                         families=self.FAMILIES, **options)

    def test_each_is_a_map_of_its_own(self) -> None:
        with self.basket(merge_operator="stringappend") as db:
            fruit, tea = db.family("fruit"), db.families["tea"]
            self.assertEqual(["fruit", "tea"], sorted(db.families))
            self.assertEqual(("fruit", "tea"), (fruit.name, tea.name))
            self.assertNotEqual(fruit.id, tea.id)
            self.assertIs(db, fruit.database)
            self.assertEqual("<nacre.Family 'fruit' of <nacre.Database 'basket'>>", repr(fruit))
            for number, each in enumerate((db, fruit, tea)):
                each[b"a"] = b"%d" % number
                each.merge(b"m", b"x")
                each.merge(b"m", b"y")
                each.put(b"gone", b"1")
                del each[b"gone"]
            self.assertEqual([b"0", b"1", b"2"], [each[b"a"] for each in (db, fruit, tea)])
            self.assertEqual([b"x,y", b"x;y", b"x,y"],
                             [each.get(b"m") for each in (db, fruit, tea)])
            self.assertEqual([(b"a", b"1"), (b"m", b"x;y")], list(fruit.items()))
            self.assertEqual([b"1", None], fruit.multi_get([b"a", b"b"]))
            self.assertNotIn(b"gone", tea)
            fruit.flush()
            fruit.compact_range()
            self.assertEqual(2, fruit.get_int_property("nacre.estimate-num-keys"))
            self.assertIsNotNone(fruit.get_property("nacre.levelstats"))
            self.assertGreater(fruit.approximate_sizes([(b"a", b"z")])[0], 0)
            with self.assertRaises(KeyError):
                del fruit[b"gone"]
        for call in (lambda: fruit[b"a"], lambda: fruit.put(b"a", b"1"), lambda: list(fruit)):
            with self.assertRaises(nacre.ClosedError):
                call()

    def test_made_listed_and_dropped(self) -> None:
        odd = "na\N{LATIN SMALL LETTER I WITH DIAERESIS}ve \udcff"  # The byte 0xff.
        with self.basket() as db:
            made = db.create_family(odd, merge_operator="uint64add")
            made.merge(b"n", struct.pack("<Q", 3))
            made.merge(b"n", struct.pack("<Q", 4))
            with self.assertRaises(nacre.InvalidArgumentError):
                db.create_family(odd)
            tea = db.family("tea")
            tea[b"a"] = b"1"
            db.drop_family(tea)
            self.assertEqual(b"1", tea[b"a"])
            for call in (lambda: tea.put(b"a", b"2"), lambda: db.drop_family(tea)):
                with self.assertRaises(nacre.InvalidArgumentError):
                    call()
            with self.assertRaises(nacre.NotFoundError):
                db.family("tea")
        names = nacre.list_families("basket", self.pool)
        self.assertEqual(sorted(["default", "fruit", odd]), sorted(names))
        with self.assertRaises(nacre.InvalidArgumentError):
            self.open("basket")  # Without its families.
        with self.open("basket", families=names, merge_operator="uint64add") as db:
            self.assertEqual(struct.pack("<Q", 7), db.family(odd)[b"n"])
        with self.assertRaises(nacre.NotFoundError):
            nacre.list_families("missing", self.pool)

    def test_batches_and_snapshots_of_several(self) -> None:
        with self.basket() as db:
            fruit = db.family("fruit")
            with db.batch() as batch:
                batch[b"a"] = b"1"
                view = batch.of(fruit)
                for key in (b"a", b"b", b"c", b"d", b"once"):
                    view[key] = b"2"
                view.single_delete(b"once")
                view.delete_range(b"b", b"d")
                view.merge(b"a", b"3")
                del view[b"d"]
                self.assertEqual((10, 10), (len(batch), len(view)))
            self.assertEqual([(b"a", b"1")], list(db.items()))
            self.assertEqual([(b"a", b"2;3")], list(fruit.items()))
            with db.snapshot() as snapshot:
                with db.batch() as batch:
                    batch.delete(b"a")
                    batch.of(fruit).put(b"a", b"4")
                of_fruit = snapshot.of(fruit)
                self.assertEqual((b"1", b"2;3"), (snapshot[b"a"], of_fruit[b"a"]))
                self.assertEqual([b"2;3", None], of_fruit.multi_get([b"a", b"b"]))
                self.assertEqual([b"a"], list(of_fruit.keys()))
            with self.assertRaises(nacre.ClosedError):
                of_fruit.get(b"a")
            self.assertEqual((None, b"4"), (db.get(b"a"), fruit[b"a"]))
            with self.assertRaisesRegex(nacre.InvalidArgumentError, "another database"):
                self.db.batch().of(fruit)
            with self.assertRaisesRegex(nacre.InvalidArgumentError, "another database"):
                self.db.drop_family(fruit)

    def test_wrong_arguments(self) -> None:
        wrong = [
            lambda: self.open("x", families="fruit"), lambda: self.open("x", families=[b"fruit"]),
            lambda: self.open("x", families={"a": {"redundancy": "none"}}),
            lambda: self.open("x", families=7), lambda: self.db.family(b"a"),
            lambda: self.db.create_family("a", no_such_option=1),
            lambda: self.db.create_family("a", merge_operator=7),
            lambda: self.db.delete_range(b"a", "b"), lambda: self.db.merge(b"a", "b"),
            lambda: self.db.single_delete("a"), lambda: self.open("x", statistics="all"),
        ]
        for call in wrong:
            with self.subTest(inspect.getsource(call).strip()), self.assertRaises(TypeError):
                call()
        invalid = [
            lambda: self.open("x", families={"default": {"num_levels": 3}}),
            lambda: self.open("x", merge_operator="subtract"),
            lambda: self.db.delete_range(b"b", b"a"), lambda: self.open("x", transactions="some"),
        ]
        for call in invalid:
            with self.subTest(inspect.getsource(call).strip()):
                with self.assertRaises(nacre.InvalidArgumentError):
                    call()

    def test_followers(self) -> None:
        with MemoryNodes(2) as nodes:
            with nacre.open("basket", nodes.uri, create_if_missing=True, families=["fruit", "tea"],
                            create_missing_column_families=True, **SLABS) as owner:
                owner.family("fruit")[b"a"] = b"1"
                with nacre.follow("basket", nodes.uri, families=["fruit"], **SLABS) as follower, \
                        nacre.open_read_only("basket", nodes.uri, families=["fruit"],
                                             **SLABS) as frozen:
                    owner.family("fruit")[b"a"] = b"2"
                    fruit = follower.family("fruit")
                    self.assertEqual(b"2", fruit.get(b"a", linearizable=True))
                    self.assertEqual(b"1", frozen.family("fruit")[b"a"])
                    with self.assertRaises(nacre.NotSupportedError):
                        follower.create_family("more")


class UpdatesTest(EmbeddedTest):
    def test_deletions(self) -> None:
        entries = self.fill(100)
        self.db.delete_range(b"k00010", b"k00090", sync=True)
        self.assertEqual(entries[:10] + entries[90:], list(self.db.items()))
        self.db.single_delete(b"k00000")
        self.db.flush()
        self.db.compact_range()
        self.assertEqual(entries[1:10] + entries[90:], list(self.db.items()))
        with self.assertRaises(nacre.NotSupportedError):
            self.db.merge(b"a", b"1")

    def test_merge_with_a_function(self) -> None:
        with self.open("words", create_if_missing=True, merge_operator=join_sorted) as db:
            db[b"a"] = b"m z"
            db.merge(b"a", b"k")
            db.merge(b"b", b"only")
            db.flush()
            db.merge(b"a", b"p")
            expected = [(b"a", b"k m p z"), (b"b", b"only")]
            self.assertEqual(expected, list(db.items()))
            self.assertEqual([value for _, value in expected], db.multi_get([b"a", b"b"]))
            db.compact_range()
            self.assertEqual(expected, list(db.items(reverse=True))[::-1])
            self.assertEqual(b"k m p z", db[b"a"])

    def test_a_function_that_raises(self) -> None:
        told = []
        before = sys.unraisablehook
        sys.unraisablehook = lambda unraisable: told.append(unraisable.exc_type)
        try:
            answers = {b"no number": lambda: 7, b"text": lambda: "text", b"raises": lambda: 1 // 0}
            with self.open("wrong", create_if_missing=True,
                           merge_operator=lambda key, value, operands: answers[key]()) as db:
                for key in answers:
                    db.merge(key, b"1")
                    with self.assertRaises(nacre.CorruptionError):
                        db.get(key)
                self.assertEqual([TypeError, TypeError, ZeroDivisionError], told[:3])
                for key in answers:
                    db.delete(key)
                self.assertEqual([], list(db))
        finally:
            sys.unraisablehook = before

    def test_threads_compactions_and_closing_with_a_function(self) -> None:
        """Each thread takes the interpreter's lock while it merges, and gives it up to write."""
        db = self.open("words", create_if_missing=True, merge_operator=join_sorted)
        started = threading.Barrier(5)
        written = []

        def write(number: int) -> None:
            started.wait()
            for i in range(200):
                db.merge(b"%d" % (i % 7), b"%d.%03d" % (number, i))
                written.append((i % 7, b"%d.%03d" % (number, i)))
                if i % 50 == 49:
                    db.flush()

        def read() -> None:
            started.wait()
            for _ in range(60):
                for value in db.values():
                    self.assertEqual(sorted(value.split()), value.split())
            db.compact_range()

        raised = run_together(*(lambda n=n: write(n) for n in range(3)), read, read)
        self.assertEqual([], raised)
        for key in range(7):
            self.assertEqual(sorted(word for k, word in written if k == key),
                             db[b"%d" % key].split())
        started.reset()

        def read_until_closed() -> None:
            started.wait()
            while True:
                list(db.items())

        def close() -> None:
            started.wait()
            db.close()

        raised = run_together(*[read_until_closed] * 4, close)
        self.assertEqual([nacre.ClosedError] * 4, [type(error) for error in raised])

    def test_the_end_of_a_process_that_merges(self) -> None:
        """Nothing is closed, and the database object itself is gone."""
        program = (
            "import nacre\n"
            "def longest(key, value, operands):\n"
            "    return max(operands + [value or b''], key=len)\n"
            "db = nacre.open('pearls', merge_operator=longest, create_if_missing=True,\n"
            "                slab_size=1 << 20)\n"
            "for i in range(1000):\n"
            "    db.merge(b'%d' % (i % 9), b'x' * i)\n"
            "db.flush(wait=False)\n"
            "items = db.items()\n"
            "next(items)\n"
            "del db\n")
        with MemoryNodes(2) as nodes:
            environment = {**os.environ, "NACRE_POOL": nodes.uri}
            subprocess.run([sys.executable, "-B", "-c", program], check=True, env=environment)
            with nacre.open("pearls", nodes.uri, **SLABS,
                            merge_operator=lambda key, value, operands: max(
                                operands + [value or b""], key=len)) as db:
                self.assertEqual([999, 991], [len(db[b"0"]), len(db[b"1"])])

    def test_statistics(self) -> None:
        statistics = nacre.Statistics()
        with self.open("counted", create_if_missing=True, statistics=statistics) as db:
            for i in range(10):
                db[b"%d" % i] = b"v"
            db.get(b"1")
            tickers, histograms = statistics.tickers(), statistics.histograms()
            self.assertEqual(10, tickers["rocksdb.number.keys.written"])
            self.assertEqual(1, tickers["rocksdb.number.keys.read"])
            self.assertEqual(1, histograms["rocksdb.db.get.micros"]["count"])
            self.assertIn("rocksdb.number.keys.written", statistics.text())
            statistics.reset()
            self.assertEqual({0}, set(statistics.tickers().values()))


class TransactionTests:
    """What both kinds do."""

    KIND = ""

    def setUp(self) -> None:
        super().setUp()
        self.db.close()
        self.db = self.open("bank", create_if_missing=True, create_missing_column_families=True,
                            transactions=self.KIND, families=["log"],
                            merge_operator="stringappend")
        self.log = self.db.family("log")

    def test_commit_and_rollback(self) -> None:
        self.db[b"a"], self.db[b"gone"] = b"1", b"1"
        with self.db.transaction() as transaction:
            transaction[b"a"] = b"2"
            transaction.put(b"b", b"3")
            transaction.merge(b"b", b"4")
            transaction.of(self.log).put(b"line", b"5")
            del transaction[b"gone"]
            transaction.single_delete(b"never was")
            with self.assertRaises(KeyError):
                del transaction[b"gone"]
            self.assertEqual((b"2", b"3,4"), (transaction[b"a"], transaction.get(b"b")))
            self.assertEqual([b"2", None, b"3,4"], transaction.multi_get([b"a", b"gone", b"b"]))
            self.assertIn(b"line", transaction.of(self.log))
            self.assertEqual([(b"a", b"2"), (b"b", b"3,4")], list(transaction.items()))
            self.assertEqual([b"b", b"a"], list(transaction.keys(reverse=True)))
            self.assertEqual([b"5"], list(transaction.of(self.log).values()))
            self.assertEqual([(b"a", b"1"), (b"gone", b"1")], list(self.db.items()))
            self.assertFalse(transaction.ended)
        self.assertTrue(transaction.ended)
        self.assertEqual([(b"a", b"2"), (b"b", b"3,4")], list(self.db.items()))
        self.assertEqual([(b"line", b"5")], list(self.log.items()))
        with self.assertRaisesRegex(RuntimeError, "on purpose"):
            with self.db.transaction(sync=True) as transaction:
                transaction.delete(b"a")
                raise RuntimeError("on purpose")
        with self.db.transaction() as transaction:
            transaction.delete(b"a")
            transaction.rollback()
        for call in (transaction.commit, transaction.rollback, lambda: transaction.get(b"a"),
                     lambda: transaction.put(b"a", b"1"), transaction.set_save_point,
                     lambda: transaction.keys(), transaction.set_snapshot):
            with self.assertRaises(nacre.ClosedError):
                call()
        self.assertEqual(b"2", self.db[b"a"])

    def test_save_points(self) -> None:
        with self.db.transaction() as transaction:
            transaction[b"a"] = b"1"
            transaction.set_save_point()
            transaction[b"a"] = b"2"
            keys = transaction.keys()
            transaction.rollback_to_save_point()
            with self.assertRaises(nacre.ClosedError):
                list(keys)
            with self.assertRaises(nacre.NotFoundError):
                transaction.rollback_to_save_point()
        self.assertEqual(b"1", self.db[b"a"])

    def test_snapshots(self) -> None:
        self.db[b"a"] = b"1"
        with self.db.transaction(snapshot=True) as transaction:
            self.db[b"a"] = b"2"
            self.db[b"b"] = b"2"
            transaction[b"c"] = b"3"
            self.assertEqual(b"1", transaction[b"a"])
            self.assertEqual([b"1", None], transaction.multi_get([b"a", b"b"]))
            self.assertEqual([(b"a", b"1"), (b"c", b"3")], list(transaction.items()))
            transaction.set_snapshot()
            self.assertEqual([b"a", b"b", b"c"], list(transaction))
            self.assertEqual(b"2", transaction.get_for_update(b"a"))
        self.assertEqual([b"a", b"b", b"c"], list(self.db))
        with self.assertRaises(nacre.BusyError):
            with self.db.transaction(snapshot=True) as transaction:
                self.db[b"a"] = b"3"
                transaction[b"a"] = b"4"
        self.assertEqual(b"3", self.db[b"a"])

    def test_threads_transfer(self) -> None:
        """Between accounts, from an account to itself too; nothing is lost or made."""
        for account in range(4):
            self.db[b"%d" % account] = b"100"

        def transfer(number: int) -> None:
            for i in range(40):
                source, target = b"%d" % ((number + i) % 4), b"%d" % ((number * i) % 4)
                while True:
                    try:
                        with self.db.transaction(deadlock_detect=True,
                                                 lock_timeout=60) as transaction:
                            left = int(transaction.get_for_update(source)) - 1
                            transaction[source] = b"%d" % left
                            more = int(transaction.get_for_update(target)) + 1
                            transaction[target] = b"%d" % more
                            transaction.of(self.log)[b"%d.%d" % (number, i)] = source + target
                        break
                    except nacre.BusyError:
                        pass

        raised = run_together(*(lambda n=n: transfer(n) for n in range(4)))
        self.assertEqual([], raised)
        expected = [100] * 4
        for moved in self.log.values():
            expected[int(moved[:1])] -= 1
            expected[int(moved[1:])] += 1
        self.assertEqual(expected, [int(value) for value in self.db.values()])
        self.assertEqual(160, len(list(self.log)))

    def test_closing_the_database_ends_them(self) -> None:
        self.db[b"a"] = b"1"
        transaction = self.db.transaction()
        transaction[b"a"] = b"2"
        keys = transaction.keys()
        self.db.close()
        for call in (transaction.commit, lambda: transaction[b"a"], lambda: list(keys)):
            with self.assertRaises(nacre.ClosedError):
                call()
        with self.open("bank", families=["log"]) as db:
            self.assertEqual(b"1", db[b"a"])
            with self.assertRaises(nacre.NotSupportedError):
                db.transaction()

    def test_ranges_of_deletions_are_refused(self) -> None:
        with self.assertRaises(nacre.NotSupportedError):
            self.db.delete_range(b"a", b"b")
        batch = self.db.batch()
        batch.delete_range(b"a", b"b")
        with self.assertRaises(nacre.NotSupportedError):
            batch.write()

    def test_forgotten_ones_are_rolled_back(self) -> None:
        transaction = self.db.transaction()
        transaction[b"a"] = b"1"
        keys = transaction.keys()
        del transaction, keys
        with self.db.transaction(lock_timeout=0) as transaction:
            self.assertIsNone(transaction.get_for_update(b"a"))


class OptimisticTest(TransactionTests, EmbeddedTest):
    KIND = "optimistic"

    def test_conflicts_are_found_at_commit(self) -> None:
        first, second = self.db.transaction(), self.db.transaction()
        for transaction in (first, second):
            self.assertIsNone(transaction.get_for_update(b"a"))
            transaction[b"a"] = b"1"
        first.commit()
        with self.assertRaises(nacre.BusyError):
            second.commit()
        self.assertFalse(second.ended)
        second.rollback()
        self.assertEqual(b"1", self.db[b"a"])


class PessimisticTest(TransactionTests, EmbeddedTest):
    KIND = "pessimistic"

    def test_locks(self) -> None:
        with self.db.transaction() as first, self.db.transaction(lock_timeout=0) as second:
            first[b"a"] = b"1"
            with self.assertRaises(nacre.TimedOutError):
                second[b"a"] = b"2"
            with self.assertRaises(nacre.TimedOutError):
                second.get_for_update(b"a")
            first.get_for_update(b"shared", exclusive=False)
            self.assertIsNone(second.get_for_update(b"shared", exclusive=False))
            with self.assertRaises(nacre.TimedOutError):
                second.get_for_update(b"shared")
            self.assertIsNone(second.get(b"a"))
        self.assertEqual(b"1", self.db[b"a"])

    def test_deadlocks(self) -> None:
        """Of two that lock two keys in opposite orders one is told, and the other goes on."""
        both = threading.Barrier(2)

        def lock(first: bytes, second: bytes) -> None:
            with self.db.transaction(deadlock_detect=True, lock_timeout=60) as transaction:
                transaction[first] = first
                both.wait()
                transaction[second] = first

        raised = run_together(lambda: lock(b"a", b"b"), lambda: lock(b"b", b"a"))
        self.assertEqual([nacre.BusyError], [type(error) for error in raised])
        self.assertEqual(self.db[b"a"], self.db[b"b"])


if __name__ == "__main__":
    unittest.main()
