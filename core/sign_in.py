"""Sign-in sessions, and the configuration of sign-in in secrets.toml. An invalid file never disables sign-in: the app
does not start."""

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
LASTS = 30 * 86_400  # seconds, the lifetime of the browser's cookie
MOST = 10_000  # limit for all sessions; beyond it, new ones are refused, and nobody else's session ends
MOST_OF_ONE = 100  # limit for sessions of one person since the app started; the person's oldest one is ended
LARGEST_SESSIONS = 4 << 20  # bytes of the file


class SignInSessions:
    """The active sign-in sessions, each stored as one hash of its secret and person. This class is thread-safe.

    If the file cannot be written, sessions end with the app. If the file cannot be read, all users sign in again.
    """

    def __init__(self, file: Path, clock: Callable[[], float] = time.time):
        self._file, self._clock, self._lock = file, clock, threading.Lock()
        self._ends: dict[str, float] | None = None  # hash -> end in seconds since 1970
        self._own: dict[str, list[str]] = {}  # person -> hashes of their sessions, oldest first; never written

    def begin(self, person: str) -> str:
        """Start a sign-in session for a person, and return its secret for the cookie.

        If the person has MOST_OF_ONE sessions, or all people have MOST together, the oldest session of this person
        ends. If the person has no session to end, the returned secret is invalid and a warning is logged.
        """
        secret = secrets.token_urlsafe(32)
        with self._lock:
            ends = self._table()
            own = [hashed for hashed in self._own.get(person, []) if hashed in ends]
            while own and (len(own) >= MOST_OF_ONE or len(ends) >= MOST):
                del ends[own.pop(0)]
            if len(ends) >= MOST:
                log.warning("A sign-in was refused: %d sessions are active, which is the limit", len(ends))
                return secret
            hashed = _hashed(secret, person)
            ends[hashed] = self._clock() + LASTS
            self._own[person] = [*own, hashed]
            self._write()
        return secret

    def holds(self, secret: object, person: str) -> bool:
        """Return whether the secret belongs to an active session of the person."""
        if not isinstance(secret, str) or not secret:
            return False
        with self._lock:
            return self._table().get(_hashed(secret, person), 0.0) > self._clock()

    def end(self, secret: object, person: str) -> None:
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
        """Write the sessions to a file that only its owner can read; delete the file if that fails."""
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
SHORTEST_SECRET = 14  # characters: 112 bits, the minimum to sign a cookie
LARGEST = 1 << 20  # bytes of a secrets file


@dataclass(frozen=True)
class SignIn:
    """The sign-in configuration from secrets files.

    Attributes:
        required: whether visitors must sign in.
        providers: names of the providers in sections [auth.NAME]; empty if [auth] is the only one.
        clients: client_id of each provider; the unnamed provider is called "default".
        roles: names of the people with each role, and the "default" role (see `core.store.people.role_of`).
        https: whether the redirect URI uses https, so that cookies are secure.
    """

    required: bool = False
    providers: tuple[str, ...] = ()
    clients: Mapping[str, str] = field(default_factory=dict)
    roles: Mapping[str, Any] = field(default_factory=dict)
    https: bool = False


def sign_in(files: Sequence[str | Path], *, chosen: bool = False) -> SignIn:
    """Read sign-in settings from secrets files. Later files override earlier ones, and missing files are skipped.

    Args:
        files: TOML files, or folders with one file per value.
        chosen: whether the user named the files; at least one of them must then exist.

    Raises:
        ConfigError: a file cannot be read or configures sign-in incompletely, or no named file exists.
    """
    there = [path for path in map(Path, files) if path.is_symlink() or _exists(path)]
    if chosen and not there:
        raise ConfigError(
            f"A secrets file in STREAMLIT_SECRETS_FILES must exist; got {', '.join(map(str, files))[:200]}. "
            "Correct or unset it."
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
        f"The secrets file must be readable, because it may contain sign-in settings; {str(path)[:200]} is not: "
        f"{' '.join(why.split())[:120]}. Correct the file, or move it to another folder."
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
    except (ValueError, RecursionError) as error:  # not UTF-8, or not TOML
        raise _unreadable(path, str(error)) from error


def _folder(path: Path) -> dict[str, Any]:
    """Read secrets mounted as folders: path/auth/client_id contains the value."""
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
    """Return the configuration. Raises ConfigError for an incomplete one."""
    hinted = [key for key in read if key.strip().lower() in {"auth", "roles", *SHARED, *PROVIDER}]
    wrong = [key for key in hinted if key not in ("auth", "roles")]
    if wrong:
        raise ConfigError(
            f'Sign-in must be configured in the sections [auth] and [roles]; {where} has "{wrong[0][:40]}" outside '
            "these sections. Move or rename this entry."
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
    # Names of the sections [auth.NAME]; empty if [auth] is the only provider
    named = {name: part for name, part in auth.items() if isinstance(part, Mapping) and name != "client_kwargs"}
    for name, part in named.items():
        for key in PROVIDER:
            _needs(part, key, where, f"[auth.{name[:40]}]")
    if not named or any(key in auth for key in PROVIDER):
        for key in PROVIDER:
            _needs(auth, key, where, "[auth]")
    providers = tuple(named)
    clients = {name: str(auth[name]["client_id"]) for name in providers}
    if "client_id" in auth:
        clients["default"] = str(auth["client_id"])
    https = auth["redirect_uri"].strip().lower().startswith("https://")
    return SignIn(required=True, providers=providers, clients=clients, roles=dict(roles), https=https)


def _needs(section: Mapping[str, Any], name: str, where: str, place: str) -> None:
    value = section.get(name)
    if not isinstance(value, str) or not value.strip():
        raise _incomplete(where, f"{name} as text in {place}")


def _incomplete(where: str, what: str) -> ConfigError:
    return ConfigError(
        f"Sign-in needs {what}, which {where} lacks. Add it, or remove [auth] and [roles] to run the app without "
        "sign-in (docs/explanation/security.md)."
    )
