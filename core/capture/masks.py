"""Masks of visible keys, as mask functions of transformers or as tensors.

A mask of 16,384 x 16,384 tokens takes a gigabyte. Within `lazily`, models receive a placeholder without memory that
carries the mask function, which is evaluated for blocks of queries. The placeholder is NaN everywhere, so that a model
that computes with it fails visibly.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor
from transformers.masking_utils import eager_mask

Rule = Callable[[Any, Any, Any, Any], Tensor]  # of input, head, query and key: whether it is seen

_LAZY: ContextVar[bool] = ContextVar("masks_are_rules", default=False)


@contextmanager
def lazily() -> Iterator[None]:
    """Use mask functions instead of mask tensors in the current thread within this context. Inputs must not be
    padded."""
    token = _LAZY.set(True)
    try:
        yield
    finally:
        _LAZY.reset(token)


def mask_of(
    batch_size: int,
    q_length: int,
    kv_length: int,
    q_offset: int = 0,
    kv_offset: int = 0,
    mask_function: Rule | None = None,
    attention_mask: Tensor | None = None,
    **options: Any,
) -> Tensor | None:
    """Create the attention mask of transformers for eager attention. Within `lazily`, return a placeholder tensor with
    the mask function instead.

    The mask (batch, 1, query, key) is added to scores, 0 for visible keys; None if transformers skips it.
    `mask_function` states whether a query may attend to a key (None: causal), and `attention_mask` is True for keys
    that are not padding.
    """
    plain = attention_mask is None or bool(attention_mask.all())
    if not _LAZY.get() or mask_function is None or not plain or options.get("use_vmap"):
        rule = {} if mask_function is None else {"mask_function": mask_function}
        ends = (batch_size, q_length, kv_length, q_offset, kv_offset)
        return eager_mask(*ends, attention_mask=attention_mask, **(options | rule))
    placeholder = torch.full((1, 1, 1, 1), torch.nan, device=options.get("device", "cpu"))
    made = placeholder.expand(batch_size, 1, q_length, kv_length)
    made.rule = lambda query, key: mask_function(0, 0, query + q_offset, key + kv_offset)  # type: ignore[attr-defined]
    return made


def rule_of(mask: Tensor | None) -> Callable[[Tensor, Tensor], Tensor] | None:
    """Return the mask function stored in a placeholder mask, or None for an ordinary mask. The function returns whether
    queries may attend to keys, given their positions."""
    return getattr(mask, "rule", None)


def rows_of(mask: Tensor | None, queries: slice, dtype: torch.dtype, device: torch.device) -> Tensor | None:
    """Return the attention mask of the given queries as numbers that are added to scores; None if `mask` is None.

    `mask` may be a placeholder. Masked keys have the smallest number of the dtype. *Shape:* (batch or 1, 1, some
    queries, key).
    """
    rule = rule_of(mask)
    if mask is None or rule is None:
        return mask if mask is None else mask[:, :, queries]
    seen = _seen(rule, queries, mask.shape[-1], device)
    return torch.zeros(seen.shape, dtype=dtype, device=device).masked_fill_(~seen, torch.finfo(dtype).min)[None, None]


def _seen(rule: Callable[[Tensor, Tensor], Tensor], queries: slice, keys: int, device: torch.device) -> Tensor:
    places = torch.arange(queries.start, queries.stop, device=device)[:, None]
    return rule(places, torch.arange(keys, device=device)[None]).expand(len(places), keys)


def visible_rows(
    mask: Tensor | None, row: int, queries: slice, keys: int, dtype: torch.dtype, device: torch.device
) -> tuple[Tensor | None, slice]:
    """Return the attention mask of the given queries of one input, and the range of keys that these queries see.

    The mask (1 or head, some queries, some keys) is added to scores; None: every query sees all of these keys. The
    argument `mask` may be a placeholder. *Shape:* (batch or 1, 1 or head, query, at least key).
    """
    if mask is None:
        return None, slice(0, keys)
    rule = rule_of(mask)
    if rule is None:
        added = mask[min(row, len(mask) - 1)][:, queries, :keys]
        seen = (added if added.dtype == torch.bool else added > torch.finfo(added.dtype).min / 2).any(0)
    else:
        seen, added = _seen(rule, queries, keys, device), None
    visible = torch.nonzero(seen.any(0))[:, 0]
    span = slice(int(visible[0]), int(visible[-1]) + 1) if len(visible) else slice(0, keys)
    if added is not None and added.dtype != torch.bool:
        return added[..., span], span
    if bool(seen[:, span].all()):
        return None, span
    hidden = torch.zeros(seen.shape[0], span.stop - span.start, dtype=dtype, device=device)
    return hidden.masked_fill_(~seen[:, span], torch.finfo(dtype).min)[None], span
