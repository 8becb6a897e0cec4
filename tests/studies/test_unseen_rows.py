"""Rows that a fine-tuned checkpoint never saw: which they are, and that a sweep takes them."""

import json
from types import SimpleNamespace

import pytest

from core.errors import InputError
from core.studies.ablation import prune, setup
from core.tasks.glue import TaskRow, drawn, fingerprint, read_rows, unseen


def row(name, text, pair=None):
    return TaskRow(name, text, pair, 0)


LEARNED = [row("train-0", "A film of great charm and wit"), row("train-1", "dull", "nothing happens for two hours")]


def test_a_left_out_row_is_taken_where_no_four_words_in_a_row_were_learned():
    left = {
        "a piece of one that was learned": ("of great charm and", False),
        "the same in capitals": ("OF GREAT CHARM AND nothing else", False),
        "of the other sentence": ("where nothing happens for two of them", False),
        "three words alike": ("of great charm but dull", True),
        "too short to say": ("great charm and", False),
        "nothing alike": ("it never once finds its feet", True),
    }
    rows = [row(name, text) for name, (text, _) in left.items()]
    dev = [row("dev-0", "of great charm and wit")]
    taken = unseen(dev, [*LEARNED, *rows], LEARNED)
    assert [one.id for one in taken] == ["dev-0", *(name for name, (_, wanted) in left.items() if wanted)]


def made(folder, texts, learned, facts):
    (folder / "SST-2").mkdir(parents=True)
    for split, some in texts.items():
        lines = "".join(f"{text}\t{k % 2}\n" for k, text in enumerate(some))
        (folder / "SST-2" / f"{split}.tsv").write_text(f"sentence\tlabel\n{lines}")
    rows = drawn(read_rows("sst2", "train", folder=folder), learned, 3)
    hashed = {"train_rows_hash": fingerprint(rows), "recipe": {"train_limit": learned}, "seeds": {"rows": 3}} | facts
    (folder / "training.json").write_text(json.dumps(hashed))
    (folder / "config.json").write_text(json.dumps({"model_type": "bert"}))
    (folder / "model.safetensors").write_text("")
    return {one.id for one in rows}


TEXTS = {
    "train": [f"row {k} is {k} words {k} long {k}" for k in range(9)],
    "dev": ["a row of the other split", "and one more of them"],
}


def test_a_sweep_takes_them_by_what_the_checkpoint_says_it_was_fine_tuned_on(tmp_path):
    learned = made(tmp_path, TEXTS, 4, {})
    asked = SimpleNamespace(
        checkpoint=str(tmp_path), task="sst2", data=str(tmp_path), split="unseen", limit=None, seed=0
    )
    ids = [one.id for one in setup.rows_of(asked)]
    assert ids[:2] == ["dev-0", "dev-1"]
    assert set(ids[2:]) == {one.id for one in read_rows("sst2", "train", folder=tmp_path)} - learned
    asked.limit = 3
    assert len(setup.rows_of(asked)) == 3


def test_an_order_of_pruning_is_not_tested_on_rows_that_may_have_chosen_it():
    for split in ("unseen", "train"):
        with pytest.raises(InputError, match=f'"{split}" contains training examples. Choose the split dev'):
            prune.STUDY.units(prune.PruneOptions("atlas-encoder-sst2", "sst2", split=split))


@pytest.mark.parametrize("facts", [{"train_rows_hash": "another"}, None])
def test_of_other_rows_or_no_log_it_is_refused_in_one_sentence(tmp_path, facts):
    made(tmp_path, TEXTS, 4, facts or {})
    if facts is None:
        (tmp_path / "training.json").write_text("[")
    with pytest.raises(InputError, match="does not name these training examples of sst2"):
        setup.rows_unseen_by(str(tmp_path), "sst2", str(tmp_path))
