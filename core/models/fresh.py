"""A checkpoint's architecture with weights as they are before training: the baseline of everything that is probed."""

import copy
import hashlib

import torch
import transformers

from core.models.checkpoint import Checkpoint

RANDOM = "random weights"


def random_copy(checkpoint: Checkpoint, *, seed: int = 0) -> Checkpoint:
    """A checkpoint of the same family, sizes and tokenizer, with fresh weights as the family draws them.

    Equal seeds give equal weights.
    """
    how = "sdpa" if checkpoint.family.interceptable else "eager"
    config = copy.deepcopy(checkpoint.model.config)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = transformers.AutoModel.from_config(config, attn_implementation=how, dtype=torch.float32)
    mark = hashlib.sha256(f"{RANDOM} {seed} {config.to_json_string()}".encode()).hexdigest()
    model = model.to(checkpoint.device).eval().requires_grad_(requires_grad=False)
    return Checkpoint(f"{checkpoint.name}, {RANDOM}", model, checkpoint.tokenizer, mark)
