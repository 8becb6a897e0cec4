"""Rows of a translation task are read, and refused with the line that is wrong."""

import pytest

from core.errors import InputError
from core.studies.ablation.translation import read_translations


def test_the_bundled_rows_have_known_pairs_and_no_source_is_in_both_splits():
    dev, train = read_translations(), read_translations(split="train")
    assert (len(dev), len(train)) == (300, 1000)
    assert not {row.source for row in dev} & {row.source for row in train}
    for row in dev:
        assert sorted(target for _, target in row.links) == list(range(len(row.target.split())))
        assert len({source for source, _ in row.links}) == len(row.source.split())


def test_rows_of_a_file_of_ones_own(tmp_path):
    file = tmp_path / "rows.tsv"
    file.write_text("the cat\tle chat\t0-0 1-1\n\na dog\tun chien\n", encoding="utf-8")
    rows = read_translations(file)
    assert [(row.source, row.links, row.id) for row in rows] == [
        ("the cat", ((0, 0), (1, 1)), "line-1"),
        ("a dog", (), "line-3"),
    ]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("only a source\n", "line 1 has no target"),
        ("a\tb\t0-x\n", "line 1 has the alignments '0-x'"),
        ("a\tb\t0-1\n", "line 1 has 1 source words, 1 target words and the alignment 0-1"),
        ("", "must have at least one line of text"),
    ],
)
def test_what_is_no_row_is_refused(tmp_path, text, sentence):
    file = tmp_path / "rows.tsv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=sentence):
        read_translations(file)
    with pytest.raises(InputError, match=r"must be a readable text file; .*none\.tsv cannot be read"):
        read_translations(tmp_path / "none.tsv")
