"""Shapes that annotations state are checked when a function of core is called, whatever imported it first."""

import sys

import numpy as np
import pytest
from jaxtyping import TypeCheckError

from core.scoring import heads
from tests.shape_checks import modules_with_shapes, when_called


def test_a_wrong_shape_is_an_error_in_tests():
    with pytest.raises(TypeCheckError):
        heads.entropy(np.zeros(3))


def test_every_imported_module_that_states_shapes_is_checked():
    imported = [name for name in modules_with_shapes() if name in sys.modules]
    assert "core.scoring.heads" in imported
    loaders = {name: type(sys.modules[name].__spec__.loader).__name__ for name in imported}
    assert set(loaders.values()) == {"_JaxtypingLoader"}, loaders


def test_a_function_is_prepared_by_its_first_call_and_named_as_before():
    def doubled(number: int) -> int:
        return 2 * number

    checked = when_called(doubled)
    assert checked.__name__ == "doubled"
    assert checked(2) == 4
    with pytest.raises(Exception, match="number"):
        checked("two")
