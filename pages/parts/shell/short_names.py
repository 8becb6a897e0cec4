"""Short distinct names for checkpoints whose paths begin alike."""

import re
from collections.abc import Sequence
from pathlib import PurePath

BETWEEN_WORDS = re.compile(r"([\s,;:()]+)")
BETWEEN_NAMES = re.compile(r"(, | and )")  # of checkpoints in a cell, which may have spaces


def short_names(names: Sequence[str]) -> dict[str, str]:
    """Return each name reduced to the fewest last parts of its path that are unique; hub IDs are unchanged."""
    parts = {
        name: PurePath(name).parts if (name.startswith(("/", "~", "./", "../")) or name.count("/") > 1) else (name,)
        for name in names
    }
    shorts = {}
    for name, path_parts in parts.items():
        other_paths = [other_path for other_name, other_path in parts.items() if other_name != name]
        count = next(
            (
                n
                for n in range(1, len(path_parts))
                if all(path_parts[-n:] != other_path[-n:] for other_path in other_paths)
            ),
            len(path_parts),
        )
        shorts[name] = str(PurePath(*path_parts[-count:])) if path_parts else name
    return shorts


def short_titles(titles: Sequence[str], between: re.Pattern[str] = BETWEEN_WORDS) -> dict[str, str]:
    """Return each title with short names for its paths. `between` separates names or words."""
    parts = {title: between.split(title) for title in titles}
    shorts = short_names(list({part for of_title in parts.values() for part in of_title}))
    return {title: "".join(map(shorts.__getitem__, of_title)) for title, of_title in parts.items()}
