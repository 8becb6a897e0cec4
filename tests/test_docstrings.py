"""A tool can read what a public function of core takes and gives back: docs/decisions/031."""

import ast

import pytest

from tests import docstrings
from tests.sources import files_of


def test_public_functions_with_arrays_say_what_they_take_and_give():
    lacking = {where: missing for file in files_of("core") for where, missing in docstrings.unreadable(file).items()}
    assert not lacking


WHOLE = """
def entropy(weights: Float[np.ndarray, "query key"], base: float) -> np.ndarray:
    \"\"\"Mean entropy of rows.

    Args:
        weights: rows sum to 1.
        base: of the logarithm,
            2 for bits.

    Returns:
        A number a query. *Shape:* (query,).

    Raises:
        InputError: rows do not sum to 1.
    \"\"\"
    raise InputError("")
"""


def lacks(source: str) -> list[str]:
    (_name, node), *_ = docstrings.public(ast.parse(source).body)
    return docstrings.missing_of_class(node) if isinstance(node, ast.ClassDef) else docstrings.missing_of_function(node)


def test_a_docstring_with_all_sections_lacks_nothing():
    assert lacks(WHOLE) == []


@pytest.mark.parametrize(
    ("gone", "missing"),
    [
        ("        weights: rows sum to 1.\n", "Args: weights"),
        ("        base: of the logarithm,\n            2 for bits.\n", "Args: base"),
        ("    Returns:\n        A number a query. *Shape:* (query,).\n", "Returns"),
        (" *Shape:* (query,)", "*Shape:* of what is returned"),
        ("    Raises:\n        InputError: rows do not sum to 1.\n", "Raises"),
    ],
)
def test_what_is_left_out_of_a_docstring_is_found(gone, missing):
    assert gone in WHOLE
    assert lacks(WHOLE.replace(gone, "")) == [missing]


def test_an_array_without_a_shape_is_found_in_arguments_and_records():
    assert lacks(WHOLE.replace('Float[np.ndarray, "query key"]', "np.ndarray")) == ["*Shape:* of weights"]
    record = '@dataclass\nclass Sums:\n    """Of a pass."""\n\n    totals: np.ndarray\n    rows: int\n'
    assert lacks(record) == ["Attributes: totals", "Attributes: rows"]


def test_short_docstrings_without_arrays_and_private_functions_are_left_alone():
    assert lacks('def head_of(name: str, part: str) -> Head:\n    """Read L1H2."""\n') == []
    assert not list(docstrings.public(ast.parse("def _rows(weights: np.ndarray) -> None: ...").body))
