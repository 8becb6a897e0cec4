"""A few hundred changed seeds for every reader; `python -m tests.fuzz` does it for minutes, guided by coverage."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.__main__ import changed
from tests.fuzz.readers import READERS, tried

QUICK = [name for name in READERS if name != "text_alignment"]


@pytest.mark.parametrize("name", READERS)
def test_seeds_are_read(name):
    read, seeds = READERS[name]
    for data in seeds:
        read(data)


@pytest.mark.parametrize("name", QUICK)
def test_changed_seeds_are_read_or_refused(name):
    draw = random.Random(7)  # noqa: S311 - inputs, not secrets
    for _ in range(300):
        tried(name, changed(draw, draw.choice(READERS[name][1])))


@settings(max_examples=60, deadline=None)
@given(text=st.text(max_size=60))
def test_every_piece_lies_in_its_text(text):
    tried("text_alignment", text.encode("utf-8", "replace"))
