import pytest

from core.errors import InputError
from data.recipes.sheet_labels import parsed

KNOWN = {1: "a", 2: "b", 3: "c"}


def test_names_and_keys_with_commas_blanks_and_notes():
    text = "number,class\n1,vertical\n\n2 3 faint\n# a remark\n3\tBlock"
    assert parsed(text, "bert", KNOWN) == {1: ("vertical", None), 2: ("vertical+diagonal", "faint"), 3: ("block", None)}


@pytest.mark.parametrize(
    ("text", "said"), [("1,zigzag", "zigzag"), ("4,block", "Line 1"), ("1", "Line 1"), ("1,block\n1,block", "again")]
)
def test_lines_that_cannot_be_used_are_named(text, said):
    with pytest.raises(InputError, match=said):
        parsed(text, "bert", KNOWN)
