"""Classes of gates and interactions of heads, beside what anyone can count."""

import itertools

import numpy as np
import pytest

from core.errors import InputError
from core.scoring import circuits


def test_a_class_is_claimed_where_it_comes_nearly_always():
    up = np.tile([0.9, 0.1, 0.9, 0.9, 0.1], (20, 1))
    down = np.tile([0.9, 0.1, 0.1, 0.9, 0.9], (20, 1))
    up[:2, 3] = 0.2  # 18 of 20 fits: not claimed
    shares = circuits.class_shares(up, down)
    assert np.allclose(shares[:3], np.eye(3))
    assert np.isclose(shares[3, 0], 0.9)
    assert shares[4].sum() == 0  # low only when it is pushed up: nothing the loss could ask for
    claimed = circuits.classes_of(shares)
    assert claimed == ["facilitating", "interfering", "irrelevant", "undecided", "undecided"]
    up[1, 3] = 0.9  # 19 of 20 is 95 %
    assert circuits.classes_of(circuits.class_shares(up, down))[3] == "facilitating"
    with pytest.raises(InputError, match="got 0 fits with a reward and 0 with a penalty"):
        circuits.class_shares(up[:0], down[:0])


def worth(heads):
    """Three heads: two that fill the same cup, one that doubles what is in it, and a fourth that adds 0.5."""
    return min(1.0, (0 in heads) + (1 in heads)) * (1 + (2 in heads)) + 0.5 * (3 in heads)


def test_interactions_tell_redundant_heads_from_those_that_work_together():
    every = frozenset(range(4))
    pairs = np.array(list(itertools.combinations(range(4), 2)))
    alone = np.array([[worth(every) - worth(every - {head})] for head in range(4)])
    together = np.array([[worth(every) - worth(every - set(pair))] for pair in pairs.tolist()])
    found = {
        tuple(pair): float(value[0])
        for pair, value in zip(pairs.tolist(), circuits.interactions(alone, together, pairs), strict=True)
    }
    assert found[0, 1] == 2.0  # alone neither is missed
    assert found[0, 2] == 0.0  # the other fills the cup
    assert found[0, 3] == found[1, 3] == found[2, 3] == 0.0  # it only adds
    product = circuits.interactions(np.array([[1.0], [1.0]]), np.array([[1.0]]), np.array([[0, 1]]))
    assert product[0, 0] == -1.0  # a b: without either nothing is left


def test_shapley_values_are_those_of_all_orders_and_add_up():
    orders = np.array(list(itertools.permutations(range(4))))
    sets = circuits.sets_along(orders)
    every = frozenset(range(4))
    values = np.array([[worth(every - off) for off in along] for along in sets])
    found = circuits.shapley_values(worth(every), values, orders)
    exact = np.zeros(4)
    for head in range(4):
        for order in itertools.permutations(range(4)):
            before = frozenset(order[: order.index(head)])
            exact[head] += (worth(before | {head}) - worth(before)) / 24  # the textbook's: heads come, not go
    assert np.allclose(found, exact)
    few = circuits.antithetic_orders(4, 6, np.random.default_rng(3))
    assert (few[1] == few[0][::-1]).all()
    assert all(sorted(order) == [0, 1, 2, 3] for order in few.tolist())
    values = np.array([[worth(every - off) for off in along] for along in circuits.sets_along(few)])
    assert np.isclose(circuits.shapley_values(worth(every), values, few).sum(), worth(every) - worth(frozenset()))
    with pytest.raises(InputError, match="even"):
        circuits.antithetic_orders(4, 3, np.random.default_rng(0))
