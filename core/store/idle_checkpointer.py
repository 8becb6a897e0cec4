"""When nothing was written for a while, the log is folded into the file, so that a copy of the file is whole."""

import threading
from collections.abc import Callable

REST = 3.0  # seconds without a write


class IdleCheckpointer:
    """Calls `fold` once after each time of writing, in a thread of its own, as soon as `seconds` pass without one."""

    def __init__(self, fold: Callable[[], None], seconds: float = REST):
        self._fold, self._seconds = fold, seconds
        self._wrote, self._over = threading.Event(), False
        self._thread: threading.Thread | None = None

    def wrote(self) -> None:
        """Say that something was written."""
        self._wrote.set()
        if self._thread is None and not self._over:
            self._thread = threading.Thread(target=self._watch, name="atlas-log", daemon=True)
            self._thread.start()

    def end(self) -> None:
        """End the thread; nothing is folded from now on."""
        self._over = True
        self._wrote.set()

    def _watch(self) -> None:
        while True:
            self._wrote.wait()
            while not self._over and self._wrote.is_set():
                self._wrote.clear()
                self._wrote.wait(self._seconds)
            if self._over:
                return
            self._fold()
