"""Short names that differ: what a list shows of checkpoints whose paths begin alike."""

from collections.abc import Sequence
from pathlib import PurePath


def short_names(names: Sequence[str]) -> dict[str, str]:
    """Each name with the fewest last parts of its path that no other of these names has; hub ids stay whole."""
    parts = {name: PurePath(name).parts if _is_path(name) else (name,) for name in names}
    shorts = {}
    for name, own in parts.items():
        others = [other for there, other in parts.items() if there != name]
        count = next((n for n in range(1, len(own)) if all(own[-n:] != other[-n:] for other in others)), len(own))
        shorts[name] = str(PurePath(*own[-count:])) if own else name
    return shorts


def _is_path(name: str) -> bool:
    return name.startswith(("/", "~", "./", "../")) or name.count("/") > 1
