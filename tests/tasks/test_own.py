"""Tasks of the user's own: rows, labels and splits as the file says, and errors that name what to mend."""

import pytest

from core.errors import InputError
from core.tasks import own
from core.tasks.glue import TASKS, label_order, must_have_labels, read_rows, task_of
from tests.tasks.constants import constant_baselines

PLAIN = "sentence,label\n" + "".join(f'"Row {k}, said",{"ham" if k % 3 else "spam"}\n' for k in range(10))


@pytest.fixture
def written(tmp_path):
    def write(text, name="mail.csv"):
        file = tmp_path / name
        file.write_text(text, encoding="utf-8")
        return str(file)

    return write


def test_a_file_is_a_task_with_its_labels_and_every_fifth_row_is_dev(written):
    path = written(PLAIN)
    task = task_of(path)
    assert (task.key, task.name, task.labels, task.metrics) == (path, "mail.csv", ("ham", "spam"), ("accuracy",))
    assert (task.train_rows, task.dev_rows, task.majority) == (8, 2, 0.5)
    dev = read_rows(path, "dev")
    assert [(row.text, row.pair, task.labels[row.label]) for row in dev] == [
        ("Row 4, said", None, "ham"),
        ("Row 9, said", None, "spam"),
    ]
    assert [row.id.split("-")[:2] for row in read_rows(path, "train", limit=3, seed=1)] != []
    assert TASKS[path] == task
    assert label_order(task, {0: "Spam", 1: "HAM"}) == (1, 0)
    assert constant_baselines(task, [row.label for row in dev]) == {"ham": {"accuracy": 0.5}, "spam": {"accuracy": 0.5}}


def test_pairs_scores_and_splits_of_a_tab_separated_file(written):
    text = "Split\tsentence\tsentence2\tscore\ntrain\ta b\tc\t0\ndev\td\te f\t4.5\n\ntrain\tg\th\t5\n"
    task = task_of(written(text, "alike.TSV"))
    assert (task.is_score, task.outputs, task.metric, task.majority) == (True, 1, "pearson", None)
    (row,) = read_rows(task, "dev")
    assert (row.text, row.pair, row.label) == ("d", "e f", 4.5)
    assert [row.text for row in read_rows(task, "train")] == ["a b", "g"]


def test_a_changed_file_is_read_again_and_an_edited_row_is_another_row(written):
    import os

    path = written(PLAIN)
    before = read_rows(path, "dev")
    os.utime(written(PLAIN.replace("Row 9", "Line 9")), ns=(1, 1))
    after = read_rows(path, "dev")
    assert after[0].id == before[0].id
    assert after[1].id != before[1].id


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("words,label\na,b\n", "mail.csv has none (it has words, label)"),
        ("", "has none (it has no columns)"),
        ("sentence,label\n", "mail.csv has no sentences below the first line"),
        ("sentence,label,label\na,b,c\n", '"label" twice'),
        ("sentence,label\na,x\n,y\n", "row 2 of mail.csv has no sentence"),
        ("sentence,label\na,x\nb,\n", "row 2 of mail.csv has no label"),
        ("sentence,label\na,x\nb\n", "row 2 of mail.csv has no label"),
        (
            "sentence,label\na,x\nb,y,z\n",
            "must not have more columns than the first line of the file; row 2 of mail.csv has more",
        ),
        ("sentence,label\na,x\nb,x\n", 'mail.csv has 1 ("x")'),
        ("sentence,label\n" + "".join(f"a,{k}\n" for k in range(101)), "mail.csv has 101"),
        ("sentence,label\na,not ok\nb,Not-OK\n", "Labels must differ in more than case"),
        ("sentence,score\na,7\n", 'row 1 of mail.csv has "7"'),
        ("sentence,score\na,nan\n", 'row 1 of mail.csv has "nan"'),
        ("sentence,label,split\na,x,train\nb,y,test\n", 'must be train or dev; row 2 of mail.csv has "test"'),
        ("sentence,label\na,x\nb,y\n", "none of the 2 rows"),
        ("sentence,split\na,train\n", "none of the 1 rows"),
        ("sentence,label,split\na,x,train\nb,y,dev\n", '"y" of mail.csv occurs only in the dev split'),
        ('sentence,label\n"a,x\n', "the row that starts in line 2 of mail.csv is invalid"),
    ],
)
def test_what_must_be_mended_is_named_in_one_sentence(written, text, said):
    with pytest.raises(InputError) as seen:
        task_of(written(text))
    assert said in str(seen.value)
    assert "\n" not in str(seen.value)


