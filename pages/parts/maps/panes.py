"""The stacks of maps on the page: one, or two with their difference."""

from typing import NamedTuple

import numpy as np

from core import studies
from core.drawing.panes import Pane, difference
from core.drawing.payload import as_bytes
from pages.parts.maps.inputs import Input
from pages.parts.maps.maps_grid import pane_of
from pages.parts.shell import resources
from pages.parts.shell.resources import Shown


class Compared(NamedTuple):
    """What the workbench shows. `note` states why there is no difference, or is a remark; may be empty."""

    panes: list[Pane]
    note: str = ""


def beside(first: Shown, second: Shown, titles: tuple[str, str]) -> Compared:
    """Return two stacks of maps and, if possible, the second minus the first."""
    panes = [pane_of(shown, title) for shown, title in zip((first, second), titles, strict=True)]
    return _with_difference(panes, (first.maps.weights, second.maps.weights))


def with_effective(name: str, shown: Shown) -> Compared:
    """Return raw and effective attention of one input. Raises InputError or CheckpointError."""
    return raw_and_effective(shown, *studies.attention.measures.both_maps(resources.checkpoint(name), shown.encoding))


def raw_and_effective(shown: Shown, weights: np.ndarray, left: np.ndarray) -> Compared:
    """Return panes of raw and effective weights, both [layer, head, query, key]."""
    raw = pane_of(shown, "raw")
    effective = Pane(
        "effective", raw.layers, raw.heads, raw.tokens, as_bytes(left), raw.causal, attending=raw.attending
    )
    panes, _ = _with_difference([raw, effective], (weights, left))
    lost = np.nanmean(np.abs(left @ np.ones(left.shape[-1]) - 1))
    note = (
        "Effective attention is attention without the part that cannot affect the output. Its rows need not sum to 1 "
        f"(here their sums differ from 1 by {lost:.3f} on average), and negative values are drawn as 0."
    )
    if np.allclose(weights, left, atol=1e-5, equal_nan=True):
        note = (
            "Effective and raw attention are equal for this input. They can differ only if an input has more tokens "
            "than a head has dimensions. Choose a longer text."
        )
    return Compared(panes, note)


def titles_of(first: Input, second: Input) -> tuple[str, str]:
    """Return titles for two inputs: their first words."""
    return str(first)[:40], str(second)[:40]


def _with_difference(panes: list[Pane], weights: tuple[np.ndarray, np.ndarray]) -> Compared:
    third = difference(panes[0], panes[1], weights)
    if isinstance(third, str):
        return Compared(panes, third)
    differing = sum(a != b for a, b in zip(panes[0].tokens, panes[1].tokens, strict=True))
    note = (
        f"The difference compares equal positions, but {differing} of {len(third.tokens)} positions have different "
        f"tokens."
        if differing
        else ""
    )
    return Compared([*panes, third], note)
