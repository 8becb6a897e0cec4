"""Which sentences of a treebank a probe takes, and what it says of the others."""

import pytest

from core.errors import InputError
from core.tasks.conllu import BUNDLED, read_part


def line(number, word, tag, head, relation):
    return f"{number}\t{word}\t_\t{tag}\t{tag}\t_\t{head}\t{relation}\t_\t_"


DOG = [line(1, "dogs", "NOUN", 2, "nsubj"), line(2, "bark", "VERB", 0, "root")]
ONE = [line(1, "Stop", "VERB", 0, "root")]
TWO_ROOTS = [line(1, "Yes", "INTJ", 0, "root"), line(2, "no", "INTJ", 0, "root")]
CIRCLE = [line(1, "a", "X", 2, "dep"), line(2, "b", "X", 1, "dep"), line(3, "c", "X", 0, "root")]


def treebank(folder, *sentences):
    text = "\n\n".join("\n".join(rows) for rows in sentences) + "\n"
    for part in ("train", "dev", "test"):
        (folder / f"own-{part}.conllu").write_text(text)
    return str(folder)


def test_sentences_without_one_tree_of_two_words_are_named_and_left_out(tmp_path):
    part = read_part(treebank(tmp_path, DOG, ONE, TWO_ROOTS, CIRCLE, DOG), "test")
    assert [one.text for one in part.sentences] == ["dogs bark", "dogs bark"]
    assert {(out.reason, out.n, out.names) for out in part.left_out} == {
        ("one word", 1, ('2 "Stop"',)),
        ("not one root", 1, ('3 "Yes no"',)),
        ("heads in a circle", 1, ('4 "a b c"',)),
    }


def test_another_tag_set_is_refused_with_what_was_seen(tmp_path):
    penn = [line(1, "dogs", "NNS", 2, "SBJ"), line(2, "bark", "VBP", 0, "ROOT")]
    with pytest.raises(
        InputError,
        match=r"own-test.conllu, the word \"dogs\" has the tag 'NNS' and the relation 'SBJ'",
    ):
        read_part(treebank(tmp_path, penn), "test")


def test_a_part_without_any_tree_is_refused(tmp_path):
    with pytest.raises(InputError, match="none among 2 sentences"):
        read_part(treebank(tmp_path, ONE, TWO_ROOTS), "dev")


def test_the_bundled_treebank_has_three_parts_that_share_no_sentence():
    parts = [{one.text for one in read_part(None, part).sentences} for part in ("train", "dev", "test")]
    assert [len(part) for part in parts] == [1000, 200, 200]
    assert not parts[0] & (parts[1] | parts[2])
    assert not parts[1] & parts[2]
    assert "parsed automatically" in (BUNDLED / "README.md").read_text()
