"""Goal: the Python package and SQLite's extension may be used in one process, in either order of
loading, by threads at once, until the process ends: each has a copy of Nacre of its own, with its
flags, message types and metrics.

Method: a process for each order of loading, which works with a database of the package and with
tables of the extension in the same pool of nacre-memnode processes, from threads of each, and ends
with both open. SQLite is called past the module sqlite3, which has no extensions in interpreters
that were built without them. NACRE_SQLITE names the extension. Run by wheel_test.py from an
installed wheel.
"""

import ctypes.util
import os
import subprocess
import sys
import unittest

from python_api import MemoryNodes

PROGRAM = """
import ctypes, os, sys, threading

URI = os.environ["NACRE_POOL"]
ROWS = 300


def load_package():
    global nacre
    import nacre


sqlite = ctypes.CDLL(sys.argv[2])
connection = ctypes.c_void_p()
error = ctypes.c_char_p()
Row = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int,
                       ctypes.POINTER(ctypes.c_char_p), ctypes.POINTER(ctypes.c_char_p))


def execute(statement):
    rows = []

    @Row
    def keep(_, count, values, names):
        rows.append(tuple(values[i].decode() for i in range(count)))
        return 0

    code = sqlite.sqlite3_exec(connection, statement.encode(), keep, None, ctypes.byref(error))
    assert code == 0, error.value
    return rows


def load_extension():
    assert sqlite.sqlite3_open(b":memory:", ctypes.byref(connection)) == 0
    sqlite.sqlite3_enable_load_extension(connection, 1)
    code = sqlite.sqlite3_load_extension(connection, os.environ["NACRE_SQLITE"].encode(), None,
                                         ctypes.byref(error))
    assert code == 0, error.value


loads = [load_package, load_extension]
for load in loads if sys.argv[1] == "package" else loads[::-1]:
    load()

failures = []


def use_package(db):
    try:
        for i in range(ROWS):
            db[b"%05d" % i] = b"v%d" % i
        db.flush()
        db.compact_range()
        assert [b"v%d" % i for i in range(ROWS)] == list(db.values())
    except Exception as raised:
        failures.append(repr(raised))


def use_extension():
    try:
        execute("CREATE VIRTUAL TABLE shells USING nacre(pool='%s', id INTEGER PRIMARY KEY, "
                "name TEXT)" % URI)
        execute("BEGIN")
        for i in range(ROWS):
            execute("INSERT INTO shells VALUES(%d, 'v%d')" % (i, i))
        execute("COMMIT")
        found = execute("SELECT count(*), sum(id), max(name) FROM shells")
        assert found == [(str(ROWS), str(ROWS * (ROWS - 1) // 2), "v99")], found
    except Exception as raised:
        failures.append(repr(raised))


db = nacre.open("pearls", URI, create_if_missing=True, slab_size=1 << 20)
threads = [threading.Thread(target=use_package, args=(db,)),
           threading.Thread(target=use_extension)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
if failures:
    sys.exit("\\n".join(failures))

# Each sees the other's database by its name, and that it is taken.
assert nacre.list_databases(URI, slab_size=1 << 20) == ["pearls", "sqlite"]
try:
    nacre.open("sqlite", URI, slab_size=1 << 20)
    sys.exit("two owners")
except nacre.BusyError:
    pass
print("all is well", flush=True)
# Both stay open until the interpreter has ended.
"""


class BesideSqliteTest(unittest.TestCase):
    def run_with(self, first: str) -> None:
        library = ctypes.util.find_library("sqlite3")
        with MemoryNodes(3) as nodes:
            environment = {**os.environ, "NACRE_POOL": nodes.uri}
            ended = subprocess.run(
                [sys.executable, "-B", "-X", "faulthandler", "-c", PROGRAM, first, library],
                env=environment, capture_output=True, text=True, check=False)
        self.assertEqual((0, "all is well\n"), (ended.returncode, ended.stdout), ended.stderr)

    def test_the_package_first(self) -> None:
        self.run_with("package")

    def test_the_extension_first(self) -> None:
        self.run_with("extension")


if __name__ == "__main__":
    unittest.main()
