from pathlib import Path

import datasets
import pytest

from core.errors import InputError
from core.tasks.glue import TASKS, hub_rows, read_rows, task_of

HEADERS = {
    "mrpc": "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String",
    "stsb": "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore",
    "sst2": "sentence\tlabel",
    "qqp": "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate",
    "rte": "index\tsentence1\tsentence2\tlabel",
    "qnli": "index\tquestion\tsentence\tlabel",
    "mnli": "index\tpromptID\tpairID\tgenre\tsentence1_binary_parse\tsentence2_binary_parse\tsentence1_parse\t"
    "sentence2_parse\tsentence1\tsentence2\tlabel1\tgold_label",
}


def write(folder: Path, key: str, lines: list[str], name: str = "train.tsv") -> Path:
    place = folder / TASKS[key].name
    place.mkdir(parents=True, exist_ok=True)
    (place / name).write_text("\n".join([HEADERS[key], *lines]) + "\n", encoding="utf-8")
    return folder


def row(key: str, text: str, pair: str, label: str) -> str:
    task = TASKS[key]
    values = {task.text: text, task.label: label} | ({task.pair: pair} if task.pair else {})
    return "\t".join(values.get(column, "x") for column in HEADERS[key].lstrip("\ufeff").split("\t"))


@pytest.mark.parametrize("key", TASKS)
def test_reads_each_tasks_own_columns(tmp_path, key):
    spelled = TASKS[key].spelled[-1] if TASKS[key].spelled else "3.5"
    rows = read_rows(key, folder=write(tmp_path, key, [row(key, "One cat.", "Two cats.", spelled)]))
    assert rows[0].text == "One cat."
    assert rows[0].pair == ("Two cats." if TASKS[key].pair else None)
    assert rows[0].label == (3.5 if key == "stsb" else len(TASKS[key].labels) - 1)
    assert rows[0].id == "train-0"


@pytest.mark.parametrize(("key", "folder"), [("sst2", "SST-2"), ("stsb", "STS-B"), ("rte", "RTE"), ("mrpc", "MRPC")])
def test_official_row_counts(shared_data, key, folder):
    assert (shared_data / "glue" / folder).is_dir()
    for split, count in (("train", TASKS[key].train_rows), ("dev", TASKS[key].dev_rows)):
        assert len(read_rows(key, split, folder=shared_data / "glue")) == count


def test_official_dev_labels(shared_data):
    glue = shared_data / "glue"
    assert sum(one.label for one in read_rows("mrpc", "dev", folder=glue)) == 279
    assert len(read_rows("mnli", "dev", folder=glue)) == TASKS["mnli"].dev_rows
    for key in ("mrpc", "sst2", "rte", "mnli"):
        labels = [one.label for one in read_rows(key, "dev", folder=glue)]
        assert max(labels.count(k) for k in set(labels)) / len(labels) == pytest.approx(TASKS[key].majority, abs=5e-4)


def test_quotes_are_text(tmp_path):
    lines = [row("rte", 'He said "no', "b", "entailment"), row("rte", "c", 'a "quoted" word"', "not_entailment")]
    rows = read_rows("rte", folder=write(tmp_path, "rte", lines))
    assert [one.text for one in rows] == ['He said "no', "c"]
    assert rows[1].pair == 'a "quoted" word"'


def test_the_tasks_own_folder_and_windows_line_ends(tmp_path):
    write(tmp_path, "sst2", ["fine\t1\r", "poor\t0\r"])
    assert [one.label for one in read_rows("sst2", folder=tmp_path / "SST-2")] == [1, 0]


def test_mnli_dev_is_the_matched_file(tmp_path):
    write(tmp_path, "mnli", [row("mnli", "a", "b", "neutral")], "dev_matched.tsv")
    assert read_rows("mnli", "dev", folder=tmp_path)[0].label == 1


def test_missing_column_is_named(tmp_path):
    folder = write(tmp_path, "rte", ["0\ta\tb\tentailment"])
    file = folder / "RTE" / "train.tsv"
    file.write_text(file.read_text().replace("sentence2", "second"))
    with pytest.raises(InputError, match='no "sentence2"'):
        read_rows("rte", folder=folder)


