"""Borders between classes that people confuse: what tells the two apart, and bundled maps that lie close to it.

The maps are chosen by `data.recipes.codebook_borders`, by the codebook's own measurement, among those that the raters
gave the class; a measurement chooses pictures and labels nothing.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from core import config
from core.patterns.classes import BERT, GPT2, NEARLY_UNIFORM, SHIPPED
from core.patterns.codebook import BESIDE, FAINT, FOLLOWED, HALF, LINED, MARK, SHORT, STRONG, Map, measured

FILE = config.ANNOTATIONS / "borders.json"
Value = Callable[[Map, Sequence[int], bool], float]


@dataclass(frozen=True)
class Border:
    """What tells two classes apart. classes: on the low side of the measurement, then on the high one. rule: for the
    eye. measure: of a map, its separators and whether it is causal, 0 to 1; said: how it is told. threshold: None where
    the codebook has none. own_scale: drawn on the map's own scale. two_sentences: only of such inputs."""

    name: str
    class_set: str
    classes: tuple[str, str]
    rule: str
    measure: Value
    said: str
    threshold: float | None = None
    own_scale: bool = False
    two_sentences: bool = False

    @property
    def told(self) -> str:
        """The rule, and how its maps are drawn."""
        return f"{self.rule} Each map is drawn on its own scale." if self.own_scale else self.rule

    def caption(self, value: float) -> str:
        """What stands under a map."""
        return self.said.format(value=value)


@dataclass(frozen=True)
class BorderMap:
    """A bundled map near a border: its class, weights [query, key] and the measured value."""

    class_name: str
    weights: Map
    value: float
    source: str


def _inside(weights: Map, separators: Sequence[int], causal: bool) -> float:
    """Mean share of a row's weight that stays in its own sentence."""
    cut = _cut(weights, separators)
    inside = np.concatenate([weights[:cut, :cut].sum(1), weights[cut:, cut:].sum(1)])
    return float(inside.mean())


def _on_first_token(weights: Map, separators: Sequence[int], causal: bool) -> float:
    """Share of the second sentence's rows that have STRONG or more on the first token."""
    return float((weights[_cut(weights, separators) :, 0] >= STRONG).mean())


def _cut(weights: Map, separators: Sequence[int]) -> int:
    return next((separator + 1 for separator in sorted(separators) if separator + 1 < len(weights)), len(weights) // 2)


def _shortest(weights: Map, separators: Sequence[int], causal: bool) -> float:
    return min(measured(weights, separators=separators, causal=True).longest)


BORDERS = (
    Border(
        "weak-columns",
        BERT.name,
        ("heterogeneous", "vertical"),
        f"A column is Vertical when the eye can follow it: {FAINT} or more in {FOLLOWED:.0%} of the rows. What breaks "
        "off before is scattered, however dark its cells are.",
        lambda weights, *_: measured(weights).column.faint_rows,
        "{value:.0%} of the rows",
        FOLLOWED,
    ),
    Border(
        "faint-stripes",
        BERT.name,
        ("heterogeneous", "vertical"),
        f"Stripes of a map whose largest weight stays below {NEARLY_UNIFORM} are an effect of its own scale: on the "
        "scale 0 to 1 it is blank, so it is Heterogeneous.",
        lambda weights, *_: float(weights.max()),
        "largest weight {value:.2f}",
        NEARLY_UNIFORM,
        own_scale=True,
    ),
    Border(
        "line-beside-columns",
        BERT.name,
        ("vertical", "vertical+diagonal"),
        f"Beside a column a line counts when it is seen from end to end: {MARK} or more in {LINED:.0%} of its places, "
        "with marks in each third of the map.",
        lambda weights, *_: measured(weights).line.rows,
        "line in {value:.0%} of its places",
        LINED,
    ),
    Border(
        "column-beside-line",
        BERT.name,
        ("diagonal", "vertical+diagonal"),
        f"Beside a line a column counts when it is dark: {STRONG} or more in {BESIDE:.0%} of the rows. Paler ones stay "
        "Diagonal.",
        lambda weights, *_: measured(weights).column.strong_rows,
        "column in {value:.0%} of the rows",
        BESIDE,
    ),
    Border(
        "squares",
        BERT.name,
        ("heterogeneous", "block"),
        "Block is about two sentences: both squares are seen, and hardly any weight leaves them. Patches inside a "
        "sentence, or weight that goes across, are Heterogeneous.",
        _inside,
        "{value:.0%} stays in its sentence",
        own_scale=True,
        two_sentences=True,
    ),
    Border(
        "columns-in-each-sentence",
        GPT2.name,
        ("overall", "block"),
        f"Block needs a column in each sentence that can be followed ({SHORT} or more) through {HALF:.0%} of that "
        "sentence's rows; columns of single spots leave it Overall.",
        _shortest,
        "{value:.0%} of the rows, in the weaker sentence",
        HALF,
        two_sentences=True,
    ),
    Border(
        "first-sentence",
        GPT2.name,
        ("overall", "majority"),
        "Majority looks back: most of what the second sentence's tokens attend to lies in the first, mostly on its "
        f"first token, which has {STRONG} or more in {BESIDE:.0%} of the second sentence's rows. A paler first column "
        "leaves it Overall.",
        _on_first_token,
        "first token in {value:.0%} of the second sentence's rows",
        BESIDE,
        two_sentences=True,
    ),
)


def borders(class_set: str) -> list[Border]:
    """The borders of a class set; none of one that somebody made."""
    return [border for border in BORDERS if border.class_set == class_set]


def sides(border: Border) -> str:
    """How the bundled maps that all their raters gave one of its classes lie to the threshold, as a sentence; "" where
    there is none."""
    if border.threshold is None:
        return ""
    titles = {one.name: one.title for one in SHIPPED[border.class_set].classes}
    counted = _stored()[border.name]["sides"]
    told = " and ".join(f"{right:,} of {maps:,} {titles[name]} maps" for name, (right, maps) in counted.items())
    return (
        f"Of the bundled maps whose raters all gave the class, {told} lie on its side of the threshold; the others may "
        "be of it by another rule."
    )


def _stored() -> dict[str, Any]:
    return dict(json.loads(FILE.read_text(encoding="utf-8")))


@lru_cache(maxsize=16)
def border_maps(name: str) -> tuple[BorderMap, ...]:
    """The bundled maps near a border, low side first, each side in the order of its values."""
    maps = []
    for row in _stored().get(name, {"maps": []})["maps"]:
        with np.load(config.ANNOTATIONS / row["source"] / "maps.npz", allow_pickle=False) as stored:
            weights = stored[row["map_id"]].astype(np.float32)
        maps.append(BorderMap(row["class"], weights, row["value"], row["source"]))
    return tuple(maps)
