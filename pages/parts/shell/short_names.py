"""Short names that differ: what a list shows of checkpoints whose paths begin alike."""

import re
from collections.abc import Sequence
from pathlib import PurePath

WORD = re.compile(r"[^\s,;:()]+")


def short_names(names: Sequence[str]) -> dict[str, str]:
    """Each name with the fewest last parts of its path that no other of these names has; hub ids stay whole."""
    parts = {name: PurePath(name).parts if _is_path(name) else (name,) for name in names}
    shorts = {}
    for name, own in parts.items():
        others = [other for there, other in parts.items() if there != name]
        count = next((n for n in range(1, len(own)) if all(own[-n:] != other[-n:] for other in others)), len(own))
        shorts[name] = str(PurePath(*own[-count:])) if own else name
    return shorts


def short_titles(titles: Sequence[str]) -> dict[str, str]:
    """Each title with short names for the paths in it, which differ wherever two paths of these titles do."""
    paths = {word for title in titles for word in WORD.findall(title) if _is_path(word)}
    shorts = short_names(sorted(paths))
    return {title: WORD.sub(lambda found: shorts.get(found[0], found[0]), title) for title in titles}


def _is_path(name: str) -> bool:
    return name.startswith(("/", "~", "./", "../")) or name.count("/") > 1
