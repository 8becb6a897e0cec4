"""Weights of linear layers in 8 bits, by torchao: one scale a row, float32 arithmetic.

torchao is no requirement: transformers imports it wherever it is installed, which costs every start seconds and lines
on standard error. Who wants 8 bits installs it.

Whatever is not a linear layer (embeddings, norms, GPT-2's Conv1D) stays as it is.
"""

import logging
from typing import Any

from torch import nn

from core.errors import CheckpointError


def in_eight_bits(model: nn.Module, name: str) -> nn.Module:
    """The model with its linear layers' weights as int8, in place. Raises CheckpointError where there is no torchao or
    nothing to quantise."""
    if not any(isinstance(module, nn.Linear) for module in model.modules()):
        raise CheckpointError(
            f"8-bit weights are those of linear layers; {name} has none (GPT-2's are Conv1D): open it as bfloat16."
        )
    quantize, configuration = _torchao()
    quantize(model, configuration)
    return model


def _torchao() -> tuple[Any, Any]:
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)  # it tells of CUDA kernels that a CPU cannot load
    try:
        from torchao.quantization import Int8WeightOnlyConfig, quantize_  # an extra that may be absent
    except (ImportError, OSError, RuntimeError) as error:
        raise CheckpointError(
            "8-bit weights are made by torchao, which cannot be loaded here: pip install torchao==0.18.0, or open the "
            "checkpoint as bfloat16."
        ) from error
    finally:
        logging.disable(before)
    return quantize_, Int8WeightOnlyConfig()
