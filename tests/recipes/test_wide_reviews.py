"""Wide reviews: more words than the bundled rows have, and a dev.tsv of words that no train row has."""

from core.tasks.glue import read_rows
from data.recipes.bag_of_words import right
from data.recipes.sample_words import WORDS
from data.recipes.wide_reviews import every_word, files, is_held


def test_words_of_the_bundled_rows_are_among_three_times_as_many():
    words = every_word()
    assert all(set(WORDS[name]) < set(known) for name, known in words.items())
    bundled, wide = (sum(len(known) for known in lists) for lists in ([WORDS[name] for name in words], words.values()))
    assert wide > 2.5 * bundled
    both = [set(words["adj_good"]) & set(words["adj_bad"]), set(words["adv_good"]) & set(words["adv_bad"])]
    assert both == [set(), set()]  # no word says both


def test_a_held_word_of_praise_is_in_no_train_row():
    made = files(60, held=True)
    held = {word for word in every_word()["adj_good"] if is_held(word) and " " not in word}
    train = set(made["train.tsv"].split())
    assert held
    assert not held & (
        train
        - {
            word
            for name, known in every_word().items()
            if name != "adj_good"
            for part in known
            for word in part.split()
        }
    )
    assert files(60) == files(60)
    assert made["dev.tsv"].count("\n") == 601


def test_a_bag_of_words_reads_the_bundled_reviews_as_the_docs_say():
    train, dev = (read_rows("sst2", split) for split in ("train", "dev"))
    assert round(100 * right(train, dev), 1) == 84.0
