"""Every head, layer or group disabled in turn on a task's rows (Kovaleva et al. section 4.6, Figs 8 and 9).

A summary row per variant: the metric and its change with a paired bootstrap interval, how many predictions changed,
McNemar's p for classes, and p corrected over all variants (max-T permutation). Then a split-half row: whether the
gain of the best variant is still there on rows that did not choose it. The operator is
"disable" (uniform attention) in Kovaleva's pictures and "zero" in Michel's. Groups are typed ("groups"), or clusters
of heads with like maps ("duplicates"), which stand beside their heads one at a time and random heads.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import pydantic.dataclasses

from core.errors import InputError
from core.measuring import disabling, duplicates, references
from core.measuring.disabling import Variant
from core.measuring.outcomes import finite, in_order, metrics_of, outcomes
from core.measuring.provenance import provenance
from core.scoring import effects
from core.store.rows import Row
from core.studies.contract import Done, Flag, Study, Unit
from core.studies.options import Classifier, Data, Dtype, Limit, Seed, Split, TaskName
from core.tasks.glue import Task, task_of


@pydantic.dataclasses.dataclass(frozen=True)
class Options:
    """What is disabled, of which checkpoint, on which rows."""

    checkpoint: Classifier
    task: TaskName = "sst2"
    data: Data = None
    split: Split = "dev"
    limit: Limit = 500
    dtype: Dtype = "float32"
    device: str = "auto"
    seed: Seed = 0
    what: Annotated[
        str, Flag("heads, layers, all-but-one, groups, duplicates; taken out whole: blocks, feedforward, layers-whole")
    ] = "heads"
    operator: Annotated[
        str, Flag("disable, zero, previous, current, next, first, mean, resample or constant; zero for blocks")
    ] = "disable"
    heads: Annotated[str, Flag('groups changed together, like "L1H2,L7H6; L4H1,L2-attention"')] = ""
    within: Annotated[float, Flag("duplicates: nearer than this share of the mean distance")] = 0.5
    reference: Annotated[int, Flag("train rows that mean, resample and constant take from")] = references.ROWS
    draws: Annotated[int, Flag("rows that resample draws for each input")] = references.DRAWS


@dataclass(frozen=True)
class Swept:
    """Predictions of some rows, plain and under every variant.

    rows: their places in the task. layers, heads: of the checkpoint. gold, plain: [row], changed: [variant, row], in
    the task's labels or scores. grouped: the variants where the checkpoint's maps decide them, else empty.
    """

    rows: np.ndarray
    layers: int
    heads: int
    gold: np.ndarray
    plain: np.ndarray
    changed: np.ndarray
    grouped: tuple[Variant, ...]


class Disable(Study[Options, Swept]):
    """Disable every head (layer, lone head, or group) in turn: the change of the metric, and whether it is luck."""

    name, options, partial, arguments = "disable", Options, Swept, disabling.Slice

    def read(self, given: Mapping[str, Any]) -> Options:
        """Typed heads are groups. Errors: InputError where something else is to be disabled with them."""
        what, heads = str(given.get("what", "heads")), str(given.get("heads") or "")
        if disabling.has_parts("groups" if heads else what, heads) and given.get("operator") in (None, "disable"):
            given = {**given, "operator": "zero"}  # the one that parts have
        if not heads:
            return super().read(given)
        if given.get("what", "heads") not in ("heads", "groups"):
            raise InputError(
                f"Heads are named for groups, but what is disabled is {given['what']!r}; leave one of the two out."
            )
        return super().read({**given, "what": "groups"})

    def title(self, options: Options) -> str:
        """Name the variants and the checkpoint."""
        return f"Disable {options.what} of {options.checkpoint}"

    def units(self, options: Options) -> list[Unit]:
        """Slices of the task's rows; options that cannot be are refused here."""
        from core.capture.interventions import known_operator

        references.check(known_operator(options.operator), options)
        if disabling.has_parts(options.what, options.heads) and options.operator != "zero":
            raise InputError(
                f'Blocks and layers are taken out whole, which is the operator "zero"; "{options.operator}" was asked '
                "for: choose zero."
            )
        if options.what == "groups":
            disabling.groups_of(options.heads)
        elif options.what == "duplicates":
            duplicates.check(options.within)
        else:
            disabling.variants_of(options.what, "", 1, 1)
        return [Unit(f"rows-{k}", some, size) for k, (some, size) in enumerate(disabling.slices(options))]

    def run(self, options: Options, unit: Unit) -> Done[Swept]:
        """Predictions of these rows, plain and under every variant."""
        from core.capture.sweeping import sweep

        opened, every = disabling.opened(options), disabling.rows_of(options)
        checkpoint, rows = opened.checkpoint, [every[k] for k in unit.arguments.rows]
        grouped = _grouped(options, opened)
        variants = grouped or _variants(options, checkpoint.layers, checkpoint.heads)
        components = [variant.components for variant in variants]
        encodings, changed = opened.encoded(rows), []
        for source in references.sources(options.operator, opened, options):
            swept = sweep(checkpoint, encodings, components, options.operator, source=source, dtype=options.dtype)
            changed.append(swept.changed)
        expected = references.expected(changed, is_score=opened.task.is_score)
        partial = Swept(
            np.array(unit.arguments.rows), checkpoint.layers, checkpoint.heads, np.array([row.label for row in rows]),
            opened.predicted(swept.plain), opened.predicted(expected), tuple(grouped),
        )  # fmt: skip
        return Done(partial, provenance(checkpoint, [row.id for row in rows], dtype=swept.dtype))

    def merge(self, options: Options, partials: Sequence[Swept]) -> Swept:
        """All rows, in the task's order."""
        first, whole = partials[0], in_order(partials, ("rows", "gold", "plain", "changed"))
        return Swept(layers=first.layers, heads=first.heads, grouped=first.grouped, **whole)

    def rows(self, options: Options, merged: Swept) -> list[Row]:
        """The baseline, a row per variant in the order of the heads, and the split-half check."""
        return _Table(options, task_of(options.task), merged).rows()


