"""Databases, pools, batches and snapshots."""

from __future__ import annotations

import atexit
import os
import weakref
from typing import Any, Iterable, Optional, Union

from nacre import _core
from nacre.errors import ClosedError, InvalidArgumentError
from nacre.reading import BytesLike, Readable

_LATEST = _core.ReadFrom(None, False)
_LINEARIZABLE = _core.ReadFrom(None, True)

# Closed when the interpreter ends, while it still can give up its lock.
_open_databases: weakref.WeakSet[Database] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for database in list(_open_databases):
        database.close()


def _text(value: str, what: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{what} must be a str, not {type(value).__name__}")
    return value


class Pool:
    """A set of memory nodes, to be shared by databases.

    `uri` names them: "tcp:10.0.0.1:7000,10.0.0.2:7000", "verbs:...", "shm:PATH,...", or
    "embedded:?nodes=4&size=1GiB" for nodes inside this process, which are gone with the pool.
    `secret` is what the nodes were started with; "": as NACRE_SECRET_FILE or NACRE_SECRET says.
    The nodes have slabs of 64 MiB, the default; to use others, open databases with the URI and
    the option `slab_size`.
    """

    def __init__(self, uri: str, *, secret: str = "", max_queue_pairs_per_node: int = 0) -> None:
        self._core: Optional[_core.Pool] = _core.open_pool(
            _text(uri, "uri"), _text(secret, "secret"), max_queue_pairs_per_node
        )

    @property
    def uri(self) -> str:
        return self._opened().uri

    @property
    def node_count(self) -> int:
        return self._opened().node_count

    def close(self) -> None:
        """Gives it up; databases that were opened with it go on."""
        self._core = None

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _opened(self) -> _core.Pool:
        if self._core is None:
            raise ClosedError("the pool is closed")
        return self._core


PoolLike = Union[Pool, str, None]


def _pool_of(pool: PoolLike) -> Union[_core.Pool, str]:
    if isinstance(pool, Pool):
        return pool._opened()
    if pool is None:
        pool = os.environ.get("NACRE_POOL", "")
        if not pool:
            raise InvalidArgumentError("no pool is named: neither pool=... nor NACRE_POOL is there")
    return _text(pool, "pool, if it is no nacre.Pool,")


class Batch:
    """Updates that take effect together, in their order. Made by `Database.batch`.

    As a context manager it is written at the end of the `with`, unless that ends by an exception:
    then nothing is. Otherwise `write` writes it.
    """

    def __init__(self, database: Database, sync: bool, disable_wal: bool) -> None:
        self._database = database
        self._how = (sync, disable_wal)
        self._core = _core.Batch()

    def put(self, key: BytesLike, value: BytesLike) -> None:
        self._core.put(key, value)

    def delete(self, key: BytesLike) -> None:
        self._core.delete(key)

    __setitem__ = put
    __delitem__ = delete

    def clear(self) -> None:
        """Forgets all updates."""
        self._core.clear()

    def __len__(self) -> int:
        return self._core.count()

    def write(self) -> None:
        """Writes the updates and keeps them, so that they may be written again."""
        self._database._core.write(self._core, *self._how)

    def __enter__(self) -> Batch:
        return self

    def __exit__(self, exception: Any, *_: Any) -> None:
        if exception is None:
            self.write()
        self.clear()


class Snapshot(Readable):
    """A state of a database that stays readable until it is closed. Made by `Database.snapshot`."""

    def __init__(self, database: _core.Database) -> None:
        self._core = database
        self._snapshot: Optional[_core.Snapshot] = database.snapshot()

    def _reads(self, linearizable: bool) -> _core.ReadFrom:
        return _core.ReadFrom(self._opened(), linearizable)

    def _opened(self) -> _core.Snapshot:
        snapshot = self._snapshot
        if snapshot is None:
            raise ClosedError("the snapshot is closed")
        return snapshot

    @property
    def sequence_number(self) -> int:
        """Of the last write that it sees."""
        return self._opened().sequence_number

    def close(self) -> None:
        self._snapshot = None

    def __enter__(self) -> Snapshot:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


class Database(Readable):
    """An ordered map from bytes to bytes, in a pool. Made by `open`, `follow`, `open_read_only`.

    Usable by any number of threads. Closing it, also by the end of a `with`, waits for calls that
    are under way and ends its iterators and snapshots; all calls after that raise ClosedError.
    """

    def __init__(self, core: _core.Database, name: str) -> None:
        self._core = core
        self._name = name
        _open_databases.add(self)

    def __repr__(self) -> str:
        return f"<nacre.Database {self._name!r}{' closed' if self.closed else ''}>"

    def _reads(self, linearizable: bool) -> _core.ReadFrom:
        return _LINEARIZABLE if linearizable else _LATEST

    @property
    def name(self) -> str:
        return self._name

    @property
    def closed(self) -> bool:
        return self._core.closed

    def close(self) -> None:
        """Flushes, and leaves the database in the pool, to be opened again. Idempotent."""
        self._core.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    # ---- Writes ----

    def __setitem__(self, key: BytesLike, value: BytesLike) -> None:
        self._core.put(key, value, False, False)

    def __delitem__(self, key: BytesLike) -> None:
        """KeyError if it is not there, which costs a read; `delete` does not look."""
        if key not in self:
            raise KeyError(bytes(key))
        self._core.delete(key, False, False)

    def put(
        self, key: BytesLike, value: BytesLike, *, sync: bool = False, disable_wal: bool = False
    ) -> None:
        """Writes a value. When this returns, as many nodes may be lost as the redundancy says.

        `sync`: so also with the option manual_wal_flush. `disable_wal`: lost with this process
        until it is flushed.
        """
        self._core.put(key, value, sync, disable_wal)

    def delete(self, key: BytesLike, *, sync: bool = False, disable_wal: bool = False) -> None:
        """Deletes a key, whether or not it is there."""
        self._core.delete(key, sync, disable_wal)

    def batch(self, *, sync: bool = False, disable_wal: bool = False) -> Batch:
        """An empty batch of updates to this database."""
        return Batch(self, sync, disable_wal)

    # ---- Upkeep ----

    def snapshot(self) -> Snapshot:
        """The state of this moment, to be read later."""
        return Snapshot(self._core)

    def flush(self, *, wait: bool = True) -> None:
        """Makes tables of what is in memory."""
        self._core.flush(wait)

    def flush_wal(self, *, sync: bool = True) -> None:
        """Sends what the option manual_wal_flush has kept back."""
        self._core.flush_wal(sync)

    def compact_range(
        self, start: Optional[BytesLike] = None, stop: Optional[BytesLike] = None
    ) -> None:
        """Compacts the keys from `start` to `stop`; None: from the first, to the last."""
        self._core.compact_range(start, stop)

    def wait_for_compact(self) -> None:
        """Returns when no flush and no compaction is due or running."""
        self._core.wait_for_compact()

    def verify_checksum(self) -> None:
        """Has the nodes compare all they hold with its checksums; CorruptionError names tables."""
        self._core.verify_checksum()

    def catch_up(self) -> None:
        """Of a follower: reads after this see all that the owner acknowledged before it."""
        self._core.catch_up()

    def checkpoint(
        self,
        folder: Union[str, os.PathLike[str]],
        *,
        threads: int = 4,
        bytes_per_second: int = 0,
    ) -> int:
        """Writes a consistent copy into a folder of files; answers its number there."""
        return self._core.checkpoint(os.fspath(folder), threads, bytes_per_second)

    # ---- What it knows of itself ----

    def get_property(self, name: str) -> Optional[str]:
        """What `nacre.stats` and the like say (docs/operations.md); None for an unknown one."""
        return self._core.get_property(_text(name, "name"))

    def get_int_property(self, name: str) -> Optional[int]:
        """A property that is a number, such as "nacre.estimate-num-keys"."""
        return self._core.get_int_property(_text(name, "name"))

    def approximate_sizes(self, ranges: Iterable[tuple[BytesLike, BytesLike]]) -> list[int]:
        """Bytes of tables in each range of keys, (start, stop)."""
        return self._core.approximate_sizes(list(ranges))

    @property
    def latest_sequence_number(self) -> int:
        return self._core.latest_sequence_number()


def _open(name: str, pool: PoolLike, kind: _core.Kind, options: dict[str, Any]) -> Database:
    return Database(_core.open(_pool_of(pool), _text(name, "name"), kind, options), name)


def open(name: str, pool: PoolLike = None, **options: Any) -> Database:
    """Opens a database as its owner; nobody else may have it open then.

    `pool` is a `Pool`, or a URI as `Pool` takes it; without it, NACRE_POOL in the environment names
    one. An embedded pool that is named by its URI ends with the database, with all its data.

    `options` are those of include/nacre/options.h: `create_if_missing=True`, `redundancy="rep(2)"`,
    `take_over=True`, `write_buffer_size=1 << 20` and so on. Durations are seconds
    (`operation_timeout=2.5`); choices are text (`compaction="compute"`, `comparator=
    "reverse_bytewise"`). TypeError for an unknown one.
    """
    return _open(name, pool, _core.Kind.OWNER, options)


def follow(name: str, pool: PoolLike = None, **options: Any) -> Database:
    """Opens a database that another process owns, to read it and what is written to it later.

    `Database.catch_up` brings it up to date, and so does every `follow_interval` (seconds), if that
    is given, and each read with `linearizable=True`.
    """
    return _open(name, pool, _core.Kind.SECONDARY, options)


def open_read_only(name: str, pool: PoolLike = None, **options: Any) -> Database:
    """Opens a database that another process may own, to read it as it is now."""
    return _open(name, pool, _core.Kind.READ_ONLY, options)


def destroy(name: str, pool: PoolLike = None, **options: Any) -> None:
    """Deletes a database with all it has. Nothing happens if there is none."""
    _core.destroy(_pool_of(pool), _text(name, "name"), options)


def list_databases(pool: PoolLike = None, **options: Any) -> list[str]:
    """Names of the databases in a pool, in order."""
    return _core.list_databases(_pool_of(pool), options)


def restore(
    name: str,
    folder: Union[str, os.PathLike[str]],
    pool: PoolLike = None,
    *,
    checkpoint: int = 0,
    **options: Any,
) -> None:
    """Makes the database `name` of a checkpoint in `folder`; 0: of the latest one there."""
    folder = os.fspath(folder)
    _core.restore(_pool_of(pool), _text(name, "name"), folder, checkpoint, options)
