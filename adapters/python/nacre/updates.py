"""Updates that take effect together: batches and transactions."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Optional, TypeVar, Union

from nacre import _core as native
from nacre.errors import InvalidArgumentError
from nacre.reading import BytesLike, Readable

if TYPE_CHECKING:
    from nacre.database import Database, Family

Self = TypeVar("Self", bound="InFamily")


class InFamily:
    """What has a view for each column family; by itself it is of the default one."""

    _database: Database
    _family: Optional[native.Family] = None

    def of(self: Self, family: Family) -> Self:
        """The same thing for keys of `family`: `batch.of(fruit)[b"apple"] = b"red"`."""
        if family.database is not self._database:
            raise InvalidArgumentError(f"column family {family.name} is of another database")
        view = copy.copy(self)
        view._family = family._family
        return view


class Updates(InFamily):
    """Updates of keys, in memory as yet."""

    _core: Union[native.Batch, native.Transaction]

    def put(self, key: BytesLike, value: BytesLike) -> None:
        """Gives `key` the value."""
        self._core.put(key, value, self._family)

    def merge(self, key: BytesLike, operand: BytesLike) -> None:
        """Has the operator of the option merge_operator apply `operand` to the value of `key`."""
        self._core.merge(key, operand, self._family)

    def delete(self, key: BytesLike) -> None:
        """Deletes a key, whether or not it is there."""
        self._core.delete(key, self._family)

    def single_delete(self, key: BytesLike) -> None:
        """Deletes a key that was put once since it was last deleted, and not merged."""
        self._core.single_delete(key, self._family)

    def __setitem__(self, key: BytesLike, value: BytesLike) -> None:
        self.put(key, value)


class Batch(Updates):
    """Updates that take effect together, in their order. Made by `Database.batch`.

    As a context manager it is written at the end of the `with`, unless that ends by an exception:
    then nothing is. Otherwise `write` writes it.
    """

    _core: native.Batch

    def __init__(self, database: Database, sync: bool, disable_wal: bool) -> None:
        self._database = database
        self._how = (sync, disable_wal)
        self._core = native.Batch()

    def __delitem__(self, key: BytesLike) -> None:
        self.delete(key)

    def delete_range(self, start: BytesLike, stop: BytesLike) -> None:
        """Deletes the keys from `start` to `stop`, without `stop`."""
        self._core.delete_range(start, stop, self._family)

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


class Transaction(Updates, Readable):
    """Updates that take effect together, if no other transaction has changed what they rest on.

    Made by `Database.transaction`. Reads see its own updates. As a context manager it is committed
    at the end of the `with`, and rolled back if that ends by an exception. What fails:

    - Of a database that was opened with transactions="optimistic": the commit, by BusyError, if
      others have written a key since it was written or got for update here.
    - With transactions="pessimistic": an update, or `get_for_update`, by TimedOutError if another
      transaction keeps the key locked, and by BusyError for a deadlock, or if the key was written
      since the snapshot.

    After either, the whole transaction may be tried again. Any number of threads may use it; they
    take turns.
    """

    _core: native.Transaction

    def __init__(self, database: Database, core: native.Transaction) -> None:
        self._database = database
        self._core = core

    def __delitem__(self, key: BytesLike) -> None:
        """KeyError if it is not there; `delete` does not look."""
        if key not in self:
            raise KeyError(bytes(key))
        self.delete(key)

    def get_for_update(self, key: BytesLike, *, exclusive: bool = True) -> Optional[bytes]:
        """The value of `key`, which shall stay as it is until this transaction has ended.

        With `exclusive=False`, other transactions may get it for update so, too.
        """
        return self._core.get(key, self._family, True, exclusive)

    def set_snapshot(self) -> None:
        """From now on reads see this moment, and keys must not have been written since it."""
        self._core.set_snapshot()

    def set_save_point(self) -> None:
        """Remembers how far it is; save points are a stack."""
        self._core.set_save_point()

    def rollback_to_save_point(self) -> None:
        """Undoes what was done since the latest save point, and forgets that; ends iterators.
        NotFoundError if there is none."""
        self._core.rollback_to_save_point()

    def commit(self) -> None:
        """Has all updates take effect, and ends it. It stays open if this fails."""
        self._core.commit()

    def rollback(self) -> None:
        """Forgets all updates, and ends it."""
        self._core.rollback()

    @property
    def ended(self) -> bool:
        """Whether it was committed or rolled back."""
        return self._core.ended

    def __enter__(self) -> Transaction:
        return self

    def __exit__(self, exception: Any, *_: Any) -> None:
        if self.ended:
            return
        try:
            if exception is None:
                self.commit()
        finally:
            if not self.ended:
                self.rollback()

    def _get(self, key: BytesLike, linearizable: bool) -> Optional[bytes]:
        return self._core.get(key, self._family, False, False)

    def _multi_get(self, keys: list[BytesLike], linearizable: bool) -> list[Optional[bytes]]:
        return self._core.multi_get(keys, self._family)

    def _has(self, key: BytesLike) -> bool:
        return self._get(key, False) is not None

    def _range(
        self,
        start: Optional[BytesLike],
        stop: Optional[BytesLike],
        reverse: bool,
        linearizable: bool,
    ) -> native.Iterator:
        return self._core.iterator(self._family, start, stop, reverse)
