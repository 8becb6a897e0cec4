"""docs/results/calibration.md from the outcomes of all cases."""

from collections.abc import Sequence
from dataclasses import dataclass

from core import __version__
from tests.simulations.registry import Case, Outcome

# by what a case expects: the heading, one sentence, the column of the rate, and the side on which the limit lies
_SECTIONS = {
    "nothing": (
        "False claims",
        "In simulations without any effect, the rate of false claims is the share of studies that claim that some head "
        "has an effect.",
        "studies with a claim",
        "at most",
    ),
    "found": (
        "Power",
        "The power is the share of simulated studies that find the simulated effect (column *planted*).",
        "found",
        "at least",
    ),
    "covers": (
        "Coverage",
        "The coverage is the share of confidence intervals that contain the true value.",
        "intervals with the true value",
        "at least",
    ),
    "at most": (
        "Widths",
        "The numbers in this table are the median widths of the confidence intervals.",
        "median width",
        "at most",
    ),
}


@dataclass(frozen=True)
class Line:
    """What the page says of a case: draws, rate, limit, and whether it keeps within; as printed."""

    draws: str
    rate: str
    limit: str
    within: str


def line_of(outcome: Outcome) -> Line:
    """Of a case that was drawn."""
    number = "{:.2f}" if outcome.case.expected == "at most" else "{:.1%}"
    numbers = (number.format(value) for value in (outcome.rate, outcome.limit))
    return Line(str(outcome.draws), *numbers, "yes" if outcome.within else "**no**")


def lines_now(text: str) -> dict[tuple[str, str], Line]:
    """Of a page, by study and world: what stands for those that are not drawn again. The last four columns."""
    rows = ([cell.strip() for cell in row[1:-1].split("|")] for row in text.splitlines() if row.startswith("| "))
    return {(cells[0], cells[1]): Line(*cells[-4:]) for cells in rows if len(cells) > 6 and cells[0] != "study"}


def page(outcomes: Sequence[Outcome], listed: Sequence[Case], before: str) -> str:
    """The whole page: cases that were drawn as they came out, the others of `listed` as `before` has them."""
    lines = lines_now(before) | {(one.case.study, one.case.world): line_of(one) for one in outcomes}
    parts = [_INTRODUCTION.format(version=__version__, sentences=_sentences())]
    for expected, (title, sentence, said, way) in _SECTIONS.items():
        of_kind = [case for case in listed if case.expected == expected]
        parts += [f"## {title}", sentence, table(of_kind, lines, said, way)]
    return "\n\n".join(parts) + "\n"


def _sentences() -> str:
    """Return the table of sentences about words in Markdown."""
    head, *rows = (f"| {' | '.join(cells)} |" for cells in _SENTENCES)
    return "\n".join((head, "|---|---|---|---|", *rows))


def table(listed: Sequence[Case], lines: dict[tuple[str, str], Line], said: str, way: str) -> str:
    """Return a table in Markdown with one row for each study and world."""
    is_known = any(case.planted for case in listed)
    head = ["study", "world", "inputs", *(["planted"] if is_known else []), "draws", said, f"limit ({way})", "within"]
    rows = [f"| {' | '.join(head)} |", f"|---|---|--:|{'---|' if is_known else ''}--:|--:|--:|---|"]
    for case in listed:
        line = lines.get((case.study, case.world), Line("0", "", "", "not drawn"))
        planted = case.planted and f"{case.planted.size:.3g} {case.planted.unit}"
        cells = [case.study, case.world, str(case.inputs), *([planted or "strong weights"] if is_known else [])]
        rows.append(f"| {' | '.join((*cells, line.draws, line.rate, line.limit, line.within))} |")
    return "\n".join(rows)


_SENTENCES = (
    ("sentence", "study", "made if", "tested in"),
    (
        "*One head*: relates verb-object forward",
        "relations",
        "excess and contrast have q < .05, and the excess is at least .05",
        "tests/simulations/test_sentences.py",
    ),
    (
        "*One head*: attends to nouns; roles",
        "features, roles",
        "effect and contrast have q < .05; a role reaches three times its baseline",
        "tests/simulations/test_sentences.py",
    ),
    ("*One head*: frame score above all four baselines", "frame-heads", "all four tests have q < .05", "this page"),
    (
        "findings of *Relations* and *Token types*, and outlined heads",
        "relations, features",
        "the effect is above 0 and has q < .05",
        "tests/simulations/test_sentences.py",
    ),
    (
        "*Syntactic relations*: finds nsubj",
        "dependencies",
        "a head chosen on dev has q < .05 on test",
        "tests/simulations/test_sentences.py",
    ),
    (
        "*Frame relations*: attends from *he* to *gave*",
        "frame lookup",
        "the head exceeds its own attention at like distances",
        "tests/studies/test_distance_null.py",
    ),
    (
        "reports: *noun-pronoun*, *words-of-both*",
        "relations",
        "q < .05, or excess and contrast after correction over heads",
        "tests/simulations/test_sentences.py",
    ),
    (
        "hypotheses: *attends to*, *attends along*, *the same word*",
        "hypotheses",
        "a control and a least effect, on inputs of their own",
        "tests/studies/test_hypotheses.py",
    ),
)

_INTRODUCTION = """# Calibration

This page was generated by `python -m tests.simulations --calibration` on version {version}.

Each table row shows one study on one kind of simulated data (column *world*), for which the true effects are
known. The page [simulations](../explanation/simulations.md) explains how data are simulated and which error rates are
acceptable.

## Sentences about words

Pages and reports contain sentences about the words that a head attends to. The table lists when the app shows each kind
of sentence, and which test checks the sentence on simulated data.

{sentences}"""
