"""Pasted lists: lines, pairs, tables with named columns, and what is refused."""

import pytest

from core.errors import InputError
from core.tasks.glue import read_rows, task_of
from core.tasks.own import keep_rows, kept_rows
from core.tasks.tables import MOST, Pasted, read_pasted


def test_a_line_is_a_sentence_and_a_tab_divides_a_pair():
    expected = [Pasted("One."), Pasted("Two, and more."), Pasted("A", "B")]
    assert read_pasted("One.\n\n  Two, and more. \nA\tB\n") == expected


def test_a_first_line_that_names_columns_makes_a_table():
    table = 'id,sentence,sentence2\n1,"Yes, he said.",No.\n2,Alone.,\n'
    assert read_pasted(table) == [Pasted("Yes, he said.", "No."), Pasted("Alone.")]
    assert read_pasted("text\tpair\nA, b\tC\n") == [Pasted("A, b", "C")]


def test_a_byte_order_mark_is_no_letter():
    assert read_pasted("\ufeffsentence\nOne.") == [Pasted("One.")]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("", "one sentence per line"),
        ("sentence\n", "one sentence per line"),
        ("a\tb\tc", "3 parts"),
        ("\tb", "two separated by a tab"),
        ("x\n" * (MOST + 1), "5,001"),
    ],
)
def test_what_is_no_list_is_refused_in_a_sentence(lines, said):
    with pytest.raises(InputError, match=said):
        read_pasted(lines)


def test_a_list_that_is_kept_is_a_task_of_its_own(tmp_path):
    file = keep_rows("One.\nTwo, and more.\n", tmp_path, "My list!")
    assert file.name.startswith("my-list-")
    assert file == keep_rows("One.\n\nTwo, and more.", tmp_path, "My list!")  # the same list is the same file
    assert [row.text for row in read_rows(str(file), "dev")] == ["One.", "Two, and more."]
    assert kept_rows(tmp_path) == [file]
    pairs = keep_rows("premise,hypothesis\nA cat.,An animal.\n", tmp_path)
    assert [(row.text, row.pair) for row in read_rows(str(pairs), "dev")] == [("A cat.", "An animal.")]


def test_labels_stay_and_all_rows_are_judged_unless_a_model_learns(tmp_path):
    table = "text,label,id\n" + "".join(f"Row {k},{'ab'[k % 2]},{k}\n" for k in range(10))
    judged = task_of(str(keep_rows(table, tmp_path)))
    assert (judged.labels, judged.train_rows, judged.dev_rows) == (("a", "b"), 0, 10)
    learned = task_of(str(keep_rows(table, tmp_path, learned=True)))
    assert (learned.train_rows, learned.dev_rows) == (8, 2)


def test_a_list_that_is_no_task_leaves_no_file(tmp_path):
    with pytest.raises(InputError, match=r"row 2 of the pasted text has no label"):
        keep_rows("sentence,label\nOne.,x\nTwo.,\n", tmp_path)
    assert not kept_rows(tmp_path)
