"""What a message says of a value that is not among the known ones, or out of range."""

import pytest

from core.errors import CheckpointError, InputError, check_choice, check_range


def test_the_first_unknown_value_is_named_with_the_known_ones():
    check_choice("A colour", "red", {"red": 1, "blue": 2})
    check_choice("A colour", [], ("red",))
    with pytest.raises(InputError, match=r'^A colour must be one of red, blue; got "green"\. Choose one of them\.$'):
        check_choice("A colour", ("blue", "green", "grey"), iter(["red", "blue"]))
    with pytest.raises(CheckpointError, match='got "None"'):
        check_choice("A colour", None, ("red",), CheckpointError)


def test_a_number_out_of_range_is_named_with_the_range():
    check_range("The share", 0.5, 0, 0.5)
    check_range("The number of folds", 2, 2)
    with pytest.raises(
        InputError, match=r"^The share must be from 0 to 0\.5; got 0\.9\. Choose a value in this range\.$"
    ):
        check_range("The share", 0.9, 0, 0.5)
    with pytest.raises(InputError, match=r"^The number of folds must be at least 2; got 1\. Choose a larger number\.$"):
        check_range("The number of folds", 1, 2)
    for limits in ((0,), (0, 1)):
        with pytest.raises(InputError, match="got nan"):
            check_range("The share", float("nan"), *limits)
