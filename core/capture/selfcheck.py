"""Self-check of a checkpoint: shapes, sums of rows, agreement with eager attention, and an effect of ablation."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from ..attention import PARTS, AttentionMaps, Head
from ..errors import AtlasError
from ..models.checkpoint import Checkpoint
from ..models.encoding import Encoding
from .interventions import HeadChange
from .pruning import pruned_heads
from .reach import attentions_of
from .running import captured_parts, prepared, run

SENTENCE, SECOND = "The small engine ran all night without a pause.", "Nobody in the village heard it stop."
SHORT = "A cat sat."  # where every layer is run again
ROUNDING = 2e-6  # as a fraction of the largest value
# transformers' own eager maps in bfloat16 are up to 4.3e-2 from its maps in float32 (GPT-OSS with random weights): a
# smaller bound would test its rounding
EAGER_TOLERANCE = {"float32": 1e-5, "bfloat16": 5e-2, "float16": 5e-3}


@dataclass(frozen=True)
class Check:
    """The result of one check of a checkpoint. `seen` is a description of the measurement, or the error message."""

    name: str
    passed: bool
    seen: str


def run_checks(checkpoint: Checkpoint) -> Iterator[Check]:
    """Yield the result of each check of a checkpoint; an error counts as a failed check."""
    encoding = checkpoint.encode(SENTENCE, SECOND)
    maps = cache(partial(captured_parts, checkpoint, encoding))  # of every set of heads
    checks: tuple[tuple[str, Callable[[], tuple[bool, str]]], ...] = (
        ("shape", lambda: _shape(checkpoint, maps())),
        ("rows sum to 1", lambda: _rows(maps())),
        ("equal to eager", lambda: _eager(checkpoint, encoding, maps())),
        ("causality", lambda: _causality(maps())),
        ("batch equals single", lambda: _batched(checkpoint, encoding)),
        ("disabling a head changes the output", lambda: _disabling(checkpoint)),
    )
    for name, check in checks:
        try:
            passed, seen = check()
        except (AtlasError, RuntimeError, ValueError, TypeError) as error:
            passed, seen = False, str(error).splitlines()[0]
        yield Check(name, passed, seen)


def _shape(checkpoint: Checkpoint, every: list[AttentionMaps]) -> tuple[bool, str]:
    passed, seen = True, []
    for own, maps in zip(checkpoint.sets, every, strict=True):
        passed &= maps.weights.shape == (own.layers, own.heads, len(maps), len(maps.keys))
        seen.append(f"{PARTS.get(own.part, '')} {' x '.join(map(str, maps.weights.shape))}".strip())
    return passed, ", ".join(seen)


def _rows(every: list[AttentionMaps]) -> tuple[bool, str]:
    off = np.max([np.abs(maps.seen.sum(-1) - 1).max() for maps in every])
    return bool(off < 1e-3), f"largest deviation {off:.1e}"


def eager_parts(checkpoint: Checkpoint, encoding: Encoding) -> list[Float[np.ndarray, "layer head query key"]]:
    """Return the attention maps that transformers computes with eager attention, for every set of heads, float32. Sinks
    and layers without attention are left out. The result is empty if transformers returns no maps."""
    model, before = checkpoint.model, checkpoint.model.config._attn_implementation
    model.set_attn_implementation("eager")
    try:
        with torch.no_grad():
            output = model(**checkpoint.inputs([encoding]), output_attentions=True)
    finally:
        model.set_attn_implementation(before)
    maps, calls = attentions_of(checkpoint, output), sorted(call for own in checkpoint.sets for call in own.calls)
    if not maps:
        return []
    given = dict(zip(calls, maps, strict=True))
    return [torch.stack([given[call][0].float().cpu() for call in own.calls]).numpy() for own in checkpoint.sets]


def _eager(checkpoint: Checkpoint, encoding: Encoding, every: list[AttentionMaps]) -> tuple[bool, str]:
    parts = eager_parts(checkpoint, encoding)
    if not parts:
        return True, f"not compared, because {checkpoint.family.model_type} models give out no maps"
    pairs = zip(every, parts, strict=True)
    off = np.max([np.abs(maps.seen[..., : eager.shape[-1]] - eager).max() for maps, eager in pairs])  # without a sink
    return bool(off <= EAGER_TOLERANCE.get(checkpoint.dtype, 1e-5)), f"largest difference {off:.1e}"


def _causality(every: list[AttentionMaps]) -> tuple[bool, str]:
    passed, seen = True, []
    for maps in every:
        own = maps.seen[..., : len(maps)] if maps.sink else maps.seen
        above = float(np.triu(own, 1).sum(-1).max())
        passed &= bool(np.isfinite(above)) and (above < 1e-6) == maps.causal
        kind = "causal" if maps.causal else "bidirectional"
        name = f"{PARTS[maps.part]} " if maps.part else ""
        seen.append(f"{name}declared {kind}; most weight on later tokens {above:.2g}")
    return passed, ", ".join(seen)


def _batched(checkpoint: Checkpoint, encoding: Encoding) -> tuple[bool, str]:
    single, twice = _states(checkpoint, [encoding])[0], _states(checkpoint, [encoding, encoding])[1]
    off = float((single - twice).abs().max())
    return off <= 10 * EAGER_TOLERANCE.get(checkpoint.dtype, 1e-5), f"largest difference {off:.1e}"


def _disabling(checkpoint: Checkpoint) -> tuple[bool, str]:
    """Ablate the first head of each layer of each set on a short input; each must change the output of the model."""
    heads = _first_heads(checkpoint)
    encoding = checkpoint.encode(SHORT, SHORT if checkpoint.family.translates else None)
    states = _each_disabled(checkpoint, encoding)
    plain, changed, again = states[0], states[1:-1], states[-1]
    noise = max(ROUNDING * float(plain.abs().max()), 10 * float((again - plain).abs().max()))
    moved = [float((logits - plain).abs().max()) for logits in changed]
    if not np.isfinite([noise, *moved]).all():
        return False, "the model computes NaN or infinite values"
    still = [str(head) for head, change in zip(heads, moved, strict=True) if change <= noise]
    if still:
        return False, f"disabling {still[0]} changed nothing"
    return True, f"smallest change {min(moved):.1e} over {len(heads)} layers, rounding {noise:.1e}"


def _first_heads(checkpoint: Checkpoint) -> list[Head]:
    """Return the first head of each layer that was not pruned."""
    gone = set(pruned_heads(checkpoint))
    every = [
        [head for k in range(own.heads) if (head := Head(layer, k, own.part)) not in gone]
        for own in checkpoint.sets
        for layer in own.numbers
    ]
    return [layer[0] for layer in every if layer]


def _each_disabled(checkpoint: Checkpoint, encoding: Encoding) -> torch.Tensor:
    """The output with the first head of layer k - 1 ablated (row k), and unmodified (first and last row). All rows run
    in one batch, because separate passes would differ by rounding."""
    heads = _first_heads(checkpoint)
    rows = [encoding] * (len(heads) + 2)
    with torch.no_grad(), prepared(checkpoint, some=rows) as run:
        for place, head in enumerate(heads, 1):
            own = checkpoint.head_set(head.part)
            chosen = torch.zeros(len(rows), own.heads, dtype=torch.bool)
            chosen[place, head.head] = True
            run.head_changes[own.call(head.layer)] = [HeadChange("disable", chosen)]
        return checkpoint.model(**checkpoint.inputs(rows))[0].float().cpu()


def _states(checkpoint: Checkpoint, encodings: list[Encoding]) -> torch.Tensor:
    states: list[torch.Tensor] = [torch.empty(0)] * len(encodings)

    def keep(inputs: list[int], output: Any) -> None:
        for row, k in enumerate(inputs):
            states[k] = output[0][row].float().cpu()  # last hidden states, or logits with a head

    run(checkpoint, encodings, [], on_batch=keep)
    return torch.stack(states)
