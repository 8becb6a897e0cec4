"""Maps of real encoders are bundled as weights only, balanced over heads, and labelled by two raters."""

import json
from collections import Counter

import numpy as np
import pytest

from core import config
from core.codebook.registry import BERT
from core.patterns.agreement import agreement, opinions
from data.recipes.paired_sheets import folder_maps, paired_sheet
from data.recipes.rater_agreement import source_labels
from data.recipes.real_maps import dodrio_rows

SOURCES = {"bert-base-sst2": (500, 144, 120), "minilm": (400, 72, 100)}


@pytest.mark.thorough
@pytest.mark.parametrize("name", SOURCES)
def test_labels_cover_all_heads_and_two_raters_agree(name):
    wanted, heads, twice = SOURCES[name]
    rows, maps = folder_maps(config.ANNOTATIONS / name)
    labels = source_labels(config.ANNOTATIONS / name)
    both = opinions(labels)
    assert both["claude-ai-model-3"].notna().sum() == len(rows) >= wanted
    assert both[["claude-ai-model-3", "claude-ai-model-4"]].notna().all(axis=1).sum() >= twice
    assert set(labels["class"]) <= set(BERT.names)
    assert agreement(labels, "claude-ai-model-3", "claude-ai-model-4").kappa > 0.6
    counts = Counter((row["layer"], row["head"]) for row in rows)
    assert len(counts) == heads
    assert max(counts.values()) - min(counts.values()) <= 1
    for row in rows:
        assert maps[row["map_id"]].shape == (row["length"], row["length"])
        assert np.allclose(maps[row["map_id"]].sum(1), 1, atol=0.01)


@pytest.mark.parametrize("name", SOURCES)
def test_no_text_comes_with_the_weights(name):
    folder = config.ANNOTATIONS / name
    assert (folder / "LICENSE").is_file()
    for line in (folder / "maps.jsonl").read_text(encoding="utf-8").splitlines():
        assert not {"tokens", "text", "pair"} & set(json.loads(line))


def test_the_order_takes_each_head_once_before_any_twice():
    keys = [f"s{sentence:04d}-l{layer:02d}-h00" for sentence in range(3) for layer in range(4)]
    rows = dodrio_rows({key: np.full((2, 2), 0.5, dtype=np.float16) for key in keys})
    assert [row["number"] for row in rows] == list(range(1, 13))
    for start in (0, 4, 8):
        assert {row["layer"] for row in rows[start : start + 4]} == {0, 1, 2, 3}


def test_a_sheet_shows_each_map_at_both_scales():
    weights = np.full((4, 4), 0.25, dtype=np.float32)
    row = {"number": 1, "map_id": "m", "maximum": 0.25, "length": 4, "separators": [3]}
    pixels = np.asarray(paired_sheet([row], {"m": weights}))
    absolute, own = pixels[100, 80], pixels[100, 80 + 154]
    assert own.sum() < absolute.sum() < 3 * 255
