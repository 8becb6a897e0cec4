"""Pasted lists: lines, pairs, tables with named columns, and what is refused."""

import pytest

from core.errors import InputError
from core.tasks.pasted import MOST, Pasted, read_pasted


def test_a_line_is_a_sentence_and_a_tab_divides_a_pair():
    expected = [Pasted("One."), Pasted("Two, and more."), Pasted("A", "B")]
    assert read_pasted("One.\n\n  Two, and more. \nA\tB\n") == expected


def test_a_first_line_that_names_columns_makes_a_table():
    table = 'id,sentence,sentence2\n1,"Yes, he said.",No.\n2,Alone.,\n'
    assert read_pasted(table) == [Pasted("Yes, he said.", "No."), Pasted("Alone.")]
    assert read_pasted("text\tpair\nA, b\tC\n") == [Pasted("A, b", "C")]


def test_a_byte_order_mark_is_no_letter():
    assert read_pasted("\ufeffsentence\nOne.") == [Pasted("One.")]


@pytest.mark.parametrize(
    ("lines", "said"), [("", "one on each line"), ("sentence\n", "one on each line"), ("a\tb\tc", "3 parts"),
                        ("\tb", "two with a tab"), ("x\n" * (MOST + 1), "5,001")],
)  # fmt: skip
def test_what_is_no_list_is_refused_in_a_sentence(lines, said):
    with pytest.raises(InputError, match=said):
        read_pasted(lines)
