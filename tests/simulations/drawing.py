"""Draws of many cases, so that a long run can be stopped, resumed and divided: each value is a line of a file.

Cases of one world are drawn seed by seed together, since a world is kept until another is drawn.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from tests.simulations.registry import Case, Outcome, outcome

Values = dict[str, dict[int, float]]  # name of a case: seed: value


def read(files: Iterable[Path]) -> Values:
    """The values that files of earlier runs hold."""
    values: Values = defaultdict(dict)
    for file in files:
        for line in file.read_text().splitlines() if file.exists() else ():
            entry = json.loads(line)
            values[entry["case"]][entry["seed"]] = entry["value"]
    return values


def order(cases: Sequence[Case], draws: Callable[[Case], int]) -> Iterator[tuple[Case, int]]:
    """(case, seed): worlds that several cases share seed by seed."""
    worlds: dict[str, list[Case]] = {}
    for case in cases:
        worlds.setdefault(case.world_of or case.name, []).append(case)
    for mine in worlds.values():
        for seed in range(max(draws(case) for case in mine)):
            yield from ((case, seed) for case in mine if seed < draws(case))


def drawn(cases: Sequence[Case], draws: Callable[[Case], int], values: Values, file: Path | None) -> list[Outcome]:
    """The outcome of each case over the seeds below its draws; what `values` lacks is drawn, and added to the file."""
    for case, seed in order(cases, draws):
        if seed not in values[case.name]:
            values[case.name][seed] = float(case.draw(seed))
            if file:
                with file.open("a") as lines:
                    entry = {"case": case.name, "seed": seed, "value": values[case.name][seed]}
                    lines.write(json.dumps(entry) + "\n")
    return [outcome(case, [values[case.name][seed] for seed in range(draws(case))]) for case in cases]
