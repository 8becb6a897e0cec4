"""A hundred changed seeds for every reader; `python -m tests.fuzz` does it for minutes, guided by coverage."""

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.__main__ import changed
from tests.fuzz.readers import EVENT, FRAMES, LABEL, PAPER, READERS, REPLICATION, RUN, tried

QUICK = [name for name in READERS if name != "text_alignment"]


@pytest.mark.parametrize("name", READERS)
def test_seeds_are_read(name):
    read, seeds = READERS[name]
    assert [read(data) for data in seeds], "without a seed nothing is changed"


@pytest.mark.parametrize("count", [100, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", QUICK)
def test_changed_seeds_are_read_or_refused(name, count):
    draw = random.Random(7)  # noqa: S311 - inputs, not secrets
    for _ in range(count):
        tried(name, changed(draw, draw.choice(READERS[name][1])))


KEYS = [*FRAMES, *PAPER[0], *REPLICATION[0], *RUN, *EVENT, *LABEL, "name", "spans", "run", "options"]
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=12,
)
lines = st.lists(values.map(json.dumps), min_size=1, max_size=3).map(lambda rows: "\n".join(rows).encode())
tables = st.text(alphabet='a1.\t\n\r _-#<>"=/', max_size=80).map(str.encode)


@pytest.mark.thorough
@pytest.mark.parametrize("name", QUICK)
@settings(max_examples=25, deadline=None)
@given(data=st.binary(max_size=80) | tables | lines)
def test_anything_is_read_or_refused(name, data):
    tried(name, data)


@pytest.mark.slow  # three times as many examples
@pytest.mark.parametrize("name", QUICK)
@settings(max_examples=80, deadline=None)
@given(data=st.binary(max_size=80) | tables | lines)
def test_more_of_anything_is_read_or_refused(name, data):
    tried(name, data)


@settings(max_examples=60, deadline=None)
@given(text=st.text(max_size=60))
def test_every_piece_lies_in_its_text(text):
    tried("text_alignment", text.encode("utf-8", "replace"))
