"""`python -m core patterns train` and `python -m core study shares`: the pattern classifier from a terminal."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from core import models, patterns
from core.codebook.registry import shipped_set
from core.commands.evaluate_patterns import evaluate
from core.commands.output import Form, database, ran, show_rows, tell, tell_json
from core.commands.study_commands import FORMS, PLACES, of_record
from core.config import settings
from core.errors import InputError
from core.jobs.executors import JobPlacement
from core.labelling.crowd import checked_method
from core.patterns.classifier_registry import (
    bundled_labels,
    classifying_options,
    keep_best_known,
    training_options,
)
from core.patterns.snapshot import from_file, snapshot
from core.store.rows import Row
from core.studies.contract import Flag
from core.studies.options import LARGEST_SEED
from core.studies.patterns import classify_maps, train_patterns
from core.studies.patterns.records import ClassScore, ClassShare, HeldOutScore
from core.studies.patterns.trained_classifier import headline
from core.studies.stored_runs import StoredRun

app = typer.Typer(help="The classifier of attention patterns.", no_args_is_help=True)
app.command("evaluate")(evaluate)
HEADLINE = (
    "on", "macro_f1", "low", "high", "identity_f1", "accuracy", "ece", "unsure", "outside", "n_labels", "maps",
    "inputs", "macro_f1_all", "ece_low", "ece_high", "sure_errors",
)  # fmt: skip
ClassSetName = Annotated[str, Flag("bert, gpt2, or a set of your own")]


@dataclass(frozen=True)
class Training:
    """Which classifier is trained, on what."""

    class_set: ClassSetName = "bert"
    labels: Annotated[Path | None, Flag("label file with weights; default: the stored and bundled ones")] = None
    kind: Annotated[str, Flag("trees, paper, replication, baseline, or both (paper and baseline)")] = "trees"
    epochs: Annotated[int, Flag("passes over the labelled maps", least=1)] = 200
    folds: Annotated[int, Flag("parts of the cross-validation by input", least=2)] = 5
    class_weights: Annotated[bool, Flag("give rare classes more weight", name="--class-weights")] = False
    truth: Annotated[str | None, Flag("soft labels from many people's: majority, dawid-skene or mace")] = None
    beside: Annotated[
        bool, Flag("the learning curve too, and unseen checkpoints of every kind", name="--beside/--no-beside")
    ] = False
    seed: Annotated[int, Flag("of folds and weights", least=0, most=LARGEST_SEED)] = 0


@app.command("train")
@of_record(Training, beside=FORMS | PLACES)
def train(asked: Training, form: Form, where: JobPlacement) -> None:
    """Train a pattern classifier; print macro and per-class F1 on inputs it never saw, and keep it in the store."""
    provenance, rows = ran(
        train_patterns.STUDY.name, _training(asked), title=f"Pattern classifier, {asked.class_set}", where=where
    )
    run = StoredRun.of(provenance)
    about = {"seed": run.seed, "created": run.created, "code_version": run.code_version}
    about |= {"classifier": run.run[:12], "class_set": asked.class_set, "kind": asked.kind, "epochs": asked.epochs}
    print_scores(asked.class_set, rows, about, form)


def _training(options: Training) -> Row:
    """The study's options, the labels beside them frozen in a snapshot."""
    with database(held="empty" if options.labels else "copy") as db:
        if options.labels is None:
            bundled_labels(db, options.class_set)
            labelled = snapshot(db, options.class_set, method=checked_method(options.truth))
        else:
            labelled = from_file(options.labels, options.class_set)
        return training_options(
            db, labelled, kind=options.kind, epochs=options.epochs, folds=options.folds,
            class_weights=options.class_weights, seed=options.seed, curve=options.beside, beside=options.beside,
        )  # fmt: skip


