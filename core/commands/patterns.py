"""`python -m core patterns` and `python -m core study shares`: train, evaluate and apply the pattern classifier."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .. import config, models, patterns
from ..codebook.registry import SHIPPED, labelled_folders, shipped_set
from ..config import settings
from ..errors import InputError
from ..jobs.executors import JobPlacement
from ..labelling.crowd import checked_method
from ..patterns.class_sets import class_set_names
from ..patterns.classifier_registry import (
    bundled_labels,
    bundled_weights,
    classifying_options,
    keep_best_known,
    open_classifier,
    training_options,
)
from ..patterns.labelled_files import GivenLabel, heads_of, matched, read_label_file, read_map_file
from ..patterns.snapshot import from_file, known_class_set, snapshot
from ..reading import lines_of, read_bytes, read_text
from ..store.classifiers import one_classifier
from ..store.rows import Row, plain
from ..studies.contract import Flag
from ..studies.options import LARGEST_SEED, TaskName
from ..studies.patterns import pattern_shares, train_patterns
from ..studies.patterns.records import ClassScore, ClassShare, HeldOutScore
from ..studies.patterns.train_patterns import main_score
from ..studies.records import record_of
from ..studies.stored_runs import RunRecord
from .output import Form, database, ran, show_rows, tell, tell_json
from .parameters import FORMS, PLACES, of_record

if TYPE_CHECKING:
    from ..patterns.labelled_files import Map
    from ..patterns.suggestions import Evaluated
    from ..patterns.training import Classifier


# ---------------------------------------------------------------- `python -m core patterns evaluate`


FILE_ENDING = ".safetensors"


@dataclass(frozen=True)
class EvaluatePatternsOptions:
    """Options for evaluating a pattern classifier: the classifier and the files of labelled maps."""

    maps: Annotated[
        Path, Flag(".npz file with one attention map per array name (key): a square float array whose rows sum to 1")
    ]
    labels: Annotated[Path, Flag('.jsonl file of labels with one line per map: {"key": ..., "class": ...}')]
    classifier: Annotated[str, Flag('classifier to use: "bundled", the ID of a stored one, or a .safetensors file')] = (
        "bundled"
    )
    class_set: Annotated[
        str | None,
        Flag("class set of the labels (default: the class set of the classifier; bert for the bundled classifier)"),
    ] = None
    second: Annotated[
        Path | None,
        Flag(
            ".jsonl file with labels of a second annotator; also prints Cohen's kappa, and scores on the maps with "
            "the same label from both annotators"
        ),
    ] = None
    without: Annotated[
        str | None,
        Flag(
            "source of bundled labels to leave out: the classifier is first retrained without labels for the "
            "checkpoints of this source"
        ),
    ] = None
    seed: Annotated[int, Flag("random seed of the bootstrap intervals", least=0, most=LARGEST_SEED)] = 0


@of_record(EvaluatePatternsOptions)
def evaluate(asked: EvaluatePatternsOptions, form: Form) -> None:
    """Evaluate a pattern classifier on labelled attention maps. Reports accuracy, macro F1, calibration, the rate of
    unsure predictions and the confusion matrix."""
    if asked.without:
        classifier, set_name = trained_without(asked.without), class_set_with(asked.without)
    else:
        classifier, set_name = opened(asked.classifier, asked.class_set)
    maps = read_map_file(asked.maps)
    labels, small = large_enough(maps, read_label_file(asked.labels, classifier.classes, set_name))
    result = judged_on(classifier, maps, labels, asked.seed)
    over = "inputs" if heads_of(labels) is None else "heads"
    provenance: Row = {"classifier": None if asked.without else asked.classifier, "without": asked.without}
    provenance |= {
        "class_set": set_name,
        "seed": asked.seed,
        "recipe": classifier.recipe.kind,
        "intervals": over,
        "small": small,
    }
    second = read_label_file(asked.second, classifier.classes, set_name) if asked.second else []
    agreed = {(label.key, label.name) for label in second}
    agreed_labels = [label for label in labels if (label.key, label.name) in agreed]
    where_agreed = judged_on(classifier, maps, agreed_labels, asked.seed) if agreed_labels else None
    raters = kappa_of(labels, second, classifier.classes) if second else None
    if form == "json":
        beside = {"where_agreed": as_record(where_agreed) if where_agreed else None, "raters": raters}
        record = as_record(result) | (beside if second else {})
        tell_json(plain(record | {"study": "evaluate", "provenance": provenance}))
        return
    show_rows("evaluate", provenance, result.per_class, form)
    if form != "table":
        return
    tell(sentence(result, over))
    if small:
        tell(f"{small} maps were left out because they are too small to have a pattern")
    if raters:
        tell(f"agreement of annotators: kappa {raters['kappa']:.2f} on {raters['maps']} maps that both labelled")
    if where_agreed:
        tell(f"Scores on maps on which both annotators agree: {sentence(where_agreed, over)}")


def large_enough(maps: dict[str, "Map"], labels: list[GivenLabel]) -> tuple[list[GivenLabel], int]:
    """Return the labels of maps that are large enough to classify, and the number of labels left out. Raises InputError
    if all maps are too small."""
    matched(maps, labels)
    least = patterns.suggestions.TOO_SMALL
    large = [label for label in labels if len(maps[label.key]) > least]
    if not large:
        raise InputError(
            f"An attention map must have more than {least} tokens to be classified; all {len(labels)} "
            "labelled maps are smaller. Label maps of longer inputs."
        )
    return large, len(labels) - len(large)


def judged_on(
    classifier: "Classifier", maps: Mapping[str, "Map"], labels: Sequence[GivenLabel], seed: int
) -> "Evaluated":
    """Evaluate a pattern classifier on labelled attention maps, and return its scores."""
    return patterns.suggestions.evaluated(
        classifier,
        matched(dict(maps), list(labels)),
        [label.name for label in labels],
        [label.map_input for label in labels],
        heads=heads_of(labels),
        seed=seed,
    )


def sentence(result: "Evaluated", over: str) -> str:
    """Describe the evaluation of a classifier in sentences. `over` names the bootstrapped units, such as inputs."""
    return (
        f"The classifier has an accuracy of {result.accuracy:.3f} (95 % CI {result.accuracy_low:.3f} to "
        f"{result.accuracy_high:.3f}, n = {result.maps} maps). The macro F1 is {result.macro_f1:.3f} ({result.low:.3f} "
        f"to {result.high:.3f}) over classes with at least ten maps, and {result.macro_f1_all:.3f} over all classes. "
        f"The expected calibration error is {result.ece:.3f} ({result.ece_low:.3f} to {result.ece_high:.3f}). For "
        f"{result.sure_errors:.1%} of the maps, the classifier predicts a wrong class with a probability above 0.8. "
        f"The classifier is unsure about {result.unsure:.1%} of the maps, and classifies {result.sure_accuracy:.1%} of "
        f"the other maps correctly. {result.outside:.1%} of all maps are unlike the training maps. The confidence "
        f"intervals come from a bootstrap over {result.groups} {over}."
    )


def kappa_of(first: Sequence[GivenLabel], second: Sequence[GivenLabel], names: Sequence[str]) -> Row:
    """Compute Cohen's kappa of two annotators on the maps that both labelled, overall and for pairs of classes."""
    import pandas as pd  # 0.3 s at start

    rows = [
        {"map_id": label.key, "annotator": who, "class": label.name, "row_id": label.map_input}
        for who, labels in (("first", first), ("second", second))
        for label in labels
    ]
    rated = pd.DataFrame(rows).assign(**{"pass": 1, "queue_order": "random", "task": "", "split": ""})
    raters = patterns.agreement.agreement(rated, "first", "second")
    pairs = patterns.agreement.pair_agreements(rated, "first", "second", names)
    return {
        **{name: getattr(raters, name) for name in ("maps", "share", "kappa", "low", "high")},
        "pairs": [
            {"classes": list(pair.classes), "maps": pair.maps, "differ": pair.differ, "kappa": pair.kappa}
            for pair in pairs
        ],
    }


