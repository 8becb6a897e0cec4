"""The maps page without a browser: what it says to odd input, and what it sends to the grid."""

import json

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from core import config
from core.atlas import example
from core.drawing.panes import Pane, difference, telling_head
from core.drawing.payload import FULL, as_bytes, difference_as_bytes, packed
from pages.parts.maps import maps_grid
from pages.parts.shell import resources, shell, url
from tests.pages.opening import switched

pytestmark = pytest.mark.skipif(
    not (config.BUNDLED_MODELS / "atlas-encoder").is_dir(), reason="the bundled encoder is not in data/models"
)


@pytest.fixture
def app(tmp_path, monkeypatch) -> AppTest:
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    resources.database.clear()
    yield opened()
    resources.database.clear()


def opened(**link: str) -> AppTest:
    made = AppTest.from_file(shell.__file__, default_timeout=180)  # the first run imports torch, on a busy machine too
    switched(made, "maps")
    for name, value in link.items():
        made.query_params[name] = value
    return made.run()


def said(app: AppTest) -> str:
    return " ".join(element.value for kind in (app.error, app.warning, app.info, app.caption) for element in kind)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "text",
    [
        "naïve 🙂👩‍👩‍👧 emoji",
        "שלום עולם مرحبا",
        "nul\x00byte",
        "<script>alert(1)</script>",
        "$x^2$ **b** [a](b)",
        "word " * 10_000,
    ],
    ids=["emoji", "right to left", "NUL", "script", "markdown", "10,000 words"],
)
def test_odd_text_is_shown_or_refused_in_a_sentence_and_never_lost(app, text):
    app.text_input(key="text").set_value(text).run()
    assert not app.exception
    assert app.text_input(key="text").value == text
    assert "tokens" in said(app)
    assert "An error in Attention Atlas" not in said(app)


def test_what_was_cut_is_said_with_numbers(app):
    app.text_input(key="pair").set_value("")
    app.text_input(key="text").set_value("word " * 500).run()
    assert "longer than 128 tokens" in app.warning[0].value
    assert "374 tokens were cut off" in app.warning[0].value


def test_a_hub_model_that_cannot_be_fetched_is_named_below_the_fields(app):
    app = opened(checkpoint="no/such-model-anywhere", text="A sentence.")
    assert not app.exception
    assert not app.error
    assert "no/such-model-anywhere" in " ".join(one.value for one in app.markdown).replace("\\", "")
    assert app.text_input(key="text").value == "A sentence."


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("/no/such/folder", "bundled name"),
        ("..", "config"),
        ("<b>x</b>", "bundled name"),
    ],
)
def test_a_checkpoint_that_does_not_open_is_one_sentence(app, name, expected):
    app = opened(checkpoint=name, text="A sentence.")
    assert not app.exception
    assert len(app.error) == 1
    assert expected in app.error[0].value.replace("\\", "")
    assert "An error in Attention Atlas" not in app.error[0].value
    assert app.text_input(key="text").value == "A sentence."


def test_an_example_fills_the_fields(app):
    app.text_input(key="text").set_value("").run()
    next(button for button in app.button if button.label == "A pair").click().run()
    assert app.text_input(key="text").value.startswith("The company")
    assert app.text_input(key="pair").value.startswith("Profits")
    assert "one input (n = 1)" in said(app)


def test_a_sample_row_fills_the_fields(app):
    app.selectbox(key="row_task").set_value("mrpc").run()
    app.button(key="row_use").click().run()
    assert app.text_input(key="text").value
    assert app.text_input(key="pair").value


def test_words_join_pieces(app):
    app.text_input(key="pair").set_value("")
    app.text_input(key="text").set_value("Incomprehensibilities delight.").run()
    pieces = said(app)
    app.segmented_control(key="unit").set_value("words").run()
    assert "4 words" in said(app)
    assert "4 pieces" not in pieces


def test_the_payload_holds_every_weight_to_sixteen_bits():
    maps = np.random.default_rng(0).random((2, 3, 5, 5)).astype(np.float32)
    payload = packed({"tokens": ["a", "ü", "🙂"]}, [as_bytes(maps)])
    size = int.from_bytes(payload[:4], "little")
    assert size % 2 == 0  # so that the browser reads the weights in place
    assert json.loads(payload[4 : 4 + size]) == {"tokens": ["a", "ü", "🙂"]}
    read = np.frombuffer(payload[4 + size :], "<u2").reshape(maps.shape) / FULL
    np.testing.assert_allclose(read, maps, atol=0.5 / FULL + 1e-7)


