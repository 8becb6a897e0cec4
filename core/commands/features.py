"""`python -m core study features | relations | statistics | effective | dependencies CHECKPOINT ...`

What heads attend to, on task rows or on sentences given with --text; a table shows the heads that stand out, --json,
--csv and --latex print every row.
"""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from core.commands.output import Cluster, Csv, Json, Latex, Workers, form_of, show_rows
from core.commands.patterns import database, job_rows
from core.store.rows import Row

BEST = 3  # rows of each feature that a table shows

Checkpoint = Annotated[str, typer.Argument(help="bundled name, local folder or hub id")]
Tasks = Annotated[list[str], typer.Option("--task", help="a GLUE task; several times for several")]
Folder = Annotated[str | None, typer.Option("--data", help="a folder in GLUE's TSV form; default: the bundled samples")]
Limit = Annotated[int | None, typer.Option(help="most rows of each task, drawn with the seed")]
Split = Annotated[str, typer.Option(help="dev or train")]
Texts = Annotated[list[str], typer.Option("--text", help="a sentence instead of task rows; several times for several")]
Pipeline = Annotated[str | None, typer.Option(help="a spaCy pipeline; default: the bundled one")]
Compare = Annotated[str | None, typer.Option(help="a second checkpoint of the same shape, for differences")]
Seed = Annotated[int, typer.Option(help="of rows, nulls and intervals")]


def features(
    checkpoint: Checkpoint,
    task: Tasks = ["sst2"],  # noqa: B006 - typer reads it
    data: Folder = None,
    limit: Limit = 500,
    split: Split = "dev",
    text: Texts = [],  # noqa: B006
    pipeline: Pipeline = None,
    compare: Compare = None,
    feature: Annotated[list[str], typer.Option(help="noun, negation, tag:JJ, dep:amod ...; default: the papers'")] = [],  # noqa: B006
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
    _run("features", options, form_of(as_json, csv, latex), cluster, workers, by="effect")


def relations(
    checkpoint: Checkpoint,
    task: Tasks = ["mrpc"],  # noqa: B006
    data: Folder = None,
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
    data: Folder = None,
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
    data: Folder = None,
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
    options = {"checkpoint": checkpoint, "treebank": treebank, "limit": limit, "seed": seed}
    _run("dependencies", options, form_of(as_json, csv, latex), cluster, workers, by=None)


# ---------------------------------------------------------------- behind them


def _options(
    checkpoint: str, tasks: list[str], data: str | None, limit: int | None, split: str, texts: list[str], seed: int
) -> Row:
    return {
        "checkpoint": checkpoint, "tasks": [] if texts else tasks, "folder": data, "limit": limit, "split": split,
        "texts": texts, "seed": seed,
    }  # fmt: skip


def _run(study: str, options: Row, form: Any, cluster: str | None, workers: int | None, *, by: str | None) -> None:
    with database(beside=True) as db:
        known, rows = job_rows(db, study, options, f"{study} of {options['checkpoint']}", cluster, workers)
    about = {name: value for name, value in known.items() if name != "study"}
    if form != "table":
        show_rows(study, about, rows, form)
        return
    show_rows(study, about, outstanding(rows, by) if by else [_named(row) for row in rows], form)
    for note in dict.fromkeys(
        f"{row.get('feature') or row['statistic']}: {row['note']}" for row in rows if "note" in row
    ):
        typer.echo(note)


def outstanding(rows: Sequence[Row], by: str) -> list[Row]:
    """The rows of each checkpoint, task, statistic and feature that have most of `by`, heads by name."""
    groups: dict[tuple, list[Row]] = {}
    for row in rows:
        if row.get(by) is not None:
            key = tuple(row.get(name) for name in ("checkpoint", "task", "statistic", "feature"))
            groups.setdefault(key, []).append(row)
    best = [sorted(some, key=lambda row: -row[by])[:BEST] for some in groups.values()]
    return [_named(row) for some in best for row in some]


def _named(row: Row) -> Row:
    from core.attention import Head

    kept = ("checkpoint", "task", "statistic", "feature", "head", "value", "low", "high", "n", "baseline", "q")
    name = str(Head(row["layer"], row["head"])) if "layer" in row else None
    return {column: (row | {"head": name}).get(column) for column in kept if column in row or column == "head"}
