"""A shared cache that is limited by the total number of bytes."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class SizedCache(Generic[T]):
    """A cache that removes the least recently used items first, by size.

    `room` returns the current limit in bytes. A single larger item is stored alone.
    """

    def __init__(self, room: Callable[[], int]) -> None:
        self.room = room
        self._kept: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()
        self._lock, self._making = threading.Lock(), {}  # type: ignore[var-annotated]

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def size(self) -> int:
        return sum(size for _, size in list(self._kept.values()))

    def get(self, key: Hashable, make: Callable[[], T], size_of: Callable[[T], int]) -> T:
        """Return the value for `key`, created by the first caller; concurrent callers wait for it."""
        with self._lock:
            key_lock = self._making.setdefault(key, threading.Lock())
        with key_lock:
            with self._lock:
                if key in self._kept:
                    self._kept.move_to_end(key)
                    return self._kept[key][0]
            value = make()
            with self._lock:
                self._kept[key] = (value, size_of(value))
                self._making.pop(key, None)
                self._make_room()
            return value

    def make_room(self, needed: int) -> None:
        """Remove the oldest items until `needed` bytes are free, or nothing is left."""
        with self._lock:
            while self._kept and self.size + needed > self.room():
                self._kept.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._kept.clear()

    def _make_room(self) -> None:
        while len(self._kept) > 1 and self.size > self.room():
            self._kept.popitem(last=False)