def print_scores(class_set: str, rows: list[Row], provenance: Row, form: Form) -> None:
    """The headline and a row a class."""
    best, per_class = headline(rows), list(map(_class_row, ClassScore.among(rows)))
    if form == "json":
        parts = ("scores", "checkpoint", "curve")
        printed = {
            "study": train_patterns.STUDY.name,
            "class_set": class_set,
            **{name: getattr(best, name) for name in HEADLINE},
            "per_class": per_class,
            "beside": [row for row in rows if row.get(HeldOutScore.BY) in parts],
            "provenance": provenance,
            "rows": per_class,
        }
        tell_json(printed)
        return
    show_rows(train_patterns.STUDY.name, provenance, per_class, form)
    if form != "table":
        return
    fewest, sure = patterns.evaluation.FEWEST_MAPS, patterns.evaluation.SURE
    tell(
        f"macro F1 {best.macro_f1:.3f} on {best.on} ({best.low:.3f} to {best.high:.3f}, 95 % over {best.inputs} "
        f"inputs; classes of at least {fewest} maps), ECE {best.ece:.3f} ({best.ece_low:.3f} to "
        f"{best.ece_high:.3f}, 95 % over heads), wrong with p > {sure} {best.sure_errors:.1%}, {best.maps} maps "
        f"scored, {best.n_labels} labels, "
        f"classifier {provenance.get('classifier')}"
    )
    tell(f"guessing from which head it is, without looking at the map: macro F1 {best.identity_f1:.3f}")


def _class_row(score: ClassScore) -> Row:
    return {"class": score.name, "precision": score.precision, "recall": score.recall, "f1": score.f1,
            "support": score.support}  # fmt: skip


@dataclass(frozen=True)
class Sharing:
    """Of which maps the classes are counted, by which classifier."""

    checkpoints: Annotated[list[str], Flag("one or more: bundled names, folders or hub ids", argument=True)]
    task: Annotated[str, Flag("mrpc stsb sst2 qqp rte qnli mnli, or a CSV of your own")]
    limit: Annotated[int, Flag("rows of the task", least=1)] = 1000
    split: Annotated[str, Flag("dev or train")] = "dev"
    data: Annotated[str | None, Flag("folder with GLUE's task folders; default: samples", name="--data --glue")] = None
    class_set: Annotated[str | None, Flag("default: gpt2 for decoders, bert for encoders")] = None
    classifier: Annotated[str | None, Flag("a stored one; default: the one that suggests")] = None
    seed: Annotated[int, Flag("draws the rows", least=0, most=LARGEST_SEED)] = 0


@of_record(Sharing, beside=FORMS | PLACES)
def shares(asked: Sharing, form: Form, where: JobPlacement) -> None:
    """Share of each pattern class over all heads' maps of a task, as found and corrected for confusions (Fig 2)."""
    with database(held="copy") as db:
        name = asked.classifier or keep_best_known(db, asked.class_set or class_set_of(asked.checkpoints[0]))
        options = classifying_options(
            db, name, checkpoints=asked.checkpoints, task=asked.task, limit=asked.limit, split=asked.split,
            data=asked.data or settings_glue(), seed=asked.seed,
        )  # fmt: skip
    class_set = options.get("class_set")
    if asked.class_set and class_set != asked.class_set:
        raise InputError(
            f'The classifier {name} knows the classes of "{class_set}", not "{asked.class_set}": choose another '
            "classifier or leave --class-set out."
        )
    provenance, rows = ran(classify_maps.STUDY.name, options, title=f"Class shares, {asked.task}", where=where)
    shown = rows if form == "json" else [row for row in rows if row.get(ClassShare.BY) in ClassShare.KINDS]
    about = {key: value for key, value in provenance.items() if key != "options"}
    show_rows("shares", about | {"classifier": name, "class_set": class_set}, shown, form)


def settings_glue() -> str | None:
    """The GLUE folder of the environment, as text."""
    folder = settings().glue
    return None if folder is None else str(folder)


def class_set_of(checkpoint: str) -> str:
    """Decoders are described by GPT-2's classes, encoders by BERT's."""
    return shipped_set(causal=models.opening.open_checkpoint(checkpoint).causal).name
