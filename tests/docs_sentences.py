"""Sentences of the docs that have figures of stored rows: each made from the record that ships, so that the two cannot
part. tests/test_docs_figures.py looks for each in its file, whatever the line breaks; a sentence is written by hand, so
that a row that changes asks somebody to read what stands around it."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from core import config
from core.store import shipped_record
from core.store.rows import Row

CLASSIFIER = config.CLASSIFIER


@dataclass(frozen=True)
class Sentences:
    """What docs/`file` must say, of the record's run of `study` on `checkpoint`."""

    file: str
    study: str
    checkpoint: str
    made: Callable[[list[Row]], Iterator[str]]

    def missing(self) -> list[str]:
        """Those that the file does not say."""
        text = re.sub(r"\s+", " ", (config.PROJECT / "docs" / self.file).read_text(encoding="utf-8"))
        return [sentence for sentence in self.made(self._rows()) if sentence not in text]

    def _rows(self) -> list[Row]:
        known = shipped_record.runs(self.study)
        (run,) = known[known["checkpoint"] == self.checkpoint]["run"]
        return shipped_record.run_rows(run)


def circuit(rows: list[Row]) -> Iterator[str]:
    """How many edges matter, how large the circuit is."""
    (whole,) = _of(rows, "circuit")
    yield f"{whole['n']} pairs decide, {whole['judging']} judge, {whole['control']} have the same answer"
    yield f"A and B differ by {whole['difference']:.2f} logits"
    opened = f"{whole['open']} are open ({100 * whole['open'] / whole['raced']:.1f} %)"
    yield f"{whole['does_not_matter']:,} do not and {opened}"
    yield f"{whole['stable']} edges are stable"
    yield f"{whole['evaluations']:,} of {whole['of_evaluations']:,} evaluations were made"
    kept = {row["size"]: row["value"] for row in _of(rows, "faithfulness") if row["order"] == "effect"}
    shown = [f"{size} {_share(kept[size])}" for size in (109, 219, 438)]
    yield f"44 edges keep {_share(kept[44])} of the difference, {', '.join(shown)};"


def gates(rows: list[Row]) -> Iterator[str]:
    """The classes of heads, and whether the irrelevant ones are."""
    heads = {
        name: [row["name"] for row in _of(rows, "head") if row["gate_class"] == name]
        for name in ("facilitating", "irrelevant", "undecided")
    }
    yield f"{len(heads['facilitating'])} heads are facilitating ({', '.join(heads['facilitating'])})"
    yield f"{len(heads['irrelevant'])} irrelevant, none interfering, {len(heads['undecided'])} undecided"
    together = next(row for row in _of(rows, "together") if row["name"] == "irrelevant")
    ends = " to ".join(_share(together[end], 3) for end in ("low", "high"))
    yield f"out together change the loss by {_share(together['effect'], 3)} ({ends})"


def pairs(rows: list[Row]) -> Iterator[str]:
    """How many pairs of heads interact, and which most."""
    redundant = [row for row in rows if row["verdict"] == "redundant"]
    opened = sum(row["verdict"] == "open" for row in rows)
    yield f"{len(rows)} pairs, {rows[0]['n']} rows): {len(redundant)} are redundant, none works together"
    yield f"{opened} stay open"
    most = max(redundant, key=lambda row: row["interaction"])
    ends = f"{_share(most['low'])} to {_share(most['high'])}"
    yield f"{most['name']}, +{_share(most['interaction'])} logits ({ends}, corrected p {_share(most['p'], 3)})"


def _of(rows: list[Row], kind: str) -> list[Row]:
    return [row for row in rows if row["kind"] == kind]


def _share(value: float, digits: int = 2) -> str:
    """As the docs write it: .59."""
    return f"{value:.{digits}f}".replace("0.", ".", 1)


SENTENCES = (
    Sentences("explanation/circuits.md", "circuit", CLASSIFIER, circuit),
    Sentences("explanation/circuits.md", "gates", CLASSIFIER, gates),
    Sentences("explanation/circuits.md", "pairs", CLASSIFIER, pairs),
)