@pytest.mark.parametrize(
    ("key", "label", "message"),
    [
        ("sst2", "2", 'row 2 of train.tsv has "2"'),
        ("mnli", "-", 'row 2 of train.tsv has "-"'),
        ("stsb", "5.1", "from 0 to 5; row 2"),
        ("stsb", "nan", "from 0 to 5; row 2"),
        ("rte", "-1", "withholds"),
    ],
)
def test_labels_outside_the_set(tmp_path, key, label, message):
    good = TASKS[key].spelled[0] if TASKS[key].spelled else "1"
    folder = write(tmp_path, key, [row(key, "a", "b", good), row(key, "c", "d", label)])
    with pytest.raises(InputError, match=message):
        read_rows(key, folder=folder)


def test_empty_short_and_missing(tmp_path):
    with pytest.raises(InputError, match="train split of SST-2 has none"):
        read_rows("sst2", folder=write(tmp_path, "sst2", []))
    with pytest.raises(InputError, match=r"row 1 of train\.tsv has 1"):
        read_rows("sst2", folder=write(tmp_path, "sst2", ["no label here"]))
    with pytest.raises(InputError, match=r"row 1 of train\.tsv has an empty sentence"):
        read_rows("sst2", folder=write(tmp_path, "sst2", [" \t1"]))
    with pytest.raises(InputError, match=r"MNLI/dev_matched\.tsv"):
        read_rows("mnli", "dev", folder=tmp_path)
    with pytest.raises(InputError, match="test labels"):
        read_rows("sst2", "test", folder=tmp_path)
    (tmp_path / "SST-2" / "train.tsv").write_bytes(b"sentence\tlabel\n\xff\xfe\t1\n")
    with pytest.raises(InputError, match="UTF-8"):
        read_rows("sst2", folder=tmp_path)


def test_qqp_leaves_out_rows_with_missing_columns(tmp_path):
    folder = write(tmp_path, "qqp", ["1\t2\t3\tcut short?", row("qqp", "Why?", "How?", "1")])
    assert [(one.id, one.text) for one in read_rows("qqp", folder=folder)] == [("train-1", "Why?")]


def test_limit_draws_with_the_seed_and_keeps_the_order(tmp_path):
    folder = write(tmp_path, "sst2", [f"word {k}\t{k % 2}" for k in range(50)])
    first, again, other = (read_rows("sst2", folder=folder, limit=10, seed=s) for s in (0, 0, 1))
    assert first == again != other
    numbers = [int(one.id.split("-")[1]) for one in first]
    assert numbers == sorted(set(numbers))
    assert len(numbers) == 10


def test_task_names():
    assert task_of("SST-2") is task_of("sst2") is TASKS["sst2"]
    assert task_of("MNLI-matched").key == "mnli"
    with pytest.raises(InputError, match="cola"):
        task_of("cola")


def test_hub_rows_keep_the_hubs_numbers():
    table = datasets.Dataset.from_dict({"premise": ["p"], "hypothesis": ["h"], "label": [2], "idx": [0]})
    found = hub_rows(TASKS["mnli"], "dev", table)[0]
    assert (found.text, found.pair, TASKS["mnli"].labels[found.label]) == ("p", "h", "contradiction")
    with pytest.raises(InputError, match="row 1 of the hub's dev of MNLI has the label -1"):
        hub_rows(TASKS["mnli"], "dev", table.map(lambda _: {"label": -1}))
    with pytest.raises(InputError, match='row 1 of the hub\'s dev has "3"'):
        hub_rows(TASKS["mnli"], "dev", table.map(lambda _: {"label": 3}))
    with pytest.raises(InputError, match='no "hypothesis"'):
        hub_rows(TASKS["mnli"], "dev", table.remove_columns("hypothesis"))


def test_hub_scores_are_numbers_from_0_to_5():
    table = datasets.Dataset.from_dict({"sentence1": ["a"], "sentence2": ["b"], "label": [3.8]})
    assert hub_rows(TASKS["stsb"], "dev", table)[0].label == 3.8
    with pytest.raises(InputError, match="from 0 to 5; row 1"):
        hub_rows(TASKS["stsb"], "dev", table.map(lambda _: {"label": -1.0}))


def test_no_network_is_one_sentence(monkeypatch):
    def refuse(*_, **__):
        raise OSError("no route")

    monkeypatch.setattr(datasets, "load_dataset", refuse)
    with pytest.raises(InputError, match="Connect to a network"):
        read_rows("sst2", folder="hub")
