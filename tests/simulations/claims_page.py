"""docs/results/claims.md: how each sentence is decided, from the code, and how often that is wrong."""

import re

from core.report.claims.registry import claims
from tests.simulations.claim_worlds import DRAWS, PLANTED, limit

START = """# What the report's sentences are tested by

For readers of a reproduction report who ask what "holds" stands for.

This page is written by

    python -m tests.simulations claims > docs/results/claims.md

Of each sentence: what is tested, what it is held against, and what is done about many heads. **Holds**: the interval
lies on the sentence's side of the margin (or of the other number). **Does not hold**: it lies wholly beyond it.
**Undecided**: it reaches over it; the report says how many rows, or seeds, would. **Cannot be tested**: there are no
rows, or nothing to lose. A **known error** is decided by data or arithmetic, by no checkpoint, and is not counted
among the tests. Each test is at 5 % by itself; the report says how many of its decisions stand when the false discovery
rate over all its tests is held at 5 % (Benjamini and Yekutieli, whatever they have in common). A margin of 0 beside two
numbers that are compared is that of their difference. A sentence on what fine-tuning changes is read over every seed
that was looked at: numbers have rows and seeds in their interval (squares of the halves added, Student's t over seeds),
what is said of single heads has to be so in every seed. The report says how many seeds there were; of one, what another
would change is in no interval.

| claim | source | sentence | tested | margin | correction | what fine-tuning changes |
|---|---|---|---|---|---|---|
"""

MEANT = """
## What each outcome means

*Cannot be tested*, of every claim: there are no rows, or rows of an earlier version, or (of losses) nothing to lose.

| claim | holds | does not hold | undecided |
|---|---|---|---|
"""

WORLDS_START = """
## How often a decision is wrong

Rows are planted with the noise of so many dev rows: nothing there (or all heads on the line), an effect at twice the
margin (two points of a score where the margin is 0, a tenth of a weight or share), and one inside it (or as much the
other way). Scores of fine-tuning have three seeds whose luck is a point, shares of maps a classifier that takes one
in six for another class and whose confusions 60 labelled inputs tell. Weights and cosines of fine-tuned checkpoints
have three seeds, too, whose luck is as much: of a layer, of a feature, or (*more-to-nouns*) of each head. What heads
have in common is not planted (but in *keeps-its-role*). Of each world {draws} draws; a true rate of 5 % stays below
{limit:.1%} in 99.7 % of such simulations. n: rows of a dev set, or inputs, heads or words where it is not one of
GLUE's.

| claim | n | false holds | false does not hold | undecided at twice |
|---|---|---|---|---|
"""

END = """
Undecided at twice the margin in more than half of the draws: {open}. There the report says how many rows, or
seeds of fine-tuning, would decide it.

No worlds are planted for {missing}: they are data, arithmetic or without rows, so nothing is tested.
"""


def declared() -> str:
    """What the code says of each claim."""
    lines = []
    for known in claims():
        margin = "" if known.margin is None else f"{known.margin:.3g}"
        source = f"{known.source} {known.section}".strip()
        cells = (
            known.id,
            source,
            known.sentence,
            known.statistic,
            margin,
            known.correction.says,
            "yes" if known.tuned else "",
        )
        lines.append(f"| {' | '.join(cells)} |\n")
    meant = [f"| {known.id} | {' | '.join(known.meanings)} |\n" for known in claims()]
    return START + "".join(lines) + MEANT + "".join(meant)


def rates_now(text: str) -> dict[str, dict[str, float]]:
    """The rates that the page has, so that a claim can be drawn by itself. text: docs/results/claims.md."""
    cells = re.findall(r"^\| ([\w-]+) \| \d+ \| ([\d.]+) % \| ([\d.]+) % \| ([\d.]+) % \|$", text, re.MULTILINE)
    names = ("false_holds", "false_fails", "undecided_at_2x")
    return {
        name: {key: float(value) / 100 for key, value in zip(names, values, strict=True)} for name, *values in cells
    }


def page(rates: dict[str, dict[str, float]]) -> str:
    """The whole page."""
    n = {world.claim: world.n for world in PLANTED}
    lines = [
        f"| {name} | {n[name]} | " + " | ".join(f"{100 * rate:.1f} %" for rate in of_claim.values()) + " |\n"
        for name, of_claim in rates.items()
    ]
    missing = ", ".join(f"*{known.id}*" for known in claims() if known.id not in n)
    opened = ", ".join(f"*{name}*" for name, of_claim in rates.items() if of_claim["undecided_at_2x"] > 0.5) or "none"
    end = END.format(missing=missing, open=opened)
    return declared() + WORLDS_START.format(draws=DRAWS, limit=limit(DRAWS)) + "".join(lines) + end
