"""One colour a class and a role, in every chart of the app; other names get what is left of the palette."""

from collections.abc import Iterable, Sequence

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from core import patterns
from core.codebook.registry import COLOURS as CLASSES
from core.drawing.theme import theme
from pages.parts.shell import resources

ROLES = {
    "previous": "#0072B2", "next": "#56B4E9", "separator": "#D55E00", "first": "#E69F00", "broad": "#009E73",
    "other": "#8C8C8C", "nan": "#8C8C8C",
}  # fmt: skip
COLOURS = CLASSES | ROLES


def own_colours(names: Sequence[str]) -> dict[str, str]:
    """The colours of names that are all classes of one set, as it is now: the set that is picked first, then the
    shipped ones and people's own. The shipped colours where no set has them all."""
    if not names or get_script_run_ctx(suppress_warning=True) is None or set(names) <= set(ROLES):
        return COLOURS
    db, picked = resources.database(), st.session_state.get("class_set")
    sets = patterns.class_sets.class_set_names(db)
    for name in sorted(sets, key=lambda each: each != picked):
        class_colours = {member.name: member.colour for member in patterns.snapshot.known_class_set(db, name).classes}
        if all(label in class_colours for label in names):
            return ROLES | class_colours
    return COLOURS


def colours_of(names: Sequence[str]) -> list[str]:
    """The colour of each name: its own wherever it is a class or a role."""
    colour_of_name = own_colours(names)
    used = {colour_of_name[name] for name in names if name in colour_of_name}
    palette = list(theme()["chartCategoricalColors"])
    free = [colour for colour in palette if colour not in used] or palette
    uncoloured = [name for name in names if name not in colour_of_name]
    return [
        colour_of_name[name] if name in colour_of_name else free[uncoloured.index(name) % len(free)] for name in names
    ]


def has_own(names: Iterable[str]) -> bool:
    """Whether any of these names has a colour of its own."""
    all_names = list(names)
    return bool(all_names) and any(name in own_colours(all_names) for name in all_names)
