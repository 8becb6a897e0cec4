"""Which head a checkpoint was saved with, read from its config without opening the weights."""

import json

from core.models.classifier import POOLING_KEY
from core.models.opening import HeadKind, locate


def saved_head(name: str, *, revision: str | None = None) -> HeadKind:
    """ "classifier", "language" or "none", as `open_checkpoint` takes it. Raises CheckpointError as that does."""
    config = json.loads((locate(name, revision=revision) / "config.json").read_text(encoding="utf-8"))
    classes = " ".join(config.get("architectures") or [])
    if "SequenceClassification" in classes or POOLING_KEY in config:
        return "classifier"
    marks = ("MaskedLM", "CausalLM", "LMHead", "PreTraining", "ConditionalGeneration", "MarianMT")
    return "language" if any(mark in classes for mark in marks) else "none"
