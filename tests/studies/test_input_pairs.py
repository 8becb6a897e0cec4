"""Two inputs side by side: positions that stand for each other, maps on partners, the difference to bring back."""

import pytest
import torch

from core.capture.comparing import predictions
from core.capture.running import capture
from core.errors import InputError
from core.studies.ablation.input_pairs import aligned, beside, logit_difference, positions
from tests.capture.conftest import TEXT, tiny
from tests.capture.test_interventions import classifier


def test_the_same_input_stands_for_itself_and_moves_nothing():
    checkpoint = classifier("bert")
    encoding = checkpoint.encode(TEXT[0], TEXT[3])
    assert positions(encoding, encoding).pairs == tuple((k, k) for k in range(len(encoding)))
    seen = beside(checkpoint, encoding, encoding)
    assert (1 - seen.change.cosine == 0).all()
    assert (seen.change.first_elsewhere == 0).all()
    assert all(one.before == one.after for one in predictions(checkpoint, (encoding, ()), (encoding, ())))
    assert (seen.alignment.first_alone, seen.alignment.second_alone) == ((), ())


def test_pieces_of_partners_stand_for_each_other_the_last_for_the_last():
    checkpoint = tiny("bert")
    first, second = checkpoint.encode("she saw the bag"), checkpoint.encode("she saw a bag")
    assert first.tokens[3:6] == ("t", "##h", "##e")
    assert positions(first, second).pairs == ((0, 0), (1, 1), (2, 2), (5, 3), (6, 4), (7, 5))
    back = positions(second, first).pairs
    assert {pair for pair in back if pair[0] == 3} == {(3, 3), (3, 4), (3, 5)}  # every piece of "the" takes that of "a"


def test_words_without_a_partner_are_left_out_and_their_weight_is_said():
    checkpoint = tiny("bert")
    first, second = checkpoint.encode("she saw a small bag"), checkpoint.encode("she saw a bag")
    seen = beside(checkpoint, first, second)
    alone = [seen.words[0][k].text for k in seen.alignment.first_alone]
    assert alone == ["small"]
    weights = capture(checkpoint, first).weights
    places = [k for word in seen.words[0] if word.text != "small" for k in word.positions]
    lost = 1 - weights[0, 0][places][:, places].sum(-1)
    assert 0 < seen.change.first_elsewhere[0, 0] < 1
    assert float(lost.mean()) == pytest.approx(float(seen.change.first_elsewhere[0, 0]), abs=0.1)


def test_pairs_are_encoded_and_aligned_together():
    checkpoint = tiny("gpt2")
    firsts, seconds, alignments = aligned(
        checkpoint, [("a dog", None), (TEXT[0], None)], [("a bag", None), (TEXT[0], None)]
    )
    assert len(firsts) == len(seconds) == len(alignments) == 2
    assert alignments[1].pairs == tuple((k, k) for k in range(len(firsts[1])))


def test_the_difference_is_between_what_each_predicts():
    first, second = torch.tensor([[3.0, 1.0, 0.0]]), torch.tensor([[1.0, 0.5, 2.0]])
    found = logit_difference(first, second)
    assert found.choices == (0, 2)
    assert (found.first, found.second, found.whole()) == (3.0, -1.0, 4.0)
    assert logit_difference(first, torch.tensor([[3.0, 1.5, 0.0]])).choices == (0, 1)  # both say 0: its rival
    assert logit_difference(torch.tensor([[2.5]]), torch.tensor([[1.0]])).whole() == 1.5
    near = [torch.tensor([[1.0, value]]) for value in (0.0, 0.0009, 0.0011)]
    assert logit_difference(near[0], near[2]).whole() == pytest.approx(0.0011, abs=1e-6)
    with pytest.raises(InputError, match="differ by only 9"):
        logit_difference(*near[:2]).whole()
    with pytest.raises(InputError, match="differ by only 0"):
        logit_difference(first, first).whole()
