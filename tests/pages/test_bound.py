"""Choices in the URL: by their own name and not by what the page calls them, and given up again on Back."""

import pytest
from streamlit.testing.v1 import AppTest

from pages.parts.frame import history


def one_choice():
    import streamlit as st

    from pages.parts.frame import bound

    titles = {"mrpc": "MRPC", "sst2": "SST-2"}
    st.markdown(bound.pick(st.selectbox, "Task", list(titles), key="task", format_func=titles.get))


def test_a_link_names_a_choice_by_its_id():
    app = AppTest.from_function(one_choice).run()
    assert dict(app.query_params) == {}  # the first choice is what a link without it means
    app.selectbox(key="task").set_value("sst2").run()
    assert app.query_params["task"] == "sst2"
    again = AppTest.from_function(one_choice)
    again.query_params["task"] = "sst2"
    assert again.run().markdown[0].value == "sst2"


@pytest.mark.parametrize("wrong", ["SST-2", "", "<b>"])
def test_a_link_that_names_no_choice_opens_the_first(wrong):
    app = AppTest.from_function(one_choice)
    app.query_params["task"] = wrong
    assert app.run().markdown[0].value == "mrpc"
    assert not app.exception


def test_back_takes_a_choice_back(monkeypatch):
    app = AppTest.from_function(one_choice).run()
    app.selectbox(key="task").set_value("sst2").run()
    del app.query_params["task"]
    monkeypatch.setattr(history, "went_back", lambda: True)
    assert app.run().markdown[0].value == "mrpc"
