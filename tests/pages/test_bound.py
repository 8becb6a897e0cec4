"""Choices in the URL: by their own name and not by what the page calls them, and given up again on Back."""

import pytest
from streamlit.testing.v1 import AppTest

from pages.parts.shell import url


def one_choice():
    import streamlit as st

    from pages.parts.shell import url

    titles = {"mrpc": "MRPC", "sst2": "SST-2"}
    st.markdown(url.pick(st.selectbox, "Task", list(titles), key="task", format_func=titles.get))


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
    monkeypatch.setattr(url, "went_back", lambda: True)
    assert app.run().markdown[0].value == "mrpc"


def two_pages():
    import streamlit as st

    from pages.parts.shell import url

    def first():
        url.pick(st.selectbox, "Model", ["small", "large"], key="model", default="large")

    def second():
        url.forget()
        st.markdown(url.pick(st.selectbox, "Model", ["none", "small", "large"], key="model", default="large"))
        st.markdown(",".join(url.pick_many(st.multiselect, "Sizes", ["a", "b"], key="sizes", default=["b"])))

    (first if "seen" not in st.session_state else second)()
    st.session_state["seen"] = True


def test_a_widget_of_the_same_name_on_another_page_starts_as_usual():
    app = AppTest.from_function(two_pages).run()
    app.selectbox(key="model").set_value("small").run()
    assert [said.value for said in app.markdown] == ["large", "b"]


def some_choices():
    import streamlit as st

    from pages.parts.shell import url

    st.markdown(",".join(url.pick_many(st.multiselect, "Sizes", ["a", "b", "c"], key="sizes", default=["b"])))
    st.markdown(str(url.switch(st.toggle, "Bars", key="bars")))


def test_several_choices_and_a_switch_stand_in_the_link():
    app = AppTest.from_function(some_choices).run()
    assert dict(app.query_params) == {}
    app.multiselect(key="sizes").set_value(["a", "c"]).run()
    app.toggle(key="bars").set_value(True).run()
    assert app.query_params == {"sizes": ["a", "c"], "bars": "true"}
    again = AppTest.from_function(some_choices)
    again.query_params.update({"sizes": ["a", "x"], "bars": "true"})
    assert [said.value for said in again.run().markdown] == ["a", "True"]


def test_that_nothing_is_chosen_is_told_from_the_usual():
    app = AppTest.from_function(some_choices).run()
    app.multiselect(key="sizes").set_value([]).run()
    again = AppTest.from_function(some_choices)
    again.query_params.update(app.query_params)
    assert again.run().markdown[0].value == ""


def a_choice_of_rows():
    import streamlit as st

    from pages.parts.shell import url

    rows = st.selectbox("Rows", ["sst2", "mrpc"], key="rows")
    tasks = ["sst2", "mrpc", "qqp"]
    st.markdown(url.pick(st.selectbox, "Task", tasks, key="task", default=rows))
    st.markdown(",".join(url.pick_many(st.multiselect, "Tasks", tasks, key="tasks", default=[rows])))


def test_a_choice_left_at_the_usual_one_follows_other_rows():
    app = AppTest.from_function(a_choice_of_rows).run()
    app.selectbox(key="rows").set_value("mrpc").run()
    assert [said.value for said in app.markdown] == ["mrpc", "mrpc"]
    assert dict(app.query_params) == {}
    app.selectbox(key="task").set_value("qqp").run()  # chosen: it stays whatever the rows are
    app.multiselect(key="tasks").set_value(["qqp", "mrpc"]).run()
    app.selectbox(key="rows").set_value("sst2").run()
    assert [said.value for said in app.markdown] == ["qqp", "qqp,mrpc"]


def test_a_link_wins_over_what_is_usual_of_other_rows():
    app = AppTest.from_function(a_choice_of_rows)
    app.query_params["task"] = "qqp"
    app.run().selectbox(key="rows").set_value("mrpc").run()
    assert app.markdown[0].value == "qqp"


def a_choice_and_a_button():
    import streamlit as st

    from pages.parts.shell import url

    url.pick(st.selectbox, "Task", ["mrpc", "sst2"], key="task")
    st.button("Again")


@pytest.mark.parametrize("drawn", [True, False])
def test_what_the_browser_has_not_drawn_yet_is_said_to_it_again(monkeypatch, drawn):
    """The end to end of it is in test_maps_browser: a head chosen before the code of the fields has come."""
    from pages.parts.shell import url

    app = AppTest.from_function(a_choice_and_a_button)
    app.query_params["task"] = "sst2"
    assert app.run().selectbox(key="task").proto.set_value
    app.button[0].click()
    if not drawn:
        monkeypatch.setattr(url, "drawn", lambda key: False)
    app.run()
    assert app.selectbox(key="task").value == "sst2"
    assert app.selectbox(key="task").proto.set_value is (not drawn)
