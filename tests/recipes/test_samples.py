import random
from collections import Counter

import pytest
from scipy.sparse import hstack
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

from core import config
from core.tasks.glue import TASKS, read_rows
from data.recipes.sample_words import say, sentence
from data.recipes.samples import files, sentences_of


@pytest.fixture(scope="module")
def written():
    return files()


def texts(key: str, split: str, folder=None) -> set[str]:
    return {one.strip().lower() for row in read_rows(key, split, folder=folder) for one in (row.text, row.pair) if one}


@pytest.mark.thorough
def test_the_generator_is_the_record(written):
    on_disk = {str(file.relative_to(config.SAMPLES)): file.read_bytes() for file in config.SAMPLES.rglob("*.tsv")}
    assert on_disk == {name: text.encode() for name, text in written.items()}


@pytest.mark.parametrize("key", TASKS)
def test_sizes_balance_and_lengths(key):
    train, dev = read_rows(key, "train"), read_rows(key, "dev")
    assert len(train) >= 240
    assert len(dev) >= 80
    lengths = [len(f"{row.text} {row.pair or ''}".split()) for row in train]
    assert 0.05 < sum(length >= 30 for length in lengths) / len(lengths) < 0.5
    if TASKS[key].labels:
        counts = Counter(row.label for row in dev)
        assert set(counts) == set(range(len(TASKS[key].labels)))
        assert max(counts.values()) / len(dev) < 1.3 / len(counts)
    else:
        assert len({row.label for row in dev}) > 10


@pytest.mark.parametrize("key", TASKS)
def test_train_and_dev_share_no_sentence(key):
    train, dev = (
        set().union(*(sentences_of((row.text, row.pair, 0)) for row in read_rows(key, split)))
        for split in ("train", "dev")
    )
    assert not train & dev


@pytest.mark.parametrize("key", ["mrpc", "stsb", "sst2", "rte"])
def test_no_row_of_glue(shared_data, key):
    ours = texts(key, "train") | texts(key, "dev")
    theirs = texts(key, "train", shared_data / "glue") | texts(key, "dev", shared_data / "glue")
    assert theirs
    assert not ours & theirs


def test_no_row_of_mnli(shared_data):
    assert not (texts("mnli", "train") | texts("mnli", "dev")) & texts("mnli", "dev", shared_data / "glue")


@pytest.mark.parametrize("key", ["mrpc", "rte"])
def test_word_counts_do_not_solve(key):
    train, dev = read_rows(key, "train"), read_rows(key, "dev")
    counter = CountVectorizer(token_pattern=r"\S+").fit([f"{row.text} {row.pair}" for row in train])

    def bags(rows):
        first, second = (counter.transform([getattr(row, side) for row in rows]) for side in ("text", "pair"))
        return hstack([first, second, first.minimum(second), abs(first - second)]).tocsr()

    model = LogisticRegression(max_iter=300).fit(bags(train), [row.label for row in train])
    assert model.score(bags(dev), [row.label for row in dev]) < 0.6


def test_grammar_binds_names_and_spells():
    found = say("{a=person} met {b=person} and {a}", random.Random(0))  # noqa: S311
    first, _, second, _, third = found.split()
    assert first == third != second
    assert sentence("a  apple and a union. i was there") == "An apple and a union. I was there."
