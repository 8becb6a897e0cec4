"""What a label event and a map must be, said in words; what people see of a name."""

from datetime import datetime, timedelta

import numpy as np
import pytest

from core.errors import InputError
from core.store.label_checks import (
    alike,
    checked_event,
    checked_map,
    likely_time,
    looks_like,
    say_alike,
    time_of,
)
from tests.store.labelling import a_map, event


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"probability": "high"}, "\"probability\" must be a finite number; got 'high' in event 1. Correct the field."),
        ({"probability": 1.5}, '"probability" of a label must be from 0 to 1; got 1.5 in event 1'),
        ({"seconds": -1}, '"seconds" of a label must be from 0 to 31622400; got -1'),
        ({"seconds": float("inf")}, '"seconds" must be a finite number; got inf in event 1'),
        (
            {"probability": 10**5000},
            '"probability" must be a finite number; got a very large number in event 1. Correct the field.',
        ),
        ({"way": "together"}, "got kind 'label', order 'random' and pass 1 in event 1"),
        (
            {"way": "together", "queue_order": "clusters", "pass": 2},
            "A label for a group of maps must have kind 'label'",
        ),
        ({"pass": 0}, '"pass" must be a whole number from 1 to 2147483647; got 0 in event 1'),
        ({"pass": True}, '"pass" must be a whole number from 1 to 2147483647; got True in event 1'),
        ({"sequence": 2**31}, '"sequence" must be a whole number from 1'),
        ({"map_id": "m" * 201}, '"map_id" must be text of at most 200 characters'),
        ({"map_id": "m\u200b"}, '"map_id" must be a name of visible letters'),
        ({"note": "n" * 4001}, '"note" must be text of at most 4000 characters'),
        ({"note": "\ud800"}, '"note" must be text of at most 4000 characters'),
        (
            {"happened": "1899-12-31T00:00:00"},
            "must be written like 2026-01-31T12:00:00Z and must not be in the future",
        ),
        ({"happened": (datetime.now() + timedelta(days=3)).isoformat()}, "not be in the future; got .* in event 1"),
    ],
)
def test_an_event_that_cannot_be_kept_says_what_it_must_be(change, said):
    with pytest.raises(InputError, match=said):
        checked_event(event(1) | change)


@pytest.mark.parametrize(
    ("field", "least", "most", "beyond"),
    [
        ("probability", 0, 1, (-0.001, 1.001)),
        ("seconds", 0, 366 * 86_400, (-0.001, 366 * 86_400 + 1)),
        ("sequence", 1, 2**31 - 1, (0, 2**31)),
        ("pass", 1, 2**31 - 1, (0, 2**31)),
        ("map_id", "m", "m" * 200, ("", "m" * 201)),
        ("note", "", "n" * 4000, ("n" * 4001,)),
    ],
)
def test_a_field_of_an_event_may_have_its_smallest_and_its_largest_value(field, least, most, beyond):
    for value in (least, most):
        assert checked_event(event(1) | {field: value})[field] == value
    for value in beyond:
        with pytest.raises(InputError):
            checked_event(event(1) | {field: value})


def test_times_of_events_are_of_the_years_1900_to_9998():
    for time, latest in (("1900-01-01T00:00:00", None), ("9998-12-31T23:59:59", datetime.max)):
        assert time_of(time, "event 1", latest=latest) == datetime.fromisoformat(time)
    for time in ("1899-12-31T23:59:59", "9999-01-01T00:00:00"):
        with pytest.raises(InputError, match=r"got '(1899|9999)"):
            time_of(time, "event 1", latest=datetime.max)


