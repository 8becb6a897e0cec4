"""One head under every operator side by side, and whether operators rank heads alike (Kendall's tau with interval).

The effect is the change of a row's loss (cross-entropy, squared error of scores) with the head changed and nothing
else. disable, zero, replace, mean, resample and the optimal constant push off the distribution by different amounts,
so a head may matter under one and not under another. Means over rows with intervals; p is corrected over all
heads and operators together.
"""

from collections.abc import Sequence
from dataclasses import dataclass
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
from ..contract import Done, Flag, Need, Study, Unit
from ..headline import SURE, Headline, percent, plural
from ..metric_columns import Metrics
from ..options import Limit
from ..provenance import provenance
from ..records import Result
from . import disabling, references
from .disabling import SweepOptions
from .records import OperatorAgreement, OperatorEffect, Untouched, effect_scores

DEFAULT = ("disable", "zero", "mean", "resample", "constant")


@pydantic.dataclasses.dataclass(frozen=True)
class OperatorsOptions(SweepOptions, references.ReferenceOptions):
    """Which operators, on all heads of which checkpoint, on which rows."""

    limit: Limit = 200
    operators: Annotated[tuple[str, ...], Flag("give several", name="--operator")] = DEFAULT


@dataclass(frozen=True)
class One:
    """The operator of a unit."""

    operator: str


@dataclass(frozen=True)
class Effects:
    """Losses of rows, untouched and under operators.

    Attributes:
        plain: each row's loss, untouched: cross-entropy in nats, or squared error. *Shape:* (row,).
        changes: of the loss, heads layer by layer. *Shape:* (operator, head, row).
        fitting: for "constant" the mean losses on the rows that fitted it with the mean, with zero and with the
            constant in a head's place; no head otherwise. *Shape:* (3, head).
    """

    layers: int
    heads: int
    operators: tuple[str, ...]
    plain: np.ndarray
    changes: np.ndarray
    fitting: np.ndarray
    attending: tuple[int, ...] = ()


class OperatorsStudy(Study[OperatorsOptions, Effects]):
    """Put every head under several operators side by side: the change of the loss, and how much their ranks agree."""

    name, options, partial, arguments = "operators", OperatorsOptions, Effects, One
    question = "Do ablation methods agree on which heads matter?"
    one_by_one = True
    kinds = (Untouched, OperatorEffect, OperatorAgreement)
    short_in = ("table", "latex")
    head_scores = effect_scores(("{} loss change", "effect on the loss: {}", "mean change of the task's loss: {}"))
    said_at = 13
    called = "Heads of {checkpoint} under {operators}"
    section = "effect"
    needs = frozenset({Need.CLASSIFIER, Need.LABELS})
    p_is_corrected = True

    def units(self, options: OperatorsOptions) -> list[Unit]:
        """One operator each; those that cannot be are refused here."""
        if len(set(options.operators)) != len(options.operators) or len(options.operators) < 2:
            raise InputError("Operators are set side by side, so two or more different ones are needed: name them.")
        for operator in options.operators:
            references.check(capture.interventions.known_operator(operator), options)
        size = len(disabling.rows_of(options))
        return [Unit(operator, One(operator), size) for operator in options.operators]

    def run(self, options: OperatorsOptions, unit: Unit) -> Done[Effects]:
        """The change of every row's loss under one operator."""
        opened, rows = disabling.opened(options), disabling.rows_of(options)
        checkpoint, operator = opened.checkpoint, unit.arguments.operator
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
            for source in references.sources(operator, opened, options)
        ]
        plain, changes = outcomes[0].plain.numpy(), np.mean([effects.exact.numpy() for effects in outcomes], 0)
        partial = Effects(
            checkpoint.layers,
            checkpoint.heads,
            (operator,),
            plain,
            changes[None],
            _fitting(opened, options) if operator == "constant" else np.zeros((3, 0)),
            checkpoint.attending,
        )
        return Done(partial, provenance(checkpoint, names, dtype=outcomes[0].dtype))

    def merge(self, options: OperatorsOptions, partials: Sequence[Effects]) -> Effects:
        """All operators, in the order asked for."""
        first = partials[0]
        fitting = next((part.fitting for part in partials if part.fitting.size), first.fitting)
        names = tuple(name for part in partials for name in part.operators)
        changes = np.concatenate([part.changes for part in partials])
        return Effects(first.layers, first.heads, names, first.plain, changes, fitting, first.attending)

    def results(self, options: OperatorsOptions, merged: Effects) -> list[Result]:
        """The baseline, a row per head and operator, then a row per pair of operators."""
        task = task_of(options.task).key
        about: Any = {"task": task, "n": len(merged.plain)}
        baseline = Untouched(name="untouched", loss=float(merged.plain.mean()), metrics=Metrics(()), **about)
        return [baseline, *_effects(options, merged, about), *_agreement(options, merged, about)]

    def headline(self, rows: Sequence[Row]) -> Headline:
        untouched, effects = Untouched.among(rows)[0], OperatorEffect.among(rows)
        most = max(effects, key=lambda effect: abs(effect.value))
        sure = sum(effect.p < SURE for effect in effects)
        return Headline(
            f"{most.name} under {most.operator} moves the loss most, by {most.value:+.3f}; "
            f"{plural(sure, len(effects), 'effects')} are beyond luck.",
            untouched.n,
            "examples",
            percent(most.low, most.high, "{:+.3f}", 1),
            f"loss {untouched.loss:.3f}",
        )

    def shown(self, rows: Sequence[Row]) -> list[list[Row] | str]:
        effects = OperatorEffect.among(rows)
        operators = list(dict.fromkeys(effect.operator for effect in effects))
        under: dict[str, list[str]] = {}
        for effect in effects:
            if effect.p < SURE and effect.value > 0:
                under.setdefault(effect.name, []).append(effect.operator)
        under_all = [name for name, rising_under in under.items() if len(rising_under) == len(operators)]
        under_some = [name for name in under if name not in under_all]
        return [
            [row for row in rows if row.get(OperatorAgreement.BY) in OperatorAgreement.KINDS],
            f"The loss rises beyond luck (p < {SURE}, corrected over heads and operators) under every one of "
            f"{len(operators)} operators for {', '.join(under_all) or 'no head'}; under some of them only for "
            f"{', '.join(under_some) or 'no head'}.",
        ]


