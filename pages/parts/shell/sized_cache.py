"""Things that are opened once and shared by all sessions, kept as long as they fit into a number of bytes together."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class SizedCache(Generic[T]):
    """What was asked for last stays; what was not asked for longest goes first, by size and not by count.

    room: bytes that all may take together, asked for anew at each turn. One thing that is larger is kept alone.
    """

    def __init__(self, room: Callable[[], int]) -> None:
        self.room = room
        self._kept: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()
        self._lock, self._making = threading.Lock(), {}  # type: ignore[var-annotated]

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def size(self) -> int:
        """Bytes of all that is kept."""
        return sum(size for _, size in list(self._kept.values()))

    def get(self, key: Hashable, make: Callable[[], T], size_of: Callable[[T], int]) -> T:
        """The value under `key`, made by the first who asks; others who ask meanwhile wait for it."""
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
        """Let go of the oldest until `needed` bytes are free within the room, or nothing is left."""
        with self._lock:
            while self._kept and self.size + needed > self.room():
                self._kept.popitem(last=False)

    def clear(self) -> None:
        """Let go of everything."""
        with self._lock:
            self._kept.clear()

    def _make_room(self) -> None:
        while len(self._kept) > 1 and self.size > self.room():
            self._kept.popitem(last=False)
