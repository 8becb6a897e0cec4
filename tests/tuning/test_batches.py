import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InputError
from core.tasks.glue import TaskRow
from core.tuning.batches import batches, by_length, collate, encode
from tests.capture.conftest import tiny
from tests.tuning.conftest import rows


@given(st.lists(st.integers(1, 128), min_size=1, max_size=300), st.integers(1, 40), st.booleans())
def test_every_row_once(lengths, size, bucketed):
    found = batches(lengths, size, seed=3, epoch=1, bucketed=bucketed, pool=3)
    assert sorted(k for one in found for k in one) == list(range(len(lengths)))
    assert max(len(one) for one in found) <= size
    assert found == batches(lengths, size, seed=3, epoch=1, bucketed=bucketed, pool=3)
    assert sorted(k for one in by_length(lengths, size) for k in one) == list(range(len(lengths)))


def test_buckets_pad_less_and_stay_random():
    lengths = [8 + (k * 37) % 100 for k in range(640)]

    def waste(found):
        return sum(len(one) * max(lengths[k] for k in one) for one in found) / sum(lengths)

    bucketed = batches(lengths, 32, seed=0, epoch=0)
    assert waste(bucketed) < 1.1 < 1.5 < waste(batches(lengths, 32, seed=0, epoch=0, bucketed=False))
    means = [sum(lengths[k] for k in one) / len(one) for one in bucketed]
    assert means != sorted(means)
    assert bucketed != batches(lengths, 32, seed=0, epoch=1)
    assert bucketed != batches(lengths, 32, seed=1, epoch=0)


def test_collate_pads_right_with_mask_and_segments():
    base = tiny("bert")
    examples = encode(base, rows(3), 64)
    inputs, labels = collate(examples, padding=0, segments=True)
    assert inputs["input_ids"].shape[1] == max(len(one) for one in examples)
    assert inputs["attention_mask"].sum(1).tolist() == [len(one) for one in examples]
    assert inputs["token_type_ids"][1].max() == 1
    assert labels.tolist() == [0, 1, 0]
    assert collate(examples, padding=0, segments=False, pad_to=64)[0]["input_ids"].shape == torch.Size([3, 64])


def test_long_rows_are_cut_and_bad_ones_named():
    base = tiny("bert")
    long = TaskRow("train-4", "dog " * 300, "bag " * 20, 0)
    assert len(encode(base, [long], 32)[0]) == 32
    with pytest.raises(InputError, match="Row dev-7: The sentence must"):
        encode(base, [TaskRow("dev-7", " ", None, 0)], 32)
