"""Databases, column families, snapshots and pools."""

from __future__ import annotations

import atexit
import dataclasses
import os
import weakref
from typing import Any, Iterable, Mapping, Optional, Sequence, Union

from nacre import _core as native
from nacre.errors import ClosedError, InvalidArgumentError, NotFoundError
from nacre.reading import BytesLike, Readable
from nacre.updates import Batch, InFamily, Transaction

_LATEST = native.ReadFrom(None, False, None)
_LINEARIZABLE = native.ReadFrom(None, True, None)

Families = Union[Iterable[str], Mapping[str, Mapping[str, Any]]]

# Closed when the interpreter ends, while it still can give up its lock. Whatever is made of a
# database keeps it here.
_open_databases: weakref.WeakSet[Database] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for database in list(_open_databases):
        database.close()


def _text(value: str, what: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{what} must be a str, not {type(value).__name__}")
    return value


def _stored(name: str, what: str) -> bytes:
    """A name as Nacre has it: any bytes, as the names of files."""
    return _text(name, what).encode("utf-8", "surrogateescape")


def _shown(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")


def _milliseconds(seconds: Optional[float]) -> int:
    return -1 if seconds is None else round(seconds * 1000)


class Pool:
    """A set of memory nodes, to be shared by databases.

    `uri` names them: "tcp:10.0.0.1:7000,10.0.0.2:7000", "verbs:...", "shm:PATH,...", or
    "embedded:?nodes=4&size=1GiB" for nodes inside this process, which are gone with the pool.
    `secret` is what the nodes were started with; "": as NACRE_SECRET_FILE or NACRE_SECRET says.
    The nodes have slabs of 64 MiB, the default; to use others, open databases with the URI and
    the option `slab_size`.
    """

    def __init__(self, uri: str, *, secret: str = "", max_queue_pairs_per_node: int = 0) -> None:
        self._core: Optional[native.Pool] = native.open_pool(
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

    def _opened(self) -> native.Pool:
        if self._core is None:
            raise ClosedError("the pool is closed")
        return self._core


PoolLike = Union[Pool, str, None]


def _pool_of(pool: PoolLike) -> Union[native.Pool, str]:
    if isinstance(pool, Pool):
        return pool._opened()
    if pool is None:
        pool = os.environ.get("NACRE_POOL", "")
        if not pool:
            raise InvalidArgumentError("no pool is named: neither pool=... nor NACRE_POOL is there")
    return _text(pool, "pool, if it is no nacre.Pool,")


class _Reader(Readable):
    """Reads a family of a database, or of a snapshot of it."""

    _core: native.Database
    _family: Optional[native.Family] = None

    def _reads(self, linearizable: bool) -> native.ReadFrom:
        raise NotImplementedError

    def _get(self, key: BytesLike, linearizable: bool) -> Optional[bytes]:
        return self._core.get(key, self._reads(linearizable))

    def _multi_get(self, keys: list[BytesLike], linearizable: bool) -> list[Optional[bytes]]:
        return self._core.multi_get(keys, self._reads(linearizable))

    def _has(self, key: BytesLike) -> bool:
        return self._core.contains(key, self._reads(False))

    def _range(
        self,
        start: Optional[BytesLike],
        stop: Optional[BytesLike],
        reverse: bool,
        linearizable: bool,
    ) -> native.Iterator:
        return self._core.iterator(self._reads(linearizable), start, stop, reverse)


class Snapshot(InFamily, _Reader):
    """A state of a database that stays readable until it is closed. Made by `Database.snapshot`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._core = database._core
        self._held = [database._core.snapshot()]  # Empty when it is closed; views have it, too.

    def _reads(self, linearizable: bool) -> native.ReadFrom:
        return native.ReadFrom(self._opened(), linearizable, self._family)

    def _opened(self) -> native.Snapshot:
        held = list(self._held)
        if not held:
            raise ClosedError("the snapshot is closed")
        return held[0]

    @property
    def sequence_number(self) -> int:
        """Of the last write that it sees."""
        return self._opened().sequence_number

    def close(self) -> None:
        """Gives the state up; afterwards it raises ClosedError, and so do its views."""
        self._held.clear()

    def __enter__(self) -> Snapshot:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


class _Map(_Reader):
    """An ordered map from bytes to bytes: what a database and each of its families is."""

    def __setitem__(self, key: BytesLike, value: BytesLike) -> None:
        self._core.put(key, value, False, False, self._family)

    def __delitem__(self, key: BytesLike) -> None:
        """KeyError if it is not there, which costs a read; `delete` does not look."""
        if key not in self:
            raise KeyError(bytes(key))
        self._core.delete(key, False, False, self._family)

    def put(
        self, key: BytesLike, value: BytesLike, *, sync: bool = False, disable_wal: bool = False
    ) -> None:
        """Writes a value. When this returns, as many nodes may be lost as the redundancy says.

        `sync`: so also with the option manual_wal_flush. `disable_wal`: lost with this process
        until it is flushed.
        """
        self._core.put(key, value, sync, disable_wal, self._family)

    def merge(
        self, key: BytesLike, operand: BytesLike, *, sync: bool = False, disable_wal: bool = False
    ) -> None:
        """Has the operator of the option merge_operator apply `operand` to the value of `key`,
        without reading it. NotSupportedError if there is no operator."""
        self._core.merge(key, operand, sync, disable_wal, self._family)

    def delete(self, key: BytesLike, *, sync: bool = False, disable_wal: bool = False) -> None:
        """Deletes a key, whether or not it is there."""
        self._core.delete(key, sync, disable_wal, self._family)

    def single_delete(
        self, key: BytesLike, *, sync: bool = False, disable_wal: bool = False
    ) -> None:
        """Deletes a key that was put once since it was last deleted, and not merged."""
        self._core.single_delete(key, sync, disable_wal, self._family)

    def delete_range(
        self, start: BytesLike, stop: BytesLike, *, sync: bool = False, disable_wal: bool = False
    ) -> None:
        """Deletes the keys from `start` to `stop`, without `stop`, at the cost of one update.
        NotSupportedError if the database was opened with transactions."""
        self._core.delete_range(start, stop, sync, disable_wal, self._family)

    def flush(self, *, wait: bool = True) -> None:
        """Makes tables of what is in memory, of all families."""
        self._core.flush(wait, self._family)

    def compact_range(
        self, start: Optional[BytesLike] = None, stop: Optional[BytesLike] = None
    ) -> None:
        """Compacts the keys from `start` to `stop`; None: from the first, to the last."""
        self._core.compact_range(start, stop, self._family)

    def get_property(self, name: str) -> Optional[str]:
        """What `nacre.stats` and the like say (docs/operations.md); None for an unknown one."""
        return self._core.get_property(_text(name, "name"), self._family)

    def get_int_property(self, name: str) -> Optional[int]:
        """A property that is a number, such as "nacre.estimate-num-keys"."""
        return self._core.get_int_property(_text(name, "name"), self._family)

    def approximate_sizes(self, ranges: Iterable[tuple[BytesLike, BytesLike]]) -> list[int]:
        """Bytes of tables in each range of keys, (start, stop)."""
        return self._core.approximate_sizes(list(ranges), self._family)


class Family(_Map):
    """A column family: a map of its own in a database. Made by `Database.family`."""

    def __init__(self, database: Database, core: native.Family) -> None:
        self._database = database
        self._core = database._core
        self._family: native.Family = core
        self._latest = native.ReadFrom(None, False, core)
        self._linearizable = native.ReadFrom(None, True, core)

    def __repr__(self) -> str:
        return f"<nacre.Family {self.name!r} of {self._database!r}>"

    def _reads(self, linearizable: bool) -> native.ReadFrom:
        return self._linearizable if linearizable else self._latest

    @property
    def name(self) -> str:
        return _shown(self._family.name)

    @property
    def id(self) -> int:
        return self._family.id

    @property
    def database(self) -> Database:
        """That it is a part of."""
        return self._database


class Database(_Map):
    """An ordered map from bytes to bytes, in a pool. Made by `open`, `follow`, `open_read_only`.

    Usable by any number of threads. Closing it, also by the end of a `with`, waits for calls that
    are under way and ends its iterators, snapshots and transactions; all calls after that raise
    ClosedError.

    It may have further maps, its column families, which batches and transactions can change
    together. By itself it is the default family.
    """

    def __init__(self, core: native.Database, families: list[native.Family], name: str) -> None:
        self._core = core
        self._name = name
        self._families = {family.name: family for family in families}
        _open_databases.add(self)

    def __repr__(self) -> str:
        return f"<nacre.Database {self._name!r}{' closed' if self.closed else ''}>"

    def _reads(self, linearizable: bool) -> native.ReadFrom:
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

    # ---- Column families ----

    def family(self, name: str) -> Family:
        """One that is open; NotFoundError if there is none of that name."""
        core = self._families.get(_stored(name, "name"))
        if core is None:
            raise NotFoundError(f"no column family {name} is open")
        return Family(self, core)

    @property
    def families(self) -> dict[str, Family]:
        """All that are open, by their names, without the default one, which this is."""
        return {_shown(name): Family(self, core) for name, core in list(self._families.items())}

    def create_family(self, name: str, **options: Any) -> Family:
        """Makes one. Options that are not named are as those of the database."""
        core = self._core.create_family(_stored(name, "name"), options)
        self._families[core.name] = core
        return Family(self, core)

    def drop_family(self, family: Family) -> None:
        """Deletes it. `family` itself can still be read, as it was, and not be written."""
        self._core.drop_family(family._family)
        self._families.pop(family._family.name, None)

    # ---- Updates that take effect together ----

    def batch(self, *, sync: bool = False, disable_wal: bool = False) -> Batch:
        """An empty batch of updates to this database."""
        return Batch(self, sync, disable_wal)

    def transaction(
        self,
        *,
        snapshot: bool = False,
        deadlock_detect: bool = False,
        lock_timeout: Optional[float] = None,
        expiration: Optional[float] = None,
        sync: bool = False,
        disable_wal: bool = False,
    ) -> Transaction:
        """Begins a transaction. NotSupportedError unless it was opened with `transactions=...`.

        `snapshot`: as if `set_snapshot` was called at once. With locks: how many seconds to wait
        for one, whether to look for circles of waiting transactions, and after how many seconds
        others may take this one's locks.
        """
        limits = (_milliseconds(lock_timeout), _milliseconds(expiration))
        core = native.Transaction(self._core, sync, disable_wal, snapshot, deadlock_detect, *limits)
        return Transaction(self, core)

    # ---- Upkeep ----

    def snapshot(self) -> Snapshot:
        """The state of this moment, to be read later."""
        return Snapshot(self)

    def flush_wal(self, *, sync: bool = True) -> None:
        """Sends what the option manual_wal_flush has kept back."""
        self._core.flush_wal(sync)

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

    @property
    def latest_sequence_number(self) -> int:
        """Of the last update."""
        return self._core.latest_sequence_number()


_NO_OPTIONS: Mapping[str, Any] = {}

_KINDS = {
    None: native.Kind.OWNER,
    "optimistic": native.Kind.OPTIMISTIC,
    "pessimistic": native.Kind.LOCKING,
}


def _described(families: Families) -> list[tuple[bytes, dict[str, Any]]]:
    """Name and options of each but the default one."""
    if isinstance(families, str):
        raise TypeError("families must be names, or a dict of options by names")
    named = families if isinstance(families, Mapping) else dict.fromkeys(families, _NO_OPTIONS)
    others = []
    for name, options in named.items():
        if name != "default":
            others.append((_stored(name, "a family's name"), dict(options)))
        elif options:
            raise InvalidArgumentError("options of the default family are those of the database")
    return others


@dataclasses.dataclass(frozen=True)
class Keyspace:
    """A database that consists of several, its shards, each with a range of the keys.

    `boundaries` cuts a new one: a shard begins before all keys, and one at each of these, which
    ascend. Without a `coordinator` one process owns all shards; with one, such as
    "etcd:10.0.0.1:2379", each process that opens the keyspace may own some: it serves them to the
    others at `member_address` ("tcp:10.0.0.1:7500", or "shm:@" on one host), and owns none if that
    is empty. A member that the coordinator has not heard of for `member_lease` seconds is none any
    more. NotSupportedError for etcd where the package was built without it, as wheels are.
    """

    boundaries: Sequence[BytesLike] = ()
    coordinator: str = ""
    member_address: str = ""
    member_lease: float = 2.0

    def _as_native(self) -> native.Keyspace:
        return (
            [bytes(key) for key in self.boundaries],
            _text(self.coordinator, "coordinator"),
            _text(self.member_address, "member_address"),
            _milliseconds(self.member_lease),
        )


def _open(
    name: str,
    pool: PoolLike,
    kind: native.Kind,
    families: Families,
    options: dict[str, Any],
    keyspace: Optional[Keyspace] = None,
) -> Database:
    core, opened = native.open(
        _pool_of(pool),
        _stored(name, "name"),
        kind,
        _described(families),
        keyspace._as_native() if keyspace else None,
        options,
    )
    return Database(core, opened, name)


def open(
    name: str,
    pool: PoolLike = None,
    *,
    families: Families = (),
    transactions: Optional[str] = None,
    keyspace: Optional[Keyspace] = None,
    **options: Any,
) -> Database:
    """Opens a database as its owner; no other process may have it open then.

    `pool` is a `Pool`, or a URI as `Pool` takes it; without it, NACRE_POOL in the environment names
    one. An embedded pool that is named by its URI ends with the database, with all its data.

    `families` names all column families that there are (`list_families`), or gives a dict with the
    options of each: `{"fruit": {"merge_operator": "uint64add"}}`. Those that it does not name are
    as the database's. `create_missing_column_families=True` makes those that are missing.

    `transactions`: "optimistic", which are checked when they are committed, or "pessimistic", with
    locks; see `Transaction`.

    `keyspace`: it is one of several shards, which processes may own together; see `Keyspace`.

    `options` are those of include/nacre/options.h: `create_if_missing=True`, `redundancy="rep(2)"`,
    `take_over=True`, `write_buffer_size=1 << 20` and so on. Durations are seconds
    (`operation_timeout=2.5`); choices are text (`compaction="compute"`, `comparator=
    "reverse_bytewise"`). TypeError for an unknown one.

    `merge_operator` is one of Nacre's ("uint64add", "stringappend", "stringappend:;") or a function
    of the key, the value (None: there is none) and the list of operands, all bytes, which answers
    the new value. It is called by threads of Nacre's too, must answer the same for the same, and
    must not use the database. If it raises, sys.unraisablehook is told, and the read ends with
    CorruptionError. Compactions that need it run in this process.
    """
    kind = _KINDS.get(transactions)
    if kind is None:
        raise InvalidArgumentError("transactions must be optimistic, pessimistic or None")
    return _open(name, pool, kind, families, options, keyspace)


def follow(
    name: str, pool: PoolLike = None, *, families: Families = (), **options: Any
) -> Database:
    """Opens a database that another process owns, to read it and what is written to it later.

    `Database.catch_up` brings it up to date, and so does every `follow_interval` (seconds), if that
    is given, and each read with `linearizable=True`. `families` need not be all.
    """
    return _open(name, pool, native.Kind.SECONDARY, families, options)


def open_read_only(
    name: str, pool: PoolLike = None, *, families: Families = (), **options: Any
) -> Database:
    """Opens a database that another process may own, to read it as it is now. `families` need not
    be all."""
    return _open(name, pool, native.Kind.READ_ONLY, families, options)


def list_families(name: str, pool: PoolLike = None, **options: Any) -> list[str]:
    """Names of the column families of a database, the default one among them."""
    names = native.list_families(_pool_of(pool), _stored(name, "name"), options)
    return [_shown(family) for family in names]


def destroy(
    name: str, pool: PoolLike = None, *, keyspace: Optional[Keyspace] = None, **options: Any
) -> None:
    """Deletes a database, or a keyspace, with all it has. Nothing happens if there is none."""
    shards = keyspace._as_native() if keyspace else None
    native.destroy(_pool_of(pool), _stored(name, "name"), shards, options)


def list_databases(pool: PoolLike = None, **options: Any) -> list[str]:
    """Names of the databases in a pool, in order."""
    return [_shown(name) for name in native.list_databases(_pool_of(pool), options)]


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
    native.restore(_pool_of(pool), _stored(name, "name"), folder, checkpoint, options)