def class_set_with(source: str) -> str:
    """Return the name of the class set that the labels in a bundled folder use. Raises InputError if there is no such
    folder."""
    for class_set, sources in labelled_folders().items():
        if source in sources:
            return class_set
    all_sources = ", ".join(name for sources in labelled_folders().values() for name in sources)
    raise InputError(
        f"The bundled label source to leave out must be one of {all_sources}; got {source[:60]!r}. Choose one of them."
    )


def trained_without(source: str) -> "Classifier":
    """Train a pattern classifier on bundled labels. Labels for checkpoints that occur in `source` are left out."""
    class_set = class_set_with(source)
    lines = lines_of(read_text(config.ANNOTATIONS / source / "maps.jsonl"))
    checkpoints = {json.loads(line)["checkpoint"] for line in lines}
    with database(held="empty") as db:
        bundled_labels(db, class_set)
        labelled = snapshot(db, class_set)
    chosen = [k for k, name in enumerate(labelled.column("checkpoint")) if name not in checkpoints]
    origins, heads = labelled.column("checkpoint"), labelled.heads
    return patterns.training.fit(
        [labelled.maps[k] for k in chosen],
        [labelled.column("class")[k] for k in chosen],
        labelled.classes,
        patterns.training.ClassifierRecipe(kind="trees"),
        known=patterns.training.Known(
            None if labelled.soft is None else labelled.soft[chosen],
            [origins[k] for k in chosen],
            [heads[k] for k in chosen],
        ),
    )


