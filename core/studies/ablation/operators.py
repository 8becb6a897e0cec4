"""Comparison of ablation methods on every head, and whether the methods rank heads alike (Kendall's tau).

The effect is the change of the loss per example (cross-entropy, or squared error for scores). The methods move
activations off their distribution by different amounts, so a head may matter under only one method. p is corrected over
all heads and methods together.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
import pydantic.dataclasses

from ... import capture
from ...attention import all_heads
from ...errors import InputError
from ...scoring.effects import max_t, mean_intervals
from ...scoring.rank_agreement import operators_agree
from ...store.rows import Row
from ...tasks.glue import task_of
from ..contract import Done, Flag, NamedUnit, Need, Study, Unit, provenance
from ..headline import SIGNIFICANT, Headline, percent, plural
from ..merging import AllOf, OfFirst, PerExampleFirst, Positions
from ..options import Limit
from ..outcomes import Metrics
from ..records import Result
from . import setup
from .records import OperatorAgreement, OperatorEffect, Unmodified, effect_scores
from .setup import AblationOptions

DEFAULT = ("disable", "zero", "mean", "resample", "constant")


@pydantic.dataclasses.dataclass(frozen=True)
class OperatorsOptions(AblationOptions, setup.ReferenceOptions):
    """Options for comparing ablation methods."""

    limit: Limit = 200
    operators: Annotated[
        tuple[str, ...], Flag("ablation method to compare; repeat the option for several methods", name="--operator")
    ] = DEFAULT


@dataclass(frozen=True)
class Effects:
    """The loss on each example without ablation, and the change in loss for each ablation method and head.

    Attributes:
        numbers: indices of the methods in the options.
        plain: loss without ablation: cross-entropy in nats, or squared error. *Shape:* (example,).
        changes: change of the loss, heads layer by layer. *Shape:* (method, head, example).
        fitting: for "constant", mean loss on the fitting examples if the head's output is its mean, zero, or the fitted
            constant. *Shape:* (3, head).
    """

    layers: int
    heads: int
    operators: AllOf[str]
    plain: OfFirst[np.ndarray]
    changes: PerExampleFirst
    fitting: np.ndarray
    attending: tuple[int, ...] = ()
    numbers: Positions = field(default_factory=lambda: np.zeros(1, dtype=int))


class OperatorsStudy(Study[OperatorsOptions, Effects]):
    """Compare ablation methods: how much each changes the loss for every head, and how well head rankings agree."""

    name, options, partial, arguments = "operators", OperatorsOptions, Effects, NamedUnit
    question = "Do ablation methods agree on which heads matter?"
    one_by_one = True
    kinds = (Unmodified, OperatorEffect, OperatorAgreement)
    short_in = ("table", "latex")
    head_scores = effect_scores(("{} loss change", "effect on the loss: {}", "mean change of the task's loss: {}"))
    said_at = 13
    called = "Ablation of {checkpoint}: {operators}"
    section = "effect"
    needs = frozenset({Need.CLASSIFIER, Need.LABELS})
    p_is_corrected = True

    def units(self, options: OperatorsOptions) -> list[Unit]:
        if len(set(options.operators)) != len(options.operators) or len(options.operators) < 2:
            raise InputError(
                "At least two different ablation methods must be compared; got "
                f"{', '.join(options.operators) or 'none'}. Name more methods."
            )
        for operator in options.operators:
            setup.check_replacements(capture.interventions.known_operator(operator), options)
        size = len(setup.rows_of(options))
        return [Unit(name, NamedUnit(name, number=k), size) for k, name in enumerate(options.operators)]

    def run(self, options: OperatorsOptions, unit: Unit) -> Done[Effects]:
        opened, rows = setup.opened(options), setup.rows_of(options)
        checkpoint, operator = opened.checkpoint, unit.arguments.name
        encodings, gold = opened.encoded(rows), opened.outputs(rows)
        heads = capture.sweeping.every_head(checkpoint.layers, checkpoint.heads, checkpoint.attending)
        names = [row.id for row in rows]
        outcomes = [
            capture.losses.effects(
                checkpoint,
                capture.losses.LabelledRows(encodings, gold, names=names),
                heads,
                operator,
                source=source,
                dtype=options.dtype,
            )
            for source in setup.replacements(operator, opened, options)
        ]
        plain, changes = outcomes[0].plain.numpy(), np.mean([effects.exact.numpy() for effects in outcomes], 0)
        fitting = np.zeros((3, 0))
        if operator == "constant":
            fitted = setup.fitted_constants(opened, options)
            fitting = np.stack(
                [losses.flatten().double().numpy() for losses in (fitted.mean, fitted.zero, fitted.fitted)]
            )
        partial = Effects(
            checkpoint.layers,
            checkpoint.heads,
            (operator,),
            plain,
            changes[None],
            fitting,
            checkpoint.attending,
            np.array([unit.arguments.number]),
        )
        return Done(partial, provenance(checkpoint, names, dtype=outcomes[0].dtype))

    def results(self, options: OperatorsOptions, merged: Effects) -> list[Result]:
        task = task_of(options.task).key
        about: Any = {"task": task, "n": len(merged.plain)}
        baseline = Unmodified(name="untouched", loss=float(merged.plain.mean()), metrics=Metrics(()), **about)
        operators, heads, n = merged.changes.shape
        p = max_t(np.zeros(n), merged.changes.reshape(-1, n), seed=options.seed).reshape(operators, heads)
        results, named = [], all_heads(merged.layers, merged.heads, merged.attending)
        for number, operator in enumerate(merged.operators):
            intervals = mean_intervals(np.zeros(n), merged.changes[number], most=None)
            for head in range(heads):
                head_name = named[head]
                fits = (
                    ("fit_mean", "fit_zero", "fit_constant") if operator == "constant" and merged.fitting.size else ()
                )
                effect = OperatorEffect(
                    name=str(head_name), layer=head_name.layer, head=head_name.head, operator=operator,
                    value=float(merged.changes[number, head].mean()), low=intervals[head].low,
                    high=intervals[head].high, p=float(p[number, head]), statistic=f"{operator} loss change",
                    feature=task, **about,
                    **dict(zip(fits, merged.fitting[:, head].tolist() if fits else (), strict=True)),
                )  # fmt: skip
                results.append(effect)
        return [baseline, *results, *_agreement(options, merged, about)]

    def headline(self, rows: Sequence[Row]) -> Headline:
        untouched, effects = Unmodified.among(rows)[0], OperatorEffect.among(rows)
        most = max(effects, key=lambda effect: abs(effect.value))
        effects_found = plural(sum(effect.p < SIGNIFICANT for effect in effects), len(effects), "effects")
        return Headline(
            (
                f"Ablating head {most.name} by the method {most.operator} changes the loss most ({most.value:+.3f}). "
                f"After correction, {effects_found} are significant."
            ),
            untouched.n,
            "examples",
            percent(most.low, most.high, "{:+.3f}", 1),
            f"The unmodified model has a loss of {untouched.loss:.3f}.",
        )

    def shown(self, rows: Sequence[Row]) -> list[list[Row] | str]:
        effects = OperatorEffect.among(rows)
        operators = list(dict.fromkeys(effect.operator for effect in effects))
        under: dict[str, list[str]] = {}
        for effect in effects:
            if effect.p < SIGNIFICANT and effect.value > 0:
                under.setdefault(effect.name, []).append(effect.operator)
        under_all = [name for name, rising_under in under.items() if len(rising_under) == len(operators)]
        under_some = [name for name in under if name not in under_all]
        return [
            [row for row in rows if row.get(OperatorAgreement.BY) in OperatorAgreement.KINDS],
            f"Under all {len(operators)} ablation methods, ablating {', '.join(under_all) or 'no head'} raises the "
            f"loss significantly (p < {SIGNIFICANT}, corrected over heads and methods). Under only some methods, "
            f"ablating {', '.join(under_some) or 'no head'} raises the loss significantly.",
        ]


STUDY = OperatorsStudy()


def _agreement(options: OperatorsOptions, merged: Effects, about: Any) -> list[OperatorAgreement]:
    operators, heads, n = merged.changes.shape
    if operators < 2 or heads < 3 or n < 4:
        return []
    agreement = operators_agree(merged.changes, seed=options.seed)
    results = []
    for index, first in enumerate(merged.operators):
        for other, second in enumerate(merged.operators[index + 1 :], index + 1):
            figures = {name: getattr(agreement, name)[index, other] for name in ("low", "high", "same_rows")}
            figures |= {"itself": agreement.mean_reliability(index, other), "kendall": agreement.tau[index, other]}
            numbers: Any = {name: None if np.isnan(value) else float(value) for name, value in figures.items()}
            results.append(OperatorAgreement(name=f"{first} and {second}", heads=heads, **numbers, **about))
    return results
