"""The tables in docs that are of stored rows: each made from the record that ships, so that the two cannot part.

    python -m tests.docs_figures

writes them anew; tests/test_docs_figures.py holds them. A table is found by its first columns.
"""

import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from core import config
from core.report.claims.registry import claim
from core.report.discoveries import DECIDED, together, was_tested
from core.report.rendering.html import cell
from core.report.rendering.words import needed_of
from core.store import shipped_record
from core.studies.tuning.records import TunedScore
from tests import record_report

MINILM = "all-MiniLM-L6-v2"


@dataclass(frozen=True)
class Figures:
    """A part of docs/`file` that `made` writes: what `pattern` finds there."""

    file: str
    pattern: str
    made: Callable[[], str]

    @property
    def told(self) -> str:
        """What the docs say now. ValueError where the part is not there."""
        found = re.search(self.pattern, self.text, re.DOTALL)
        if found is None:
            raise ValueError(f"docs/{self.file} has no part that {self.pattern!r} finds")
        return found[0]

    @property
    def text(self) -> str:
        """The whole file."""
        return (config.PROJECT / "docs" / self.file).read_text(encoding="utf-8")


def verdicts() -> str:
    """Every claim's outcomes by checkpoint, and what is said of all tests together."""
    records, names = record_report.records(), [known.checkpoint for known in record_report.evidence()]
    lines = [f"| claim | sentence | {' | '.join(names)} |", "|---" * (2 + len(names)) + "|"]
    for name, mine in records.by_claim().items():
        cells = [cell([one for one in mine if one.checkpoint == checkpoint]) for checkpoint in names]
        lines.append(f"| {name} | {claim(name).sentence} | {' | '.join(cells)} |".replace("[", "\\["))
    return "\n".join([*lines, "", *textwrap.wrap(together(records.claims), 120), ""])


def decided() -> str:
    """How many of all-MiniLM-L6-v2's tests of the record are decided, by task, and which are not and what would."""
    tests = [one for one in record_report.records().claims if one.checkpoint == MINILM and was_tested(one)]
    lines = ["| task | tests | decided | undecided (what would decide it) |", "|---|---|---|---|"]
    for task in dict.fromkeys(one.task for one in tests):
        mine = [one for one in tests if one.task == task]
        opened = [one for one in mine if one.outcome not in DECIDED]
        left = ", ".join(f"{one.claim} ({needed_of(one) or 'no number is known'})" for one in opened)
        name = config_name(task) if task else "of no one task"
        lines.append(f"| {name} | {len(mine)} | {len(mine) - len(opened)} | {left} |")
    done = sum(one.outcome in DECIDED for one in tests)
    return "\n".join([*lines, f"| all | {len(tests)} | **{done}, {100 * done / len(tests):.0f} %** | |", ""])


def tuned_scores() -> str:
    """all-MiniLM-L6-v2 fine-tuned on each task of the record: constant, random weights, each seed and their mean."""
    lines = ["| task | constant | random weights | seed 0 | seed 1 | seed 2 | mean |", "|---|---|---|---|---|---|---|"]
    for run in _runs("finetune", MINILM):
        scores = TunedScore.among(shipped_record.run_rows(run))
        tuned = [one for one in scores if one.initialisation == "pretrained"]
        seeds = sorted((one for one in tuned if one.kind == "run"), key=lambda one: one.seed or 0)
        (mean,) = [one for one in tuned if one.kind == "mean"]
        (random,) = [one for one in scores if (one.kind, one.initialisation) == ("mean", "random")]
        (constant,) = [one for one in scores if one.kind == "baseline"]
        names = ("accuracy", "f1") if mean.accuracy is not None else ("pearson", "spearman")
        named = [name for name in names if getattr(mean, name) is not None]
        cells = [_percents(one, named) for one in (constant, random, *seeds)]
        spread = "/".join(f"{100 * getattr(mean, f'{name}_sd'):.1f}" for name in named)
        task = f"{config_name(mean.task)}, {'/'.join(named)}"
        lines.append(f"| {task} | {' | '.join(cells)} | **{_percents(mean, named)}** ± {spread} |")
    return "\n".join(lines) + "\n"


def seed_shares() -> str:
    """Which seed the spread of nine runs is from, in order of its share."""
    (run,) = _runs("seeds", "atlas-encoder")
    sources = [row for row in shipped_record.run_rows(run) if row["kind"] == "source"]
    said = {"rows": "the sample of rows", "order": "the order of batches", "head": "the head's first weights"}
    lines = [
        "| seed of | share of the spread | standard deviation, points | p, corrected |",
        "|---|---|---|---|",
    ]
    for row in sorted(sources, key=lambda row: -row["share"] if row["name"] in said else 1):
        p = "" if row.get("p") is None else f"{row['p']:.2g}"
        deviation = f"{100 * row['deviation']:.1f}"
        lines.append(f"| {said.get(row['name'], row['name'])} | {row['share']:.0%} | {deviation} | {p} |")
    return "\n".join(lines) + "\n"


def config_name(task: str) -> str:
    """A task as the docs name it."""
    return {"stsb": "STS-B", "sst2": "SST-2"}.get(task, task.upper())


def _runs(study: str, checkpoint: str) -> Iterator[str]:
    """The record's runs of a study on a checkpoint, by task."""
    known = shipped_record.runs(study)
    yield from known[known["checkpoint"] == checkpoint].sort_values("task")["run"]


def _percents(score: TunedScore, names: list[str]) -> str:
    values = [getattr(score, name) for name in names]
    return "/".join("undefined" if value is None else f"{100 * value:.1f}" for value in values)


TABLES = (
    Figures("reproduction.md", r"\| claim \| sentence \| all-MiniLM-L6-v2 \|.*?(?=\n## )", verdicts),
    Figures("reproduction.md", r"\| task \| tests \| decided \|.*?\n(?=\n)", decided),
    Figures("fine-tuning.md", r"\| task \| constant \| random weights \| seed 0 .*?\n(?=\n)", tuned_scores),
    Figures("fine-tuning.md", r"\| seed of \| share of the spread .*?\n(?=\n)", seed_shares),
)


def main() -> None:
    """Write every table anew."""
    for table in TABLES:
        file = config.PROJECT / "docs" / table.file
        file.write_text(table.text.replace(table.told, table.made(), 1), encoding="utf-8")


if __name__ == "__main__":
    main()
