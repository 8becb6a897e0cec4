import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from core.scoring.change import Change, cosine, divergence, without_first


def maps(batch: int, heads: int, length: int, seed: int, *, causal: bool = False) -> torch.Tensor:
    scores = torch.randn(batch, heads, length, length, generator=torch.Generator().manual_seed(seed)) * 2
    if causal:
        scores = scores.masked_fill(torch.ones(length, length).triu(1).bool(), float("-inf"))
    return scores.softmax(-1)


def cosine_loop(one, other):
    dot = left = right = 0.0
    for i in range(one.shape[0]):
        for j in range(one.shape[1]):
            dot += float(one[i, j]) * float(other[i, j])
            left += float(one[i, j]) ** 2
            right += float(other[i, j]) ** 2
    return dot / math.sqrt(left * right)


def divergence_loop(one, other):
    total = 0.0
    for p, q in zip(one.tolist(), other.tolist(), strict=True):
        for a, b in zip(p, q, strict=True):
            m = (a + b) / 2
            total += (a * math.log(a / m) if a else 0) / 2 + (b * math.log(b / m) if b else 0) / 2
    return total / len(one)


@pytest.mark.parametrize("causal", [False, True])
def test_equal_the_loops(causal):
    before, after = maps(2, 3, 4, 0, causal=causal), maps(2, 3, 4, 1, causal=causal)
    kept = before.clone(), after.clone()
    for b in range(2):
        for h in range(3):
            pair = before[b, h].double(), after[b, h].double()
            assert float(cosine(before, after)[b, h]) == pytest.approx(cosine_loop(*pair), abs=1e-9)
            assert float(divergence(before, after)[b, h]) == pytest.approx(divergence_loop(*pair), abs=1e-9)
    assert torch.equal(before, kept[0])
    assert torch.equal(after, kept[1])


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 6), st.integers(0, 50), st.booleans())
def test_ranges_and_identity(length, seed, causal):
    before, after = (maps(1, 2, length, seed + k, causal=causal) for k in (0, 1000))
    assert torch.allclose(cosine(before, before), torch.ones(1, 2, dtype=torch.double))
    assert divergence(before, before).abs().max() < 1e-9
    assert torch.allclose(divergence(before, after), divergence(after, before))
    assert float(divergence(before, after).max()) <= math.log(2) + 1e-9
    assert 0 <= float(cosine(before, after).min()) <= float(cosine(before, after).max()) <= 1 + 1e-9


def test_opposite_maps():
    before, after = torch.zeros(1, 1, 2, 2), torch.zeros(1, 1, 2, 2)
    before[..., 0], after[..., 1] = 1, 1
    assert float(cosine(before, after)) == 0
    assert float(divergence(before, after)) == pytest.approx(math.log(2))


def test_the_sink_column_hides_change():
    """Two causal maps that agree on nothing but the first column look alike until it is left out."""
    before, after = torch.zeros(1, 1, 4, 4), torch.zeros(1, 1, 4, 4)
    for one, key in ((before, 1), (after, 2)):
        one[..., :, 0] = 0.9
        one[..., 0, 0] = one[..., 1, 0] = 1.0
        one[..., 2:, key] = 0.1
    assert float(cosine(before, after)) > 0.95
    assert float(cosine(without_first(before), without_first(after))) < 0.5
    assert torch.allclose(without_first(before).sum(-1), torch.ones(1, 1, 3, dtype=torch.double))


def test_only_the_sink_left_is_no_change():
    """A row with all weight on the first token has no rest: both become the same uniform row."""
    before = torch.zeros(1, 1, 3, 3)
    before[..., 0] = 1
    assert float(cosine(without_first(before), without_first(before))) == pytest.approx(1)
    assert without_first(before)[0, 0].tolist() == [[1.0, 0.0], [0.5, 0.5]]


def filled(causal, parts):
    found = Change(2, 3, causal=causal)
    for numbers in parts:
        for layer in range(2):
            before, after = (
                torch.cat([maps(1, 3, 5, 10 * n + layer + k, causal=causal) for n in numbers]) for k in (0, 5000)
            )
            found.update(layer, before, after, numbers, [f"dev-{n}" for n in numbers])
    return found


@pytest.mark.parametrize("causal", [False, True])
def test_batches_and_merging_do_not_matter(causal):
    whole = filled(causal, [list(range(12))])
    left, right = filled(causal, [[3, 1], [0]]), filled(causal, [[2, *range(4, 12)]])
    left.merge(Change.unpacked(json.loads(json.dumps(right.packed()))))
    for name in ("value", "low", "high"):
        assert np.allclose(getattr(left.heads.result(), name), getattr(whole.heads.result(), name), atol=1e-6)
        assert np.allclose(getattr(left.layers.result(), name), getattr(whole.layers.result(), name), atol=1e-6)
    assert left.lowest == whole.lowest
    result = whole.heads.result()
    assert result.n.tolist() == [12] * (4 if causal else 2)
    assert (result.low <= result.value).all()
    assert (result.value <= result.high).all()
    assert np.allclose(whole.layers.result().value[:, 0], result.value.mean(1))


def test_the_rows_that_changed_most():
    found = filled(False, [list(range(12))])
    values = {
        f"dev-{n}": float(cosine(maps(1, 3, 5, 10 * n + 1), maps(1, 3, 5, 10 * n + 5001))[0, 2]) for n in range(12)
    }
    expected = sorted(values, key=values.get)[:5]
    assert [name for _, name in found.lowest[1, 2]] == expected


def test_one_token_has_no_rest():
    found = Change(1, 1, causal=True)
    found.update(0, torch.ones(1, 1, 1, 1), torch.ones(1, 1, 1, 1), [0], ["dev-0"])
    assert found.heads.result().n.tolist() == [1, 1, 0, 0]


@pytest.mark.parametrize("causal", [False, True])
def test_what_was_seen_comes_back_as_it_was(causal):
    change = Change(2, 3, causal=causal)
    maps = torch.softmax(torch.randn(2, 2, 4, 3, 5, 5, generator=torch.Generator().manual_seed(0)), -1)
    for layer in range(2):
        change.update(layer, maps[0, layer], maps[1, layer], [0, 1, 2, 3], ["a", "b", "c", "d"])
    again = Change.unpacked(json.loads(json.dumps(change.packed())))
    assert again.statistics == change.statistics
    assert len(again.statistics) == (4 if causal else 2)
    assert again.lowest == change.lowest
    assert again.packed() == change.packed()
