"""A lock for importing model libraries, because two threads cannot import transformers at once."""

import threading

LONGEST = 120  # seconds
_free = threading.Event()
_free.set()


def begin() -> None:
    """Make `wait` block until `end` is called."""
    _free.clear()


def end() -> None:
    _free.set()


def busy() -> bool:
    """Return whether a thread is importing them."""
    return not _free.is_set()


def wait() -> None:
    """Wait until no thread is importing them."""
    _free.wait(LONGEST)