STUDY = OperatorsStudy()


def _fitting(opened: disabling.Opened, options: OperatorsOptions) -> np.ndarray:
    fitted = references.constants(opened, options)
    return np.stack([losses.flatten().double().numpy() for losses in (fitted.mean, fitted.zero, fitted.fitted)])


def _effects(options: OperatorsOptions, merged: Effects, about: Any) -> list[OperatorEffect]:
    operators, heads, n = merged.changes.shape
    p = max_t(np.zeros(n), merged.changes.reshape(-1, n), seed=options.seed).reshape(operators, heads)
    results, named = [], all_heads(merged.layers, merged.heads, merged.attending)
    for number, operator in enumerate(merged.operators):
        intervals = mean_intervals(np.zeros(n), merged.changes[number], most=None)
        for head in range(heads):
            head_name = named[head]
            fits = ("fit_mean", "fit_zero", "fit_constant") if operator == "constant" and merged.fitting.size else ()
            effect = OperatorEffect(
                name=str(head_name), layer=head_name.layer, head=head_name.head, operator=operator,
                value=float(merged.changes[number, head].mean()), low=intervals[head].low, high=intervals[head].high,
                p=float(p[number, head]), statistic=f"{operator} loss change", feature=task_of(options.task).key,
                **about, **dict(zip(fits, merged.fitting[:, head].tolist() if fits else (), strict=True)),
            )  # fmt: skip
            results.append(effect)
    return results


def _agreement(options: OperatorsOptions, merged: Effects, about: Any) -> list[OperatorAgreement]:
    operators, heads, n = merged.changes.shape
    if operators < 2 or heads < 3 or n < 4:
        return []
    agreement = operators_agree(merged.changes, seed=options.seed)
    results = []
    for index, first in enumerate(merged.operators):
        for other, second in enumerate(merged.operators[index + 1 :], index + 1):
            figures = {name: getattr(agreement, name)[index, other] for name in ("low", "high", "same_rows")}
            figures |= {"itself": agreement.itself(index, other), "kendall": agreement.tau[index, other]}
            numbers: Any = {name: None if np.isnan(value) else float(value) for name, value in figures.items()}
            results.append(OperatorAgreement(name=f"{first} and {second}", heads=heads, **numbers, **about))
    return results