@pytest.mark.parametrize("name", ["", " ", "\u00a0"])
def test_a_label_needs_a_name_that_shows(name):
    with pytest.raises(InputError, match=r'must have the field "annotator"|The name of an annotator must'):
        checked_event(event(1, annotator=name))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"causal": "no"}, "\"causal\" must be true or false; got 'no' in the map 'm1'"),
        ({"weights": "x"}, "\"weights\" must be bytes; got 'x' in the map 'm1'"),
        ({"layer": -1}, '"layer" must be a whole number from 0'),
        ({"layer": 10_000}, "must be from 0 to 9999; got layer 10000 and head 0 in the map 'm1'"),
        ({"length": 0}, "A map must have 1 to 4096 tokens; got 0 in the map 'm1'"),
        ({"length": 4097}, "A map must have 1 to 4096 tokens; got 4097 in the map 'm1'"),
        ({"length": 5}, "A map of 5 tokens must have 50 bytes of float16 weights; got 72 in the map 'm1'"),
        ({"weights": b"\x00\x7e" * 36}, "Attention weights must be from 0 to 1"),  # NaN
        ({"weights": b"\x00\x40" * 36}, "Attention weights must be from 0 to 1"),  # 2
        ({"weights": b"\x00\xbc" * 36}, "Attention weights must be from 0 to 1"),  # -1
        ({"maximum": 1.5}, "The largest weight of a map must be from 0 to 1"),
        ({"maximum": None}, 'A map must have the field "maximum"'),
        ({"tokens": ["x"] * 5}, "A map of 6 tokens must list the 6 token texts"),
        ({"tokens": ["\ud800"] * 6}, "A map of 6 tokens must list the 6 token texts"),
        ({"separators": [6]}, "The separators of a map must be a list of token positions from 0 to 5; got"),
        ({"separators": [True]}, "The separators of a map must be a list of token positions from 0 to 5; got"),
    ],
)
def test_a_map_that_is_none_says_what_it_must_be(change, said):
    with pytest.raises(InputError, match=said):
        checked_map(a_map() | change)


def test_a_map_of_one_token_is_one():
    one = a_map(length=1)
    assert checked_map(one | {"split": None, "seed": None})["weights"] == one["weights"]
    assert checked_map(a_map(separators=[0, 5]))["separators"] == [0, 5]


def test_a_map_may_have_the_largest_indices_and_a_weight_that_rounding_put_above_1():
    largest = a_map(layer=9999, head=9999, maximum=1.01, weights=np.float16([1.0098, 0]).repeat(18).tobytes())
    assert checked_map(largest)["maximum"] == 1.01
    for change in ({"maximum": 1.011}, {"weights": np.float16([1.011, 0]).repeat(18).tobytes()}, {"head": 10_000}):
        with pytest.raises(InputError):
            checked_map(largest | change)


@pytest.mark.parametrize("name", ["Ann\u00e9", "  anne\u0301 ", "an\u200bn\u00e9", "ANN\u00c9"])
def test_names_that_look_alike_are_one(name):
    assert looks_like(name) == "ann\u00e9"


@pytest.mark.parametrize(
    ("name", "latin"),
    [("\u0430da", "ada"), ("\u0410DA", "ada"), ("p\u0435t\u0435r", "peter"), ("\u03bfl\u0430f", "olaf"),
     ("\u0406van", "ivan"), ("\u0395va", "eva"), ("zo\u0451", "zo\u00eb")],
)  # fmt: skip
def test_letters_of_another_alphabet_that_look_like_latin_ones_are_these(name, latin):
    assert name != latin
    assert looks_like(name) == looks_like(latin) == latin


@pytest.mark.parametrize(("one", "other"), [("ада", "ide"), ("жанна", "anna"), ("ann", "anne"), ("anna1", "anna2")])
def test_names_that_look_different_are_two(one, other):
    assert looks_like(one) != looks_like(other)


@pytest.mark.parametrize("name", ["Марта", "Νίκος", "Σίσυφος", "Ёлка", "Օհան"])
def test_a_name_of_another_alphabet_looks_like_itself_in_capitals(name):
    assert looks_like(name) == looks_like(name.upper())


def test_a_browsers_clock_is_believed_within_ten_years_behind_and_a_day_ahead():
    moment = datetime(2026, 1, 31, 12)
    for time in ("2016-02-01T12:00:00Z", "2026-02-01T11:59:00+00:00"):
        assert likely_time(time, moment) == time
    for time in ("2015-12-31T12:00:00Z", "2026-02-01T12:01:00Z"):
        assert likely_time(time, moment) == moment
    for time in (None, 5, "noon"):  # refused with its event
        assert likely_time(time, moment) == time


def test_names_that_look_alike_are_grouped_and_an_address_with_its_user():
    assert alike(["ada", "eve", "Eve", "ada@example.org", "bob@example.org", "\u0430da", "zoe"]) == [
        ("Eve", "eve"),
        ("ada", "ada@example.org", "\u0430da"),
    ]
    assert alike(["bob@example.org", "bob@example.com"]) == []
    assert say_alike(["ada", "Ada", "eve", "Eve"], among={"eve"}).count(" and ") == 1 + 1  # the sentence's own
    assert say_alike(["ada", "Ada"], among={"eve"}) == say_alike(["ada", "eve"]) == ""