def as_record(result: "Evaluated") -> Row:
    """Convert the result of an evaluation to a JSON-serialisable dictionary."""
    numbers = (
        "maps", "inputs", "groups", "accuracy", "accuracy_low", "accuracy_high", "macro_f1", "low", "high",
        "macro_f1_all", "ece", "ece_low", "ece_high", "sure_errors", "unsure", "sure_accuracy", "outside",
    )  # fmt: skip
    confusion = {
        name: {predicted: int(n) for predicted, n in zip(result.classes, row, strict=True)}
        for name, row in zip(result.classes, result.confusion, strict=True)
    }
    return {name: getattr(result, name) for name in numbers} | {
        "classes": list(result.classes),
        "confusion": confusion,
        "rows": result.per_class,
    }


def opened(name: str, class_set: str | None) -> tuple["Classifier", str]:
    """Load a pattern classifier, and return it with its class set. Raises InputError if the classifier is missing or
    unsuitable."""
    if name == "bundled":
        return patterns.training.Classifier.from_bytes(bundled_weights(class_set or "bert")), class_set or "bert"
    if not name.endswith(FILE_ENDING):
        with database(held="copy") as db:
            return open_classifier(db, name, class_set=class_set), one_classifier(db, name)["class_set"]
    try:
        classifier = patterns.training.Classifier.from_bytes(read_bytes(name))
    except OSError as error:
        raise InputError(f"A classifier file must be readable; {name} cannot be opened. Check its name.") from error
    sets = sets_of(classifier.classes)
    if class_set is not None and class_set not in sets:
        raise InputError(
            f'The classifier must be trained on the class set "{class_set}"; this classifier has the classes '
            f"{', '.join(classifier.classes)}. Choose another classifier."
        )
    return classifier, class_set or (sets[0] if sets else "own")


def sets_of(classes: tuple[str, ...]) -> list[str]:
    """Return the names of the bundled class sets with exactly these classes. If there are none, return the names of the
    custom class sets with these classes."""
    shipped = [class_set.name for class_set in SHIPPED.values() if class_set.names == classes]
    if shipped:
        return shipped
    with database(held="copy") as db:
        return [name for name in class_set_names(db) if known_class_set(db, name).names == classes]


app = typer.Typer(help="Train and evaluate classifiers of attention patterns.", no_args_is_help=True)
app.command("evaluate")(evaluate)
HEADLINE = (
    "on", "macro_f1", "low", "high", "identity_f1", "accuracy", "ece", "unsure", "outside", "n_labels", "maps",
    "inputs", "macro_f1_all", "ece_low", "ece_high", "sure_errors",
)  # fmt: skip
ClassSetName = Annotated[str, Flag("class set of the labels: bert, gpt2, or the name of a custom class set")]


@dataclass(frozen=True)
class Training:
    """Options for training a pattern classifier: the type of classifier and the labels."""

    class_set: ClassSetName = "bert"
    labels: Annotated[
        Path | None,
        Flag("file with labels and the labelled attention maps, to train on (default: stored and bundled labels)"),
    ] = None
    kind: Annotated[
        str,
        Flag(
            "kind of classifier: trees, paper (network of Kovaleva et al.), replication (network of the GPT-2 study), "
            "baseline (logistic regression), or both (paper "
            "and baseline)"
        ),
    ] = "trees"
    epochs: Annotated[int, Flag("number of epochs for which a network is trained", least=1)] = 200
    folds: Annotated[
        int, Flag("number of cross-validation folds; all maps of an input are in the same fold", least=2)
    ] = 5
    class_weights: Annotated[
        bool,
        Flag(
            "weight classes by their inverse frequency, so that rare classes count more (no effect on trees)",
            name="--class-weights",
        ),
    ] = False
    truth: Annotated[
        str | None,
        Flag(
            "method that combines the stored labels of several annotators into soft labels: majority, dawid-skene or "
            "mace (no effect with --labels)"
        ),
    ] = None
    beside: Annotated[
        bool,
        Flag(
            "also compute the learning curve, and scores on held-out checkpoints for classifiers other than trees "
            "(for trees, they are always computed)",
            name="--beside/--no-beside",
        ),
    ] = False
    seed: Annotated[int, Flag("random seed for the folds and the initial weights", least=0, most=LARGEST_SEED)] = 0


