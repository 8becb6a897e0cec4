"""A page with one of each element that page.css and the scripts of components select: for test_selectors_browser.py."""

import sys
from pathlib import Path

import altair as alt
import pandas as pd
import streamlit as st

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from pages.parts.shell import people, shell

st.set_page_config(layout="wide")
shell.dress()
FRAME = pd.DataFrame({"a": [1, 2], "b": [3, 4]})


@st.dialog("A dialog")
def dialog() -> None:
    st.write("Its text")


def show() -> None:
    with st.sidebar, st.container(key="pages"):
        st.page_link(HERE, label="A page")
    with st.sidebar:
        st.caption("A `caption`")
        shell.watch_window()
    with st.container(key="bar", horizontal=True):
        st.title("A title")
        st.segmented_control("Segments", ["a", "b"], default="a")
        with st.container(key="tools"):
            st.button("A tool")
    with st.container(key="context", horizontal=True):
        st.selectbox("Checkpoint", ["a", "b"], key="checkpoint")
        st.text_input("Text", key="text")
        st.text_input("Pair", "not empty", placeholder="a hint", key="pair")
        people.remember({"name": "somebody"}, key="remember_name")
    st.container(key="page").subheader("A question")
    with st.container(key="example_run"), st.container(key="answer_run"):
        st.markdown("**An answer**")
    st.metric("A metric", 1, 2)
    st.slider("A slider", 0, 10, 5)
    st.page_link(HERE, label="A page")
    left, right = st.columns(2)
    left.altair_chart(alt.Chart(FRAME).mark_point().encode(x="a", y="b").properties(width=100), width="content")
    left.write("beside it")
    with right, st.container(key="exhibits"):
        st.altair_chart(alt.Chart(FRAME).mark_point().encode(x="a", y="b"))
    st.dataframe(FRAME)
    with st.popover("A popover"):
        st.write("Its text")
    st.button("Open the dialog", on_click=dialog)


HERE = st.Page(show, title="Elements")
st.navigation([HERE], position="hidden").run()
