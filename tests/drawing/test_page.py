"""Pages in one file: how small they are, what they leave out and say of it, and that no text becomes markup."""

import base64
import json
import re
import zlib

import numpy as np
import pytest

from core.drawing.packing import MIDDLE, MOST_BYTES, Grid, pack, pack_together
from core.drawing.page import Chart, MapsSource, Table, Words, as_script_data, html_page, maps_page, policy
from core.drawing.panes import Pane, difference, telling_head
from core.errors import InputError
from tests.drawing.made import random_maps, random_pane

EVIL = "</script><script>window.owned=1</script><img src=x onerror=window.owned=1>"


def restored(text):
    """What in_file.js makes of it: the header, and the weights of each pane [head, query, key]."""
    data = zlib.decompress(base64.b64decode(text))
    size = int.from_bytes(data[:4], "little")
    header, body = json.loads(data[4 : 4 + size]), np.frombuffer(data[4 + size :], np.uint8)
    if header["bits"] == 16:
        numbers = body[: len(body) // 2].astype(int) << 8 | body[len(body) // 2 :]
    panes = []
    for pane in header["panes"]:
        length = pane["length"]
        part = slice(pane["offset"], pane["offset"] + pane["layers"] * pane["heads"] * length**2)
        step = 65534 / 254 if pane["signed"] else 257
        kept = numbers[part] if header["bits"] == 16 else np.rint(body[part].astype(float) * step)
        panes.append(kept.reshape(-1, length, length))
    return header, panes


@pytest.mark.thorough
def test_144_heads_of_64_tokens_are_under_2_megabytes_with_every_weight_to_16_bits():
    pane = random_pane(12, 12, 64)
    page = maps_page([pane], MapsSource("checkpoint", "a text"))
    assert len(page.encode()) <= 2_000_000
    header, (weights,) = restored(re.search(r"id='grid-0-maps'>([^<]*)<", page)[1])
    assert header["bits"] == 16
    assert header["note"] == ""
    np.testing.assert_array_equal(weights, np.frombuffer(pane.weights, "<u2").reshape(144, 64, 64))


def test_what_is_too_much_for_16_bits_is_kept_in_8_and_said():
    maps, pane = random_maps(2, 3, 40), random_pane(2, 3, 40)
    other = Pane("other", 2, 3, pane.tokens, pane.weights[::-1])
    signed = difference(pane, other, (maps.weights, maps.weights[::-1].copy()))
    made = pack(Grid([pane, signed]), 30_000)
    header, (weights, kept) = restored(made.text)
    assert "steps of 1/255" in made.left_out
    assert made.left_out == header["note"]
    np.testing.assert_allclose(weights / 65535, maps.weights.reshape(6, 40, 40), atol=0.5 / 255 + 1e-6)
    change = (maps.weights[::-1] - maps.weights).reshape(6, 40, 40)  # the second less the first
    np.testing.assert_allclose((kept - MIDDLE) / MIDDLE, change, atol=0.5 / 127 + 1e-4)
    assert kept[np.abs(change) < 1e-6].tolist() == [MIDDLE] * int((np.abs(change) < 1e-6).sum())


def test_blocks_hold_the_greatest_weight_of_their_tokens():
    pane, maps = random_pane(2, 2, 50), random_maps(2, 2, 50)
    made = pack(Grid([pane]), 4000)
    header, (weights,) = restored(made.text)
    block = header["panes"][0]["block"]
    assert block > 1
    assert f"represents {block} tokens" in made.left_out
    assert "4 heads of 50 tokens do not fit" in made.left_out
    count = header["panes"][0]["length"]
    assert count == -(-50 // block)
    for head, q, k in np.ndindex(4, count, count):
        own = maps.weights.reshape(4, 50, 50)[head, q * block : (q + 1) * block, k * block : (k + 1) * block]
        assert weights[head, q, k] / 65535 == pytest.approx(own.max(), abs=0.5 / 255 + 1e-6)


@pytest.mark.thorough
def test_300_heads_of_512_tokens_say_what_is_left_out():
    rng = np.random.default_rng(0)
    numbers = rng.integers(0, 65535, (300, 512, 512), dtype=np.uint16)
    pane = Pane("large", 20, 15, tuple(f"t{k}" for k in range(512)), numbers.tobytes())
    page = maps_page([pane], MapsSource("large", "long"))
    assert len(page.encode()) <= 2_100_000
    header, (kept,) = restored(re.search(r"id='grid-0-maps'>([^<]*)<", page)[1])
    assert "300 heads of 512 tokens do not fit into 2 MB" in header["note"]
    assert "The other weights are not in this file" in header["note"]
    assert len(kept) == 300  # every head is there


def test_several_grids_share_the_room_by_their_weights():
    large, small = Grid([random_pane(12, 12, 48)]), [Grid([random_pane(1, 1, 48)]) for _ in range(15)]
    made = pack_together([large, *small])
    assert sum(len(one.text) for one in made) <= MOST_BYTES
    assert [one.left_out for one in made] == [""] * 16
    assert pack_together([]) == []


def test_no_room_at_all_is_one_sentence():
    with pytest.raises(InputError, match="too small for these"):
        pack(Grid([random_pane(2, 2, 20)]), 200)


def test_no_text_becomes_markup_and_no_script_of_a_text_may_run():
    pane = Pane(EVIL, 1, 1, (EVIL, EVIL), b"\0" * 8)
    chart = Chart({"mark": "bar", "data": {"values": [{"a": EVIL}]}})
    parts = [Words(EVIL, EVIL, EVIL), Table([EVIL], [[EVIL], [None], [0.5]], EVIL), chart, Grid([pane], EVIL)]
    page = html_page(EVIL, parts, lead=EVIL)
    assert EVIL not in page
    assert "<img src=x" not in page
    assert len(re.findall(r"<script type='[^']*' id='[^']*'>[^<]*</script>", page)) == 2  # the maps and the figures
    assert len(re.findall(r"<script>.*?</script>", page, re.DOTALL)) == 2  # the workbench and Vega
    said = re.search(r'Content-Security-Policy\' content="([^"]*)"', page)[1]
    assert said == policy(list(re.findall(r"<script>(.*?)</script>", page, re.DOTALL)), charts=True)
    assert said.startswith("default-src 'none'; script-src 'sha256-")
    assert "'unsafe-eval'" not in policy(["x"])
    assert "</" not in as_script_data({"a": "</script>"})


def test_a_table_that_is_cut_says_so():
    page = html_page("t", [Table(["n"], [[k] for k in range(2003)])])
    assert "3 more rows are left out" in page


def test_the_command_that_makes_the_page_again_stands_on_it():
    source = MapsSource("a b", "it's", "so", words=True, revision="r").with_command()
    assert source.command == (
        "python -m core maps 'a b' --text 'it'\"'\"'s' --pair so --revision r --words --out maps.html"
    )
    assert "python -m core maps" in maps_page([random_pane(1, 2, 5)], source)


def test_the_head_to_open_with_is_there_without_scores():
    assert telling_head({}) == "L1H1"


def test_a_line_is_opened_before_a_column_and_a_weak_line_is_not():
    scores = {"next": np.array([[0.1, 0.2], [0.6, 0.3]]), "separator": np.array([[0.9, 0.2], [0.1, 0.2]])}
    assert telling_head(scores) == "L2H1"
    assert telling_head(scores | {"next": scores["next"] / 2}) == "L1H1"
