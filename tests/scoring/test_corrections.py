"""Benjamini-Hochberg by its own definition, over the heads that have a p."""

import numpy as np

from core.scoring.corrections import q_values
from core.scoring.link_tests import corrected


def by_definition(p: list[float]) -> list[float]:
    """q_k: the least m p_j / rank_j over all p_j at least as large as p_k, at most 1."""
    order = sorted(p)
    each = {value: len(p) * value / max(k for k, other in enumerate(order, start=1) if other == value) for value in p}
    return [min(1.0, *(q for value, q in each.items() if value >= own)) for own in p]


def test_q_values_are_those_of_the_definition_and_heads_without_p_count_for_nothing():
    p = np.array([[0.001, 0.2, np.nan], [0.03, 0.04, 0.9], [0.2, 0.012, np.nan]])
    known = p[~np.isnan(p)].tolist()
    q = q_values(p)
    np.testing.assert_allclose(q[~np.isnan(p)], by_definition(known))
    assert np.isnan(q[np.isnan(p)]).all()
    assert np.isnan(q_values(np.full((2, 2), np.nan))).all()
    np.testing.assert_allclose(corrected(np.array(known)), by_definition(known))
