"""The level that is spent over batches adds up to alpha; Holm against a loop, withdrawn hypotheses counted."""

import math

import numpy as np
import pytest

from core.errors import InputError
from core.scoring.corrections import ALPHA, batch_level, holm


def test_levels_of_all_batches_add_up_to_alpha_and_the_first_is_six_over_pi_squared_of_it():
    assert batch_level(1) == pytest.approx(ALPHA * 6 / math.pi**2)
    assert batch_level(3) == pytest.approx(batch_level(1) / 9)
    levels = sum(batch_level(i) for i in range(1, 200_001))
    assert levels < ALPHA
    assert levels == pytest.approx(ALPHA, rel=1e-4)


def rejected_by_steps(p, registered, level):
    """Holm's own words: from the smallest p on, compare with level / (how many are left), stop at the first failure."""
    found, order = set(), sorted(range(len(p)), key=lambda k: p[k])
    for step, k in enumerate(order):
        if p[k] > level / (registered - step):
            break
        found.add(k)
    return found


@pytest.mark.parametrize("withdrawn", [0, 3])
def test_holm_rejects_what_its_steps_reject(withdrawn):
    rng = np.random.default_rng(withdrawn)
    for _ in range(30):
        p = (rng.random(7) ** 4).tolist()
        adjusted = holm(p, registered=7 + withdrawn)
        assert {k for k, value in enumerate(adjusted) if value <= 0.03} == rejected_by_steps(p, 7 + withdrawn, 0.03)


def test_a_hypothesis_without_p_counts_and_has_none():
    assert holm([0.01, None], registered=2) == [pytest.approx(0.02), None]
    assert holm([0.01], registered=4) == [pytest.approx(0.04)]
    assert holm([], registered=0) == []


def test_what_cannot_be_is_refused():
    with pytest.raises(InputError, match="numbered from 1; got the number 0"):
        batch_level(0)
    with pytest.raises(InputError, match="got 1 registered and 2 tested"):
        holm([0.1, 0.2], registered=1)
