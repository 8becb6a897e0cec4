"""A cell's score in words: terms add up, one group's map is that of its terms, and what is not there is refused."""

import pytest
import torch

from core.capture.running import capture
from core.errors import InputError
from core.studies.explanation.cell_parts import layer_scores
from tests.capture import conftest as tiny
from tests.capture.test_contributions import planted

TEXT = "old bag old dog heavy old bag dog heavy bag"


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama"])
def test_terms_of_a_cell_add_up_to_the_log_of_its_weight_over_the_rows_mean(name):
    checkpoint = tiny.tiny(name)
    encoding = checkpoint.encode(tiny.TEXT[1], None)
    scores, weights = layer_scores(checkpoint, encoding, 2), capture(checkpoint, encoding).weights[2]
    cell = scores.cell(1, 5, 3)
    logs = torch.tensor(weights[1, 5, : 6 if checkpoint.causal else None]).double().log()
    assert cell.score == pytest.approx(float(logs[3] - logs.mean()), rel=1e-3, abs=1e-4)
    assert cell.weight == pytest.approx(weights[1, 5, 3], abs=1e-5)
    assert sum(term.value for term in cell.largest(4)) == pytest.approx(cell.score, rel=1e-6)
    assert len(cell.largest(4)) == 5


def test_terms_are_named_in_words():
    checkpoint = planted()
    encoding = checkpoint.encode(TEXT, None)
    named = [(term.query_part, term.key_part) for term in layer_scores(checkpoint, encoding, 1).cell(0, 5, 3).terms]
    token, looked_at = encoding.tokens[5], encoding.tokens[3]
    assert named[0] == (f"the word '{token}'", f"L1H1's output on '{looked_at}'")
    first = layer_scores(checkpoint, encoding, 0).cell(0, 5, 4).terms[0]
    assert (first.query_part, first.key_part) == ("position 6", "position 5")


def test_the_map_of_the_group_that_decides_is_the_heads_own():
    checkpoint = planted()
    encoding = checkpoint.encode(TEXT, None)
    scores = layer_scores(checkpoint, encoding, 0)
    own = torch.tensor(capture(checkpoint, encoding).weights[0, 0])
    assert torch.allclose(scores.map_of(0, "position"), own, atol=1e-4)
    even = torch.ones_like(own).tril() / torch.arange(1, len(own) + 1)[:, None]
    assert torch.allclose(scores.map_of(0, "token"), even, atol=1e-4)
    assert scores.groups("key") == ["position", "token", "rest"]


@pytest.mark.parametrize(
    ("cell", "says"),
    [
        ((9, 0, 0), "head in layer 1 must be from 1 to 2; got 10"),
        ((0, 99, 0), "query in layer 1 must be from 1 to"),
        ((0, 0, 3), "key 4 is hidden from this query"),
    ],
)
def test_cells_that_are_not_there_are_refused(cell, says):
    checkpoint = planted()
    with pytest.raises(InputError, match=says):
        layer_scores(checkpoint, checkpoint.encode(TEXT, None), 0).cell(*cell)


def test_layers_and_groups_that_are_not_there_are_refused():
    checkpoint = planted()
    encoding = checkpoint.encode(TEXT, None)
    with pytest.raises(InputError, match="must be from 1 to 2; got 3"):
        layer_scores(checkpoint, encoding, 2)
    with pytest.raises(InputError, match='got "segment"'):
        layer_scores(checkpoint, encoding, 0).map_of(0, "segment")


def test_an_input_of_one_token_has_cells_without_a_choice():
    checkpoint = planted()
    encoding = checkpoint.encode("a", None)
    assert layer_scores(checkpoint, encoding.up_to(1), 1).cell(0, 0, 0).score == pytest.approx(0, abs=1e-9)


def test_a_cell_outside_a_window_is_refused():
    checkpoint = tiny.newer("mistral")
    scores = layer_scores(checkpoint, checkpoint.encode(tiny.TEXT[0], None), 0)
    last = len(scores.encoding) - 1
    assert scores.cell(0, last, last).weight > 0
    with pytest.raises(InputError, match="key 1 is hidden from this query"):
        scores.cell(0, last, 0)


def test_cross_attention_looks_from_words_of_the_target_at_words_of_the_source():
    checkpoint = tiny.translator("bart")
    encoding = checkpoint.encode("old dog heavy", "bag")
    scores = layer_scores(checkpoint, encoding, 0, part="cross")
    assert (scores.encoding, scores.key_encoding) == (encoding.target, encoding)
    own = layer_scores(checkpoint, encoding, 0, part="decoder")
    assert own.encoding == own.key_encoding == encoding.target
    encoder = layer_scores(checkpoint, encoding, 0, part="encoder")
    assert encoder.encoding == encoder.key_encoding == encoding
