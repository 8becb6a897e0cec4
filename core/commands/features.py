"""`python -m core study features | relations | statistics | effective | dependencies CHECKPOINT ...`

What heads attend to, on task rows or on sentences given with --text; a table shows the heads that stand out, --json,
--csv and --latex print every row.
"""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from core.commands.output import (
    Checkpoint,
    Cluster,
    Csv,
    Data,
    Json,
    Latex,
    Limit,
    Seed,
    Split,
    Workers,
    form_of,
    ran,
    show_rows,
)
from core.errors import InputError
from core.scoring.definitions import DEFINITIONS
from core.store.rows import Row

BEST = 3  # rows of each feature that a table shows
SHOWN = (
    "checkpoint", "task", "statistic", "feature", "head", "value", "low", "high", "n", "baseline", "q", "distance",
    "dev", "kind", "length_from", "length_to", "mean",
)  # fmt: skip

Tasks = Annotated[list[str], typer.Option("--task", help="a GLUE task or a CSV of your own; several times for several")]
Texts = Annotated[
    list[str], typer.Option("--text", help='a sentence or "first | second" instead of task rows; several times')
]
Pipeline = Annotated[str | None, typer.Option(help="a spaCy pipeline; default: the bundled one")]
Compare = Annotated[str | None, typer.Option(help="a second checkpoint of the same shape, for differences")]
Definitions = Annotated[
    list[str], typer.Option("--definition", help=f"of attention to a feature: {', '.join(DEFINITIONS)}; default: all")
]


def features(
    checkpoint: Checkpoint,
    task: Tasks = ["sst2"],  # noqa: B006 - typer reads it
    data: Data = None,
    limit: Limit = 500,
    split: Split = "dev",
    text: Texts = [],  # noqa: B006
    pipeline: Pipeline = None,
    compare: Compare = None,
    feature: Annotated[list[str], typer.Option(help="noun, negation, tag:JJ, dep:amod ...; default: the papers'")] = [],  # noqa: B006
    definition: Definitions = [],  # noqa: B006
    seed: Seed = 0,
    as_json: Json = False,
    csv: Csv = False,
    latex: Latex = False,
    cluster: Cluster = None,
    workers: Workers = None,
) -> None:
    """Attention to nouns, verbs, subjects, negation, [CLS] ... against random tokens (Kovaleva et al., Fig 6)."""
    from core.studies.features import FEATURES

    options = _options(checkpoint, task, data, limit, split, text, seed) | {
        "pipeline": pipeline, "compare": compare, "features": feature or FEATURES
    }  # fmt: skip
    for name in definition:
        if name not in DEFINITIONS:
            raise InputError(f'A definition is one of {", ".join(DEFINITIONS)}; "{name[:60]}" is not: choose one.')
    _run("features", options, form_of(as_json, csv, latex), cluster, workers, by="effect", only=definition)


def relations(
    checkpoint: Checkpoint,
    task: Tasks = ["mrpc"],  # noqa: B006
    data: Data = None,
    limit: Limit = 500,
    split: Split = "dev",
    text: Texts = [],  # noqa: B006
    pipeline: Pipeline = None,
    relation: Annotated[list[str], typer.Option(help="verb-subject, same-word, dep:amod ...; default: five")] = [],  # noqa: B006
    seed: Seed = 0,
    as_json: Json = False,
    csv: Csv = False,
    latex: Latex = False,
    cluster: Cluster = None,
    workers: Workers = None,
) -> None:
    """Attention from word to word along links, against the same distance elsewhere (Kovaleva et al., 4.5)."""
    from core.studies.relations import RELATIONS

    options = _options(checkpoint, task, data, limit, split, text, seed) | {
        "pipeline": pipeline, "relations": relation or RELATIONS
    }  # fmt: skip
    _run("relations", options, form_of(as_json, csv, latex), cluster, workers, by="effect")


