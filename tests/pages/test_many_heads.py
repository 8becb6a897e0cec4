"""Pages on 512 heads: the grid, pictures and tables of a model of 16 layers x 32 heads."""

import json

import pytest
import torch
from streamlit.testing.v1 import AppTest
from transformers import GPT2Config, GPT2Model

from pages.parts.charts.encoding import CELL
from pages.parts.charts.heads import SMALLEST_CELL, WIDEST, cell_of
from pages.parts.maps import maps_grid
from pages.parts.shell import resources, shell
from tests.capture.conftest import byte_level
from tests.pages.opening import switched

LAYERS, HEADS = 16, 32


def wide(folder):
    """A random GPT-2 with 512 heads."""
    torch.manual_seed(0)
    tokenizer = byte_level()
    config = GPT2Config(vocab_size=len(tokenizer), n_embd=64, n_layer=LAYERS, n_head=HEADS, n_positions=64)
    GPT2Model(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.mark.slow  # one of the sizes
def test_all_512_heads_are_sent_at_once_and_every_table_has_them(tmp_path, monkeypatch):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    resources.database.clear()
    sent = []

    def workbench(*, data, **_):
        size = int.from_bytes(data[:4], "little")
        sent.append((json.loads(data[4 : 4 + size]), len(data) - 4 - size))
        return type("Result", (), {"view": None})()

    monkeypatch.setattr(maps_grid, "_workbench", workbench)
    page = switched(AppTest.from_file(shell.__file__, default_timeout=180), "maps")
    page.query_params["checkpoint"], page.query_params["text"] = wide(tmp_path / "wide"), "the old dog ran"
    page.run()
    assert not page.exception
    assert not page.error
    header, size = sent[-1]
    pane = header["panes"][0]
    assert (pane["layers"], pane["heads"]) == (LAYERS, HEADS)
    assert size == LAYERS * HEADS * pane["length"] ** 2 * 2
    page.query_params["inputs"] = "sentences"
    switched(page, "statistics").run()
    page.selectbox(key="checkpoint").set_value(str(tmp_path / "wide"))
    page.text_area(key="sentences").set_value("the old dog ran\nnobody saw it")
    page.toggle(key="measure").set_value(True)
    page.run()
    assert not page.exception
    assert not page.error, page.error[0].value
    assert len(page.dataframe[0].value) == LAYERS * HEADS
    resources.database.clear()


def test_a_picture_of_many_heads_stays_on_the_page():
    assert cell_of(12) == CELL
    assert cell_of(32) * 32 <= WIDEST
    assert cell_of(200) == SMALLEST_CELL
