"""Where models run, and how far apart the same maps may be on another device or in another arithmetic."""

import numpy as np
import pytest
import torch

from core.capture.running import capture
from core.errors import CheckpointError
from core.models.opening import choose_device, open_checkpoint
from core.tasks.glue import read_rows

# largest and mean difference of an attention weight from float32 on the CPU, as docs/reference/families.md states it;
# wider since the bundled encoder has sharp heads: an error of 2^-9 in a score of 20 moves a weight near one half by .01
TOLERANCE = {"float32": (1e-4, 1e-6), "float16": (0.015, 1.5e-4), "bfloat16": (0.1, 1e-3)}
THERE = [
    name
    for name, is_there in (("cuda", torch.cuda.is_available()), ("mps", torch.backends.mps.is_available()))
    if is_there
]


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["atlas-encoder", "atlas-decoder"])
@pytest.mark.parametrize(
    ("device", "dtype"),
    [("cpu", "bfloat16"), ("cpu", "float16"), *((one, dtype) for one in THERE for dtype in TOLERANCE)],
)
def test_maps_agree_within_the_stated_tolerance(name, device, dtype):
    exact = open_checkpoint(name, device="cpu")
    other = open_checkpoint(name, device=device, dtype=dtype)
    assert (other.device.type, other.dtype) == (device, dtype)
    largest, mean = TOLERANCE[dtype]
    for row in read_rows("mrpc", "dev", limit=3, seed=5):
        encoding = exact.encode(row.text, row.pair)
        apart = np.abs(capture(exact, encoding).weights - capture(other, encoding).weights)  # rows sum to 1 in both
        assert apart.max() <= largest
        assert apart.mean() <= mean
        if dtype != "float32":
            assert apart.max() > 0  # it did compute in another arithmetic


@pytest.mark.parametrize(
    ("cuda", "mps", "asked", "variable", "chosen"),
    [
        (True, True, "auto", None, "cuda"),
        (False, True, "auto", None, "mps"),
        (False, False, "auto", None, "cpu"),
        (True, False, "auto", "cpu", "cpu"),
        (True, False, "cpu", "cuda", "cpu"),
        (True, False, "cuda:1", None, "cuda:1"),
    ],
)
def test_the_best_device_is_chosen_and_can_be_overridden(monkeypatch, cuda, mps, asked, variable, chosen):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    monkeypatch.delenv("ATLAS_DEVICE", raising=False)
    if variable:
        monkeypatch.setenv("ATLAS_DEVICE", variable)
    assert choose_device(asked) == chosen


@pytest.mark.parametrize("asked", ["cuda", "toaster"])
def test_a_device_that_is_not_there_is_named(monkeypatch, asked):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setenv("ATLAS_DEVICE", asked)
    with pytest.raises(CheckpointError, match=f"got '{asked}'"):
        choose_device("auto")
