"""Visitors of an app without sign-in: this machine's own may do everything, others look, unless told otherwise."""

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from core.store import exchange
from core.store.people import RightsError
from pages.parts.shell import people, resources, shell
from tests.pages.opening import switched


@pytest.mark.parametrize(
    ("address", "visitors", "role"),
    [
        ("127.0.0.1", None, "admin"),
        ("localhost", None, "admin"),
        ("::1", None, "admin"),
        ("0.0.0.0", None, "viewer"),  # noqa: S104 - what is tested
        ("", None, "viewer"),  # Streamlit's own default: every interface
        ("192.168.1.5", None, "viewer"),
        ("192.168.1.5", "admin", "admin"),
        ("127.0.0.1", "annotator", "annotator"),
        ("127.0.0.1", "none", "none"),
    ],
)
def test_the_role_of_visitors(monkeypatch, address, visitors, role):
    monkeypatch.setattr(st, "get_option", lambda name: address)
    monkeypatch.setenv("ATLAS_VISITORS", visitors or "")
    assert people.person().role == role


def test_a_role_that_does_not_exist_is_an_error(monkeypatch):
    monkeypatch.setenv("ATLAS_VISITORS", "root")
    with pytest.raises(RightsError, match="ATLAS_VISITORS"):
        people.person()


@pytest.mark.parametrize(("visitors", "shown"), [("viewer", "change nothing"), ("root", "A role must be one of")])
def test_what_visitors_are_told(monkeypatch, tmp_path, visitors, shown):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    monkeypatch.setenv("ATLAS_VISITORS", visitors)
    resources.database.clear()
    app = AppTest.from_file(shell.__file__, default_timeout=60).run()
    assert not app.exception
    assert shown in " ".join(one.value for one in [*app.caption, *app.error]).replace("\\", "")
    assert bool(app.title) == (visitors == "viewer")  # a faulty setting lets nobody in
    resources.database.clear()


@pytest.mark.thorough
def test_a_viewer_reads_every_page_and_none_writes_while_it_draws(monkeypatch, tmp_path):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    monkeypatch.setenv("ATLAS_VISITORS", "viewer")
    resources.database.clear()
    db = resources._database()
    before = contents(db)
    for page in shell.PAGES:
        app = switched(AppTest.from_file(shell.__file__, default_timeout=90), page.name).run()
        assert not app.exception, page.name
        assert not [one.value for one in app.error], page.name
        assert app.title[0].value == page.title
    assert contents(db) == before
    resources.database.clear()


def contents(db) -> dict[str, int]:
    return {name: int(db.read(f'SELECT count(*) AS n FROM "{name}"')["n"][0]) for name in exchange.tables(db)}  # noqa: S608
