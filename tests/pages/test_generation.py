"""The page of generation, and encoder-decoders and long prompts on the page of maps, without a browser."""

import json

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from core import config
from pages.parts.maps import maps_grid
from pages.parts.shell import resources, shell
from pages.parts.shell.resources import SizedCache
from tests.capture.conftest import tiny
from tests.pages.opening import switched

pytestmark = pytest.mark.skipif(
    not (config.BUNDLED_MODELS / "atlas-translator").is_dir(), reason="the bundled checkpoints are not in data/models"
)


@pytest.fixture
def sent(monkeypatch):
    """The headers of the payloads that workbenches were given, in order."""
    headers = []

    def workbench(*, data, **_):
        size = int.from_bytes(data[:4], "little")
        headers.append(json.loads(data[4 : 4 + size]))
        return type("Result", (), {"view": None})()

    monkeypatch.setattr(maps_grid, "_workbench", workbench)
    return headers


@pytest.fixture
def app(tmp_path, monkeypatch, sent):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    resources.database.clear()
    yield lambda page, **link: opened(page, link)
    resources.database.clear()


def opened(page, link):
    made = switched(AppTest.from_file(shell.__file__, default_timeout=180), page)
    for name, value in link.items():
        made.query_params[name] = value
    return made.run()


def said(app):
    shown = (app.error, app.warning, app.info, app.caption, app.markdown)
    return " ".join(one.value for kind in shown for one in kind).replace("\\", "")


def test_the_maps_grow_with_the_step(app, sent):
    page = app("maps/generation")
    assert not page.exception
    length = len(sent[-1]["panes"][0]["tokens"])
    page.slider(key="step").set_value(3).run()
    prompt = int(said(page).split(" prompt tokens")[0].split()[-1])
    assert len(sent[-1]["panes"][0]["tokens"]) == prompt + 3 < length
    assert "which had a probability of" in said(page)
    page.number_input(key="new_tokens").set_value(500).run()
    assert "must fit into the context" in said(page)


def test_a_checkpoint_without_a_template_or_a_language_head_is_told_in_a_sentence(app):
    page = app("maps/generation")
    page.toggle(key="chat").set_value(True).run()
    assert "has none. Type the prompt as plain text" in said(page)
    page.selectbox(key="checkpoint").set_value("atlas-encoder").run()
    page.toggle(key="chat").set_value(False).run()
    assert "needs a decoder with a language model head" in said(page)


def test_an_encoder_decoder_has_three_sets_of_heads_on_the_maps_page(app, sent):
    page = app("maps", checkpoint="atlas-translator", text="the red dog sees a cat")
    assert not page.exception
    pane = sent[-1]["panes"][0]
    assert (pane["part"], pane["layers"], pane["heads"]) == ("Cross", 3, 4)
    assert pane["keyTokens"] == ["the", "red", "dog", "sees", "a", "cat", "</s>"]
    assert pane["tokens"] == ["<s>", "ul", "kavo", "zin", "en", "miru", "opata"]  # its own translation
    assert "sees all 7 tokens of the source" in said(page)
    page.segmented_control(key="part").set_value("encoder").run()
    assert sent[-1]["panes"][0]["part"] == "Enc"
    assert sent[-1]["usual"]["head"].startswith("Enc L")


@pytest.mark.thorough
def test_a_long_prompt_is_drawn_in_blocks_with_a_window_of_exact_weights(app, sent, tmp_path):
    checkpoint = tiny("gpt2")  # 1,024 positions
    checkpoint.model.save_pretrained(tmp_path / "gpt2")
    checkpoint.tokenizer.save_pretrained(tmp_path / "gpt2")
    page = app("maps", checkpoint=str(tmp_path / "gpt2"), text="the old dog ran " * 60)
    assert not page.exception
    assert not page.error, page.error[0].value
    blocks, window = sent[-2]["panes"][0], sent[-1]["panes"][0]
    assert blocks["block"] > 1
    assert (window["named"], len(window["tokens"]), len(window["keyTokens"])) == ("L1H1", 64, 64)
    page.text_input(key="text").set_value("the old dog ran " * 900).run()
    assert "must fit into the context" in said(page)


def test_a_shelf_lets_go_of_what_was_not_asked_for_longest_when_bytes_run_out():
    made = []
    shelf = SizedCache(lambda: 100)

    def get(name, size):
        return shelf.get(name, lambda: made.append(name) or name, lambda _: size)

    for name, size in (("a", 40), ("b", 40), ("a", 40), ("c", 40)):
        assert get(name, size) == name
    assert made == ["a", "b", "c"]  # a was kept
    get("b", 40)  # was let go of, because it was not asked for longest
    assert made == ["a", "b", "c", "b"]
    assert shelf.size == 80
    get("large", 500)
    assert len(shelf) == 1
    shelf.make_room(10)
    assert len(shelf) == 0


def test_weights_of_a_window_are_read_to_the_last_digit_that_is_shown():
    weights = np.array([[0.12345, 0.9]], dtype=np.float32)
    from core.drawing.payload import FULL, as_bytes

    assert np.abs(np.frombuffer(as_bytes(weights), "<u2") / FULL - weights.ravel()).max() < 1e-5
