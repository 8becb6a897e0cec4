"""Block maxima computed as captured, and windows computed again, against whole maps."""

import numpy as np
import pytest

from core.attention import Head
from core.capture import long_maps, streaming
from core.capture.long_maps import block_maxima, block_of, window
from core.capture.running import capture
from core.errors import InputError
from core.scoring.heads import SpecialPositions
from core.scoring.registry import even_scores, long_even_scores, long_scores, map_scores
from tests.capture.conftest import SINKS, built, newer, tiny

LONG = "the old dog saw a small bag and she did not carry it . " * 12


def of(family):
    return (
        built("gpt_oss", SINKS, encodes=False)
        if family == "gpt_oss"
        else (tiny(family) if family in ("gpt2", "bert", "gpt_neo") else newer(family))
    )


@pytest.mark.thorough
@pytest.mark.parametrize("family", ["gpt2", "bert", "mistral", "gemma2", "gpt_oss", "gpt_neo"])
def test_block_maxima_and_windows_are_those_of_the_whole_maps(family, monkeypatch):
    checkpoint = of(family)
    encoding = checkpoint.encode(LONG)
    monkeypatch.setattr(long_maps, "BLOCKS", 20)
    monkeypatch.setattr(long_maps, "ROWS_BYTES", 40_000)  # several parts a layer
    monkeypatch.setattr(streaming, "MOST_QUERIES", 13)
    found, whole = block_maxima(checkpoint, encoding), capture(checkpoint, encoding).weights
    length, block = len(encoding), found.block
    assert block == block_of(length) == -(-length // 20)
    assert length % block  # the last block is shorter
    for row, column in np.ndindex(*found.maxima.shape[2:]):
        part = whole[:, :, row * block : (row + 1) * block, column * block : min((column + 1) * block, length)]
        assert np.allclose(found.maxima[:, :, row, column], part.max((2, 3)), atol=1e-5)
    assert found.block == block
    assert found.labels[0] == f"1–{block}"
    assert found.labels[-1].endswith(f"–{length}")
    seen = window(checkpoint, encoding, Head(1, 2), (37, 90), (30, 75))
    assert np.allclose(seen, whole[1, 2, 37:90, 30:75], atol=1e-5)


@pytest.mark.thorough
@pytest.mark.parametrize("family", ["gpt2", "bert", "modernbert", "mistral", "gpt_oss"])
def test_scores_of_a_long_input_are_those_of_its_whole_maps(family):
    checkpoint = of(family)
    encoding = checkpoint.encode(LONG)
    blocks, maps = block_maxima(checkpoint, encoding), capture(checkpoint, encoding)
    places = {"first": encoding.first, "separators": encoding.separators}
    at = SpecialPositions(encoding.first or 0, encoding.separators, 0)
    how = {"causal": checkpoint.causal, "sink": checkpoint.family.sinks}
    found = long_scores(blocks.sums, at, checkpoint.windows, **how)
    even = long_even_scores(len(encoding), at, checkpoint.windows, **how)
    for name, wanted in map_scores(maps, **places).items():
        assert np.allclose(found[name], wanted, atol=1e-5, equal_nan=True), name
    for name, wanted in even_scores(maps, **places).items():
        assert np.allclose(even[name], wanted, atol=1e-5, equal_nan=True), name


def test_what_lies_outside_is_refused():
    checkpoint = tiny("gpt2")
    with pytest.raises(InputError, match=r"must fit into the context of .* \(1024 tokens\)"):
        block_maxima(checkpoint, checkpoint.encode("dog " * 3000))
    encoding = checkpoint.encode(LONG)
    for queries in ((0, 300), (5, 5), (0, len(encoding) + 1)):
        with pytest.raises(InputError, match="1 to 256 tokens and lie inside the input"):
            window(checkpoint, encoding, Head(0, 0), queries, (0, 5))
