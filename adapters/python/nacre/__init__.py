"""Nacre: an LSM-tree database for disaggregated memory.

    import nacre

    with nacre.open("pearls", pool="tcp:10.0.0.1:7000,10.0.0.2:7000", redundancy="rep(2)",
                    create_if_missing=True) as db:
        db[b"key"] = b"value"
        print(db[b"key"], db.get(b"other"), b"key" in db)
        with db.batch() as batch:              # all of it or nothing
            batch[b"a"] = b"1"
            del batch[b"key"]
        for key, value in db.items(prefix=b"a"):
            print(key, value)

Keys and values are bytes (or bytearray, or memoryview). Every call may be made from any thread; the
interpreter's lock is given up while one waits. What goes wrong is raised as a `nacre.Error`.
"""

from nacre._core import Statistics, version
from nacre.database import (
    Database,
    Family,
    Keyspace,
    Pool,
    Snapshot,
    destroy,
    follow,
    list_databases,
    list_families,
    open,
    open_read_only,
    restore,
)
from nacre.errors import (
    AbortedError,
    BusyError,
    ClosedError,
    CorruptionError,
    Error,
    FencedError,
    IncompleteError,
    InvalidArgumentError,
    IoError,
    NoSpaceError,
    NotFoundError,
    NotSupportedError,
    ShutdownInProgressError,
    TimedOutError,
    TryAgainError,
    UnavailableError,
)
from nacre.reading import BytesLike, Iterator
from nacre.updates import Batch, Transaction

__version__ = version()

__all__ = [
    "AbortedError",
    "Batch",
    "BusyError",
    "BytesLike",
    "ClosedError",
    "CorruptionError",
    "Database",
    "Error",
    "Family",
    "FencedError",
    "IncompleteError",
    "InvalidArgumentError",
    "IoError",
    "Iterator",
    "Keyspace",
    "NoSpaceError",
    "NotFoundError",
    "NotSupportedError",
    "Pool",
    "ShutdownInProgressError",
    "Snapshot",
    "Statistics",
    "TimedOutError",
    "Transaction",
    "TryAgainError",
    "UnavailableError",
    "destroy",
    "follow",
    "list_databases",
    "list_families",
    "open",
    "open_read_only",
    "restore",
    "version",
]
