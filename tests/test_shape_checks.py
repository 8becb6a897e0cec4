"""Shapes that annotations state are checked when a function of core is called, whatever imported it first."""

import sys

import numpy as np
import pytest
from beartype import beartype
from jaxtyping import TypeCheckError

from core.scoring import heads
from tests.shape_checks import jaxtyped, looking, modules_with_shapes


def test_a_wrong_shape_is_an_error_in_tests():
    looking.counter(heads.row_entropies.__wrapped__.__code__)[0] = 0  # whatever other tests have called
    with pytest.raises(TypeCheckError):
        heads.row_entropies(np.zeros(3))


def test_every_imported_module_that_states_shapes_is_checked():
    imported = [name for name in modules_with_shapes() if name in sys.modules]
    assert "core.scoring.heads" in imported
    loaders = {name: type(sys.modules[name].__spec__.loader).__name__ for name in imported}
    assert set(loaders.values()) == {"_JaxtypingLoader"}, loaders


def doubling():
    """A function made anew by each call, as a closure is."""

    def doubled(number: int) -> int:
        return 2 * number

    return jaxtyped(doubled, typechecker=beartype)


def test_a_function_is_prepared_by_its_first_call_and_named_as_before():
    checked = doubling()
    assert checked.__name__ == "doubled"
    assert checked(2) == 4
    with pytest.raises(Exception, match="number"):
        checked("two")


@pytest.mark.thorough
@pytest.mark.parametrize("closely", [False, True])
def test_the_first_calls_and_some_later_ones_are_looked_at_or_all_of_them(monkeypatch, closely):
    monkeypatch.setattr(looking, "closely", closely)
    monkeypatch.setattr(looking, "calls", {})
    refused = []
    for call in range(1, 101):
        try:
            doubling()("two")
        except TypeCheckError:
            refused.append(call)
    assert refused == (list(range(1, 101)) if closely else [1, 2, 4, 8, 16, 32, 64])
