"""The frames page without a browser: proposals, both directions, odd input, sets and search."""

import io
import json

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from core import config
from core.store import frames, runs
from pages.parts.frames import lookup
from pages.parts.shell import resources, shell
from tests.pages.opening import switched

pytestmark = pytest.mark.skipif(
    not (config.BUNDLED_MODELS / "atlas-encoder").is_dir(), reason="the bundled encoder is not in data/models"
)
SENTENCE = "The old teacher was getting angry about the noise."


@pytest.fixture
def app(tmp_path, monkeypatch) -> AppTest:
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    resources.database.clear()
    yield switched(AppTest.from_file(shell.__file__, default_timeout=120).run(), "linguistics/frames").run()
    resources.database.clear()


def said(app: AppTest) -> str:
    return " ".join(one.value for kind in (app.error, app.warning, app.info, app.caption, app.markdown) for one in kind)


def in_url(app: AppTest, name: str) -> str:
    value = app.query_params[name]
    return value if isinstance(value, str) else value[0]


def click(app: AppTest, target: list[int], element: list[int]) -> AppTest:
    """As clicks on the words of SENTENCE leave it, whose proposals are "angry" and "The old teacher"."""
    key = f"{SENTENCE}|[5]|[0, 1, 2]"
    app.session_state["sentence"] = {"marked": {"key": key, "target": target, "element": element}}
    return app.run()


@pytest.mark.thorough
def test_a_sentence_proposes_its_target_frame_and_element(app):
    app.text_input(key="text").set_value(SENTENCE).run()
    assert not app.exception
    chosen = {one.label: one.value for one in app.selectbox}
    words = SENTENCE.rstrip(".").split()
    assert words.index("angry") == 5
    assert app.selectbox(key=f"frame|{SENTENCE}").options[0] == "angry: Emotion_directed (angry.a)"
    assert next(one for one in app.selectbox if one.label == "Element").options[0] == (
        "Experiencer: The old teacher (subject)"
    )
    assert chosen["Target and frame"] == 0
    table = app.dataframe[0].value
    assert next(iter(table["rank"])) == 1
    assert "Emotion_directed" in said(app).replace("\\", "")


@pytest.mark.thorough
def test_examples_are_offered_beside_any_sentence_and_fill_the_field(app):
    for example in (lookup.EXAMPLES[1], lookup.EXAMPLES[0]):
        next(one for one in app.button if one.label == example).click().run()
        assert app.text_input(key="text").value == example
        assert f"frame|{example}" in [one.key for one in app.selectbox]
        assert [one.disabled for one in app.button if one.label in lookup.EXAMPLES].count(True) == 1
    app.text_input(key="text").set_value("").run()
    assert [one.label for one in app.button if one.label in lookup.EXAMPLES and not one.disabled] == [*lookup.EXAMPLES]


@pytest.mark.thorough
def test_clicking_other_words_changes_the_link(app):
    app.text_input(key="text").set_value(SENTENCE).run()
    before = app.dataframe[0].value["score"].tolist()
    words = SENTENCE.rstrip(".").split()
    click(app, [5], [words.index("noise")])
    assert app.dataframe[0].value["score"].tolist() != before
    assert (in_url(app, "target"), in_url(app, "element")) == ("6", "9")
    click(app, [5], [])
    assert "click the word that evokes a frame" in said(app)
    click(app, [3], [0])
    assert "No frame is known for “was”" in said(app)
    assert "no frame" in said(app)  # and none is invented


@pytest.mark.thorough
def test_a_link_opens_the_words_that_were_clicked(app):
    app.query_params.update({"text": SENTENCE, "target": "6", "element": "9", "frame": "Emotion_directed"})
    app.text_input(key="text").set_value(SENTENCE).run()
    assert not app.exception
    assert app.selectbox(key=f"frame|{SENTENCE}").value == 0
    assert "“noise”" in said(app)
    assert in_url(app, "element") == "9"
    app.query_params["target"] = "x,99999,0,-1"
    app.text_input(key="text").set_value("He was angry.").run()
    assert not app.exception
    assert "“He”" in said(app)


def test_a_decoder_names_the_direction_it_does_not_have(app):
    app.selectbox(key="checkpoint").set_value("atlas-decoder")
    app.text_input(key="text").set_value(SENTENCE).run()
    assert "always 0" in said(app)
    assert app.radio[0].options == [
        "rank heads by target → element (the target is the query, as in the text of Kovaleva et al. 2019)"
    ]
    assert len(app.dataframe) == 1


