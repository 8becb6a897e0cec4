"""Effects of input perturbations on predictions, and predictions from parts of the input.

For each perturbation: the number of examples to which it applies, the rate of changed predictions with its Wilson
interval, and the metric before and after, paired, with p corrected over perturbations (Holm). Partial-input baselines
use only the first or second sentence (Gururangan et al. 2018; Poliak et al. 2018). A perturbation such as negation may
change the gold label.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import numpy as np
import pydantic.dataclasses

from ... import capture
from ...errors import InputError, check_choice
from ...scoring.corrections import holm_adjusted
from ...store.rows import Row
from ...tasks.glue import Task, TaskRow, task_of
from ...tasks.perturbations import PERTURBATIONS, PerturbationChoice, perturb
from ..contract import ExampleUnit, Flag, Unit
from ..headline import Headline, percent
from ..merging import PerExample, Positions
from ..outcomes import Metrics, metrics_before, prediction_changes
from ..records import Result
from . import setup
from .records import Perturbation, Unmodified
from .setup import ExampleOptions

if TYPE_CHECKING:
    from torch import Tensor

PARTIAL = ("first-only", "second-only")
DEFAULT = tuple(kind for kind in PERTURBATIONS if kind not in ("typed", "same"))


@pydantic.dataclasses.dataclass(frozen=True)
class PerturbOptions(ExampleOptions):
    """Options for a perturbation study: how inputs are changed, and which checkpoint and examples are used."""

    kinds: Annotated[
        tuple[str, ...],
        Flag(
            f"perturbation of the input: {', '.join(DEFAULT)}; repeat the option for several perturbations",
            name="--kind",
        ),
    ] = DEFAULT


@dataclass(frozen=True)
class Perturbations:
    """Predictions for each example before and after every kind of perturbation.

    Attributes:
        changed: equal to `plain` if the perturbation does not apply (`made` is False).
        moved: change of the probability of the label in `plain`, or of the score.
    """

    rows: Positions
    gold: PerExample
    plain: PerExample
    changed: PerExample
    made: PerExample
    moved: PerExample


class PerturbStudy(setup.ExampleStudy[PerturbOptions, Perturbations]):
    """Change inputs, for example their word order or the names they mention, and count how many predictions change."""

    name, options, partial = "perturb", PerturbOptions, Perturbations
    kinds = (Unmodified, Perturbation)
    called = "Perturbed inputs of {task} in {checkpoint}"
    question = "How often do changes in the input change the prediction?"

    def units(self, options: PerturbOptions) -> list[Unit]:
        check_choice("A perturbation", [kind for kind in options.kinds if kind != "same"], DEFAULT)
        return super().units(options)

    def on_examples(
        self, options: PerturbOptions, opened: setup.Opened, rows: Sequence[TaskRow], unit: ExampleUnit
    ) -> tuple[Perturbations, str | None]:
        checkpoint = opened.checkpoint
        logits = capture.running.predict(checkpoint, opened.encoded(rows))
        changed, made, moved = [], [], []
        for kind in options.kinds:
            texts = [
                made_of(kind, row, options.seed + row_number, checkpoint.tokenizer.mask_token)
                for row, row_number in zip(rows, unit.positions, strict=True)
            ]
            encodings = [
                checkpoint.encode(*(text or (row.text, row.pair))) for text, row in zip(texts, rows, strict=True)
            ]
            other = capture.running.predict(checkpoint, encodings)
            changed.append(opened.predicted(other))
            made.append([text is not None for text in texts])
            moved.append(_moved(opened.task, logits, other))
        partial = Perturbations(
            np.array(unit.positions),
            np.array([row.label for row in rows]),
            opened.predicted(logits),
            np.array(changed),
            np.array(made),
            np.array(moved),
        )
        return partial, None

    def results(self, options: PerturbOptions, merged: Perturbations) -> list[Result]:
        task = task_of(options.task)
        before, constant = metrics_before(task, merged.gold, merged.plain), _constant(task, merged.gold)
        untouched = Unmodified(task=task.key, n=len(merged.gold), metrics=before, constant=constant)
        return [
            untouched,
            *corrected([_perturbed(options, task, merged, k, kind) for k, kind in enumerate(options.kinds)]),
        ]

    def headline(self, rows: Sequence[Row]) -> Headline:
        rates = [
            (kind.changed_rate, kind)
            for kind in Perturbation.among(rows)
            if kind.kind == "perturbation" and kind.changed_rate is not None
        ]
        (highest, most), (lowest, least) = max(rates, key=lambda pair: pair[0]), min(rates, key=lambda pair: pair[0])
        return Headline(
            (
                f"The perturbation {most.name} changes the most predictions ({highest:.0%} of them), and the "
                f"perturbation {least.name} changes the fewest ({lowest:.0%})."
            ),
            most.n,
            "examples",
            percent(most.changed_low, most.changed_high, "{:.0f}"),
            "Without a perturbation, no prediction changes.",
        )

    def warnings(self, rows: Sequence[Row]) -> list[str]:
        return [
            f"The {perturbation.kind} {perturbation.name} was not evaluated: {perturbation.note} ({perturbation.n} of "
            f"{perturbation.of_rows} examples)."
            for perturbation in Perturbation.among(rows)
            if perturbation.note
        ]


def corrected(kinds: Sequence[Perturbation]) -> list[Perturbation]:
    """Correct the p-values of perturbations for multiple testing with Holm's method."""
    tested = [k for k, kind in enumerate(kinds) if kind.p is not None]
    changed = list(kinds)
    if tested:
        p = holm_adjusted(np.array([kinds[k].p for k in tested], dtype=float))
        for k, value in zip(tested, p, strict=True):
            changed[k] = replace(kinds[k], p=float(value))
    return changed


