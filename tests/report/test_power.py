"""How much of the record that ships is decided: of today's tests, and of those that the first count had."""

import re
from collections import Counter
from collections.abc import Sequence

import pytest

from core.report.headlines import DECIDED, power, was_tested
from core.report.records import ClaimRecord
from tests import record_report

ENCODER = "all-MiniLM-L6-v2"
AIM = 0.8
ALL = ("mrpc", "rte", "sst2", "stsb")
COUNTED = {  # the 85 of 22 November 2026: 67 were decided, by the rules of then
    **dict.fromkeys(
        (
            "last-two-layers",
            "cls-early",
            "not-linguistic",
            "noun-pronoun",
            "cls-row",
            "shares-stay",
            "pretraining",
            "random-learns",
            "some-head",
            "neighbours",
            "separators",
            "separator-gradients",
            "special-tokens",
            "few-meaningful",
            "more-vertical",
            "rise-and-fall",
            "tuned-beats-untuned",
        ),
        ALL,
    ),
    **dict.fromkeys(("harmless", "prunable", "one-is-enough"), ("mrpc", "sst2", "stsb")),
    "more-to-nouns": ("mrpc", "rte"),
    "random-head": ("mrpc", "rte"),
    "constant-cells": ("mrpc", "rte", "sst2"),
    "first-layer": ("rte",),
}
RETIRED = {
    "constant-cells": "known error",
    "separator-gradients": "cannot be tested",
}  # by name, with what they say now
NOT_CLAIMED = {("random-learns", "stsb")}  # the source's exception


@pytest.fixture(scope="module")
def claims() -> Sequence[ClaimRecord]:
    return [one for one in record_report.records().claims if one.checkpoint == ENCODER]


def test_the_first_count_had_so_many_by_task():
    assert Counter(task for tasks in COUNTED.values() for task in tasks) == {
        "mrpc": 23,
        "rte": 21,
        "sst2": 21,
        "stsb": 20,
    }


@pytest.mark.thorough
def test_those_retired_are_no_tests_and_all_others_with_rows_are(claims):
    now = {(one.claim, one.task): one.outcome for one in claims}
    for name, counted in COUNTED.items():
        tasks = [task for task in counted if (name, task) not in NOT_CLAIMED]
        words = {now[name, task] for task in tasks if (name, task) in now}
        if name in RETIRED:
            assert words == {RETIRED[name]}
        else:
            assert words <= {*DECIDED, "undecided"}
            assert {task for task in tasks if (name, task) in now} == {*tasks}


@pytest.mark.thorough
def test_how_many_of_the_first_count_are_decided(claims):
    mine = [one for one in claims if one.claim not in RETIRED and one.task in COUNTED.get(one.claim, ())]
    # some-head is undecided: a gain of a tenth of a point, the paper's smallest, is open on all 4 tasks
    done = sum(one.outcome in DECIDED for one in mine)
    # few-meaningful, shares-stay and more-vertical are undecided on all 4 tasks: where maps misfit the classifier's
    # confusions, heads, shares and their changes have no interval
    assert (done, len(mine)) == (46, 85 - 7 - len(NOT_CLAIMED))


def test_what_is_counted_is_what_had_rows(claims):
    counts = Counter(one.outcome for one in claims)
    tests = sum(map(was_tested, claims))
    assert tests == counts["holds"] + counts["does not hold"] + counts["undecided"]
    assert re.match(rf"(\d+) of {tests} tests by task are decided", power(claims))
    assert power([]) == ""
