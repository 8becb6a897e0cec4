"""The bundled pipeline tags English; words meet texts by characters; other pipelines are checked before use."""

import pytest
import spacy

from core import config
from core.errors import InputError
from core.studies.tagging import open_pipeline, tag

ODD = [
    "",
    " ",
    "naïve ﬁne",
    "a\u200bb c",
    "👍🏽 fine 👨‍👩‍👧",
    "שלום עולם",
    "nul\x00byte",
    "<script>alert(1)</script>",
    "  two  spaces ",
]


@pytest.fixture(scope="module")
def pipeline():
    return open_pipeline()


def test_the_bundled_pipeline_tags_and_parses(pipeline):
    [found] = tag(["The old dog didn't bite the children."], pipeline)
    words = {word.text: word for word in found.words}
    assert [words[name].tag for name in ("The", "dog", "bite", "children")] == ["DT", "NN", "VB", "NNS"]
    assert (words["dog"].dep, found.words[words["dog"].head].text) == ("nsubj", "bite")
    assert (words["children"].dep, found.words[words["children"].head].text) == ("obj", "bite")
    assert words["bite"].dep == "root"


@pytest.mark.parametrize("text", ODD)
def test_characters_are_those_of_the_text(pipeline, text):
    [found] = tag([text], pipeline)
    assert found.text == text
    assert all(text[word.start : word.end] == word.text and word.text.strip() for word in found.words)
    assert all(0 <= word.head < len(found.words) for word in found.words)


@pytest.mark.thorough
def test_a_text_is_tagged_once(monkeypatch):
    pipeline = open_pipeline()
    seen = []
    real = pipeline.pipe
    monkeypatch.setattr(pipeline, "pipe", lambda texts, **options: real(seen.extend(texts) or texts, **options))
    first = tag(["One dog.", "Two dogs.", "One dog."], pipeline)
    again = tag(["Two dogs.", "Three dogs."], pipeline)
    assert seen == ["One dog.", "Two dogs.", "Three dogs."]
    assert first[0] == first[2]
    assert again[0] is first[1]


@pytest.mark.thorough
def test_a_pipeline_without_a_parser_says_so(tmp_path):
    blank = spacy.blank("en")
    blank.to_disk(tmp_path / "blank")
    with pytest.raises(InputError, match=r"has no dependency parser.*Choose another pipeline, such as atlas-english"):
        open_pipeline(str(tmp_path / "blank"))


def test_names_that_lead_nowhere_and_folders_that_are_no_pipeline(tmp_path):
    with pytest.raises(InputError, match=r'got "en_core_nowhere"'):
        open_pipeline("en_core_nowhere")
    with pytest.raises(InputError, match=r"cannot be opened"):
        open_pipeline(str(tmp_path))
    with pytest.raises(InputError, match="embedded null byte"):
        open_pipeline("a\x00b")


def test_the_bundled_pipeline_is_small_plain_and_holds_no_words_of_its_treebank():
    folder = config.BUNDLED_MODELS / config.ENGLISH
    files = [file for file in folder.rglob("*") if file.is_file()]
    assert sum(file.stat().st_size for file in files) <= 10_000_000
    assert not [file for file in files if file.suffix in {".pkl", ".pickle", ".pt", ".bin"}]
    assert "jurists" not in (folder / "vocab" / "strings.json").read_text()
