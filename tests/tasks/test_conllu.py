"""Gold trees keep their characters: multi-word tokens, empty nodes, missing text lines, broken files."""

import pytest

from core.errors import InputError
from core.tasks.conllu import read_conllu

MINI = """# newdoc id = d1
# sent_id = 1
# text = Don't go, cannot I?
1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tDo\tdo\tAUX\tVB\t_\t3\taux\t_\t_
2\tn't\tnot\tPART\tRB\t_\t3\tadvmod\t_\t_
3\tgo\tgo\tVERB\tVB\t_\t0\troot\t_\tSpaceAfter=No
4\t,\t,\tPUNCT\t,\t_\t3\tpunct\t_\t_
4.1\tgo\tgo\tVERB\tVB\t_\t_\t_\t_\t_
5-6\tcannot\t_\t_\t_\t_\t_\t_\t_\t_
5\tcan\tcan\tAUX\tMD\t_\t3\tparataxis\t_\t_
6\tNOT\tnot\tPART\tRB\t_\t5\tadvmod\t_\t_
7\tI\tI\tPRON\tPRP\t_\t5\tnsubj:pass\t_\tSpaceAfter=No
8\t?\t?\tPUNCT\t.\t_\t3\tpunct\t_\t_

# sent_id = 2
1\tYes\tyes\tINTJ\tUH\t_\t0\troot\t_\tSpaceAfter=No
2\t.\t.\tPUNCT\t.\t_\t1\tpunct\t_\t_
"""


@pytest.fixture
def mini(tmp_path):
    file = tmp_path / "mini.conllu"
    file.write_text(MINI)
    return file


def test_words_own_their_characters(mini):
    first, second = read_conllu(mini)
    assert [first.text[word.start : word.end] for word in first.words] == [
        "Do",
        "n't",
        "go",
        ",",
        "cannot",
        "cannot",
        "I",
        "?",
    ]
    assert [(word.head, word.dep, word.tag, word.pos) for word in first.words][1:3] == [
        (2, "advmod", "RB", "PART"),
        (2, "root", "VB", "VERB"),
    ]
    assert first.words[6].head == 4
    assert first.document == second.document == "d1"
    assert second.text == "Yes."


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("3\tgo\tgo\tVERB", "3 go go VERB", r"10 columns.*line 7 of mini.conllu has"),
        ("# text = Don't", "# text = Do", r"must occur in its text in order.*line 4"),
        ("VB\t_\t3\taux", "VB\t_\t99\taux", r"must be a word of its sentence.*line 5.*has the head 99"),
    ],
)
def test_a_broken_line_is_named(mini, old, new, says):
    mini.write_text(MINI.replace(old, new))
    with pytest.raises(InputError, match=says):
        read_conllu(mini)


def test_a_missing_file_is_one_sentence(tmp_path):
    with pytest.raises(InputError, match=r"cannot be read \(No such file or directory\)"):
        read_conllu(tmp_path / "none.conllu")


def test_the_real_treebank_is_read_whole(shared_data):
    found = read_conllu(shared_data / "ud" / "UD_English-EWT" / "en_ewt-ud-dev.conllu")
    assert len(found) == 2001
    assert all(sentence.text[word.start : word.end] for sentence in found for word in sentence.words)
    assert sum(word.head == k for sentence in found for k, word in enumerate(sentence.words)) == 2001
