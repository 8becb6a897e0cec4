"""Benjamini and Yekutieli by their own definition, and on tests that have much in common."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.scoring.corrections import significant_at_fdr


def by_definition(p: list[float], level: float) -> list[bool]:
    """The largest k whose p_(k) <= k level / (m (1 + 1/2 + ... + 1/m)); it and all smaller ones stand."""
    m = max(1, len(p))
    shrunk = level / sum(1 / k for k in range(1, m + 1))
    passed = [value for k, value in enumerate(sorted(p), start=1) if value <= k * shrunk / m]
    return [value <= max(passed, default=-1.0) for value in p]


@given(st.lists(st.floats(0, 0.2), max_size=12), st.sampled_from([0.05, 0.2]))
def test_what_stands_is_what_the_definition_says(p, level):
    assert significant_at_fdr(p, level) == by_definition(p, level)


def test_of_tests_that_have_all_in_common_few_are_lucky():
    """Forty copies of one true null: the worst that dependence can do to Benjamini and Hochberg's step."""
    rng = np.random.default_rng(0)
    lucky = sum(any(significant_at_fdr([float(rng.random())] * 40)) for _ in range(400))
    assert lucky / 400 <= 0.05
