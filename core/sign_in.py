"""Who may sign in, as secrets.toml says it: read once, strictly, so that a slip in it never opens the door.

Streamlit's own reader answers "no secrets" for a file that it cannot read; here such a file stops the start.
"""

import contextlib
import hashlib
import json
import logging
import secrets
import threading
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .errors import AtlasError, ConfigError, InputError
from .reading import read_text
from .writing import replacing

# ---------------------------------------------------------------- which sign-ins hold


log = logging.getLogger(__name__)
LASTS = 30 * 86_400  # seconds, as long as the browser keeps the cookie
MOST = 10_000  # sessions; no more begin then, so that nobody can end those of others
MOST_OF_ONE = 100  # sessions of one person since the app started; their own oldest one makes room
LARGEST_SESSIONS = 4 << 20  # bytes of the file


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
            read = json.loads(read_text(self._file, most=LARGEST_SESSIONS))
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


PROVIDER = ("client_id", "client_secret", "server_metadata_url")
SHARED = ("redirect_uri", "cookie_secret")
SHORTEST_SECRET = 14  # characters: 112 bits, the least that signs a cookie
LARGEST = 1 << 20  # bytes of a secrets file


@dataclass(frozen=True)
class SignIn:
    """What was configured.

    Attributes:
        required: whether visitors sign in.
        providers: names for several buttons; empty for one.
        clients: the client_id of each provider, of the one without a name under "default".
        roles: lists of names by role, and "default"; `core.store.people.role_of` reads them.
        https: whether people come back from their provider over https, so that cookies need no other connection.
    """

    required: bool = False
    providers: tuple[str, ...] = ()
    clients: Mapping[str, str] = field(default_factory=dict)
    roles: Mapping[str, Any] = field(default_factory=dict)
    https: bool = False


def sign_in(files: Sequence[str | Path], *, chosen: bool = False) -> SignIn:
    """Read secrets files, later ones over earlier ones.

    Args:
        files: paths of TOML files, or of folders that hold each value in a file; those that are not there are left out.
        chosen: whether somebody named them, so that one must be there.

    Returns:
        What they say; without sign-in where no file is there or none names it.

    Raises:
        ConfigError: in one sentence, for a file that is there and cannot be read, that names sign-in incompletely, or
            that was named and is not there.
    """
    there = [path for path in map(Path, files) if path.is_symlink() or _exists(path)]
    if chosen and not there:
        raise ConfigError(
            f"The secrets file that was named must be there, but {', '.join(map(str, files))[:200]} is not: correct "
            "STREAMLIT_SECRETS_FILES or leave it out."
        )
    read: dict[str, Any] = {}
    for path in there:
        read |= _folder(path) if path.is_dir() else _toml(path)
    return _checked(read, ", ".join(map(str, there))[:200])


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError as error:
        raise _unreadable(path, str(error.strerror or error)) from error
    except ValueError as error:  # a NUL in the name
        raise _unreadable(path, str(error)) from error


def _unreadable(path: Path, why: str) -> ConfigError:
    return ConfigError(
        f"The app does not start while {str(path)[:200]} cannot be read ({' '.join(why.split())[:120]}), because it "
        "may ask for sign-in; correct it or move it away."
    )


def _toml(path: Path) -> dict[str, Any]:
    if path.suffix != ".toml":
        raise _unreadable(path, "its name does not end in .toml")
    try:
        with path.open("rb") as stream:
            data = stream.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise _unreadable(path, "it is larger than 1 MB")
        return tomllib.loads(data.decode("utf-8"))
    except OSError as error:
        raise _unreadable(path, str(error.strerror or error)) from error
    except (ValueError, RecursionError) as error:  # no UTF-8, no TOML
        raise _unreadable(path, str(error)) from error


def _folder(path: Path) -> dict[str, Any]:
    """Secrets mounted as folders: path/auth/client_id holds the value."""
    try:
        parts = [part for part in path.iterdir() if not part.name.startswith("..")]
        files = {part.name: [file for file in part.iterdir() if not file.is_dir()] for part in parts}
        return {name: {file.name: file.read_text("utf-8").strip() for file in each} for name, each in files.items()}
    except OSError as error:
        raise _unreadable(path, str(error.strerror or error)) from error
    except ValueError as error:
        raise _unreadable(path, str(error)) from error


# ---------------------------------------------------------------- what must be in it


def _checked(read: dict[str, Any], where: str) -> SignIn:
    """Raises ConfigError for anything that looks like sign-in and is not the whole of it."""
    hinted = [key for key in read if key.strip().lower() in {"auth", "roles", *SHARED, *PROVIDER}]
    wrong = [key for key in hinted if key not in ("auth", "roles")]
    if wrong:
        raise ConfigError(
            f'Sign-in is configured in the sections [auth] and [roles]; {where} has "{wrong[0][:40]}" beside them: '
            "move or rename it."
        )
    if not hinted:
        return SignIn()
    auth, roles = read.get("auth"), read.get("roles", {})
    if not isinstance(auth, Mapping):
        raise _incomplete(where, "a section [auth]")
    if not isinstance(roles, Mapping):
        raise _incomplete(where, "a section [roles] with lists of names")
    for name in SHARED:
        _needs(auth, name, where, "[auth]")
    if len(auth["cookie_secret"]) < SHORTEST_SECRET:
        raise _incomplete(where, f"a cookie_secret of at least {SHORTEST_SECRET} characters in [auth]")
    providers = _providers(auth, where)
    clients = {name: str(auth[name]["client_id"]) for name in providers}
    if "client_id" in auth:
        clients["default"] = str(auth["client_id"])
    https = auth["redirect_uri"].strip().lower().startswith("https://")
    return SignIn(required=True, providers=providers, clients=clients, roles=dict(roles), https=https)


def _providers(auth: Mapping[str, Any], where: str) -> tuple[str, ...]:
    """Names of the sections [auth.NAME]; empty where [auth] itself is the one provider."""
    named = {name: part for name, part in auth.items() if isinstance(part, Mapping) and name != "client_kwargs"}
    for name, part in named.items():
        for key in PROVIDER:
            _needs(part, key, where, f"[auth.{name[:40]}]")
    if not named or any(key in auth for key in PROVIDER):
        for key in PROVIDER:
            _needs(auth, key, where, "[auth]")
    return tuple(named)


def _needs(section: Mapping[str, Any], name: str, where: str, place: str) -> None:
    value = section.get(name)
    if not isinstance(value, str) or not value.strip():
        raise _incomplete(where, f"{name} as text in {place}")


def _incomplete(where: str, what: str) -> ConfigError:
    return ConfigError(
        f"Sign-in needs {what}, which {where} lacks; the app does not start with half of it: complete it, or remove "
        "[auth] and [roles] to run without sign-in (docs/security.md)."
    )