def statistics(
    checkpoint: Checkpoint,
    task: Tasks = ["sst2"],  # noqa: B006
    data: Data = None,
    limit: Limit = 500,
    split: Split = "dev",
    text: Texts = [],  # noqa: B006
    queries: Annotated[int, typer.Option(min=1, help="rows of each input that distances compare")] = 4,
    seed: Seed = 0,
    as_json: Json = False,
    csv: Csv = False,
    latex: Latex = False,
    cluster: Cluster = None,
    workers: Workers = None,
) -> None:
    """Entropy, mass on previous, next, first and separators, distance, and how alike heads are (Clark et al.)."""
    options = _options(checkpoint, task, data, limit, split, text, seed) | {"queries": queries}
    _run("statistics", options, form_of(as_json, csv, latex), cluster, workers, by="value")


def effective(
    checkpoint: Checkpoint,
    task: Tasks = ["sst2"],  # noqa: B006
    data: Data = None,
    limit: Limit = 100,
    split: Split = "dev",
    text: Texts = [],  # noqa: B006
    seed: Seed = 0,
    as_json: Json = False,
    csv: Csv = False,
    latex: Latex = False,
    cluster: Cluster = None,
    workers: Workers = None,
) -> None:
    """Raw and effective attention to token types, and their correlation by length (Brunner et al.)."""
    options = _options(checkpoint, task, data, limit, split, text, seed)
    _run("effective", options, form_of(as_json, csv, latex), cluster, workers, by="value")


def dependencies(
    checkpoint: Checkpoint,
    treebank: Annotated[str, typer.Option(help="a Universal Dependencies folder with *-dev.conllu and *-test.conllu")],
    limit: Limit = None,
    seed: Seed = 0,
    as_json: Json = False,
    csv: Csv = False,
    latex: Latex = False,
    cluster: Cluster = None,
    workers: Workers = None,
) -> None:
    """How well single heads predict dependencies of gold trees; chosen on dev, reported on test (Clark et al.)."""
    options = {"checkpoint": checkpoint, "treebank": treebank, "limit": limit or None, "seed": seed}
    _run("dependencies", options, form_of(as_json, csv, latex), cluster, workers, by="value")


# ---------------------------------------------------------------- behind them


def _options(
    checkpoint: str, tasks: list[str], data: str | None, limit: int | None, split: str, texts: list[str], seed: int
) -> Row:
    from core.studies.passes import pair_of

    return {
        "checkpoint": checkpoint, "tasks": [] if texts else tasks, "folder": data, "limit": limit or None,
        "split": split, "texts": [pair_of(text) for text in texts], "seed": seed,
    }  # fmt: skip


def _run(
    study: str, options: Row, form: Any, cluster: str | None, workers: int | None, *, by: str, only: Sequence[str] = ()
) -> None:
    """Run a study and print its rows. by: what makes a row stand out. only: statistics to print, all by default."""
    title = f"{study} of {options['checkpoint']}"
    known, rows = ran(study, options, title=title, cluster=cluster, workers=workers)
    rows = [row for row in rows if not only or row["statistic"] in only]
    show_rows(study, known, outstanding(rows, by) if form == "table" else rows, form)
    for note in dict.fromkeys(_note(row) for row in rows if "note" in row and form == "table"):
        typer.echo(note)


def _note(row: Row) -> str:
    return f"{row.get('feature') or row['statistic']}: {row['note']}"


def outstanding(rows: Sequence[Row], by: str) -> list[Row]:
    """The rows of each checkpoint, task, statistic and feature that have most of `by`, heads by name.

    Differences of two checkpoints have no effect of their own and stand out by their size; every length stays.
    """
    groups: dict[tuple, list[tuple[float, Row]]] = {}
    for row in rows:
        size = abs(row["value"]) if row["checkpoint"] == "difference" else row.get(by, row.get("mean"))
        if size is not None and row.get("chosen", True):
            key = tuple(row.get(name) for name in ("checkpoint", "task", "statistic", "feature", "length_from"))
            groups.setdefault(key, []).append((size, row))
    best = [sorted(some, key=lambda one: -one[0])[:BEST] for some in groups.values()]
    return [_named(row) for some in best for _, row in some]


def _named(row: Row) -> Row:
    from core.attention import Head

    name = str(Head(row["layer"], row["head"])) if "layer" in row else None
    return {column: (row | {"head": name}).get(column) for column in SHOWN if column in row or column == "head"}
