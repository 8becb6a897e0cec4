"""A head's page in one file: all that the page says, small, and no text of it becomes markup."""

import re

import numpy as np
import pandas as pd
import pytest

from core import config
from core.atlas import example
from core.atlas.example import example_grid, example_grids
from core.atlas.head import Gallery, Shelved, head_page
from core.attention import Head
from core.capture.running import capture
from core.drawing.packing import Grid
from core.errors import CheckpointError, InputError
from core.models.opening import open_checkpoint
from core.studies.hypotheses.records import JudgedHypothesis
from tests.atlas.criteria_made import met
from tests.atlas.test_head import frame
from tests.drawing.made import random_pane
from tests.drawing.test_page import EVIL, restored

SCORES = frame(
    {"score": "pattern-shares/class share/Diagonal", "value": 0.97},
    {"score": "roles/previous", "value": 0.99, "low": 0.98, "high": 0.995, "q": 0.001},
)
ROWS = pd.DataFrame([{"what": EVIL, "value": 0.99, "low": np.nan, "n": pd.NA}])


def gallery(count, length):
    weights = np.full((length, length), 1 / length, dtype=np.float32)
    return Gallery([Shelved(f"highest {k}", 0.5, EVIL, (EVIL,) * length, weights) for k in range(count)], "a score")


def grids(page):
    return [restored(text) for text in re.findall(r"<script type='text/plain' id='[^']*'>([^<]*)<", page)]


def test_the_file_has_what_the_page_has_and_no_text_becomes_markup():
    maps = Grid([random_pane(2, 3, 8)], EVIL, head="L1H2")
    page = head_page(Head(0, 1), EVIL, SCORES, ROWS, task="sst2", maps=maps, gallery=gallery(3, 5))
    assert (
        "97% of 300 maps of this head are classified as Diagonal. The role of this head is previous token: 0.99 "
        "[0.98, 0.99] (baseline 0.10)." in page
    )
    assert "class: study, run 1" in page
    assert "core atlas" in page
    assert re.findall(r"<button[^>]*>([^<]*)</button>", page) == [
        "all heads",
        *(f"highest {k}: 0.500" for k in range(3)),
    ]
    assert "&lt;NA&gt;" not in page
    assert EVIL not in page
    assert "<img src=x" not in page
    every, *shelved = grids(page)
    assert every[0]["panes"][0]["heads"] == 3
    for header, (weights,) in shelved:
        assert header["panes"][0]["named"] == "L1H2"
        np.testing.assert_allclose(weights / 65535, 0.2, atol=1e-5)


def test_a_dossier_has_its_hypotheses_with_every_criterion():
    criterion = met(EVIL, measure=EVIL, amount=0.4321, low=0.4, high=0.5)
    judged = [
        JudgedHypothesis(EVIL, [criterion]),
        JudgedHypothesis("L1H2 looks back", [criterion], "withdrawn"),
        JudgedHypothesis("untested"),
    ]
    page = head_page(Head(0, 1), "x", SCORES, ROWS, hypotheses=judged)
    assert "<h2>Hypotheses</h2>" in page
    assert "meets held out" in page
    assert "L1H2 looks back: meets held out (withdrawn)" in page
    assert "untested: not tested" in page
    assert page.count("0.4321") == 2
    assert EVIL not in page


def test_144_heads_of_64_tokens_with_a_full_gallery_are_under_2_megabytes():
    maps = Grid([random_pane(12, 12, 64)], head="L1H2")
    page = head_page(Head(0, 1), "x", SCORES, ROWS, maps=maps, gallery=gallery(15, 48))
    assert len(page.encode()) <= 2_000_000
    header, _ = grids(page)[0]
    assert header["note"] == ""  # nothing is left out


def test_a_checkpoint_that_is_not_here_is_said_in_the_file():
    page = head_page(Head(0, 1), "x", SCORES, ROWS, maps=example_grids(["nobody/nothing"]).caption)
    assert "The attention maps of nobody/nothing are not shown" in page
    assert "class='maps'" not in page


@pytest.mark.thorough
def test_the_example_of_any_checkpoint_is_what_it_computes():
    opened = open_checkpoint(config.DECODER)
    encoding = opened.encode(example.TEXT, example.PAIR)
    grid = example_grid(config.DECODER, weights_hash=opened.weights_hash, head="L2H3")
    (pane,), maps = grid.panes, capture(opened, encoding)
    weights = np.frombuffer(pane.weights, "<u2").reshape(maps.weights.shape) / 65535
    np.testing.assert_allclose(weights, maps.weights, atol=1e-4)
    assert (grid.head, pane.tokens) == ("L2H3", encoding.tokens)
    with pytest.raises(CheckpointError, match="its weights have changed"):
        example_grid(config.DECODER, weights_hash="0" * 64)
    for name in ("nobody/nothing", "~nobody-here/x", "x" * 5000, "a\0b"):
        with pytest.raises(CheckpointError, match="neither a bundled checkpoint nor a local folder"):
            example_grid(name)
    with pytest.raises(InputError, match="three sets of heads"):
        example_grid("atlas-translator")


def test_the_bundled_encoders_example_needs_no_model(monkeypatch):
    monkeypatch.setattr("core.models.opening.open_checkpoint", None)
    shelf = example_grids([config.ENCODER, config.ENCODER, "nobody/nothing"])
    assert list(shelf.grids) == [config.ENCODER]
    assert shelf.caption.startswith("The attention maps of nobody/nothing are not shown")
