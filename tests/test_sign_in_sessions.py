"""Sessions of sign-ins: ended ones stay ended through restarts, damaged tables and full disks."""

import json
import stat

import pytest

from core import sign_in
from core.sign_in import LASTS, MOST, SignInSessions


class Clock:
    now = 1e9

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def file(tmp_path):
    return tmp_path / "atlas.duckdb.sign-ins"


def test_a_session_is_its_persons_until_it_ends_also_after_a_restart(file, clock):
    table = SignInSessions(file, clock)
    mine, other = table.begin("ada"), table.begin("bob")
    for sessions in (table, SignInSessions(file, clock)):
        assert sessions.holds(mine, "ada")
        assert not sessions.holds(mine, "bob")
        assert not sessions.holds(other, "ada")
    table.end(mine, "ada")
    for sessions in (table, SignInSessions(file, clock)):
        assert not sessions.holds(mine, "ada")
        assert sessions.holds(other, "bob")
    clock.now += LASTS
    assert not SignInSessions(file, clock).holds(other, "bob")


@pytest.mark.parametrize("secret", [None, "", 7, b"x", ["a"], {}, True, "invented", "\0", "\ud800"])
def test_what_is_no_secret_holds_nothing(file, clock, secret):
    table = SignInSessions(file, clock)
    table.begin("ada")
    assert not table.holds(secret, "ada")
    table.end(secret, "ada")


def test_nobody_signs_in_with_what_the_file_holds(file, clock):
    table = SignInSessions(file, clock)
    secret = table.begin("rosalind@example.org")
    text = file.read_text()
    assert secret not in text
    assert "rosalind" not in text  # hashes are of the digits 0 to f: they can spell "ada"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert not any(table.holds(hashed, "rosalind@example.org") for hashed in json.loads(text))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"7",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"a": 1e18}',
        b'{"' + b"a" * 64 + b'": "never"}',
        b"\0" * 9,
    ],
)
def test_a_table_that_cannot_be_read_signs_everybody_out(file, clock, content):
    secret = SignInSessions(file, clock).begin("ada")
    file.write_bytes(content)
    table = SignInSessions(file, clock)
    assert not table.holds(secret, "ada")
    assert table.holds(table.begin("ada"), "ada")


def test_no_session_of_the_file_lasts_longer_than_a_session(file, clock):
    SignInSessions(file, clock).begin("ada")
    file.write_text(json.dumps(dict.fromkeys(json.loads(file.read_text()), 1e18)))
    table = SignInSessions(file, clock)
    table.begin("bob")
    assert max(json.loads(file.read_text()).values()) <= clock.now + LASTS


def test_what_ended_stays_ended_where_the_file_cannot_be_written(file, clock, monkeypatch):
    table = SignInSessions(file, clock)
    mine, other = table.begin("ada"), table.begin("bob")

    def full(*_args, **_kwargs):
        raise sign_in.AtlasError("the disk is full")

    monkeypatch.setattr(sign_in, "replacing", full)
    table.end(mine, "ada")
    assert table.holds(other, "bob")
    assert not SignInSessions(file, clock).holds(mine, "ada")


def test_the_table_is_bounded(file, clock, monkeypatch):
    monkeypatch.setattr(sign_in, "MOST", 3)
    assert MOST > 3
    table = SignInSessions(file, clock)
    secrets = []
    for _ in range(5):
        clock.now += 1
        secrets.append(table.begin("ada"))
    assert [table.holds(secret, "ada") for secret in secrets] == [False, False, True, True, True]


def test_nobody_ends_the_sessions_of_others_by_signing_in(file, clock, monkeypatch, caplog):
    monkeypatch.setattr(sign_in, "MOST", 6)
    monkeypatch.setattr(sign_in, "MOST_OF_ONE", 3)
    table = SignInSessions(file, clock)
    first = table.begin("ada")
    flood = [table.begin("admin") for _ in range(20)]
    assert table.holds(first, "ada")
    assert [table.holds(secret, "admin") for secret in flood] == [False] * 17 + [True] * 3
    others = [table.begin(name) for name in ("bob", "cyd")]
    assert [table.holds(secret, name) for secret, name in zip(others, ("bob", "cyd"), strict=True)] == [True, True]
    assert not table.holds(table.begin("eve"), "eve")
    assert "A sign-in was refused" in caplog.text
    assert table.holds(first, "ada")


def test_a_session_is_ended_by_its_own_secret_and_name_alone(file, clock):
    table = SignInSessions(file, clock)
    mine, admin = table.begin("ada"), table.begin("admin")
    for secret, name in ((admin, "ada"), (mine, "admin"), (None, "ada"), ("", "ada"), ([mine], "ada")):
        table.end(secret, name)
    assert table.holds(mine, "ada")