def test_a_list_without_labels_is_looked_at_and_never_judged(written):
    path = written("sentence,tag\na,b\nc,d\n", "plain.csv")
    assert not task_of(path).labelled
    for split in ("train", "dev"):
        assert [row.text for row in read_rows(path, split)] == ["a", "c"]
    with pytest.raises(InputError, match=r'plain\.csv has no column "label"'):
        must_have_labels(path)
    with pytest.raises(InputError, match=r'plain\.csv has no column "label"'):
        label_order(task_of(path), {0: "x", 1: "y"})
    must_have_labels("sst2")


def test_rows_that_are_all_dev_are_judged_and_not_learned_from(written):
    path = written("sentence,label,split\na,x,dev\nb,y,dev\n", "judged.csv")
    assert [row.text for row in read_rows(path, "dev")] == ["a", "b"]
    with pytest.raises(InputError, match=r"train split of judged\.csv has none"):
        read_rows(path, "train")


def test_a_file_that_is_not_there_and_one_that_is_no_text(written, tmp_path):
    with pytest.raises(InputError, match=r"is missing. Check its name"):
        task_of(str(tmp_path / "none.csv"))
    (tmp_path / "bytes.csv").write_bytes(b"sentence,label\n\xff\xfe,x\n")
    with pytest.raises(InputError, match=r"byte 16 \(0xFF, line 2\) is not UTF-8"):
        task_of(str(tmp_path / "bytes.csv"))


def test_a_file_outside_the_folders_of_an_app_for_others_is_not_read(written, monkeypatch, tmp_path):
    path = written(PLAIN)
    monkeypatch.setenv("ATLAS_FOLDERS", str(tmp_path / "elsewhere"))
    with pytest.raises(InputError, match="ATLAS_FOLDERS"):
        task_of(path)
    monkeypatch.setenv("ATLAS_FOLDERS", str(tmp_path))
    assert task_of(path).name == "mail.csv"


@pytest.mark.parametrize("path", ["~nobody-of-this-name/a.csv", "a\0b.csv", "a" * 5000 + ".csv"])
def test_paths_that_are_none_are_one_sentence(path):
    with pytest.raises(InputError):
        task_of(path)


def test_only_csv_and_tsv_files_are_tasks_and_paths_become_full(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert own.absolute("mail.csv") == str(tmp_path / "mail.csv")
    assert own.absolute("sst2") == "sst2"
    with pytest.raises(InputError, match="or a CSV, TSV or JSON Lines file"):
        task_of("mail.txt")
    with pytest.raises(KeyError):
        TASKS["mail.txt"]


@pytest.mark.parametrize("first", ["sentence;label", '"Sentence";"label"', " sentence ; label "])
def test_a_semicolon_separates_columns_where_the_first_line_says_so(written, first):
    file = written(first + "\n" + "".join(f'"Word {k}, and a comma";{"good" if k % 2 else "bad"}\n' for k in range(10)))
    rows = own.read_own(str(file))
    assert rows.labels == ("bad", "good")
    assert rows.of("dev")[0].text == "Word 4, and a comma"


def test_a_semicolon_inside_a_sentence_separates_nothing(written):
    text = "sentence,label\n" + "".join(f"One; two {k},{'good' if k % 2 else 'bad'}\n" for k in range(10))
    assert own.read_own(str(written(text))).of("dev")[0].text == "One; two 4"