@app.command("train")
@of_record(Training, beside=FORMS | PLACES)
def train(asked: Training, form: Form, where: JobPlacement) -> None:
    """Train a pattern classifier, print macro F1 and F1 by class on held-out maps, and store the classifier."""
    with database(held="empty" if asked.labels else "copy") as db:
        if asked.labels is None:
            bundled_labels(db, asked.class_set)
            labelled = snapshot(db, asked.class_set, method=checked_method(asked.truth))
        else:
            labelled = from_file(asked.labels, asked.class_set)
        options = training_options(  # the labels are saved in a snapshot
            db, labelled, kind=asked.kind, epochs=asked.epochs, folds=asked.folds, class_weights=asked.class_weights,
            seed=asked.seed, curve=asked.beside, beside=asked.beside,
        )  # fmt: skip
    title = f"Pattern classifier, {asked.class_set}"
    provenance, rows = ran(train_patterns.STUDY.name, options, title=title, where=where)
    run = record_of(RunRecord, provenance)
    about = {"seed": run.seed, "created": run.created, "code_version": run.code_version}
    about |= {"classifier": run.run[:12], "class_set": asked.class_set, "kind": asked.kind, "epochs": asked.epochs}
    print_scores(asked.class_set, rows, about, form)


def print_scores(class_set: str, rows: list[Row], provenance: Row, form: Form) -> None:
    """Print the summary of a trained classifier, and one row for each class."""
    best = main_score(rows)
    per_class = [
        {"class": score.name, "precision": score.precision, "recall": score.recall, "f1": score.f1,
         "support": score.support}
        for score in ClassScore.among(rows)
    ]  # fmt: skip
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
    fewest, sure = patterns.evaluation.FEWEST_MAPS, patterns.evaluation.CONFIDENT
    tell(
        f"macro F1 {best.macro_f1:.3f} on {best.on} (95 % CI {best.low:.3f} to {best.high:.3f}, n = {best.inputs} "
        f"inputs; classes of at least {fewest} maps), ECE {best.ece:.3f} (95 % CI over heads {best.ece_low:.3f} "
        f"to {best.ece_high:.3f}), wrong with p > {sure}: {best.sure_errors:.1%}, {best.maps} maps scored, "
        f"{best.n_labels} labels, classifier {provenance.get('classifier')}"
    )
    tell(f"baseline that only knows the head, not the map: macro F1 {best.identity_f1:.3f}")


@dataclass(frozen=True)
class Sharing:
    """Options for measuring class shares: the maps to classify and the classifier."""

    checkpoints: Annotated[
        list[str], Flag("one or more checkpoints: bundled names, local folders or hub IDs", argument=True)
    ]
    task: TaskName
    limit: Annotated[int, Flag("number of examples to take from the task", least=1)] = 1000
    split: Annotated[str, Flag("split of the task from which examples are taken: dev or train")] = "dev"
    data: Annotated[
        str | None,
        Flag(
            "folder that contains the folders of the GLUE tasks (default: the folder in ATLAS_GLUE, otherwise bundled "
            "samples)",
            name="--data --glue",
        ),
    ] = None
    class_set: Annotated[
        str | None, Flag("class set: bert or gpt2 (default: gpt2 for decoders, bert for encoders)")
    ] = None
    classifier: Annotated[
        str | None, Flag("ID of a stored classifier (default: the classifier that suggests labels)")
    ] = None
    seed: Annotated[
        int, Flag("random seed for sampling examples and for bootstrap intervals", least=0, most=LARGEST_SEED)
    ] = 0


@of_record(Sharing, beside=FORMS | PLACES)
def shares(asked: Sharing, form: Form, where: JobPlacement) -> None:
    """Measure how frequent each attention pattern is among the maps of a task (Kovaleva et al., Fig. 2). The shares are
    also corrected for errors of the classifier."""
    with database(held="copy") as db:
        glue = settings().glue
        name = asked.classifier or keep_best_known(db, asked.class_set or class_set_of(asked.checkpoints[0]))
        options = classifying_options(
            db, name, checkpoints=asked.checkpoints, task=asked.task, limit=asked.limit, split=asked.split,
            data=asked.data or (glue and str(glue)), seed=asked.seed,
        )  # fmt: skip
    class_set = options.get("class_set")
    if asked.class_set and class_set != asked.class_set:
        raise InputError(
            f'The classifier must be trained on the class set "{asked.class_set}"; {name} is trained on '
            f'"{class_set}". Choose another classifier, or omit --class-set.'
        )
    provenance, rows = ran(pattern_shares.STUDY.name, options, title=f"Class shares, {asked.task}", where=where)
    shown = rows if form == "json" else [row for row in rows if row.get(ClassShare.BY) in ClassShare.KINDS]
    about = {key: value for key, value in provenance.items() if key != "options"}
    show_rows("shares", about | {"classifier": name, "class_set": class_set}, shown, form)


def class_set_of(checkpoint: str) -> str:
    """Return the bundled class set for a checkpoint: gpt2 for decoders, bert for other models."""
    return shipped_set(causal=models.opening.open_checkpoint(checkpoint).causal).name
