"""`python -m core patterns train` and `python -m core study shares`: the pattern classifier from a terminal."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from core import models
from core.commands.evaluate_patterns import evaluate
from core.commands.output import (
    SEEDS,
    Cluster,
    Csv,
    Form,
    Json,
    Latex,
    Workers,
    database,
    form_of,
    ran,
    show_rows,
)
from core.config import settings
from core.errors import InputError
from core.labelling.crowd import checked_method
from core.labelling.kept import bundled_labels, classifying_options, headline, keep_best_known, training_options
from core.labelling.snapshot import from_file, snapshot

app = typer.Typer(help="The classifier of attention patterns.", no_args_is_help=True)
app.command("evaluate")(evaluate)
HEADLINE = (
    "on", "macro_f1", "low", "high", "identity_f1", "accuracy", "ece", "unsure", "outside", "n_labels", "maps",
    "inputs",
)  # fmt: skip
ClassSetName = Annotated[str, typer.Option(help="bert, gpt2, or a set of your own")]


@app.command("train")
def train(
    class_set: ClassSetName = "bert",
    labels: Annotated[
        Path | None, typer.Option(help="label file with weights; default: the stored and bundled ones")
    ] = None,
    kind: Annotated[
        str, typer.Option(help="trees, paper, replication, baseline, or both (paper and baseline)")
    ] = "trees",
    epochs: Annotated[int, typer.Option(min=1, help="passes over the labelled maps")] = 200,
    folds: Annotated[int, typer.Option(min=2, help="parts of the cross-validation by input")] = 5,
    class_weights: Annotated[bool, typer.Option("--class-weights", help="weigh rare classes up")] = False,
    truth: Annotated[
        str | None, typer.Option(help="soft labels from many people's: majority, dawid-skene or mace")
    ] = None,
    beside: Annotated[bool, typer.Option(help="the learning curve too, and unseen checkpoints of every kind")] = False,
    seed: Annotated[int, typer.Option(**SEEDS, help="of folds and weights")] = 0,
    as_json: Json = False,
    csv: Csv = False,
    latex: Latex = False,
    cluster: Cluster = None,
    workers: Workers = None,
) -> None:
    """Train a pattern classifier; print macro and per-class F1 on inputs it never saw, and keep it in the store."""
    form = form_of(as_json, csv, latex)
    with database(beside=True) as db:
        if labels is None:
            bundled_labels(db, class_set)
        options = training_options(
            db,
            from_file(labels, class_set) if labels else snapshot(db, class_set, method=checked_method(truth)),
            kind=kind,
            epochs=epochs,
            folds=folds,
            class_weights=class_weights,
            seed=seed,
            curve=beside,
            beside=beside,
        )
    title = f"Pattern classifier, {class_set}"
    known, rows = ran("train-patterns", options, title=title, cluster=cluster, workers=workers)
    best = headline(rows)
    print_scores(
        class_set,
        best,
        rows,
        {name: known[name] for name in ("seed", "created", "code_version")}
        | {"classifier": known["run"][:12], "class_set": class_set, "kind": kind, "epochs": epochs},
        form,
    )


def print_scores(
    class_set: str, best: dict[str, Any], rows: list[dict[str, Any]], provenance: dict[str, Any], form: Form
) -> None:
    """The headline and a row a class."""
    per_class = [
        {name: row[name] for name in ("class", "precision", "recall", "f1", "support")}
        for row in rows
        if row["part"] == "class"
    ]
    if form == "json":
        kept = {name: best[name] for name in HEADLINE}
        beside = [row for row in rows if row["part"] in ("scores", "checkpoint", "curve")]
        found = {
            "study": "train-patterns",
            "class_set": class_set,
            **kept,
            "per_class": per_class,
            "beside": beside,
            "provenance": provenance,
            "rows": per_class,
        }
        typer.echo(json.dumps(found, default=str))
        return
    show_rows("train-patterns", provenance, per_class, form)
    if form != "table":
        return
    typer.echo(
        f"macro F1 {best['macro_f1']:.3f} on {best['on']} ({best['low']:.3f} to {best['high']:.3f}, 95 % over "
        f"{best['inputs']} inputs), ECE {best['ece']:.3f}, {best['maps']} maps scored, {best['n_labels']} labels, "
        f"classifier {provenance['classifier']}"
    )
    typer.echo(f"guessing from which head it is, without looking at the map: macro F1 {best['identity_f1']:.3f}")


def shares(
    checkpoints: Annotated[list[str], typer.Argument(help="one or more: bundled names, folders or hub ids")],
    task: Annotated[str, typer.Option(help="mrpc stsb sst2 qqp rte qnli mnli, or a CSV of your own")],
    limit: Annotated[int, typer.Option(min=1, help="rows of the task")] = 1000,
    split: Annotated[str, typer.Option(help="dev or train")] = "dev",
    folder: Annotated[
        str | None, typer.Option("--data", "--glue", help="folder with GLUE's task folders; default: samples")
    ] = None,
    class_set: Annotated[str | None, typer.Option(help="default: gpt2 for decoders, bert for encoders")] = None,
    classifier: Annotated[str | None, typer.Option(help="a stored one; default: the one that suggests")] = None,
    seed: Annotated[int, typer.Option(**SEEDS, help="draws the rows")] = 0,
    as_json: Json = False,
    csv: Csv = False,
    latex: Latex = False,
    cluster: Cluster = None,
    workers: Workers = None,
) -> None:
    """Share of each pattern class over all heads' maps of a task, as found and corrected for confusions (Fig 2)."""
    form = form_of(as_json, csv, latex)
    with database(beside=classifier is None) as db:
        name = classifier or keep_best_known(db, class_set or class_set_of(checkpoints[0]))
        options = classifying_options(
            db,
            name,
            checkpoints=checkpoints,
            task=task,
            limit=limit,
            split=split,
            data=folder or settings_glue(),
            seed=seed,
        )
        if class_set and options["class_set"] != class_set:
            raise InputError(
                f'The classifier {name} knows the classes of "{options["class_set"]}", not "{class_set}": '
                "choose another classifier or leave --class-set out."
            )
    known, rows = ran("classify-maps", options, title=f"Class shares, {task}", cluster=cluster, workers=workers)
    shown = rows if form == "json" else [row for row in rows if row["part"] in ("share", "corrected")]
    about = {key: value for key, value in known.items() if key != "options"}
    show_rows("shares", about | {"classifier": name, "class_set": options["class_set"]}, shown, form)


def settings_glue() -> str | None:
    """The GLUE folder of the environment, as text."""
    found = settings().glue
    return None if found is None else str(found)


def class_set_of(checkpoint: str) -> str:
    """Decoders are described by GPT-2's classes, encoders by BERT's."""
    return "gpt2" if models.opening.open_checkpoint(checkpoint).causal else "bert"
