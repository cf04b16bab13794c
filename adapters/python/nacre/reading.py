"""What databases, families, snapshots and transactions have in common: reads, and iterators."""

from __future__ import annotations

import threading
from typing import Any, Generic, Iterable, Optional, TypeVar, Union, overload

from nacre._core import Iterator as CoreIterator
from nacre._core import Part

BytesLike = Union[bytes, bytearray, memoryview]
Entry = TypeVar("Entry")
Default = TypeVar("Default")


def prefix_range(prefix: BytesLike) -> tuple[bytes, Optional[bytes]]:
    """The keys that begin with `prefix`, as (start, stop)."""
    start = bytes(prefix)
    without_last = start.rstrip(b"\xff")
    if not without_last:
        return start, None
    return start, without_last[:-1] + bytes([without_last[-1] + 1])


class Iterator(Generic[Entry]):
    """Goes over the keys of a range, as of the moment when it was made.

    Made by `keys`, `values` and `items` of what can be read. Entries are fetched ahead, in
    growing pieces. It may be used by several threads, which then share the entries.
    """

    _FETCH_MAX = 256

    def __init__(self, owner: Readable, core: CoreIterator, part: Part) -> None:
        self._owner = owner  # Keeps the database, so that it is closed when the interpreter ends.
        self._core = core
        self._part = part
        self._lock = threading.Lock()
        self._fetched: list[Entry] = []  # The next one is the last.
        self._fetch_size = 4

    def __iter__(self) -> Iterator[Entry]:
        return self

    def __next__(self) -> Entry:
        with self._lock:
            if not self._fetched:
                self._fetched = self._core.fetch(self._fetch_size, self._part)
                self._fetched.reverse()
                self._fetch_size = min(2 * self._fetch_size, self._FETCH_MAX)
            if not self._fetched:
                raise StopIteration
            return self._fetched.pop()

    def seek(self, key: BytesLike) -> None:
        """Goes to the first key that is not before `key` in the direction of travel: not less, or,
        in reverse, not greater."""
        with self._lock:
            self._core.seek(key)
            self._fetched = []

    def close(self) -> None:
        """Gives up what it holds; afterwards it raises ClosedError. So does the end of a `with`."""
        with self._lock:
            self._core.close()
            self._fetched = []

    def __enter__(self) -> Iterator[Entry]:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


class Readable:
    """Reads of a state of a column family."""

    def _get(self, key: BytesLike, linearizable: bool) -> Optional[bytes]:
        raise NotImplementedError

    def _multi_get(self, keys: list[BytesLike], linearizable: bool) -> list[Optional[bytes]]:
        raise NotImplementedError

    def _has(self, key: BytesLike) -> bool:
        raise NotImplementedError

    def _range(
        self,
        start: Optional[BytesLike],
        stop: Optional[BytesLike],
        reverse: bool,
        linearizable: bool,
    ) -> CoreIterator:
        raise NotImplementedError

    def __getitem__(self, key: BytesLike) -> bytes:
        value = self._get(key, False)
        if value is None:
            raise KeyError(bytes(key))
        return value

    @overload
    def get(self, key: BytesLike, *, linearizable: bool = ...) -> Optional[bytes]: ...

    @overload
    def get(
        self, key: BytesLike, default: Default, *, linearizable: bool = ...
    ) -> Union[bytes, Default]: ...

    def get(self, key: BytesLike, default: Any = None, *, linearizable: bool = False) -> Any:
        """The value of `key`; `default` if it has none.

        `linearizable`: of a follower, sees all that its owner acknowledged before this call.
        """
        value = self._get(key, linearizable)
        return default if value is None else value

    def multi_get(
        self, keys: Iterable[BytesLike], *, linearizable: bool = False
    ) -> list[Optional[bytes]]:
        """The values of `keys`, None for a missing one, all as of one moment. The reads are under
        way together, so this is much quicker than one after the other."""
        return self._multi_get(list(keys), linearizable)

    def __contains__(self, key: BytesLike) -> bool:
        return self._has(key)

    def __iter__(self) -> Iterator[bytes]:
        return self.keys()

    def keys(
        self,
        start: Optional[BytesLike] = None,
        stop: Optional[BytesLike] = None,
        *,
        prefix: Optional[BytesLike] = None,
        reverse: bool = False,
        linearizable: bool = False,
    ) -> Iterator[bytes]:
        """The keys from `start` (inclusive) to `stop` (exclusive), or those that begin with
        `prefix`, in order; with `reverse` from the last to the first."""
        how = (start, stop, prefix, reverse, linearizable)
        return Iterator(self, self._iterate(*how), Part.KEYS)

    def values(
        self,
        start: Optional[BytesLike] = None,
        stop: Optional[BytesLike] = None,
        *,
        prefix: Optional[BytesLike] = None,
        reverse: bool = False,
        linearizable: bool = False,
    ) -> Iterator[bytes]:
        """The values of the keys that `keys` answers."""
        how = (start, stop, prefix, reverse, linearizable)
        return Iterator(self, self._iterate(*how), Part.VALUES)

    def items(
        self,
        start: Optional[BytesLike] = None,
        stop: Optional[BytesLike] = None,
        *,
        prefix: Optional[BytesLike] = None,
        reverse: bool = False,
        linearizable: bool = False,
    ) -> Iterator[tuple[bytes, bytes]]:
        """The keys that `keys` answers, each with its value."""
        how = (start, stop, prefix, reverse, linearizable)
        return Iterator(self, self._iterate(*how), Part.ITEMS)

    def _iterate(
        self,
        start: Optional[BytesLike],
        stop: Optional[BytesLike],
        prefix: Optional[BytesLike],
        reverse: bool,
        linearizable: bool,
    ) -> CoreIterator:
        if prefix is not None:
            if start is not None or stop is not None:
                raise TypeError("either prefix, or start and stop")
            start, stop = prefix_range(prefix)
        return self._range(start, stop, reverse, linearizable)
