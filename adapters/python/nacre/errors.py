"""Exceptions: one for each code of nacre::Status, all of them derived from `Error`.

Where Python has an exception for the same thing, the one here is that, too: what is raised for a
missing key is a KeyError, for an invalid argument a ValueError.
"""

from __future__ import annotations


class Error(Exception):
    """Whatever went wrong in Nacre. The message names the culprit (node, table, option)."""


class ClosedError(Error, ValueError):
    """The database, iterator, snapshot or pool was closed before."""


class NotFoundError(Error, KeyError):
    """There is no such key, database or checkpoint."""

    def __str__(self) -> str:
        return Exception.__str__(self)  # KeyError's has quotes around it.


class CorruptionError(Error):
    """Bytes do not match their checksum, in all of their copies."""


class NotSupportedError(Error):
    """Nacre does not do this, or not for a database that was opened so."""


class InvalidArgumentError(Error, ValueError):
    """An argument or option is wrong; the message says which."""


class IoError(Error, OSError):
    """A file could not be read or written."""


class IncompleteError(Error):
    """The write would have had to wait, or the database is being restored."""


class ShutdownInProgressError(Error):
    """The database is being closed."""


class TimedOutError(Error, TimeoutError):
    """It took longer than the option operation_timeout."""


class AbortedError(Error):
    """The database was destroyed, or the operation was given up."""


class BusyError(Error):
    """Another process has the database, or the folder, open."""


class TryAgainError(Error):
    """What a snapshot, iterator or read-only database needs is gone; a new one would work."""


class NoSpaceError(Error):
    """The pool is full. Reads go on."""


class UnavailableError(Error):
    """Nodes that hold the data are lost, or do not answer."""


class FencedError(Error):
    """Another process has taken the database over."""


_CLASSES = {
    -1: ClosedError,
    1: NotFoundError,
    2: CorruptionError,
    3: NotSupportedError,
    4: InvalidArgumentError,
    5: IoError,
    6: IncompleteError,
    7: ShutdownInProgressError,
    8: TimedOutError,
    9: AbortedError,
    10: BusyError,
    11: TryAgainError,
    12: NoSpaceError,
    13: UnavailableError,
    14: FencedError,
}


def make(code: int, message: str) -> Error:
    """The exception for a status of the library; -1 stands for a closed object."""
    return _CLASSES.get(code, Error)(message)
