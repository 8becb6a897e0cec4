"""Secrets files with a slip in them: the start stops with a sentence, and nobody is let in without signing in."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from core.errors import AtlasError, ConfigError
from core.sign_in import SignIn, sign_in
from core.store.people import RightsError, name_of, role_of
from tests.pages.browsing import PROJECT, free_port
from tests.robustness.doors import one_sentence
from tests.robustness.secrets import GOOD, SLIPS


def test_a_whole_file_is_read(tmp_path):
    (tmp_path / "secrets.toml").write_text(GOOD)
    found = sign_in([tmp_path / "none.toml", tmp_path / "secrets.toml"])
    assert found.required
    assert found.roles == {"admin": ["ada@example.org"]}
    assert found.providers == ()


def test_two_providers_are_two_buttons(tmp_path):
    part = 'client_id = "a"\nclient_secret = "b"\nserver_metadata_url = "c"\n'
    text = '[auth]\nredirect_uri = "r"\ncookie_secret = "0123456789abcdef"\n'
    (tmp_path / "s.toml").write_text(f"{text}[auth.one]\n{part}[auth.two]\n{part}")
    assert sign_in([tmp_path / "s.toml"]).providers == ("one", "two")


def test_no_file_and_other_secrets_ask_nobody_to_sign_in(tmp_path):
    assert sign_in([tmp_path / "none.toml"]) == SignIn()
    (tmp_path / "s.toml").write_text('token = "abc"\n')
    assert not sign_in([tmp_path / "s.toml"]).required


def test_a_named_file_must_be_there(tmp_path):
    with pytest.raises(ConfigError, match="must exist"):
        sign_in([tmp_path / "none.toml"], chosen=True)


@pytest.mark.parametrize("name", SLIPS)
def test_a_slip_is_a_sentence_and_never_no_sign_in(tmp_path, name):
    file = tmp_path / "secrets.toml"
    SLIPS[name](file)
    with pytest.raises(AtlasError) as error:
        role_of("", sign_in([file]).roles)
    one_sentence(str(error.value))


@pytest.mark.parametrize(
    "name",
    [
        "a missing quote",
        "no cookie_secret",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("an empty auth", "auth is a list", "Latin-1", "a key twice")
        ),
    ],
)  # a process and 1.4 CPU seconds each; the sentences are in the test above
def test_the_app_itself_does_not_start(tmp_path, name):
    file: Path = tmp_path / "secrets.toml"
    SLIPS[name](file)
    done = subprocess.run(
        [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(free_port())],
        cwd=PROJECT,
        env={**os.environ, "STREAMLIT_SECRETS_FILES": str(file), "ATLAS_DB": str(tmp_path / "a.duckdb")},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode not in (0, None)
    assert "Traceback" not in done.stderr
    one_sentence(done.stderr.strip().splitlines()[-1])


@pytest.mark.parametrize(
    ("claims", "name"),
    [
        ({"email": "Ada@Example.org"}, "ada@example.org"),
        ({"email": "ada@example.org", "email_verified": True}, "ada@example.org"),
        ({"email": "ada@example.org", "email_verified": "true"}, "ada@example.org"),
        *(
            ({"email": "ada@example.org", "email_verified": value}, "")
            for value in (False, "false", "False", "True", 0, 1, 1.0, None, "", "yes", [True])
        ),
        ({"sub": "ada@example.org"}, "sub:ada@example.org"),
        ({"sub": "ada@example.org", "email_verified": False}, ""),
        ({"email": "sub:7@example.org"}, ""),
        ({"email": "\u212aate@example.org"}, ""),  # the sign for kelvin folds into k
        ({"email": "ada@ex\u0430mple.org", "sub": "7"}, ""),  # a Cyrillic letter
        ({"email": ["ada@example.org"]}, ""),
        ({"email": "ada@example.org\n"}, ""),
        ({"sub": 7}, ""),
        ({"sub": "a b"}, ""),
        ({}, ""),
    ],
)
def test_who_somebody_is(claims, name):
    assert name_of(claims) == name


def test_a_subject_names_nobody_where_several_providers_give_them():
    assert name_of({"sub": "7"}, by_subject=False) == ""


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("kate@example.org", "admin"),
        ("\u212aate@example.org", "none"),
        ("sub:Kate@example.org", "none"),
        ("sub:Abc", "viewer"),
        ("sub:abc", "none"),
        ("eve@example.org", "none"),
        ("guest@example.org", "viewer"),
    ],
)
def test_the_role_of_a_name(name, role):
    roles = {"admin": ["Kate@example.org"], "viewer": ["sub:Abc", "guest@example.org"], "none": ["eve@example.org"]}
    assert role_of(name, roles) == role
    assert role_of("eve@example.org", roles | {"default": "viewer"}) == "none"


def test_a_default_that_is_no_role_is_said_at_the_start():
    with pytest.raises(RightsError):
        role_of("", {"default": "root"})
