"""Which heads (layers, groups) matter to the task's loss by more than a margin: verdicts with error control, from as
few rows as each of them takes (`core.scoring.racing`).

Rows are taken in a random order that the seed fixes, in rounds: the first look with exact effects of every head, and
first-order effects of the same rows to compare them with; then exact effects of the heads that are still open, up to
the next look. Units of a round are slices of its rows and depend
on what was measured before alone, so any number of workers gives the same verdicts. Heads that matter are then swept on
the rows they lack, for the metric, whose own interval they get.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import capture
from ...store.rows import Row
from ...tasks.glue import TaskRow, task_of
from ..contract import Done, Need, Study, Unit
from ..headline import Headline
from ..metric_columns import RANKING
from ..provenance import provenance
from ..records import Result
from . import disabling, races, references
from .effect_scores import effect_scores
from .race_table import table, verdict_sentence
from .races import Race, RaceOptions, Round, Taken
from .records import RaceLook, RaceSummary, RaceVerdict

if TYPE_CHECKING:
    from ...models.checkpoint import Checkpoint

EXACT_A_UNIT = 16  # rows of a unit that runs every variant; more where fewer are left
MOST_A_UNIT = 128


class RaceStudy(Study[RaceOptions, Taken]):
    """Race heads (layers, groups): which matter to the loss beyond a margin, from as few rows as that takes."""

    name, options, partial, arguments = "race", RaceOptions, Taken, Round
    kinds = (RaceSummary, RaceVerdict, RaceLook)
    short_in = ("table", "latex")
    head_scores = effect_scores(
        ("race {} heads", "raced effect on the loss: {}", "mean change of the task's loss, raced: {}"),
        ("race {} all-but-one", "raced, alone in its layer: {}", "likewise, the layer's others changed: {}"),
    )
    said_at = 14
    called = "Race {what} of {checkpoint}"
    section = "effect"
    needs = frozenset({Need.CLASSIFIER, Need.LABELS})

    def read(self, given: Mapping[str, Any]) -> RaceOptions:
        """Typed heads are groups. Raises InputError where something else is to race with them."""
        return super().read(disabling.with_groups(given))

    def units(self, options: RaceOptions) -> list[Unit]:
        """The first look: every variant, and first-order effects; options that cannot be are refused here."""
        references.check(capture.interventions.known_operator(options.operator), options)
        rows = disabling.rows_of(options)
        rules = races.check(options, task_of(options.task), rows)
        places = races.draw(options, len(rows))[: rules.first]
        return _units(rows, places, Round((), None, first_order=True, number=0), EXACT_A_UNIT)

    def more(self, options: RaceOptions, partials: Sequence[Taken]) -> list[Unit]:
        """What the race wants next; when it is over, the rows that heads that matter lack."""
        race = _race(options, self.merge(options, partials))
        step, number, order = race.next(), race.taken.rounds + 1, races.draw(options, len(race.rows))
        heads, places = (step.heads, order[step.start : step.stop]) if not step.over else race.left
        next_round = Round((), tuple(int(k) for k in heads), first_order=False, number=number)
        return _units(race.rows, places, next_round, _most(len(heads), len(race.variants)))

    def run(self, options: RaceOptions, unit: Unit) -> Done[Taken]:
        """The effects that this round wants of these rows."""
        race_round, opened, all_rows = unit.arguments, disabling.opened(options), disabling.rows_of(options)
        checkpoint, rows = opened.checkpoint, [all_rows[k] for k in race_round.rows]
        variants = disabling.variants_of(options.what, options.heads, checkpoint.layers, checkpoint.heads)
        taken, sources = (
            _empty(race_round, checkpoint, len(variants), rows),
            references.sources(options.operator, opened, options),
        )
        chosen = list(range(len(variants)) if race_round.variants is None else race_round.variants)
        measured = _exact(options, opened, rows, [variants[k] for k in chosen], sources)
        taken.exact[chosen] = np.mean([effects.exact.numpy() for effects in measured], 0)
        expected = references.expected([effects.changed for effects in measured], is_score=opened.task.is_score)
        taken.changed[chosen] = opened.predicted(expected)
        plain = opened.predicted(measured[0].logits).astype(float)
        taken = replace(taken, loss=measured[0].plain.numpy(), plain=plain, fast=measured[0].fast)
        if race_round.first_order:
            taken = replace(taken, first_order=_first_order(options, opened, rows, variants, sources))
        return Done(taken, provenance(checkpoint, [row.id for row in rows], dtype=measured[0].dtype))

    def merge(self, options: RaceOptions, partials: Sequence[Taken]) -> Taken:
        """All rows, in the task's order."""
        return races.merged(partials)

    def results(self, options: RaceOptions, merged: Taken) -> list[Result]:
        """How the race went, a row per variant with its verdict, a row per look."""
        return table(_race(options, merged))

    def headline(self, rows: Sequence[Row]) -> Headline:
        race, verdicts = RaceSummary.among(rows)[0], RaceVerdict.among(rows)
        named = [verdict.name for verdict in verdicts if verdict.verdict == "matters"][:5]
        return Headline(
            f"{race.matters} of {len(verdicts)} {'matters' if race.matters == 1 else 'matter'} beyond the margin"
            + (f" ({', '.join(named)})" if named else "")
            + f", {left_over(race)}.",
            race.n,
            "rows",
            f"all verdicts hold together with {100 * (1 - race.alpha):.0f} %",
            f"margin {race.margin:.4f} in the task's loss",
        )

    def shown(self, rows: Sequence[Row]) -> list[list[Row] | str]:
        verdicts = sorted(RaceVerdict.among(rows), key=lambda verdict: -abs(verdict.effect or 0.0))
        metrics = [name for name in RANKING if any(verdict.metrics.of(name) for verdict in verdicts)]
        table = []
        for verdict in verdicts:
            shown = verdict.columns("name", "verdict", "rows", "effect", "effect_low", "effect_high", "gradient_first")
            for name in metrics:  # of survivors
                measured = verdict.metrics.of(name)
                change = measured.change if measured else None
                shown |= {f"{name}_change": change and change.value, f"{name}_low": change and change.low}
                shown |= {f"{name}_high": change and change.high}
            table.append(shown)
        return [table, verdict_sentence(RaceSummary.of(rows[0]))]


