"""Groups of near-duplicate heads for `disable`: found on train rows, disabled together on the task's rows.

Beside each group stand its heads one at a time and random heads of the same layers: three roles of variants.
"""

from collections.abc import Sequence
from typing import Any, TypedDict

import numpy as np

from ... import capture, scoring
from ...errors import InputError
from ...scoring import effects
from ...scoring.duplicates import Group, groups_of, matched
from ...tasks.glue import read_rows
from ..estimate import Estimate, estimate_of
from .disabling import Opened, Variant

GROUP_ROWS, QUERIES = 200, 4  # train rows that find the groups; rows of each map that are compared
CONTROLS = 5  # random sets beside each group
TOGETHER, ALONE, CONTROL = "together", "alone", "control"


def check(within: float) -> None:
    """Raises InputError for a share that is none."""
    groups_of(np.zeros((2, 2)), 2, within=within)


def variants(opened: Opened, data: str | None, *, seed: int, within: float) -> list[Variant]:
    """Every group together, each of its heads alone, and its controls."""
    checkpoint = opened.checkpoint
    groups = _groups(opened, data, seed, within)
    if not groups:
        raise InputError(f"No two heads are nearer than {within:g} of the mean distance between heads: raise within.")
    found_variants = []
    for number, group in enumerate(groups):
        name = f"{len(group.heads)} like {group.middle}"
        found_variants.append(Variant(name, None, None, tuple(group.heads), TOGETHER, number, group.distance))
        found_variants += [Variant(str(head), None, None, (head,), ALONE, number) for head in group.heads]
        sets = matched(group, checkpoint.layers, checkpoint.heads, draws=CONTROLS, seed=seed)
        found_variants += [
            Variant(f"control {k + 1} of {name}", None, None, tuple(head_set), CONTROL, number)
            for k, head_set in enumerate(sets)
        ]
    return found_variants


def _groups(opened: Opened, data: str | None, seed: int, within: float) -> tuple[Group, ...]:
    key = (opened.checkpoint.name, opened.checkpoint.weights_hash, opened.task.key, data, seed, within)
    if key not in _KNOWN:
        _KNOWN.clear()  # a worker meets one job at a time
        _KNOWN[key] = tuple(_measured(opened, data, seed, within))
    return _KNOWN[key]


_KNOWN: dict[tuple[Any, ...], tuple[Group, ...]] = {}


def _measured(opened: Opened, data: str | None, seed: int, within: float) -> list[Group]:
    """The same on every worker: they depend on nothing but the weights and the options."""
    checkpoint = opened.checkpoint
    rows = read_rows(opened.task, "train", folder=data, limit=GROUP_ROWS, seed=seed)
    distances = scoring.distances.HeadDistances(checkpoint.layers, checkpoint.heads, queries=QUERIES, seed=seed)
    capture.running.run(checkpoint, opened.encoded(rows), [distances.take(range(len(rows)))])
    return groups_of(distances.result(), checkpoint.heads, within=within)


class Contrast(TypedDict, total=False):
    """What the heads of a group cost one at a time, what random heads cost, and what it costs beyond each."""

    apart: Estimate | None
    control: Estimate | None
    beyond_apart: Estimate | None
    beyond_control: Estimate | None


Contrasts = dict[str, Contrast]  # by metric


def together(variants: Sequence[Variant], changed: np.ndarray) -> tuple[list[Variant], np.ndarray]:
    """The variants that are whole groups, without the single heads and controls beside them.

    Args:
        variants: as `variants` gives them.
        changed: predictions under each. *Shape:* (variant, row).

    Returns:
        The groups, and the predictions under each. *Shape:* (group, row).
    """
    places = [k for k, variant in enumerate(variants) if variant.role == TOGETHER]
    return [variants[k] for k in places], changed[places]


def beside(
    names: Sequence[str],
    gold: np.ndarray,
    plain: np.ndarray,
    changed: np.ndarray,
    variants: Sequence[Variant],
) -> list[Contrasts]:
    """What a group costs beside what its heads cost one at a time, added up ("apart"), and random heads ("control").

    Args:
        gold: labels or scores. *Shape:* (row,).
        plain: predictions of the untouched model. *Shape:* (row,).
        changed: predictions under every variant. *Shape:* (variant, row).
        variants: groups, their single heads and their controls, as `variants` gives them.

    Returns:
        Of every group by metric the change of each, and of the group beyond each, with 95 % paired intervals; None for
        a control where too few heads are left for one.
    """
    roles = np.array([variant.role for variant in variants])
    group = np.array([variant.group for variant in variants])
    chosen = np.flatnonzero(roles == TOGETHER)
    apart = np.stack([(roles == ALONE) & (group == group[k]) for k in chosen]).astype(float)
    control = np.stack([(roles == CONTROL) & (group == group[k]) for k in chosen]) / CONTROLS
    whole = np.eye(len(variants))[chosen]
    beyond = (whole - control) * control.any(1, keepdims=True)  # the largest groups leave too few heads for a control
    contrasts = {"apart": apart, "control": control, "beyond_apart": whole - apart, "beyond_control": beyond}
    groups: list[Contrasts] = [{name: {} for name in names} for _ in chosen]
    for name in names:
        for label, weights in contrasts.items():
            intervals = effects.contrast_intervals(name, gold, plain, changed, weights)
            for contrasted, interval in zip(groups, intervals, strict=True):
                contrasted[name][label] = estimate_of(interval)  # type: ignore[literal-required]  # of Contrast
    return groups