@pytest.mark.thorough
def test_two_checkpoints_stand_side_by_side(app):
    app.selectbox(key="beside").set_value("atlas-decoder")
    app.text_input(key="text").set_value(SENTENCE).run()
    assert len(app.dataframe) == 2
    assert len(app.radio) == 1, "one direction ranks both"
    drawn = [json.loads(one.proto.spec) for one in app.get("vega_lite_chart")]
    pictures = [chart for chart in drawn if "Head" in json.dumps(chart["layer"][0]["encoding"]["x"])]
    scales = [chart["layer"][0]["encoding"]["color"]["scale"]["domain"] for chart in pictures]
    assert len(pictures) == 3, "the decoder sees one direction"
    assert all(scale == scales[0] for scale in scales), "one scale for both"
    fields = {chart["layer"][0]["encoding"]["color"]["field"] for chart in pictures}
    assert fields == {"difference"}, "the colour is what ranks the heads and what the answer compares"
    strips = [chart for chart in drawn if "Token:N" in json.dumps(chart) or '"Token"' in json.dumps(chart["layer"][0])]
    assert len(strips) == 2
    for strip in strips:  # the two words that it is about are not left out
        assert strip["layer"][0]["encoding"]["x"]["axis"]["labelOverlap"] is False


@pytest.mark.thorough
def test_rings_mark_the_first_of_the_ranking_and_no_other_heads(app, monkeypatch):
    ringed, draw = {}, lookup.head_picture

    def drawn(frame, shade, *, title, highlight, **options):
        ringed[title] = [str(head) for head in highlight]
        return draw(frame, shade, title=title, highlight=highlight, **options)

    monkeypatch.setattr(lookup, "head_picture", drawn)
    app.text_input(key="text").set_value(SENTENCE).run()
    table = app.dataframe[0].value.sort_values("rank")
    ranked = app.radio[0].options[0].removeprefix("rank heads by ").split(" (")[0]
    assert ringed[ranked] == list(table["name"].head(3))


@pytest.mark.thorough
@pytest.mark.parametrize(
    "text",
    [
        "🙂",
        "שלום עולם مرحبا",
        "nul\x00byte here",
        "<script>alert(1)</script> ran",
        "$x$ **b** [a](b)",
        "word " * 60,
        "a",
    ],
)
def test_odd_text_is_shown_or_refused_in_a_sentence(app, text):
    app.text_input(key="text").set_value(text).run()
    assert not app.exception
    assert said(app)


@pytest.mark.thorough
def test_a_set_is_scored_as_a_job_and_its_survivors_are_the_headline(app):
    """The rows are stored as a job would, so that no worker is started here; the browser test starts one."""
    from core.studies.contract import as_json
    from core.studies.frames.frame_heads import STUDY, chosen, score_sentences

    options = STUDY.read({"draws": 99})
    sentences = chosen(options)[0].kept[:12]
    rows = STUDY.summarize(options, [score_sentences(resources.checkpoint("atlas-encoder"), sentences, options)])
    db = resources.database()
    run = runs.record_run(db, "frame-heads", as_json(options), runs.Provenance(checkpoint="atlas-encoder"))
    runs.store_rows(db, run, rows)
    app.session_state["mode"] = "A set of sentences"
    app.run()
    assert not app.exception
    assert f"{len(rows[0]['survivors'])} of 36 heads" in said(app)
    assert "It is not a significance test" in said(app)
    assert "n = 12 sentences" in said(app)
    assert next(iter(app.dataframe[0].value["name"])) == rows[1]["name"]
    assert set(app.dataframe[1].value["sentence"]) == {one.text for one in sentences}


@pytest.mark.thorough
def test_a_search_takes_its_sentences_over_as_a_set(app):
    rows = [
        {
            "id": f"r:{k}",
            "text": f"He was {word} now",
            "target": [[7, 7 + len(word)]],
            "frame": "Emotion_directed",
            "lexical_unit": f"{word}.a",
            "elements": [{"name": "Experiencer", "spans": [[0, 2]]}],
        }
        for k, word in enumerate(("angry", "agitated"))
    ]
    frames.replace_release(resources.database(), "fndata-1.5", rows, folder="/x", run="r", skipped=[])
    app.session_state["mode"] = "Search FrameNet"
    app.run()
    assert "CC BY 3.0" in said(app)
    app.text_input(key="search_unit").set_value("agit").run()
    assert list(app.dataframe[0].value["text"]) == ["He was agitated now"]
    next(one for one in app.button if one.label.startswith("Test heads on these sentences")).click().run()
    assert not app.exception
    assert json.loads(app.session_state["_frame_found"])["id"] == "r:1"
    assert "1 sentence found by the search will be used." in said(app)


def test_the_table_of_a_lookup_can_be_read_by_pandas():
    """What the CSV button hands out."""
    from core.studies.frames.frame_lookup import LinkPicture

    one = LinkPicture("element_to_target", np.eye(2), np.zeros((2, 2)), np.ones((2, 2)), 3, True, (1,), (2,))
    again = pd.read_csv(io.StringIO(pd.DataFrame(one.rows()).to_csv(index=False)))
    assert list(again["name"])[:2] == ["L1H1", "L2H2"]
