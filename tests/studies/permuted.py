"""A checkpoint whose heads changed places inside their layers, all of their projections together: the same function."""

import copy
import re
from dataclasses import replace

import numpy as np
import torch

from core.models.checkpoint import Checkpoint

SHARES_WEIGHTS = {"albert", "t5", "mt5"}  # over layers (of T5 the relative biases): one order for all of them
QUERY = r"\.(query|q_proj|q_lin|query_proj|pos_query_proj|pos_key_proj|pos_proj|pos_q_proj|SelfAttention\.q)\.\w+$"
KEY = r"\.(key|value|k_proj|v_proj|k_lin|v_lin|key_proj|value_proj|SelfAttention\.[kv])\.\w+$"
OUT = (
    r"\.(attention\.output\.dense|attention\.dense|out_lin|o_proj|out_proj|attn\.Wo|attn\.c_proj|self_attention\.dense|"
    r"self_attn\.dense|SelfAttention\.o)\.weight$"
)


def permuted(checkpoint: Checkpoint, *, seed: int = 0) -> tuple[Checkpoint, np.ndarray]:
    """The checkpoint with other places for its heads, and which head of the old one each new one is [layer, head]."""
    heads, rng = checkpoint.sets[0], np.random.default_rng(seed)
    groups = getattr(checkpoint.model.config, "num_key_value_heads", None) or heads.heads
    orders = [_order(rng, heads.heads, groups) for _ in range(heads.layers)]
    if checkpoint.family.model_type in SHARES_WEIGHTS:
        orders = [orders[0]] * heads.layers
    model = copy.deepcopy(checkpoint.model)
    with torch.no_grad():
        for name, weights in model.named_parameters():
            if "bottleneck" not in name and not (checkpoint.family.translates and not name.startswith("encoder.")):
                layer = int(next(iter(re.findall(r"(?:layer|layers|h|block)\.(\d+)\.", name)), 0))
                _shuffle(f".{name}", weights, orders[layer], checkpoint, groups)
    return replace(checkpoint, name="permuted", model=model), np.array([order for order, _ in orders])


def _order(rng: np.random.Generator, heads: int, groups: int) -> tuple[list[int], list[int]]:
    """New order of heads and of key-value groups; the heads of a group stay together."""
    size, places = heads // groups, rng.permutation(groups)
    return [int(g) * size + int(k) for g in places for k in rng.permutation(size)], [int(g) for g in places]


def _shuffle(name: str, weights: torch.Tensor, orders: tuple, checkpoint: Checkpoint, groups: int) -> None:
    order, group_order = orders
    heads, conv = len(order), checkpoint.family.model_type in ("gpt2", "imagegpt")
    fused = 1 if conv and weights.dim() == 2 else 0
    if re.search(QUERY, name) or re.search(r"\.(q_bias|v_bias|sinks|r_\w+_bias)$", name):
        _blocks(weights, 0, order, heads)
    elif re.search(KEY, name):
        _blocks(weights, 0, group_order, groups)
    elif re.search(OUT, name):
        _blocks(weights, 0 if conv else 1, order, heads)
    elif re.search(r"rel_attn\.([qkvor]|seg_embed)$|relative_attention_bias\.weight$", name):
        _blocks(weights, 1, order, heads)
    elif re.search(r"\.(Wqkv|c_attn)\.", name):
        _blocks(weights, fused, [part * heads + head for part in range(3) for head in order], 3 * heads)
    elif re.search(r"\.self_attention\.query_key_value\.", name):  # Falcon: one key and one value for all heads
        _blocks(weights, 0, [*order, heads, heads + 1], heads + 2)
    elif re.search(r"\.(query_key_value|in_proj)\.", name):
        _blocks(weights, 0, order, heads)
    elif re.search(r"\.qkv_proj\.", name):
        shifted = [[start + group for group in group_order] for start in (heads, heads + groups)]
        _blocks(weights, 0, [*order, *shifted[0], *shifted[1]], heads + 2 * groups)


def _blocks(weights: torch.Tensor, axis: int, order: list[int], count: int) -> None:
    """Blocks of an axis, `count` of one size, in another order."""
    size = weights.shape[axis] // count
    index = torch.cat([torch.arange(block * size, (block + 1) * size) for block in order])
    weights.copy_(weights.index_select(axis, index))
