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
every test run; `--values FILE` keeps what was drawn, so that a long run can be stopped and taken up, and `--drawn`
writes the page of that alone). A world is planted, a study is run in it, and what it claims is counted: over all heads
and names together, so one wrong claim of one head is a wrong claim of the study. A limit is how far a true rate of
exactly 5 % (90 %, 93 %) goes in 99 of 100 such simulations of so many draws: few draws show that nothing is badly
wrong, and not more.

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
`operators`, `translation` the test of `disable`; criteria of hypotheses are in [dossier.md](dossier.md), the report's
claims in [claims.md](claims.md).

What is not held: heads (or lengths of value vectors) that hang on the absolute place of a key, other than [CLS],
separators and the first word, may be claimed for a kind of word that stands there (a noun before the last full stop);
and a head that looks from one kind of word at another (from verbs at any noun) for the relation between them. An
interval of accuracy or F1 with fewer than 5 flips is a bound, and pages do not show it: the widths below are of worlds
with flips."""
