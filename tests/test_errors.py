"""What a message says of a value that is not among the known ones."""

import pytest

from core.errors import CheckpointError, InputError, check_choice


def test_the_first_unknown_value_is_named_with_the_known_ones():
    check_choice("A colour", "red", {"red": 1, "blue": 2})
    check_choice("A colour", [], ("red",))
    with pytest.raises(InputError, match=r'^A colour must be one of red, blue; got "green"\. Choose one of them\.$'):
        check_choice("A colour", ("blue", "green", "grey"), iter(["red", "blue"]))
    with pytest.raises(CheckpointError, match='got "None"'):
        check_choice("A colour", None, ("red",), CheckpointError)