STUDY = RaceStudy()


def left_over(race: RaceSummary) -> str:
    """ "1 does not, 30 are open": variants that do not matter, and those of which nothing is known yet."""
    do, are = ("does" if race.does_not_matter == 1 else "do"), ("is" if race.open == 1 else "are")
    return f"{race.does_not_matter} {do} not, {race.open} {are} open"


def _race(options: RaceOptions, taken: Taken) -> Race:
    return Race(options, task_of(options.task), disabling.rows_of(options), taken)


def _exact(
    options: RaceOptions,
    opened: disabling.Opened,
    rows: Sequence[TaskRow],
    variants: Sequence[disabling.Variant],
    sources: Sequence[Any],
) -> list[Any]:
    """Exact effects, one set a source: a draw of "resample", or the operator itself."""
    sets, names = [frozenset(variant.heads) for variant in variants], [row.id for row in rows]
    labels, encodings = opened.outputs(rows), opened.encoded(rows)
    labelled = capture.losses.LabelledRows(encodings, labels, names)
    return [
        capture.losses.effects(opened.checkpoint, labelled, sets, options.operator, source=source, dtype=options.dtype)
        for source in sources
    ]


def _first_order(
    options: RaceOptions,
    opened: disabling.Opened,
    rows: Sequence[TaskRow],
    variants: Sequence[disabling.Variant],
    sources: Sequence[Any],
) -> np.ndarray:
    """First-order effects [variant, row]: the mean over sources."""
    sets, labels, encodings = (
        [frozenset(variant.heads) for variant in variants],
        opened.outputs(rows),
        opened.encoded(rows),
    )
    slopes = [
        capture.losses.first_order(opened.checkpoint, encodings, labels, options.operator, source=source)
        for source in sources
    ]
    return np.mean([capture.losses.slopes_of(sets, slope).numpy() for slope in slopes], 0)


def _empty(race_round: Round, checkpoint: "Checkpoint", variants: int, rows: Sequence[TaskRow]) -> Taken:
    """Nothing measured yet: NaN everywhere but in the gold labels."""
    changed, exact, first_order = (np.full((variants, len(rows)), np.nan) for _ in range(3))
    gold, loss, plain = np.array([float(row.label) for row in rows]), *(np.full(len(rows), np.nan) for _ in range(2))
    return Taken(
        np.array(race_round.rows), checkpoint.layers, checkpoint.heads, gold, loss, plain, changed, exact, first_order,
        fast=True, rounds=race_round.number,
    )  # fmt: skip


def _most(open_variants: int, variants: int) -> int:
    """Rows of a unit, so that units of any round take about as long."""
    return min(MOST_A_UNIT, EXACT_A_UNIT * variants // max(1, open_variants))


def _units(rows: Sequence[TaskRow], places: np.ndarray, race_round: Round, most: int) -> list[Unit]:
    """Slices of these rows, similar lengths together."""
    sizes = {int(k): len(rows[k].text) + len(rows[k].pair or "") for k in places}
    order = sorted(sizes, key=lambda k: (sizes[k], k))
    units = []
    for start in range(0, len(order), most):
        part = tuple(order[start : start + most])
        arguments = replace(race_round, rows=part)
        size = max(1, sum(sizes[k] for k in part) // 4)
        units.append(Unit(f"round-{race_round.number}-{start // most}", arguments, size))
    return units
