"""A checkpoint's architecture with weights as they are before training: the baseline of everything that is probed."""

import copy
import hashlib

import torch
import transformers

from .checkpoint import Checkpoint
from .classifier import PooledForSequenceClassification

RANDOM = "random weights"


def random_copy(checkpoint: Checkpoint, *, seed: int = 0, classifier: bool = False) -> Checkpoint:
    """A checkpoint of the same family, sizes and tokenizer, with fresh weights as the family draws them.

    Equal seeds give equal weights. classifier: with a fresh head too, of a checkpoint that was opened with one.
    """
    how = "sdpa" if checkpoint.family.interceptable else "eager"
    config = copy.deepcopy(checkpoint.model.config)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if classifier and isinstance(checkpoint.model, transformers.PreTrainedModel):
            model = type(checkpoint.model)._from_config(config, attn_implementation=how, dtype=torch.float32)
        else:
            model = transformers.AutoModel.from_config(config, attn_implementation=how, dtype=torch.float32)
            if classifier:
                known = checkpoint.model
                model = PooledForSequenceClassification(model, known.head.out_features, known.separator)
    mark = hashlib.sha256(f"{RANDOM} {seed} {config.to_json_string()}".encode()).hexdigest()
    model = model.to(checkpoint.device).eval().requires_grad_(requires_grad=False)
    return Checkpoint(f"{checkpoint.name}, {RANDOM}", model, checkpoint.tokenizer, mark)
