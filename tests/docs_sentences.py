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
    yield f"$m$ is on average {whole['difference']:.2f} larger on example A than on input B"
    undecided = f"{whole['open']} edges are undecided ({100 * whole['open'] / whole['raced']:.1f} %)"
    yield f"{whole['does_not_matter']:,} edges do not matter and {undecided}"
    yield f"In the stability test, {whole['stable']} edges are stable"
    kept = {row["size"]: row["value"] for row in _of(rows, "faithfulness") if row["order"] == "effect"}
    yield f"The circuit of the 438 strongest edges retains {kept[438]:.0%}".replace("%", " %")


def gates(rows: list[Row]) -> Iterator[str]:
    """The classes of heads, and whether the irrelevant ones are."""
    heads = {
        name: [row["name"] for row in _of(rows, "head") if row["gate_class"] == name]
        for name in ("facilitating", "irrelevant", "undecided")
    }
    yield f"{len(heads['facilitating'])} heads are facilitating ({', '.join(heads['facilitating'])})"
    yield f"{len(heads['irrelevant'])} heads are irrelevant, no head is interfering and"
    yield f"{len(heads['undecided'])} heads are undecided"
    together = next(row for row in _of(rows, "together") if row["name"] == "irrelevant")
    ends = f"{together['low']:.3f} to {together['high']:.3f}"
    yield f"all irrelevant heads together changes the loss by {together['effect']:.3f} (95 % CI {ends})"


def pairs(rows: list[Row]) -> Iterator[str]:
    """How many pairs of heads interact, and which most."""
    redundant = [row for row in rows if row["verdict"] == "redundant"]
    opened = sum(row["verdict"] == "open" for row in rows)
    yield f"With n = {rows[0]['n']} examples, {len(redundant)} of {len(rows)} pairs of heads are redundant and"
    yield f"of {len(redundant) + opened} pairs of heads are redundant and {opened} pairs are undecided."
    most = max(redundant, key=lambda row: row["interaction"])
    ends = f"95 % CI {most['low']:.2f} to {most['high']:.2f}"
    yield f"between {most['name']}: +{most['interaction']:.2f} logits ({ends}, corrected p = {most['p']:.3f})"


def _of(rows: list[Row], kind: str) -> list[Row]:
    return [row for row in rows if row["kind"] == kind]


SENTENCES = (
    Sentences("explanation/circuits.md", "circuit", CLASSIFIER, circuit),
    Sentences("explanation/circuits.md", "gates", CLASSIFIER, gates),
    Sentences("explanation/circuits.md", "pairs", CLASSIFIER, pairs),
)
