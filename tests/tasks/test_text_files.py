"""Running text: every character is in one window, in order, and no window is longer than it may be."""

import random
from itertools import pairwise

import pytest

from core.errors import InputError
from core.models.opening import open_checkpoint
from core.studies.attention.inputs import SourceText, chunks
from core.studies.attention.measures import in_windows
from core.studies.attention.statistics import STUDY, StatisticsOptions
from core.tasks import own
from core.tasks.own import absolute
from tests.studies.through_json import rows_of


@pytest.fixture
def story(tmp_path):
    some = ["the", "engine", "ran", "unbelievably", "far.\n\n", "It", "did", "not"]
    words = random.Random(0).choices(some, k=900)  # noqa: S311
    file = tmp_path / "story.txt"
    file.write_text(" ".join(words), encoding="utf-8")
    return file


def test_stretches_are_the_text_cut_at_white_space(story, monkeypatch):
    monkeypatch.setattr(own, "STRETCH", 100)
    parts = own.stretches(str(story))
    assert "".join(parts) == story.read_text()
    assert all(80 < len(part) <= 100 for part in parts[:-1])
    assert all(part[-1].isspace() or after[0].isspace() for part, after in pairwise(parts))


def test_windows_hold_every_word_once_and_fit_the_checkpoint(story):
    checkpoint = open_checkpoint("atlas-encoder")
    text = story.read_text()
    made = in_windows(
        checkpoint, [SourceText(0, "stretch-0", text, None, windows=True), SourceText(1, "b", "It ran.", None)]
    )
    assert made[-1] == SourceText(1, "b", "It ran.", None)
    windows = made[:-1]
    assert " ".join(part.text for part in windows).split() == text.split()
    lengths = [len(checkpoint.encode(part.text)) for part in windows]
    assert all(checkpoint.encode(part.text).cut == 0 for part in windows)
    assert min(lengths[:-1]) > checkpoint.max_length - 8
    assert len({part.number for part in windows}) == len(windows)


def test_words_without_white_space_are_cut_where_they_must():
    parts = list(own.windows("x" * 95, 1, lambda part: min(10, len(part))))
    assert [len(part) for part in parts] == [10] * 9 + [5]


def test_a_file_is_units_of_its_own_and_named_by_its_path(story, monkeypatch):
    monkeypatch.setattr(own, "STRETCH", 1000)
    made = chunks(StatisticsOptions(tasks=(str(story),), limit=1))
    assert len(made) == len(own.stretches(str(story)))
    assert {chunk.inputs for chunk, _ in made} == {str(story)}
    assert absolute("~/a.txt").startswith("/")


@pytest.mark.thorough
def test_statistics_of_a_file_count_its_windows(story):
    options = StatisticsOptions(tasks=(str(story),))
    (unit,) = STUDY.units(options)
    done = STUDY.run(options, unit)
    rows = STUDY.rows(options, STUDY.merge(options, [done.partial]))
    checkpoint = open_checkpoint("atlas-encoder")
    count = len(in_windows(checkpoint, [SourceText(0, "s", story.read_text(), None, windows=True)]))
    assert {row["n"] for row in rows if row["statistic"] == "entropy"} == {count}
    assert {row["task"] for row in rows} == {str(story)}


@pytest.mark.thorough
@pytest.mark.parametrize("study", ["effective", "norms", "why"])
def test_studies_with_passes_of_their_own_read_every_window_too(study, story):
    checkpoint = open_checkpoint("atlas-encoder")
    count = len(in_windows(checkpoint, [SourceText(0, "s", story.read_text(), None, windows=True)]))
    rows = [row for row in rows_of(study, {"tasks": [str(story)]}) if row.get("head") is not None and row["n"]]
    assert count > 1
    assert {row["n"] for row in rows if row.get("statistic") in ("raw", "entropy", "score share")} == {count}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "must have visible characters"),
        (b"  \n ", "must have visible characters"),
        (b"\xff\xfe\xfa", "must be text in UTF-8"),
    ],
)
def test_what_is_no_text_is_refused_in_a_sentence(content, sentence, tmp_path):
    file = tmp_path / "a.txt"
    file.write_bytes(content)
    with pytest.raises(InputError, match=sentence):
        own.stretches(str(file))


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match=r"nothing\.txt cannot be read \(No such file or directory\)"):
        own.stretches(str(tmp_path / "nothing.txt"))
