"""Which sign-ins hold: a cookie alone opens nothing, its session must stand in this table, which a sign-out ends.

The table is a file beside the database and no part of it, so that no backup brings back what was signed out. It holds
hashes alone: who reads it can neither sign in with it nor tell whose sessions they are.
"""

import contextlib
import hashlib
import json
import logging
import secrets
import threading
import time
from collections.abc import Callable
from pathlib import Path

from .errors import AtlasError, InputError
from .reading import read_text
from .writing import replacing

log = logging.getLogger(__name__)
LASTS = 30 * 86_400  # seconds, as long as the browser keeps the cookie
MOST = 10_000  # sessions; no more begin then, so that nobody can end those of others
MOST_OF_ONE = 100  # sessions of one person since the app started; their own oldest one makes room
LARGEST = 4 << 20  # bytes of the file


class SignInSessions:
    """Sessions by the hash of their secret and whose they are. May be asked from any thread.

    Where the file cannot be written the table holds until the app ends; one that cannot be read is empty, so that
    everybody signs in again.
    """

    def __init__(self, file: Path, clock: Callable[[], float] = time.time):
        self._file, self._clock, self._lock = file, clock, threading.Lock()
        self._ends: dict[str, float] | None = None  # hash -> when it ends, in seconds since 1970
        self._own: dict[str, list[str]] = {}  # person -> their sessions' hashes, oldest first; never written

    def begin(self, person: str) -> str:
        """Begin a session of `person`; returns its secret, for the cookie.

        A sign-in ends no session of anybody else. A person with MOST_OF_ONE loses their own oldest one, and so does
        anybody if there are MOST; a person who has none then gets a secret that opens nothing, which the log says.
        """
        secret = secrets.token_urlsafe(32)
        with self._lock:
            ends = self._table()
            own = [hashed for hashed in self._own.get(person, []) if hashed in ends]
            while own and (len(own) >= MOST_OF_ONE or len(ends) >= MOST):
                del ends[own.pop(0)]
            if len(ends) >= MOST:
                log.warning("A sign-in was refused: %d sessions hold, and no more than that can", len(ends))
                return secret
            hashed = _hashed(secret, person)
            ends[hashed] = self._clock() + LASTS
            self._own[person] = [*own, hashed]
            self._write()
        return secret

    def holds(self, secret: object, person: str) -> bool:
        """Whether this is the secret of a session of `person` that nobody ended."""
        if not isinstance(secret, str) or not secret:
            return False
        with self._lock:
            return self._table().get(_hashed(secret, person), 0.0) > self._clock()

    def end(self, secret: object, person: str) -> None:
        """End a session; its cookie opens nothing from now on."""
        with self._lock:
            if self._table().pop(_hashed(str(secret), person), None) is not None:
                self._write()

    def _table(self) -> dict[str, float]:
        if self._ends is None:
            self._ends = self._read()
        now = self._clock()
        for hashed in [hashed for hashed, until in self._ends.items() if until <= now]:
            del self._ends[hashed]
        return self._ends

    def _read(self) -> dict[str, float]:
        try:
            read = json.loads(read_text(self._file, most=LARGEST))
        except (OSError, ValueError, RecursionError, InputError):
            return {}
        latest = self._clock() + LASTS
        listed = read.items() if isinstance(read, dict) else ()
        return {
            hashed: min(float(until), latest)
            for hashed, until in listed
            if len(hashed) == 64 and isinstance(until, (int, float)) and not isinstance(until, bool)
        }

    def _write(self) -> None:
        """The table as a file that only its owner reads; none where that fails, so that what ended stays ended."""
        try:
            with replacing(self._file) as part:
                part.touch(0o600)
                part.write_text(json.dumps(self._ends), "utf-8")
        except AtlasError:
            with contextlib.suppress(OSError):
                self._file.unlink(missing_ok=True)


def _hashed(secret: str, person: str) -> str:
    return hashlib.sha256(f"{secret}\0{person}".encode("utf-8", "replace")).hexdigest()
