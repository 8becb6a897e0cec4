"""Why: what the view says of a cell, and what it refuses."""

from types import SimpleNamespace

import pytest

from pages.parts.maps import score_decomposition
from tests.pages.opening import opened


def said(page):
    return " ".join(one.value for kind in (page.error, page.info, page.markdown) for one in kind)


def test_it_opens_on_a_cell_taken_apart_and_a_link_names_another():
    page = opened("maps/why", text="The old dog never stopped.", pair="", head="L2H5")
    assert not page.exception
    assert "attends from" in said(page)
    assert "position" in said(page)
    assert "`python -m core study why atlas-encoder`" in " ".join(one.value for one in page.caption)
    page.query_params["cell"] = "3-2"
    page.run()
    assert "attends from “old” to “the”" in said(page)


def test_a_checkpoint_that_cannot_be_taken_apart_or_has_no_such_head_says_so():
    page = opened("maps/why", text="The old dog.", pair="", head="L9H1")
    assert not page.exception
    assert "no head L9H1" in " ".join(one.value for one in (*page.error, *page.caption))


def test_an_input_over_the_limit_is_cut_and_the_view_says_so():
    page = opened("maps/why", text="dog " * 100, pair="", head="L2H5")
    assert not page.exception
    assert "the first 64 of 102 tokens" in " ".join(one.value for one in page.caption)


def test_a_click_names_its_cell_in_the_link_before_the_page_runs(monkeypatch):
    """As a callback: read behind the chart, the page had to run a second time."""
    link, clicked = {}, {"cell": [{"from_token": "3 old", "to_token": "12 2"}]}
    monkeypatch.setattr(score_decomposition.st, "query_params", link)
    monkeypatch.setattr(score_decomposition.st, "session_state", {"why_cell": SimpleNamespace(selection=clicked)})
    score_decomposition._take()
    assert link == {"cell": "3-12"}
    clicked["cell"] = []  # a click beside the cells keeps the one that is open
    score_decomposition._take()
    assert link == {"cell": "3-12"}


@pytest.mark.thorough
def test_one_head_has_a_cell_taken_apart_and_the_map_of_a_group_alone():
    page = opened("heads/one", checkpoint="atlas-encoder", head="L2H5")
    assert not page.exception
    assert "Why it attends there" in [tab.label for tab in page.tabs]
    assert "The term that raises the score of this pair most comes from" in said(page)
    before = said(page)
    page.selectbox(key="group").select("token").run()
    assert page.query_params["group"] == "token"
    page.query_params["cell"] = "2-1"
    page.run()
    assert said(page) != before