def test_a_link_with_nonsense_opens_the_usual_view(app):
    app = opened(score="nonsense", least="x", scale="absolute", head="L99H99", text="A sentence.")
    assert not app.exception
    assert not app.error


def test_a_link_from_another_page_wins_over_what_the_session_had(app):
    app = opened(text="A sentence.", head="L1H1")
    assert app.session_state["grid_opened"]["head"] == "L1H1"
    switched(app, "results/jobs").run()
    app.query_params["text"], app.query_params["head"] = "Another one.", "L2H2"
    switched(app, "maps").run()
    assert app.text_input(key="text").value == "Another one."
    assert app.session_state["grid_opened"]["head"] == "L2H2"


def test_the_view_that_is_as_usual_stays_out_of_the_link(monkeypatch):
    kept = {"head": "L1H1", "text": "x"}
    monkeypatch.setattr(url.st, "query_params", kept)
    view = {"head": "L2H2", "score": "entropy", "show": "layers", "least": 0, "scale": "own"}
    maps_grid.keep_view(view, "L2H2", "absolute")
    assert kept == {"text": "x", "score": "entropy", "scale": "own", "head": ""}  # one entry of the history, not two
    maps_grid.keep_view(view | {"scale": "absolute"}, "L2H2", "own")
    assert kept.get("scale") == "absolute", "of a long input the other scale is the usual one"
    maps_grid.keep_view(view, "L2H2", "own")
    assert "scale" not in kept


@pytest.mark.parametrize(("tokens", "scale"), [(63, "absolute"), (64, "own")])
def test_maps_of_64_tokens_and_more_open_on_the_scale_of_each_map(tokens, scale):
    pane = maps_grid.Pane("m", 1, 1, ("a",) * tokens, b"\0\0" * tokens**2, causal=False)
    assert maps_grid.header_of([pane], caption="")["usual"]["scale"] == scale


def test_the_stored_example_is_what_the_bundled_encoder_computes():
    from core.capture.running import capture
    from core.models.opening import open_checkpoint

    kept = example.stored(config.ENCODER, example.TEXT, example.PAIR)
    assert kept, "the bundled encoder changed: python -m data.recipes.example_maps captures the example anew"
    encoder = open_checkpoint(config.ENCODER)
    encoding = encoder.encode(example.TEXT, example.PAIR)
    assert kept.encoding == encoding
    np.testing.assert_allclose(kept.maps.weights, capture(encoder, encoding).weights, atol=1e-5)


def test_an_example_of_other_weights_is_not_shown(tmp_path, monkeypatch):
    kept = example.stored(config.ENCODER, example.TEXT, example.PAIR)
    monkeypatch.setattr(example, "FILE", tmp_path / "maps.npz")
    example.write(kept.encoding, kept.maps, "another hash", example.FILE)
    assert example.stored(config.ENCODER, example.TEXT, example.PAIR) is None
    assert example.stored(config.ENCODER, "Another text.", None) is None


def test_a_difference_is_sent_to_sixteen_bits_and_says_why_there_is_none():
    rng = np.random.default_rng(1)
    first, second = rng.random((2, 2, 3, 4, 4)).astype(np.float32)
    sent = np.frombuffer(difference_as_bytes(first, second), "<u2").reshape(first.shape)
    np.testing.assert_allclose(sent / 32767.0 - 1, first - second, atol=1e-4)
    assert (np.frombuffer(difference_as_bytes(first, first), "<u2") == 32767).all()
    one = Pane("one", 2, 3, tuple("abcd"), b"")
    assert difference(one, one, (first, second)).tokens == tuple("abcd")
    other = Pane("other", 2, 3, tuple("abx"), b"")
    assert "one has 4 tokens, and other has 3." in difference(one, other, (first, second))
    wider = Pane("other", 2, 4, tuple("abcd"), b"")
    assert "other has 2 of 4." in difference(one, wider, (first, second))


def test_even_attention_is_the_baseline_of_each_score():
    shown = resources.shown(config.ENCODER, example.TEXT, example.PAIR)
    pane, length = maps_grid.pane_of(shown, "encoder"), len(shown.maps)
    assert pane.even["first"] == pytest.approx(1 / length)
    assert pane.even["separator"] == pytest.approx(2 / length)
    assert pane.even["normalised entropy"] == pytest.approx(1)
    assert telling_head(shown.scores) == "L2H2"
