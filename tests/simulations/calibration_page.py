"""docs/results/calibration.md from the outcomes of all cases."""

from collections.abc import Sequence
from dataclasses import dataclass

from tests.simulations.registry import Case, Outcome

_SECTIONS = {
    "nothing": ("Where nothing is", "claims in", "at most"),
    "found": ("What is planted is found", "found in", "at least"),
    "covers": ("Intervals hold the truth", "held in", "at least"),
    "at most": ("Widths", "median", "at most"),
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
    parts = [_INTRODUCTION.replace("{sentences}", _sentences())]
    for expected, (title, said, way) in _SECTIONS.items():
        of_kind = [case for case in listed if case.expected == expected]
        parts += [f"## {title}", table(of_kind, lines, said, way)]
    return "\n\n".join(parts) + "\n"


def _sentences() -> str:
    """Markdown: the sentences that are made of words, and what holds each."""
    head, *rows = (f"| {' | '.join(cells)} |" for cells in _SENTENCES)
    return "\n".join((head, "|---|---|---|---|", *rows))


def table(listed: Sequence[Case], lines: dict[tuple[str, str], Line], said: str, way: str) -> str:
    """Markdown, one row a study and world; what is planted where something is to be found."""
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
    ("sentence", "of", "asks for", "held by"),
    (
        "the head page's *relates verb-object forward ...*",
        "relations",
        "q < .05 of excess and contrast, .05 above the baseline",
        "tests/simulations/test_sentences.py",
    ),
    (
        "its *looks at noun ...*, and its roles",
        "features, roles",
        "q < .05 of effect and contrast; three times the baseline",
        "tests/simulations/test_sentences.py",
    ),
    ("its *frame score ..., above all four baselines*", "frame-heads", "four nulls, q < .05", "rows below"),
    (
        "headlines of relations and features; heads outlined in pictures",
        "relations, features",
        "q < .05, above 0",
        "tests/simulations/test_sentences.py",
    ),
    (
        "the headline of gold trees, *finds nsubj*",
        "dependencies",
        "q < .05, chosen on dev, of test",
        "tests/simulations/test_sentences.py",
    ),
    (
        'the quick lookup, *looks from "he" to "gave"*',
        "frame lookup",
        "the same head beside like places",
        "tests/studies/test_distance_null.py",
    ),
    (
        "*noun-pronoun*, *words-of-both* in reports",
        "relations",
        "q, or excess and contrast, corrected over heads",
        "test_sentences.py; [claims.md](claims.md)",
    ),
    (
        "other sentences of reports on words",
        "features, change, knockout, probe, syntax",
        "as [claims.md](claims.md) says",
        "its worlds",
    ),
    (
        "*looks at*, *looks along*, *the same word* of a head",
        "hypotheses",
        "a control and a margin, on rows of their own",
        "tests/studies/test_hypotheses.py",
    ),
)

_INTRODUCTION = """# What is claimed where nothing is, and what is found

For people who ask whether a p, an interval or a verdict of this app keeps its promise.

This page is written by

    python -m tests.simulations --calibration > calibration.md

(what is not drawn, by `--study` or `--world`, stands as docs/results/calibration.md has it) and, as
{study: {world: {rate, draws, limit}}}, by `python -m tests.simulations --json` (`--quick` for the few draws of every
test run; `--values FILE` keeps what was drawn, so that a long run can be stopped and taken up, and `--drawn` writes the
page of that alone). A world is planted, a study is run in it, and what it claims is counted: over all heads and names
together, so one wrong claim of one head is a wrong claim of the study. The seeds are 0 to the number of draws less one.
A limit is how far a true rate of exactly 5 %
(90 %, 93 %) goes in 99 of 100 such simulations of so many draws: few draws show that nothing is badly wrong, and not
more.

Known worlds plant twice what the study asks for: twice its margin, or, of a test without one, twice the size that is
just significant on so many rows, of which about half of the draws are found (a test in
tests/simulations/test_calibration.py). Of planted maps all heads look along the links (at nouns, ...) beside noise of
their own, with so many nats more in their scores before the softmax than elsewhere, and the share of heads that are
claimed is counted (of dependencies, which ask for the best head alone, whether it is). A role has a margin, three times
its baseline.

Worlds of attention are encoders and decoders with weights made by hand (2 layers of 8 heads) on bundled rows, so that
maps, words, tags and the studies' own code are real. What may be claimed there:

| attention by | it is | it is not |
|---|---|---|
| nothing (uniform) | broad | a feature, relation, role, frame link, dependency |
| distance alone | previous, next; [CLS], separators, first word (places) | kinds, roles, relations, frame links |
| kind of word alone (nouns, verbs, content, first) | token types | a relation, a role, a frame link, a dependency |
| noise of every pair | nothing | anything |
| the same word again | same word, duplicate | another relation, another role |

Worlds of effects, of shares, of runs and of heads together are drawn as what a study would have measured. Every study
has a case here, or a reason not to (`tests/simulations/test_calibration.py`): `change`, `effective`, `development` and
the gallery test nothing; `syntax` has the intervals of `probe`, `edge-effects` and `representation` those of
`operators`, `translation` the test of `disable`; criteria of hypotheses are in
[hypotheses](../explanation/hypotheses.md), the report's claims in
[claims.md](claims.md).

Sentences on words are made of these rows, and held to the same worlds:

{sentences}

What is not held: heads (or lengths of value vectors) that hang on the absolute place of a key, other than [CLS],
separators and the first word, may be claimed for a kind of word that stands there (a noun before the last full stop);
and a head that looks from one kind of word at another (from verbs at any noun) for the relation between them. An
interval of accuracy or F1 with fewer than 5 flips is a bound, and pages do not show it: the widths below are of worlds
with flips."""