STUDY = Disable()


def _grouped(options: Options, opened: disabling.Opened) -> list[Variant]:
    if options.what != "duplicates":
        return []
    return duplicates.variants(opened, options.data, seed=options.seed, within=options.within)


def _variants(options: Options, layers: int, heads: int) -> list[Variant]:
    return disabling.variants_of(options.what, options.heads, layers, heads)


class _Table:
    """The rows of a sweep, from all its predictions."""

    def __init__(self, options: Options, task: Task, swept: Swept):
        self.options, self.task, self.swept = options, task, swept
        self.names = metrics_of(task)
        self.about = {"operator": options.operator, "what": options.what, "task": task.key, "n": len(swept.gold)}
        ones = np.ones((1, len(swept.gold)))
        self.whole = {name: effects.counted(name, swept.gold, swept.plain[None], ones)[0, 0] for name in self.names}
        self.variants: Sequence[Variant] = swept.grouped or _variants(options, swept.layers, swept.heads)
        self.changed = swept.changed
        self.beside: list[Row] = [{} for _ in self.variants]
        if options.what == "duplicates":
            self.beside = duplicates.beside(
                self.names, swept.gold, swept.plain, self.changed, self.variants, seed=options.seed
            )
            self.variants, self.changed = duplicates.together(self.variants, self.changed)
        self.before = outcomes(task, swept.gold, swept.plain)
        self.after = outcomes(task, swept.gold, self.changed)

    def rows(self) -> list[Row]:
        """The baseline, the variants, the split-half check."""
        whole = {name: finite(value) for name, value in self.whole.items()}
        baseline = {"kind": "baseline", "name": "untouched", **self.about, **whole}
        return [baseline, *self._body(), *self._checked_on_the_other_half()]

    def _body(self) -> list[Row]:
        gold, plain, changed, seed = self.swept.gold, self.swept.plain, self.changed, self.options.seed
        measured = {name: effects.metric_intervals(name, gold, plain, changed, seed=seed) for name in self.names}
        corrected = effects.max_t(self.before, self.after, seed=seed)
        flipped = effects.flips(plain, changed) if not self.task.is_score else None
        body = []
        for k, variant in enumerate(self.variants):
            row = {"kind": "variant", **variant.facts(), **self.about, **self.beside[k]}
            for name in self.names:
                change = measured[name][k]
                value = None if change.value is None else self.whole[name] + change.value
                row |= {name: value, f"{name}_change": change.value}
                row |= {f"{name}_low": change.low, f"{name}_high": change.high}
            row["flipped"] = None if flipped is None else int(flipped[k])
            row["mcnemar"] = self._mcnemar(k)
            row["p"] = float(corrected[k])
            body.append(row | self._score(measured[self.names[0]][k]))
        return body

    def _mcnemar(self, k: int) -> float | None:
        if self.task.is_score:
            return None
        return effects.mcnemar(self.before.astype(bool), self.after[k].astype(bool))

    def _score(self, change: effects.Interval) -> Row:
        """The fields that make a row of one head a head score in the store."""
        if self.options.what not in ("heads", "all-but-one"):
            return {}
        return {
            "statistic": f"{self.options.operator} {self.options.what}",
            "feature": f"{self.options.task} {self.names[0]}",
            "value": change.value,
            "low": change.low,
            "high": change.high,
            "baseline": finite(self.whole[self.names[0]]),
        }

    def _checked_on_the_other_half(self) -> list[Row]:
        if len(self.variants) < 2 or len(self.before) < 4:
            return []
        half = effects.split_half(self.before, self.after, seed=self.options.seed)
        fields = {name: getattr(half, name) for name in ("chosen", "held_out", "low", "high", "same")}
        return [{"kind": "split half", "name": self.variants[half.head].name, **self.about, **fields}]


# ---------------------------------------------------------------- two sweeps side by side


def shared(one: Sequence[Row], other: Sequence[Row]) -> tuple[list[Row], effects.Agreement]:
    """Which heads do two sweeps share? {name, this, other}: the changes of the first metric of each, and their rank
    correlation over the heads (or layers) that both swept."""
    second = {row["name"]: _change(row) for row in other if row["kind"] == "variant"}
    first = [row for row in one if row["kind"] == "variant" and row["name"] in second]
    pairs = [{"name": row["name"], "this": _change(row), "other": second[row["name"]]} for row in first]
    columns = [np.array([row[side] for row in pairs], dtype=float) for side in ("this", "other")]
    return pairs, effects.rank_agreement(*columns)


def _change(row: Row) -> float | None:
    return row[f"{first_metric(row)}_change"]


def first_metric(row: Row) -> str:
    """The metric that ranks, of a row of a sweep."""
    return next(name for name in ("accuracy", "f1", "pearson") if name in row)
