"""Secrets files with one slip each; every one of them once let everybody in, or ended in a traceback."""

import os
from collections.abc import Callable
from pathlib import Path

GOOD = """[auth]
redirect_uri = "http://127.0.0.1:8501/oauth2callback"
cookie_secret = "0123456789abcdef0123"
client_id = "atlas"
client_secret = "secret"
server_metadata_url = "https://accounts.example.org/.well-known/openid-configuration"

[roles]
admin = ["ada@example.org"]
"""


def text(content: str | bytes) -> Callable[[Path], None]:
    def write(file: Path) -> None:
        file.write_bytes(content if isinstance(content, bytes) else content.encode())

    return write


def without(key: str) -> Callable[[Path], None]:
    return text("".join(line for line in GOOD.splitlines(keepends=True) if not line.startswith(key)))


def dangling(file: Path) -> None:
    file.symlink_to(file.with_name("none.toml"))


def looping(file: Path) -> None:
    file.with_name("other.toml").symlink_to(file)
    file.symlink_to(file.with_name("other.toml"))


def endless(file: Path) -> None:
    file.symlink_to("/dev/zero")


def a_folder(file: Path) -> None:
    file.mkdir()
    (file / "auth").write_text("")


def mounted(file: Path) -> None:
    """A folder of secrets, one of them no text."""
    (file / "auth").mkdir(parents=True)
    (file / "auth" / "client_id").write_bytes(b"\xff")


SLIPS: dict[str, Callable[[Path], None]] = {
    "a missing quote": text(GOOD.replace('"atlas"', '"atlas')),
    "a key twice": text(GOOD.replace("client_id", 'client_id = "b"\nclient_id')),
    "a section twice": text(GOOD + "[auth]\n"),
    "an empty auth": text("[auth]\n"),
    "auth is a list": text("auth = [1]\n"),
    "auth is a text": text('auth = "yes"\n'),
    "auth is true": text("auth = true\n"),
    "auth is a list of sections": text(GOOD.replace("[auth]", "[[auth]]")),
    "auth is written large": text(GOOD.replace("[auth]", "[Auth]")),
    "auth with a space": text(GOOD.replace("[auth]", '["auth "]')),
    "the section's line is missing": text(GOOD.replace("[auth]\n", "")),
    "only roles": text('[roles]\nadmin = ["ada@example.org"]\n'),
    "roles are a number": text("roles = 5\n" + GOOD.partition("[roles]")[0]),
    "roles are above": text('roles = ["ada"]\n' + GOOD.partition("[roles]")[0]),
    "a role that is none": text(GOOD.replace("admin =", "owner =")),
    "a role of a text": text(GOOD.replace('["ada@example.org"]', '"ada@example.org"')),
    "a default that is none": text(GOOD + 'default = "root"\n'),
    "Latin-1": text(GOOD.replace("atlas", "caf\u00e9").encode("latin-1")),
    "UTF-16": text(GOOD.encode("utf-16")),
    "a byte order mark": text(b"\xef\xbb\xbf" + GOOD.encode()),
    "NUL bytes": text(b"\0" * 100),
    "JSON": text('{"auth": {"client_id": "a"}}'),
    "YAML": text("auth:\n  client_id: a\n"),
    "nested deep": text("a = " + "[" * 100_000),
    "2 MB": text("# " + "x" * (2 << 20)),
    "a cookie_secret of 5 letters": text(GOOD.replace("0123456789abcdef0123", "short")),
    "an empty cookie_secret": text(GOOD.replace("0123456789abcdef0123", "")),
    "a cookie_secret that is a number": text(GOOD.replace('"0123456789abcdef0123"', "12345678901234567890")),
    "a provider without a client": text(
        GOOD.replace("client_id", '[auth.google]\nclient_secret = "b"\nserver_metadata_url = "c"\n[other]\nx', 1)
    ),
    "a folder that ends so": a_folder,
    "a folder of no texts": mounted,
    "a link that leads nowhere": dangling,
    "links that lead round": looping,
    "a file without an end": endless,
    **{f"no {key}": without(key) for key in ("redirect_uri", "cookie_secret", "client_id", "client_secret", "server_")},
}


def unreadable(file: Path) -> None:
    """Of no use to root, whom nothing stops."""
    file.write_text(GOOD)
    file.chmod(0)


if os.getuid():
    SLIPS["no right to read it"] = unreadable
