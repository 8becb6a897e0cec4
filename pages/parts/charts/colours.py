"""One colour a class and a role, in every chart of the app; other names get what is left of the palette."""

from collections.abc import Iterable, Sequence

from core.drawing.theme import theme
from core.patterns.classes import SHIPPED

CLASSES = {member.name: member.colour for known in SHIPPED.values() for member in known.classes}
ROLES = {
    "previous": "#0072B2", "next": "#56B4E9", "separator": "#D55E00", "first": "#E69F00", "broad": "#009E73",
    "other": "#8C8C8C", "nan": "#8C8C8C",
}  # fmt: skip
COLOURS = CLASSES | ROLES


def colours_of(names: Sequence[str]) -> list[str]:
    """The colour of each name: its own wherever it is a class or a role."""
    taken = {COLOURS[name] for name in names if name in COLOURS}
    palette = list(theme()["chartCategoricalColors"])
    free = [colour for colour in palette if colour not in taken] or palette
    others = [name for name in names if name not in COLOURS]
    return [COLOURS[name] if name in COLOURS else free[others.index(name) % len(free)] for name in names]


def has_own(names: Iterable[str]) -> bool:
    """Whether any of these names has a colour of its own."""
    return any(name in COLOURS for name in names)
