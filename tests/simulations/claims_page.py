"""docs/results/claims.md: how each sentence is decided, from the code, and how often that is wrong."""

import re

from core.report.claims.registry import claims
from tests.simulations.claim_worlds import DRAWS, PLANTED, limit

START = """# How the claims of the report are tested

This page is written by

    python -m tests.simulations claims > docs/results/claims.md

For each claim, the table states what is tested, the margin, and the correction for several heads, layers or classes.
**Holds**: the interval is on the claimed side of the margin (or of the other number). **Does not hold**: the interval
is entirely on the other side. **Undecided**: the interval contains the margin; the report states how many examples or
seeds would decide. **Cannot be tested**: there are no data, or nothing to lose. A **known error** is decided by data
or arithmetic and is not counted among the tests. Each test is at the 5 % level; the report states how many decisions
remain when the false discovery rate over all its tests is controlled at 5 % (Benjamini and Yekutieli). If two numbers
are compared, the margin applies to their difference. A claim about fine-tuning is tested over all available seeds:
intervals of numbers cover examples and seeds (Student's t over seeds), and claims about single heads must hold in
every seed. The report states the number of seeds; with one seed, no interval covers the variation between seeds.

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
