"""docs/calibration.md from the outcomes of all cases."""

from collections.abc import Sequence

from tests.simulations.registry import Outcome

_SECTIONS = {
    "nothing": ("Where nothing is", "claims in", "at most"),
    "found": ("What is planted is found", "found in", "at least"),
    "covers": ("Intervals hold the truth", "held in", "at least"),
    "at most": ("Widths", "median", "at most"),
}


def page(outcomes: Sequence[Outcome]) -> str:
    """The whole page."""
    parts = [_INTRODUCTION]
    for expected, (title, said, way) in _SECTIONS.items():
        of_kind = [outcome for outcome in outcomes if outcome.case.expected == expected]
        if of_kind:
            parts += [f"## {title}", table(of_kind, said, way)]
    return "\n\n".join(parts) + "\n"


def table(outcomes: Sequence[Outcome], said: str, way: str) -> str:
    """Markdown, one row a study and world."""
    lines = [f"| study | world | inputs | draws | {said} | limit ({way}) | within |", "|---|---|--:|--:|--:|--:|---|"]
    for outcome in outcomes:
        case = outcome.case
        number = "{:.2f}" if case.expected == "at most" else "{:.1%}"
        lines.append(
            f"| {case.study} | {case.world} | {case.inputs} | {outcome.draws} | {number.format(outcome.rate)} | "
            f"{number.format(outcome.limit)} | {'yes' if outcome.within else '**no**'} |"
        )
    return "\n".join(lines)


_INTRODUCTION = """# What is claimed where nothing is, and what is found

For people who ask whether a p, an interval or a verdict of this app keeps its promise.

This page is written by

    python -m tests.simulations --calibration > docs/calibration.md

and, as {study: {world: {rate, draws, limit}}}, by `python -m tests.simulations --json` (`--quick` for the few draws of
every test run). A world is planted, a study is run in it, and what it claims is counted: over all heads and names
together, so one wrong claim of one head is a wrong claim of the study. A limit is how far a true rate of exactly 5 %
(90 %, 93 %) goes in 99 of 100 such simulations of so many draws."""
