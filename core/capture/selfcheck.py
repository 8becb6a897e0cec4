"""What must hold before a checkpoint is trusted: shape, rows, equality with eager, and that disabling bites."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from core.attention import Head
from core.capture.interventions import Touch
from core.capture.running import capture, model_inputs, prepared, run
from core.errors import AtlasError
from core.models.checkpoint import Checkpoint
from core.models.encoding import Encoding

SENTENCE, SECOND = "The small engine ran all night without a pause.", "Nobody in the village heard it stop."
SHORT = "A cat sat."  # where every layer is run again
ROUNDING = 2e-6  # of the largest value
EAGER_TOLERANCE = {"float32": 1e-5, "bfloat16": 2e-2, "float16": 5e-3}


@dataclass(frozen=True)
class Finding:
    """One line of the self-check. seen: the figure it rests on, in words."""

    name: str
    passed: bool
    seen: str


def self_check(checkpoint: Checkpoint) -> list[Finding]:
    """Run every check; none raises."""
    return list(findings(checkpoint))


def findings(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Each check's finding as it is made. Four of them look at the same maps, which are captured once."""
    encoding = checkpoint.encode(SENTENCE, SECOND)
    maps = _Maps(checkpoint, encoding)
    checks = (
        ("shape", lambda: _shape(checkpoint, maps())),
        ("rows sum to 1", lambda: _rows(maps())),
        ("equal to eager", lambda: _eager(checkpoint, encoding, maps())),
        ("causality", lambda: _causality(checkpoint, maps())),
        ("batch equals single", lambda: _batched(checkpoint, encoding)),
        ("disabling a head changes the output", lambda: _disabling(checkpoint)),
    )
    for name, check in checks:
        try:
            passed, seen = check()
        except (AtlasError, RuntimeError, ValueError, TypeError) as error:
            passed, seen = False, str(error).splitlines()[0]
        yield Finding(name, passed, seen)


class _Maps:
    """Maps [layer, head, query, key] of one input, captured when a check first asks; each check sees the error."""

    def __init__(self, checkpoint: Checkpoint, encoding: Encoding):
        self._capture = partial(capture, checkpoint, encoding)
        self._kept: np.ndarray | None = None

    def __call__(self) -> np.ndarray:
        if self._kept is None:
            self._kept = self._capture().weights
        return self._kept


def _shape(checkpoint: Checkpoint, maps: np.ndarray) -> tuple[bool, str]:
    pieces = len(checkpoint.encode(SENTENCE, SECOND))
    wanted = (checkpoint.layers, checkpoint.heads, pieces, pieces)
    return maps.shape == wanted, " x ".join(map(str, maps.shape))


def _rows(maps: np.ndarray) -> tuple[bool, str]:
    off = np.abs(maps.sum(-1) - 1).max()
    return bool(off < 1e-3), f"largest deviation {off:.1e}"


def eager_weights(checkpoint: Checkpoint, encoding: Encoding) -> np.ndarray:
    """Maps [layer, head, query, key] as transformers' own eager attention returns them."""
    model, before = checkpoint.model, checkpoint.model.config._attn_implementation
    model.set_attn_implementation("eager")
    try:
        with torch.no_grad():
            output = model(**model_inputs(checkpoint, [encoding]), output_attentions=True)
    finally:
        model.set_attn_implementation(before)
    return torch.stack([weights[0].float().cpu() for weights in output.attentions]).numpy()


def _eager(checkpoint: Checkpoint, encoding: Encoding, maps: np.ndarray) -> tuple[bool, str]:
    off = np.abs(maps - eager_weights(checkpoint, encoding)).max()
    return bool(off <= EAGER_TOLERANCE.get(checkpoint.dtype, 1e-5)), f"largest difference {off:.1e}"


def _causality(checkpoint: Checkpoint, maps: np.ndarray) -> tuple[bool, str]:
    above = float(np.triu(maps, 1).sum(-1).max())
    kind = "causal" if checkpoint.causal else "bidirectional"
    return (above < 1e-6) == checkpoint.causal, f"declared {kind}; most weight on later tokens {above:.2g}"


def _batched(checkpoint: Checkpoint, encoding: Encoding) -> tuple[bool, str]:
    single, twice = _states(checkpoint, [encoding])[0], _states(checkpoint, [encoding, encoding])[1]
    off = float((single - twice).abs().max())
    return off <= 10 * EAGER_TOLERANCE.get(checkpoint.dtype, 1e-5), f"largest difference {off:.1e}"


def _disabling(checkpoint: Checkpoint) -> tuple[bool, str]:
    """The first head of each layer disabled on a short input; each must change what the model gives out."""
    if not checkpoint.family.interceptable:
        return True, f"not available for {checkpoint.family.model_type}: maps can be looked at, not changed"
    encoding = checkpoint.encode(SHORT)
    states = _each_disabled(checkpoint, encoding)
    plain, changed, again = states[0], states[1:-1], states[-1]
    noise = max(ROUNDING * float(plain.abs().max()), 10 * float((again - plain).abs().max()))
    moved = [float((one - plain).abs().max()) for one in changed]
    still = [str(Head(layer, 0)) for layer, change in enumerate(moved) if change <= noise]
    if still:
        return False, f"disabling {still[0]} changed nothing"
    return True, f"smallest change {min(moved):.1e} over {checkpoint.layers} layers, rounding {noise:.1e}"


def _each_disabled(checkpoint: Checkpoint, encoding: Encoding) -> torch.Tensor:
    """What the model gives out with the first head of layer k - 1 disabled (row k), and untouched (first and last row).

    One batch, in which every row goes the same way: a pass without any change would differ by rounding.
    """
    rows = [encoding] * (checkpoint.layers + 2)
    first = torch.zeros(checkpoint.layers, len(rows), checkpoint.heads, dtype=torch.bool)
    for layer in range(checkpoint.layers):
        first[layer, layer + 1, 0] = True
    with torch.no_grad(), prepared(checkpoint, some=rows) as run:
        run.touches = {layer: [Touch("disable", heads)] for layer, heads in enumerate(first)}
        return checkpoint.model(**model_inputs(checkpoint, rows))[0].float().cpu()


def _states(checkpoint: Checkpoint, encodings: list[Encoding]) -> torch.Tensor:
    found: list[torch.Tensor] = [torch.empty(0)] * len(encodings)

    def keep(inputs: list[int], output: Any) -> None:
        for row, k in enumerate(inputs):
            found[k] = output[0][row].float().cpu()  # last hidden states, or logits with a head

    run(checkpoint, encodings, [], on_batch=keep)
    return torch.stack(found)