def made_of(kind: str, row: object, seed: int, mask: str | None) -> tuple[str, str | None] | None:
    """Perturb an example. Return the changed texts, or None if the perturbation is not applicable to the example."""
    try:
        made = perturb(kind, row.text, row.pair, seed=seed, choice=PerturbationChoice(mask=mask)).made  # type: ignore[attr-defined]
    except InputError:
        return None
    return made.text, made.pair


def _moved(task: Task, before: "Tensor", after: "Tensor") -> list[float]:
    import torch  # 1.3 s of start-up

    if task.is_score:
        return (after - before)[:, 0].tolist()
    shares = [torch.softmax(logits, -1) for logits in (before, after)]
    best = shares[0].argmax(-1, keepdim=True)
    return (shares[1] - shares[0]).gather(-1, best)[:, 0].tolist()


def _perturbed(options: PerturbOptions, task: Task, merged: Perturbations, number: int, name: str) -> Perturbation:
    made = merged.made[number].astype(bool)
    kind, meaning = "partial input" if name in PARTIAL else "perturbation", PERTURBATIONS[name].meaning
    if made.sum() < 2:
        return Perturbation(kind=kind, name=name, task=task.key, meaning=meaning, of_rows=len(made),
                            n=int(made.sum()), metrics=Metrics(()),
                            note="fewer than two rows of the task have what it changes")  # fmt: skip
    gold, plain, changed = merged.gold[made], merged.plain[made], merged.changed[number, made]
    change = prediction_changes(task, gold, plain, changed[None], seed=options.seed)[0]
    full = metrics_before(task, gold, plain).every  # of the whole input, on the same rows
    metrics = [replace(metric, full=whole.value) for metric, whole in zip(change["metrics"].every, full, strict=True)]
    change["metrics"] = Metrics(tuple(metrics))
    return Perturbation(
        kind=kind, name=name, task=task.key, meaning=meaning, of_rows=len(made),
        probability_change=float(merged.moved[number, made].mean()), constant=_constant(task, gold), **change,
    )  # fmt: skip


def _constant(task: Task, gold: np.ndarray) -> float | None:
    """Return the fraction of the most frequent label; None for scores, because a constant has no correlation."""
    return None if task.is_score else float(np.unique(gold, return_counts=True)[1].max() / len(gold))


STUDY = PerturbStudy()
