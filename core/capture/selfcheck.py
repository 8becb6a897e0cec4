"""What must hold before a checkpoint is trusted: shape, rows, equality with eager, and that disabling bites."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from core.attention import Head
from core.capture.interventions import Intervention
from core.capture.running import capture, model_inputs, run
from core.errors import AtlasError
from core.models.checkpoint import Checkpoint
from core.models.encoding import Encoding

SENTENCE, SECOND = "The small engine ran all night without a pause.", "Nobody in the village heard it stop."
EAGER_TOLERANCE = {"float32": 1e-5, "bfloat16": 2e-2, "float16": 5e-3}


@dataclass(frozen=True)
class Finding:
    """One line of the self-check. seen: the figure it rests on, in words."""

    name: str
    passed: bool
    seen: str


def self_check(checkpoint: Checkpoint) -> list[Finding]:
    """Run every check on one input; none raises."""
    encoding = checkpoint.encode(SENTENCE, SECOND)
    checks = (
        ("shape", _shape),
        ("rows sum to 1", _rows),
        ("equal to eager", _eager),
        ("causality", _causality),
        ("batch equals single", _batched),
        ("disabling a head changes the output", _disabling),
    )
    findings = []
    for name, check in checks:
        try:
            passed, seen = check(checkpoint, encoding)
        except (AtlasError, RuntimeError, ValueError, TypeError) as error:
            passed, seen = False, str(error).splitlines()[0]
        findings.append(Finding(name, passed, seen))
    return findings


def _shape(checkpoint: Checkpoint, encoding: Encoding) -> tuple[bool, str]:
    seen = capture(checkpoint, encoding).weights.shape
    return seen == (checkpoint.layers, checkpoint.heads, len(encoding), len(encoding)), " x ".join(map(str, seen))


def _rows(checkpoint: Checkpoint, encoding: Encoding) -> tuple[bool, str]:
    off = np.abs(capture(checkpoint, encoding).weights.sum(-1) - 1).max()
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


def _eager(checkpoint: Checkpoint, encoding: Encoding) -> tuple[bool, str]:
    off = np.abs(capture(checkpoint, encoding).weights - eager_weights(checkpoint, encoding)).max()
    return bool(off <= EAGER_TOLERANCE.get(checkpoint.dtype, 1e-5)), f"largest difference {off:.1e}"


def _causality(checkpoint: Checkpoint, encoding: Encoding) -> tuple[bool, str]:
    above = float(np.triu(capture(checkpoint, encoding).weights, 1).sum(-1).max())
    kind = "causal" if checkpoint.causal else "bidirectional"
    return (above < 1e-6) == checkpoint.causal, f"declared {kind}; most weight on later tokens {above:.2g}"


def _batched(checkpoint: Checkpoint, encoding: Encoding) -> tuple[bool, str]:
    single, twice = _states(checkpoint, [encoding])[0], _states(checkpoint, [encoding, encoding])[1]
    off = float((single - twice).abs().max())
    return off <= 10 * EAGER_TOLERANCE.get(checkpoint.dtype, 1e-5), f"largest difference {off:.1e}"


def _disabling(checkpoint: Checkpoint, encoding: Encoding) -> tuple[bool, str]:
    if not checkpoint.family.interceptable:
        return True, f"not available for {checkpoint.family.model_type}: maps can be looked at, not changed"
    plain = _states(checkpoint, [encoding])
    moved = {}
    for layer in range(checkpoint.layers):
        chosen = Intervention("disable", frozenset({Head(layer, 0)}))
        moved[layer] = float((_states(checkpoint, [encoding], chosen) - plain).abs().max())
    still = [str(Head(layer, 0)) for layer, change in moved.items() if change == 0]
    if still:
        return False, f"disabling {still[0]} changed nothing"
    return True, f"smallest change {min(moved.values()):.1e} over {checkpoint.layers} layers"


def _states(checkpoint: Checkpoint, encodings: list[Encoding], *interventions: Intervention) -> torch.Tensor:
    found: list[torch.Tensor] = [torch.empty(0)] * len(encodings)

    def keep(inputs: list[int], output: Any) -> None:
        for row, k in enumerate(inputs):
            found[k] = output[0][row].float().cpu()  # last hidden states, or logits with a head

    run(checkpoint, encodings, [], interventions=interventions, on_batch=keep)
    return torch.stack(found)
