"""The function `study`, which runs a study in this process and returns a data frame."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm.auto import tqdm

from ..attention import Head
from ..errors import InputError
from ..jobs.worker import merged
from ..store.rows import plain
from ..studies import preflight
from ..studies.contract import as_json, declared
from ..studies.lookup import find_study, study_modules

ALSO = {"ablation": "disable"}  # public names of studies
OPTIONS = {"method": "operator"}  # public names of options


def study(name: str, model: Any = None, *, progress: bool = True, **options: Any) -> pd.DataFrame:
    """Run a study in this process, and return its rows as a data frame.

    Rows of one head have the column `name`, such as "L1H1". `attrs` has the study, its options and the provenance.

    Args:
        name: of the study, as `attention-atlas study --help` lists them; "ablation" ablates every head in turn.
        model: from `open`, or a name, folder or hub ID.
        progress: whether to show a progress bar.
        options: of the study; `task` also sets `tasks` of a study with several. A value may also be from `open`.

    Raises:
        InputError: an option or its value is invalid.
        AtlasError: the study cannot run.
    """
    chosen = find_study(ALSO.get(name, name).replace("_", "-"))
    given = {OPTIONS.get(key, key): value for key, value in options.items()}
    names_of = declared(chosen.options)
    if "task" in given and "task" not in names_of and "tasks" in names_of:
        given["tasks"] = [given.pop("task")]
    given |= {} if model is None else {"checkpoint": model}
    names = {value.folder: value.name for value in given.values() if _is_opened(value)}
    given = {key: value.folder if _is_opened(value) else str(value) if isinstance(value, Path) else value
             for key, value in given.items()}  # fmt: skip
    read = chosen.read(given)
    preflight.check_runnable(chosen, as_json(read))
    preflight.check_paths(chosen, read)
    partials, provenance, units = [], [], chosen.units(read)
    if not units:
        raise InputError(
            f"The options of the study {chosen.name} must select something to compute; they select nothing. Choose "
            "options that select more."
        )
    with tqdm(total=len(units), desc=chosen.name, leave=False, disable=not progress) as bar:
        while units:
            for unit in units:
                done = chosen.run(read, unit)
                partials.append(done.partial)
                provenance.append({k: v for k, v in done.provenance.as_row().items() if v is not None})
                bar.update()
            units = chosen.more(read, partials)
            bar.total += len(units)
    frame = pd.DataFrame([plain(row) for row in chosen.summarize(read, partials)])
    for column in ("checkpoint", "compare", "before", "after"):
        if column in frame:
            frame[column] = frame[column].replace(names)
    if {"layer", "head"} <= set(frame):
        of_heads = frame[frame[["layer", "head"]].notna().all(axis=1)]
        parts = of_heads["part"].fillna("") if "part" in of_heads else [""] * len(of_heads)
        heads = [str(Head(int(layer), int(head), part))
                 for layer, head, part in zip(of_heads["layer"], of_heads["head"], parts, strict=True)]  # fmt: skip
        named = pd.Series(heads, of_heads.index, dtype=object).reindex(frame.index)
        frame["name"] = named.combine_first(frame["name"]) if "name" in frame else named
    frame.attrs = {"study": chosen.name, "options": as_json(read), "provenance": merged(provenance)}
    return frame


def _is_opened(value: Any) -> bool:
    return hasattr(value, "folder") and hasattr(value, "checkpoint")


def studies() -> Sequence[str]:
    """Return the names of the studies that the function `study` can run."""
    return sorted({*study_modules(), *ALSO})
