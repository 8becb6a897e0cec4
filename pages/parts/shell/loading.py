"""One thread at a time imports the models' libraries: transformers cannot be imported by two threads at once."""

import threading

LONGEST = 120  # seconds
_free = threading.Event()
_free.set()


def begin() -> None:
    """From now on `wait` waits, until `end`."""
    _free.clear()


def end() -> None:
    _free.set()


def busy() -> bool:
    """Whether somebody loads them now."""
    return not _free.is_set()


def wait() -> None:
    """Until nobody does."""
    _free.wait(LONGEST)
