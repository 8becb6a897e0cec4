"""Development of heads during training: scores on snapshots, when each role begins, and which role is first.

Kinds of rows: "curve", a score of a head at a snapshot; "beginning", the two snapshots between which a head acquired
its role; "order", for each role the number of heads, when they begin, and how often the role is first.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import pydantic.dataclasses
from jaxtyping import Float, Int

from ... import config, models, patterns, scoring, studies
from ...errors import CheckpointError, InputError, check_choice
from ...interval import finite, or_nan
from ...models.present import bundled_names
from ...scoring.definitions import BOUNDS, CLASS_SHARE, STATISTICS, bound_of
from ...store.rows import Row
from ...tasks.glue import task_of
from ..attention.inputs import PASTED, AttendingOptions, SourceText, sources
from ..contract import Done, Flag, NamedUnit, Study, Unit, provenance
from ..headline import Headline
from ..merging import SortedBy
from ..options import Limit
from ..outcomes import share_intervals
from ..records import Result
from .records import Beginning, CurvePoint, RoleBeginnings

NAMES = ", ".join(STATISTICS)
Ends = tuple[np.ndarray, ...]  # a value and the ends of its interval, [layer, head] each
OWN = "its own weights"
OF_ITS_WEIGHTS, OF_SEEDS = "curve.csv", "development.parquet"  # beside the weights (`data.recipes.curve`)


@pydantic.dataclasses.dataclass(frozen=True)
class DevelopmentOptions(AttendingOptions):
    """Options for a study of training: the snapshots, the inputs, and the scores to follow."""

    checkpoint: str = ""  # no checkpoint of its own, only the snapshots
    checkpoints: Annotated[
        tuple[str, ...],
        Flag(
            "snapshots of one training run in order: bundled names, folders, hub IDs, or a range owner/name@a..b",
            argument=True,
            required=True,
        ),
    ] = ()
    limit: Limit = 60
    scores: Annotated[
        tuple[str, ...],
        Flag(
            f"score to follow during training: {NAMES}; repeat the option for several scores (default: all)",
            name="--score",
        ),
    ] = ()
    follow: Annotated[
        bool,
        Flag(
            (
                "compare each head of the last snapshot with the head that has the most similar attention (its "
                "counterpart) in every other snapshot; by default, with the head of the same name"
            ),
            name="--follow/--places",
        ),
    ] = False
    patterns: Annotated[
        str,
        Flag("also measure the pattern shares of each head with a bundled classifier: bert or gpt2"),
    ] = ""


@dataclass(frozen=True)
class StageScores:
    """The scores of all heads in one snapshot of training.

    Attributes:
        order: position of the snapshot, from 0.
        value, low, high: means over inputs with their 95 % intervals. *Shape:* (score, layer, head).
        at: number of the head here that matches each head of the last snapshot. *Shape:* (head,), int.
    """

    order: int
    label: str
    weights_hash: str
    scores: tuple[str, ...]
    value: np.ndarray
    low: np.ndarray
    high: np.ndarray
    at: np.ndarray
    n: int


@dataclass(frozen=True)
class Stages:
    """The scores of all heads in several snapshots of training."""

    stages: Annotated[tuple[StageScores, ...], SortedBy("order")]


class DevelopmentStudy(Study[DevelopmentOptions, Stages]):
    """Measure heads on training snapshots, and find when each role begins."""

    name, options, partial, arguments = "development", DevelopmentOptions, Stages, NamedUnit
    question = "When in training do heads take on their roles?"
    kinds = (CurvePoint, Beginning, RoleBeginnings)

    def title(self, options: DevelopmentOptions) -> str:
        return f"Development from {options.checkpoints[0]} to {options.checkpoints[-1]}" if options.checkpoints else ""

    def checkpoints(self, options: DevelopmentOptions) -> list[str]:
        """Return an empty list: revisions are resolved to checkpoints only later, when a job is divided into units."""
        return []

    def units(self, options: DevelopmentOptions) -> list[Unit]:
        check_choice("A score over training", options.scores, STATISTICS)
        snapshots = snapshots_of(options.checkpoints)
        return [
            Unit(f"{order}|{snapshot.name}", NamedUnit(snapshot.name, snapshots[-1].name, snapshot.label, order))
            for order, snapshot in enumerate(snapshots)
        ]

    def run(self, options: DevelopmentOptions, unit: Unit) -> Done[Stages]:
        stage: NamedUnit = unit.arguments
        checkpoint = _snapshot(stage.name, options.dtype)
        inputs = sources(options, PASTED if options.texts else task_of(options.tasks[0]).key)
        scores, n = map_scores(checkpoint, inputs, options.scores or tuple(STATISTICS), seed=options.seed)
        scores |= class_shares(checkpoint, inputs, options.patterns) if options.patterns else {}
        value, low, high = (np.stack([ends[k] for ends in scores.values()]) for k in range(3))
        at = np.arange(checkpoint.layers * checkpoint.heads)
        if options.follow and stage.name != stage.source:
            last = _snapshot(stage.source, options.dtype)
            room = studies.comparison.head_similarity
            common = room.common_inputs(last, checkpoint, inputs, queries=8, seed=options.seed)
            match = scoring.counterparts.matching(room.compared(last, checkpoint, common)).match
            numbers = np.array([head.layer * checkpoint.heads + head.head for head in checkpoint.all_heads])
            at[numbers] = numbers[match]
        measured = StageScores(
            stage.number, stage.label, checkpoint.weights_hash, tuple(scores), value, low, high, at, n
        )
        return Done(Stages((measured,)), provenance(checkpoint, [source.row_id for source in inputs]))

    def results(self, options: DevelopmentOptions, merged: Stages) -> Sequence[Result]:
        last = merged.stages[-1]
        if other := next((stage for stage in merged.stages if stage.value.shape != last.value.shape), None):
            raise InputError(
                f"All snapshots must have the same layers and heads; those of {other.label} and {last.label} differ. "
                "Leave one of the two out, or compare them with `study counterparts`."
            )
        points = [point for stage in merged.stages for point in curve_points(stage)]
        return [*points, *role_records(points, seed=options.seed)]

    def headline(self, rows: Sequence[Row]) -> Headline | None:
        return Headline(order_sentence(RoleBeginnings.among(rows)))

    def shown(self, rows: Sequence[Row]) -> list[list[Row] | str]:
        return [[order.as_row() for order in RoleBeginnings.among(rows)]]


STUDY = DevelopmentStudy()


def _snapshot(name: str, dtype: str) -> "models.checkpoint.Checkpoint":
    """Open a snapshot, which is not kept, because no other unit needs it."""
    device = config.settings().device
    return studies.worker_cache.noted(models.opening.open_checkpoint(name, dtype=dtype, device=device))


def map_scores(
    checkpoint: "models.checkpoint.Checkpoint", inputs: Sequence[SourceText], names: Sequence[str], *, seed: int
) -> tuple[dict[str, Ends], int]:
    """Average each named score over inputs. Return means with intervals [layer, head], and the number of inputs."""
    measure = studies.attention.measures.StatisticsMeasure(checkpoint, queries=1, seed=seed)
    studies.attention.measures.observe(checkpoint, None, inputs, [measure])
    whole, places = measure.statistics.means.result(), list(STATISTICS)
    ends = {name: tuple(end[..., places.index(name)] for end in (whole.value, whole.low, whole.high)) for name in names}
    return ends, int(whole.n.max())


def class_shares(
    checkpoint: "models.checkpoint.Checkpoint", inputs: Sequence[SourceText], class_set: str
) -> dict[str, Ends]:
    """Classify the attention maps of each head with a bundled classifier. Return the fraction of maps in each class.

    Inputs of up to three tokens are left out, because they have no pattern. Raises InputError if all are that short.
    """
    _, large = studies.patterns.map_classification.large_enough(checkpoint, inputs)
    if not large:
        raise studies.patterns.map_classification.all_too_small(len(inputs))
    weights = patterns.classifier_registry.bundled_weights(class_set)
    maps = studies.patterns.map_classification.classified(checkpoint, large, weights, dtype="float32")
    return {
        f"{CLASS_SHARE}{name}": share_intervals((maps.classes == number).sum(0), len(large))
        for number, name in enumerate(maps.names)
    }


def curve_points(stage: StageScores) -> list[CurvePoint]:
    """Convert the scores of one training snapshot to one record per score and head."""
    heads = stage.value.shape[2]
    records = []
    for number, score in enumerate(stage.scores):
        for head, index in enumerate(stage.at.tolist()):
            layer_at, head_at = divmod(index, heads)
            if np.isnan(stage.value[:, layer_at]).all():
                continue  # a layer without attention
            value, low, high = (finite(end[number, layer_at, head_at]) for end in (stage.value, stage.low, stage.high))
            records.append(
                CurvePoint(
                    snapshot=stage.label, order=stage.order, score=score, layer=head // heads, head=head % heads,
                    value=value, low=low, high=high, at_layer=layer_at, at_head=head_at, n=stage.n,
                    weights_hash=stage.weights_hash,
                )
            )  # fmt: skip
    return records


def role_records(points: Sequence[CurvePoint], *, seed: int = 0) -> list[Result]:
    """Find when each head acquired each role during training, and in which order the roles appeared."""
    labels = list(dict.fromkeys(point.snapshot for point in sorted(points, key=lambda point: point.order)))
    measured = list(dict.fromkeys(point.score for point in points))
    records: list[Result] = []
    for family in (
        [role for role in BOUNDS if role in measured],
        [name for name in measured if name.startswith(CLASS_SHARE)],
    ):
        begun: dict[str, np.ndarray] = {}
        for role in family:
            mine, bound = [point for point in points if point.score == role], bound_of(role) or 0.0
            ends = [change_points(_grid(mine, end, len(labels)), bound) for end in ("value", "high", "low")]
            begun[role], early, late = ends
            records += [
                Beginning(
                    score=role, bound=bound, layer=int(layer), head=int(head),
                    after=labels[first - 1] if (first := begun[role][layer, head]) else None, by=labels[first],
                    order=int(first), earliest=labels[early[layer, head]],
                    latest=labels[late[layer, head]] if late[layer, head] >= 0 else None,
                )
                for layer, head in np.argwhere(begun[role] != NEVER)
            ]  # fmt: skip
        records += _order_records(role_order(begun, seed=seed), labels)
    return records


def _grid(points: Sequence[CurvePoint], end: str, snapshots: int) -> np.ndarray:
    """Return one number of each point as an array [snapshot, layer, head]; the value itself if it has no interval."""
    layers, heads = (1 + max(getattr(point, name) for point in points) for name in ("layer", "head"))
    orders = {order: k for k, order in enumerate(sorted({point.order for point in points}))}
    grid = np.full((snapshots, layers, heads), np.nan)
    for point in points:
        number = getattr(point, end)
        number = point.value if number is None else number
        grid[orders[point.order], point.layer, point.head] = or_nan(number)
    return grid


def _order_records(orders: "dict[str, RoleOrder]", labels: Sequence[str]) -> list[Result]:
    def label(median: float) -> str | None:
        return None if median != median else labels[int(median)]

    return [
        RoleBeginnings(
            score=role, heads=order.heads, earliest=labels[order.earliest] if order.heads else None,
            median=label(order.median), low=label(order.low), high=label(order.high), first=order.first,
            place=None if order.median != order.median else order.median, snapshots=len(labels),
        )
        for role, order in orders.items()
    ]  # fmt: skip


ROLE_NAMES = {"previous": "previous token", "next": "next token", "first": "first token", "separator": "separators"}


def order_sentence(orders: Sequence[RoleBeginnings]) -> str:
    """Describe in sentences the order in which head roles appear during training, by the median over heads."""
    classes = [order for order in orders if order.score.startswith(CLASS_SHARE)]
    others = [order for order in orders if order not in classes]
    places = _order_of(others, "During training, heads come to attend mostly to one kind of token, in this order")
    of_classes = _order_of(classes, "Heads come to have one pattern class in most maps")
    none = "In the last snapshot, no head attends mostly to the previous, next or first token or to separators."
    return " ".join([places or none, *([of_classes] if of_classes else [])])


def _order_of(orders: Sequence[RoleBeginnings], what: str) -> str:
    """Return the order in which heads acquired some roles, in words; "" if no head has any of them."""
    there = sorted((order for order in orders if order.place is not None), key=lambda order: order.place or 0)
    if not there:
        return ""
    listed = ", ".join(
        f"{ROLE_NAMES.get(order.score, order.score.removeprefix(CLASS_SHARE))} "
        + (f"(1 head, by {order.median})" if order.heads == 1 else f"({order.heads} heads, half of them by "
           f"{order.median})")
        for order in there
    )  # fmt: skip
    first, *others = there
    sure = first.heads > 1 and first.first >= 0.95 and all(order.first <= 0.05 for order in others)
    name = ROLE_NAMES.get(first.score, first.score.removeprefix(CLASS_SHARE))
    first_role = f"The role {name} begins significantly earlier than the other roles."
    end = first_role if sure else "This order is that of one training run and was not tested."
    return f"{what}: {listed}." + (f" {end}" if others else "")


# ---------------------------------------------------------------- bundled curves


def bundled_curves(name: str) -> dict[str, list[CurvePoint]]:
    """Load the bundled curves of head scores over training, by run. Return an empty dictionary if there are none."""
    folder = config.BUNDLED_MODELS / name
    if name not in bundled_names():
        return {}
    curves = {}
    if (folder / OF_SEEDS).is_file():
        tables = pd.read_parquet(folder / OF_SEEDS).groupby("seed")
        curves = {f"seed {seed}": list(_points(table)) for seed, table in tables}
    if (folder / OF_ITS_WEIGHTS).is_file():
        table = pd.read_csv(folder / OF_ITS_WEIGHTS)
        curves = {OWN: list(_points(table.assign(low=float("nan"), high=float("nan"), n=0)))} | curves
    return curves


def _points(table: pd.DataFrame) -> Iterator[CurvePoint]:
    orders = {share: order for order, share in enumerate(sorted(table["share"].unique()))}
    for row in table.itertuples():
        value, low, high = map(finite, (row.value, row.low, row.high))
        yield CurvePoint(
            snapshot=f"{100 * row.share:.3g} %", order=orders[row.share], score=str(row.score), layer=int(row.layer),
            head=int(row.head), value=value, low=low, high=high, at_layer=int(row.layer), at_head=int(row.head),
            n=int(row.n),
        )  # fmt: skip


def spread_sentence(orders: Mapping[str, Sequence[RoleBeginnings]]) -> str:
    """Describe whether training runs with different seeds acquire their common head roles in the same order."""
    medians = [{order.score: order.place for order in run if order.place is not None} for run in orders.values()]
    common = [score for score in medians[0] if all(score in run for run in medians)]
    if len(orders) < 2 or not common:
        return "The training runs have no head role in common." if len(orders) > 1 else ""
    ranked = {
        tuple(tuple(score for score in common if run[score] == place) for place in sorted({run[s] for s in common}))
        for run in medians
    }
    steps = max(max(run[score] for run in medians) - min(run[score] for run in medians) for score in common)
    together = (" and ".join(score.removeprefix(CLASS_SHARE) for score in scores) for scores in next(iter(ranked)))
    listed = ", ".join(together)
    same = f"begin in the same order: {listed}" if len(ranked) == 1 else "do not begin in the same order"
    return (
        f"In {len(orders)} training runs from other seeds, the {len(common)} head roles that occur in all runs {same}. "
        f"The median beginnings of a role differ by at most {steps:g} snapshots between runs."
    )


# ---------------------------------------------------------------- snapshots of a training run

# Names are folders, hub IDs, or owner/name@a..b for a range of revisions. Revisions are resolved once to commits, so
# that what is opened later is what was listed.


_RANGE = re.compile(r"(?P<name>[\w.-]+/[\w.-]+)@(?P<first>[\w.-]*?\d[\w-]*)\.\.(?P<last>[\w.-]+)")
_HUB_ID = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*/[\w.-]+)(?:@(?P<revision>[\w./-]+))?")
_NUMBERED = re.compile(r"(?P<before>\D*)(?P<number>\d+)(?P<after>.*)")


@dataclass(frozen=True)
class Snapshot:
    """A checkpoint saved during training. The checkpoint is opened by its `name`, and users see its `label`."""

    label: str
    name: str


def snapshots_of(names: tuple[str, ...]) -> list[Snapshot]:
    """Return the named training snapshots in order. A range of revisions is resolved on the Hugging Face Hub.

    Raises:
        InputError: there are fewer than two, or duplicates.
        CheckpointError: a revision or repository does not exist.
    """
    found = [snapshot for name in names for snapshot in _snapshots(name.strip())]
    if len(found) < 2:
        raise InputError(
            f"Measuring how heads develop in training needs at least two snapshots; got {len(found)}. Name more "
            "snapshots, or a range such as owner/name@a..b."
        )
    twice = [snapshot.label for k, snapshot in enumerate(found) if snapshot.name in {one.name for one in found[:k]}]
    if twice:
        raise InputError(f"Every snapshot may be named only once; {twice[0]} is named twice. Remove one of the two.")
    return found


def _snapshots(name: str) -> list[Snapshot]:
    if name in bundled_names() or config.is_folder(name):
        return [Snapshot(name, name)]
    if between := _RANGE.fullmatch(name):
        return _between(between["name"], between["first"], between["last"])
    hub_id = _HUB_ID.fullmatch(name)
    if hub_id is None or config.settings().offline:
        return [Snapshot(name, name)]  # opening it raises the error
    return [Snapshot(name, f"{hub_id['name']}@{_commit(hub_id['name'], hub_id['revision'])}")]


def _commit(name: str, revision: str | None) -> str:
    import huggingface_hub  # 0.5 s at start

    from ...models.hub import said_of  # it needs the former

    try:
        return str(huggingface_hub.HfApi().model_info(name, revision=revision).sha)
    except Exception as error:  # every transport raises its own classes
        raise CheckpointError(said_of(error, name, revision)) from error


def _between(name: str, first: str, last: str) -> list[Snapshot]:
    """Return the revisions between two whose names differ only in their number, sorted by that number."""
    ends = [_NUMBERED.fullmatch(end) for end in (first, last)]
    if ends[0] is None or ends[1] is None or _frame(ends[0]) != _frame(ends[1]):
        raise InputError(
            "The ends of a range of revisions must differ only by their number, like step0..step1000; got "
            f"{first} and {last}. Name the revisions one by one."
        )
    low, high = int(ends[0]["number"]), int(ends[1]["number"])
    if low > high:
        raise InputError(
            f"A range of revisions must begin with the smaller number; got {first}..{last}. Exchange the two ends."
        )
    numbered = []
    for revision, commit in _revisions(name).items():
        match = _NUMBERED.fullmatch(revision)
        if match and _frame(match) == _frame(ends[0]) and low <= int(match["number"]) <= high:
            numbered.append((int(match["number"]), revision, commit))
    there = {revision for _, revision, _ in numbered}
    lacking = [end for end in (first, last) if end not in there]
    if lacking:
        where = "is not on this machine, and hub access is off" if config.settings().offline else "does not exist"
        raise CheckpointError(f'The revision "{lacking[0]}" of "{name}" {where}. Choose other revisions.')
    return [Snapshot(f"{name}@{revision}", f"{name}@{commit}") for _, revision, commit in sorted(numbered)]


def _frame(match: re.Match[str]) -> tuple[str, str]:
    return match["before"], match["after"]


def _revisions(name: str) -> dict[str, str]:
    """Return the branches and tags of a repository with their commits. Offline, only downloaded ones are returned."""
    import huggingface_hub  # 0.5 s at start

    from ...models.hub import said_of  # it needs the former

    if config.settings().offline:
        refs = Path(huggingface_hub.constants.HF_HUB_CACHE) / f"models--{name.replace('/', '--')}" / "refs"
        files = sorted(refs.rglob("*")) if refs.is_dir() else []
        return {
            str(file.relative_to(refs)): file.read_text(encoding="utf-8").strip() for file in files if file.is_file()
        }
    try:
        refs_of = huggingface_hub.HfApi().list_repo_refs(name)
    except Exception as error:
        raise CheckpointError(said_of(error, name, None)) from error
    return {ref.name: ref.target_commit for ref in (*refs_of.branches, *refs_of.tags)}


# ---------------------------------------------------------------- when heads take on roles

# A head has a role from the first snapshot after which its score stays above the role's bound
# (core.scoring.definitions.BOUNDS, fixed in advance). It was acquired between that snapshot and the one before.


NEVER = -1


def change_points(values: Float[np.ndarray, " snapshot *heads"], bound: float) -> Int[np.ndarray, "*heads"]:
    """For each head, return the index of the snapshot from which its score stays above `bound`. If there is none, the
    index is NEVER."""
    above = np.nan_to_num(values, nan=-np.inf) > bound
    stays = np.logical_and.accumulate(above[::-1], axis=0)[::-1]
    return np.where(stays[-1], stays.argmax(0), NEVER)


@dataclass(frozen=True)
class RoleOrder:
    """When heads acquired one role in training, with a bootstrap interval over heads.

    Attributes:
        median, low, high: the first snapshot at which half of the heads have the role, with its 95 % bootstrap interval
            over heads; NaN without heads.
        first: fraction of bootstrap draws in which no other role has an earlier median; ties count for all.
    """

    heads: int
    earliest: int
    median: float
    low: float
    high: float
    first: float


def role_order(points: Mapping[str, Int[np.ndarray, "*heads"]], *, seed: int, draws: int = 999) -> dict[str, RoleOrder]:
    """Estimate when each head role appeared in training, from the snapshots at which heads acquired the role."""
    if not points:
        return {}
    chance = np.random.default_rng(seed)
    reached = {role: values[values != NEVER].ravel() for role, values in points.items()}
    medians = np.full((draws, len(reached)), np.inf)
    for column, values in enumerate(reached.values()):
        if len(values):
            medians[:, column] = _middle(values[chance.integers(len(values), size=(draws, len(values)))], 0.5)
    least = medians.min(1, keepdims=True)
    firsts = (np.isfinite(medians) & (medians == least)).mean(0)
    return {
        role: _order(values, medians[:, column], float(firsts[column]))
        for column, (role, values) in enumerate(reached.items())
    }


def _order(values: np.ndarray, medians: np.ndarray, first: float) -> RoleOrder:
    if not len(values):
        return RoleOrder(0, NEVER, float("nan"), float("nan"), float("nan"), 0.0)
    median, low, high = _middle(values, 0.5), _middle(medians, 0.025), _middle(medians, 0.975)
    return RoleOrder(len(values), int(values.min()), float(median), float(low), float(high), first)


def _middle(snapshots: np.ndarray, share: float) -> np.ndarray:
    """Return the first snapshot by which this fraction of heads has acquired the role, along the last axis."""
    return np.asarray(np.quantile(snapshots, share, axis=-1, method="inverted_cdf"))
