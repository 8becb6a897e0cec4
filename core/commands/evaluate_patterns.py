"""`python -m core patterns evaluate`: a classifier on maps and labels that lie in files."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from core import patterns
from core.commands.declared import of_record
from core.commands.output import Form, database, show_rows
from core.errors import InputError
from core.patterns.classes import SHIPPED
from core.patterns.classifier_registry import bundled_weights, open_classifier
from core.patterns.labelled_files import matched, read_label_file, read_map_file
from core.store.classifiers import one_classifier
from core.store.rows import Row, plain
from core.studies.contract import Flag
from core.studies.options import LARGEST_SEED

if TYPE_CHECKING:
    from core.patterns.evaluated import Evaluated
    from core.patterns.training import Classifier

FILE_ENDING = ".safetensors"


@dataclass(frozen=True)
class Options:
    """Which classifier is judged, on which files."""

    maps: Annotated[Path, Flag(".npz: key -> square float map whose rows sum to 1")]
    labels: Annotated[Path, Flag('.jsonl: a line a map, {"key": ..., "class": ...}')]
    classifier: Annotated[str, Flag("bundled, a stored one's name, or a .safetensors file")] = "bundled"
    class_set: Annotated[str | None, Flag("default: the classifier's; bert for the bundled one")] = None
    seed: Annotated[int, Flag("of the interval", least=0, most=LARGEST_SEED)] = 0


@of_record(Options)
def evaluate(asked: Options, form: Form) -> None:
    """Judge a pattern classifier on labelled maps: accuracy, macro F1, calibration, unsure share and confusion."""
    classifier, set_name = opened(asked.classifier, asked.class_set)
    labels = read_label_file(asked.labels, classifier.classes, set_name)
    pictures = matched(read_map_file(asked.maps), labels)
    groups = [label.key.split("-", 1)[0] for label in labels]
    names = [label.name for label in labels]
    result = patterns.evaluated.evaluated(classifier, pictures, names, groups, seed=asked.seed)
    about = {"classifier": asked.classifier, "class_set": set_name, "seed": asked.seed}
    about |= {"recipe": classifier.recipe.kind}
    if form == "json":
        typer.echo(json.dumps(plain(as_record(result) | {"study": "evaluate", "provenance": about})))
        return
    show_rows("evaluate", about, result.per_class, form)
    if form == "table":
        typer.echo(
            f"accuracy {result.accuracy:.3f}, macro F1 {result.macro_f1:.3f} ({result.low:.3f} to {result.high:.3f}, "
            f"95 % over {result.inputs} inputs), ECE {result.ece:.3f}, unsure of {result.unsure:.1%}, right in "
            f"{result.sure_accuracy:.1%} of the others, {result.outside:.1%} outside what was trained on; "
            f"{result.maps} maps"
        )


def as_record(result: "Evaluated") -> Row:
    """The result as JSON takes it; confusion: true class -> predicted class -> maps."""
    numbers = ("maps", "inputs", "accuracy", "macro_f1", "low", "high", "ece", "unsure", "sure_accuracy", "outside")
    confusion = {
        name: {other: int(n) for other, n in zip(result.classes, row, strict=True)}
        for name, row in zip(result.classes, result.confusion, strict=True)
    }
    return {name: getattr(result, name) for name in numbers} | {
        "classes": list(result.classes),
        "confusion": confusion,
        "rows": result.per_class,
    }


def opened(name: str, class_set: str | None) -> tuple["Classifier", str]:
    """The classifier asked for and its class set. Errors: InputError when it is of another set or is none."""
    if name == "bundled":
        return patterns.training.Classifier.from_bytes(bundled_weights(class_set or "bert")), class_set or "bert"
    if not name.endswith(FILE_ENDING):
        with database(held="copy") as db:
            return open_classifier(db, name, class_set=class_set), one_classifier(db, name)["class_set"]
    try:
        classifier = patterns.training.Classifier.from_bytes(Path(name).read_bytes())
    except OSError as error:
        raise InputError(f"A classifier is read from a file; {name} cannot be opened: check its name.") from error
    sets = [known.name for known in SHIPPED.values() if known.names == classifier.classes]
    if class_set is not None and class_set not in sets:
        raise InputError(
            f'This classifier knows the classes {", ".join(classifier.classes)}; "{class_set}" was asked for: choose '
            "one trained on that set."
        )
    return classifier, class_set or (sets[0] if sets else "own")
