"""Figures and tables of the sources (exhibits.toml, in their order), and their numbers (published_values.csv, one per
line).

Kovaleva et al. 2019: Table 1 (BERT-base; dev sets; F1/accuracy for MRPC and QQP, one number elsewhere; the STS-B column
is headed "Acc" but can only be a correlation), whose column "pre-trained" probably has an untrained head; Fig 2 read
from the plot (to 0.6 points); Figs 3, 5 and 6 recovered from colours (to 0.003 and 0.01; their maps are padded to 200 x
200, so the cosines of Fig 5, on QQP, are higher than for cropped maps); Figs 8 and 9. Lalwani 2024, the GPT-2
replication: Table 1 (accuracy 0 to 1; STS-B as mean squared error), Fig 2a (0.5 points), its classifier, and its frame
map, of whose links 22 in 32 end at the first token. Prasanna et al. 2020: their notebook, the same network as in Fig 2,
five seeds of 100 examples. Michel et al. 2019: best head of a layer, MNLI; removable fraction. Clark et al. 2019:
counts of heads, the last layer's [CLS] entropy, and Table 1 in UD's names: accuracy, offset baseline.

Seven cells of the first Table 1 equal a constant prediction to the printed digit, and the second came from a forward
pass in which only the last layer reached the logits (see the docs of the Fine-tuning page).
"""

import csv
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from ..attention import Head
from .ids import Condition, ExhibitId, Item, Part, Quantity

PAPER, REPLICATION = "Kovaleva et al. 2019", "GPT-2 replication 2024"
BERT, GPT2 = "bert-base-uncased", "gpt2"
LAYERS = 12  # of either
FLAWS = {  # why a printed number cannot be compared with measurements
    "": "",
    "constant": "the published number equals the score of a constant prediction to the printed digit",
    "one-block": "in the code of the source, only the last block affects the output, so the number is not about GPT-2",
    "unclear-column": "the source does not state what this column contains",
    "padded": "the source pads maps to 200 x 200 and includes the rows of padding tokens, but our maps are cropped",
    "other-texts": "the source measures Wikipedia segments of 128 subwords, and this number depends on input length",
    "other-labels": "the 1,294 labelled maps of the source are not published, and our maps were sampled differently",
    "sink": "22 of the 32 links in the source end at the first token, which receives about half of all attention",
    "other-arrow": "prep in Stanford dependencies links a preposition to the word that it modifies, but case in "
    "Universal Dependencies links it to its own noun",
    "other-trees": "the source scores the Penn Treebank in Stanford dependencies, and we score Universal Dependencies",
}


@dataclass(frozen=True)
class Exhibit:
    """A figure or table in a publication. The report compares its numbers with measured numbers."""

    id: ExhibitId
    title: str
    source: str
    section: str
    parts: tuple[Part, ...]
    chart: str
    measured: str
    quantity: str = ""
    errors: Sequence[str] = ()
    causal: Sequence[bool] = (False, True)


@cache
def exhibits() -> tuple[Exhibit, ...]:
    """Return all figures and tables that the report reproduces, in the order of the report."""
    declared = tomllib.loads(Path(__file__).with_name("exhibits.toml").read_text(encoding="utf-8"))["exhibit"]
    parsed = ({"id": ExhibitId(table["id"]), "parts": tuple(map(Part, table["parts"]))} for table in declared)
    return tuple(Exhibit(**table | ids) for table, ids in zip(declared, parsed, strict=True))


@dataclass(frozen=True)
class Figure:
    """A number published in a paper, with the fields that identify its measured counterpart.

    `error` is the error of reading the number from a plot. `flaw` states why it cannot be compared, or is "".
    """

    source: str
    exhibit: ExhibitId
    task: str | None
    item: Item
    condition: Condition
    value: float
    error: float = 0.0
    checkpoint: str = BERT
    flaw: str = ""


@dataclass(frozen=True)
class Printed:
    """A published row of fine-tuning scores (Table 1 of Kovaleva et al. or of the GPT-2 replication).

    Attributes:
        initialisation: one of this project, or the column name of the source if none clearly corresponds.
        values: by metric, 0 to 1 (mse on the 0-to-5 scale).
        constant: whether a constant prediction scores the same.
    """

    source: str
    initialisation: str
    values: dict[str, float] = field(default_factory=dict)
    constant: bool = False


@cache
def figures() -> tuple[Figure, ...]:
    """Load every published number that a report compares with a measured number."""
    with Path(__file__).with_suffix(".csv").open(encoding="utf-8", newline="") as lines:
        found = []
        for line in csv.DictReader(lines):
            value = float(line["value"].removesuffix("%")) / (100 if line["value"].endswith("%") else 1)
            layer = int(line["layer"]) if line["layer"] else None
            head = Head.parse(line["head"]) if line["head"] else None
            figure = Figure(
                line["source"],
                ExhibitId(line["exhibit"]),
                line["task"] or None,
                Item(Quantity(line["quantity"]), line["subject"], layer, LAYERS if layer else None, head),
                Condition(line["condition"]),
                value,
                float(line["error"] or 0),
                GPT2 if line["source"] == REPLICATION else BERT,
                FLAWS[line["flaw"]],
            )
            found.append(figure)
    return tuple(found)


def of_exhibit(exhibit: ExhibitId) -> list[Figure]:
    """Return the published numbers of one figure or table, in the order of the sources."""
    return [figure for figure in figures() if figure.exhibit == exhibit]


def printed(task: str) -> list[Printed]:
    """Return the published rows of fine-tuning scores (Table 1) for a task."""
    rows: dict[tuple[str, Condition], Printed] = {}
    for figure in of_exhibit(ExhibitId.TABLE_1):
        if figure.task == task:
            row = Printed(figure.source, figure.condition, constant=figure.flaw == FLAWS["constant"])
            rows.setdefault((figure.source, figure.condition), row).values[figure.item.subject] = figure.value
    return list(rows.values())


def printed_changes() -> list[float]:
    """Return the published cosine similarity of maps before and after fine-tuning on QQP, by layer (Fig. 5)."""
    return [figure.value for figure in of_exhibit(ExhibitId.CHANGE)]


def printed_layers() -> dict[str, dict[str, list[float]]]:
    """Return the published attention weights on features for QQP, by feature, condition and layer (Fig. 6)."""
    layers: dict[str, dict[str, list[float]]] = {}
    for figure in of_exhibit(ExhibitId.FEATURES):
        if figure.item.layer is not None:
            layers.setdefault(figure.item.subject, {}).setdefault(figure.condition, []).append(figure.value)
    return layers


def frame_heads() -> list[Head]:
    """Return the heads that Kovaleva et al. name in their figure of frame relations (Fig. 3)."""
    return [figure.item.head for figure in of_exhibit(ExhibitId.FRAMES) if figure.item.head is not None]
