"""Which head a checkpoint was saved with, read from its config without opening the weights."""

from .adapters import adapter_in
from .classifier import POOLING_KEY
from .config_files import classifies, read_config
from .opening import HeadKind, locate

_LANGUAGE = ("MaskedLM", "CausalLM", "LMHead", "PreTraining", "ConditionalGeneration", "MarianMT")


def saved_head(name: str, *, revision: str | None = None) -> HeadKind:
    """ "classifier", "language" or "none", as `open_checkpoint` takes it. Raises CheckpointError as that does."""
    folder = locate(name, revision=revision)
    if (adapter := adapter_in(folder, name)) is not None:
        return adapter.head
    config = read_config(folder, name)
    if classifies(config) or POOLING_KEY in config:
        return "classifier"
    return (
        "language" if any(mark in kind for kind in config.get("architectures") or () for mark in _LANGUAGE) else "none"
    )
