"""How much of a model a task needs: pruning by magnitude, and retrained good, bad and random subnetworks.

Magnitude pruning (Gordon et al. 2020) removes the smallest weights of all layers ("global") or of each layer ("layer"),
"before" or "after" fine-tuning. Structured pruning (Prasanna et al. 2020) removes heads and feed-forward sublayers,
least important first, a tenth at a time, while the score stays above 90 % of the full score. The remainder is the
*good* subnetwork. *Bad* subnetworks consist of equally many of the pruned components, *random* ones of random
components. All are retrained from the pre-trained weights. The order is determined on training examples; as in the
paper, the dev set decides how far pruning goes. Means are over seeds, and intervals over examples and seeds.
"""

import hashlib
import json
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pydantic.dataclasses

from ... import capture, config, models, studies, tuning
from ...attention import Head
from ...capture.components import Component, LayerBlock, parse_components
from ...codebook.registry import shipped_set
from ...errors import InputError, check_choice
from ...patterns.classifier_registry import bundled_weights
from ...scoring.few_inputs import mean_interval
from ...scoring.influence import mean_score, score_difference
from ...store.rows import Row
from ...tasks.glue import task_of
from ...tasks.metrics import majority, metrics
from ...tuning.recipe import Recipe
from ...tuning.recipe import Seeds as RunSeeds
from ..contract import Done, Flag, Need, Study, TrainingUnit, Unit, provenance
from ..headline import Headline, defined, percent, points_more
from ..options import Checkpoint, Data, Preset, Seeds, Settings, TaskName
from ..outcomes import metrics_of
from ..records import Result
from .records import Subnetwork, SubnetworkComponent, SurvivorClass

if TYPE_CHECKING:
    from ...tuning.model import Scope
    from .trials import Bench


SCOPES, MOMENTS = ("global", "layer"), ("before", "after")
FULL, GOOD, BAD, RANDOM = "full", "good", "bad", "random"
SUBNETWORKS = (GOOD, BAD, RANDOM)
CURVE, AFTER, STRUCTURE = "curve", "after", "structure"
SHORT = {"train_limit": 2000, "dev_limit": 500, "epochs": 2}  # many runs, so short ones
KEPT_SHARE = 0.9  # of the full model's score
QUIET = ("component",)  # rows for pictures, which a table leaves out
ORDER_ROWS, CLASS_ROWS = 300, 40


@pydantic.dataclasses.dataclass(frozen=True)
class SubnetworksOptions:
    """Options for a pruning study: the fractions of weights to prune, and the settings of fine-tuning."""

    checkpoint: Checkpoint = config.ENCODER
    task: TaskName = "sst2"
    data: Data = None
    seeds: Seeds = (0,)
    preset: Preset = "small"
    settings: Settings = field(default_factory=dict)
    shares: Annotated[
        tuple[float, ...], Flag("fraction of the weights to prune, from 0 to 1; repeat the option for several "
                                "fractions", name="--share")
    ] = (
        0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9,
    )  # fmt: skip
    scopes: Annotated[
        tuple[str, ...],
        Flag(
            (
                "where the smallest weights are selected: global (over all layers) or layer (within each layer); "
                "repeat the option for both"
            ),
            name="--scope",
        ),
    ] = ("global",)
    moments: Annotated[
        tuple[str, ...],
        Flag("when weights are pruned: before or after fine-tuning; repeat the option for both", name="--moment"),
    ] = MOMENTS
    structured: Annotated[
        bool,
        Flag(
            "also compare three subnetworks (Prasanna et al. 2020): components that survive pruning (good), "
            "components that are pruned first (bad), and random components",
            name="--structured/--magnitude-only",
        ),
    ] = True

    @property
    def recipe(self) -> Recipe:
        return Recipe.of(self.preset, SHORT | self.settings)


@dataclass(frozen=True)
class Pruned:
    """Predictions of a pruned model for the dev examples.

    Attributes:
        scope: "global" or "layer" for weights; "" for components.
        moment: "before" or "after" fine-tuning; "" for the full model.
        share: fraction of pruned weights or components.
        components: remaining components; empty for weights.
    """

    what: str
    seed: int
    scope: str
    moment: str
    share: float
    predicted: np.ndarray
    components: tuple[str, ...] = ()


@dataclass(frozen=True)
class Order:
    """The pruning order of components for one random seed. `classes` has the pattern classes of attention maps."""

    seed: int
    order: tuple[str, ...]
    kept: tuple[str, ...]
    names: tuple[str, ...]
    classes: np.ndarray


@dataclass(frozen=True)
class Subnetworks:
    """The predictions of all pruned models, the pruning orders, and the score of a constant prediction."""

    gold: np.ndarray
    constant: str
    baseline: float | None
    train_rows: int
    pruned: tuple[Pruned, ...]
    orders: tuple[Order, ...] = ()


class SubnetworksStudy(Study[SubnetworksOptions, Subnetworks]):
    """Prune weights by magnitude before and after fine-tuning, and retrain good, bad and random subnetworks."""

    name, options, partial, arguments = "subnetworks", SubnetworksOptions, Subnetworks, TrainingUnit
    question = "How many weights does the task need?"
    kinds = (Subnetwork, SubnetworkComponent, SurvivorClass)
    short_in = ("table", "latex")
    called = "Subnetworks of {checkpoint}, {task}"
    needs = frozenset({Need.LABELS})

    def units(self, options: SubnetworksOptions) -> list[Unit]:
        check(options)
        train, dev = studies.probing.trials.task_rows(task_of(options.task), options.recipe, options.data)
        size = 3 * options.recipe.epochs * sum(len(row.text) + len(row.pair or "") for row in train) // 4 + len(dev)
        every = []
        for seed in dict.fromkeys(options.seeds):
            for scope in dict.fromkeys(options.scopes) if "before" in options.moments else ():
                every += [
                    Unit(
                        f"{CURVE}|{scope}|{share:g}|{seed}",
                        TrainingUnit(kind=CURVE, seeds=RunSeeds.all(seed), split=scope, share=share),
                        size,
                    )
                    for share in dict.fromkeys(options.shares)
                ]
            if "after" in options.moments:
                every.append(Unit(f"{AFTER}|{seed}", TrainingUnit(kind=AFTER, seeds=RunSeeds.all(seed)), size))
            if options.structured:
                every.append(
                    Unit(f"{STRUCTURE}|{seed}", TrainingUnit(kind=STRUCTURE, seeds=RunSeeds.all(seed)), 2 * size)
                )
        return every

    def more(self, options: SubnetworksOptions, partials: Sequence[Subnetworks]) -> list[Unit]:
        """Return the work units that retrain subnetworks, for every seed whose pruning order has been computed."""
        size = 3 * options.recipe.epochs * partials[0].train_rows * 10
        known = {(pruned.what, pruned.seed) for part in partials for pruned in part.pruned}
        return [
            Unit(f"{kind}|{order.seed}", TrainingUnit(kind=kind, seeds=RunSeeds.all(order.seed), kept=kept), size)
            for order in (order for part in partials for order in part.orders)
            for kind, kept in subnetworks(order).items()
            if (kind, order.seed) not in known
        ]

    def run(self, options: SubnetworksOptions, unit: Unit) -> Done[Subnetworks]:
        of: TrainingUnit = unit.arguments
        seed = of.seeds.head
        base = studies.worker_cache.get_checkpoint(options.checkpoint)
        on = studies.probing.trials.bench(base, task_of(options.task), options.recipe, options.data)
        told = [options.checkpoint, options.task, options.data, asdict(options.recipe), unit.key]
        key = f"subnetwork-{hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()[:16]}"
        orders: tuple[Order, ...] = ()
        if of.kind == CURVE:
            predicted = pruned_before(on, options.recipe, seed, key, of.share, of.split)  # type: ignore[arg-type]
            pruned = [Pruned(CURVE, seed, of.split, "before", of.share or 0.0, predicted)]
        elif of.kind == AFTER:
            points = [(scope, share) for scope in options.scopes for share in options.shares]
            after = pruned_after(on, options.recipe, seed, key, points)
            pruned = [
                Pruned(CURVE, seed, *point[:1], "after", point[1], row)
                for point, row in zip(points, after, strict=True)
            ]
        elif of.kind == STRUCTURE:
            try:
                classifier = bundled_weights(shipped_set(causal=base.causal).name)
            except InputError:  # none is bundled
                classifier = None
            predicted, order = removal_order(on, options.recipe, seed, key, KEPT_SHARE, classifier)
            pruned, orders = [Pruned(FULL, seed, "", "", 0.0, predicted)], (order,)
        else:
            predicted, share = retrained_without(on, options.recipe, seed, key, of.kept)
            pruned = [Pruned(of.kind, seed, "", "before", share, predicted, of.kept)]
        name, constant = majority(on.task, on.gold, on.gold)  # the best constant on the evaluation set
        return Done(
            Subnetworks(on.gold, name, constant.get(metrics_of(on.task)[0]), len(on.train_rows), tuple(pruned), orders),
            provenance(base, [row.id for row in on.dev_rows], split="dev"),
        )

    def results(self, options: SubnetworksOptions, merged: Subnetworks) -> list[Result]:
        metric = metrics_of(task_of(options.task))[0]
        baseline = Subnetwork(
            kind="baseline", name=f"always {merged.constant}", value=merged.baseline, n=len(merged.gold), metric=metric
        )
        networks = [
            replace(network, metric=metric, constant=merged.baseline)
            for network in (*curve(merged, metric), *retrained(merged, metric))
        ]
        return [baseline, *networks, *_components(merged.orders), *_survivor_classes(merged.orders)]

    def headline(self, rows: Sequence[Row]) -> Headline:
        networks = Subnetwork.defined(rows)
        less = next((network for network in networks if network.name == "good less bad"), None)
        unpruned = [network for network in networks if (network.kind, network.share) == ("curve", 0)]
        full = next((network for network in networks if network.name == "full"), *unpruned[-1:])
        always = next((network.name for network in networks if network.kind == "baseline"), "one label")
        if full.constant is not None and full.low is not None and full.low <= full.constant:
            return Headline(
                (
                    f"The result is not informative: the unpruned model scores {100 * defined(full.value):.1f}, "
                    "which is not significantly above a constant prediction."
                ),
                full.n,
                "dev examples",
                percent(full.low, full.high, "{:.1f}"),
                f"A constant prediction ({always}) scores {100 * full.constant:.1f}.",
            )
        beside = f"The unpruned model scores {100 * defined(full.value):.1f}."
        if full.constant is not None:
            beside += f" A constant prediction ({always}) scores {100 * full.constant:.1f}."
        pruned, step = first_loss([network for network in networks if network.kind == "curve"])
        if less is None:
            interval = percent(step.change_low, step.change_high) if step else ""
            return Headline(pruned, full.n, "dev examples", interval, beside)
        more_points = points_more(defined(less.value), "a subnetwork of equally many unimportant components")
        sure = less.low is not None and less.high is not None and (less.low > 0 or less.high < 0)
        significance = "significant" if sure else "not significant"
        intervals = {} if not step else {
            f"Change after pruning {step.share:.0%}": percent(step.change_low, step.change_high)
        }  # fmt: skip
        intervals |= {"Difference between subnetworks": percent(less.low, less.high)}
        return Headline(
            (
                f"{pruned} After retraining, the subnetwork of important components scores {more_points} "
                f"({significance})."
            ).strip(),
            less.n,
            "dev examples",
            ". ".join(f"{name}: {interval}" for name, interval in intervals.items() if interval),
            beside,
        )

    def shown(self, rows: Sequence[Row]) -> list[list[Row] | str]:
        return [[row for row in rows if row.get(Result.BY) not in QUIET]]


STUDY = SubnetworksStudy()


def check(options: SubnetworksOptions) -> None:
    """Raise InputError if the options of a pruning study are invalid."""
    check_choice("A scope", options.scopes, SCOPES)
    check_choice("A moment", options.moments, MOMENTS)
    if wrong_shares := [share for share in options.shares if not 0 <= share <= 1]:
        raise InputError(f"A share of weights must be between 0 and 1; got {wrong_shares[0]:g}. Correct the share.")
    if not (options.structured or (options.scopes and options.moments and options.shares)):
        raise InputError(
            "A pruning study must prune weights or compare subnetworks; got neither. Set the options scopes, moments "
            "and shares to prune weights, or turn on the option structured to compare subnetworks."
        )


def subnetworks(order: Order) -> dict[str, tuple[str, ...]]:
    """Choose the components of three subnetworks of equal size: good (survivors), bad (pruned first) and random."""
    kept: dict[str, list[str]] = {kind: [] for kind in SUBNETWORKS}
    rng = np.random.default_rng([21, order.seed])
    for is_block in (False, True):
        ranked = [name for name in order.order if ("-" in name) == is_block]
        survivors = [name for name in order.kept if ("-" in name) == is_block]
        kept[GOOD] += survivors
        kept[BAD] += ranked[: len(survivors)]
        kept[RANDOM] += rng.choice(ranked, len(survivors), replace=False).tolist()
    return {kind: tuple(sorted(some)) for kind, some in kept.items()}


# ---------------------------------------------------------------- rows


def first_loss(steps: Sequence[Subnetwork]) -> tuple[str, Subnetwork | None]:
    """Return a sentence on the fraction of weights that can be pruned without a significant loss, or "" if there is
    none. Also return the first step with a significant loss, or None."""
    moment = "after" if any(step.moment == "after" for step in steps) else "before"
    ordered = sorted(
        (step for step in steps if step.moment == moment and step.scope == steps[0].scope),
        key=lambda step: step.share or 0.0,
    )
    fall = next((k for k, step in enumerate(ordered) if step.change_high is not None and step.change_high < 0), None)
    if not ordered or fall == 0:
        return "", None
    share, metric = ordered[-1 if fall is None else fall - 1].share or 0.0, ordered[0].metric
    sentence = f"Pruning up to {share:.0%} of the weights {moment} fine-tuning does not lower {metric} significantly."
    if fall is None:
        return sentence, None
    step = ordered[fall]
    loss = f"by {-100 * (step.change or 0):.1f} points"
    if not share:
        return (
            f"Pruning {step.share:.0%} of the weights {moment} fine-tuning lowers {metric} significantly, {loss}.",
            step,
        )
    return f"{sentence} Pruning {step.share:.0%} lowers {metric} {loss}.", step


def curve(merged: Subnetworks, metric: str) -> list[Subnetwork]:
    """Compute the score at each fraction of pruned weights, and its change from that of the unpruned model."""
    points: dict[tuple[str, str, float], list[np.ndarray]] = {}
    for pruned in merged.pruned:
        if pruned.what == CURVE:
            points.setdefault((pruned.scope, pruned.moment, pruned.share), []).append(pruned.predicted)
    rows = []
    for (scope, moment, share), predicted in sorted(points.items()):
        point = Subnetwork(
            kind="curve", scope=scope, moment=moment, share=share,
            name=f"{share:.0%} by magnitude, {scope}, {moment} fine-tuning", n=len(merged.gold), seeds=len(predicted),
            **mean_score(metric, merged.gold, np.stack(predicted)).fields(),
        )  # fmt: skip
        whole = points.get((scope, moment, 0.0))
        if whole is not None:
            less = score_difference(metric, merged.gold, np.stack(predicted), np.stack(whole))
            point = replace(point, change=less.value, change_low=less.low, change_high=less.high)
        rows.append(point)
    return rows


def retrained(merged: Subnetworks, metric: str) -> list[Subnetwork]:
    """Score the full model and the retrained subnetworks (good, bad and random), and compare them."""
    known: dict[str, list[Pruned]] = {}
    for pruned in merged.pruned:
        if pruned.what != CURVE:
            known.setdefault(pruned.what, []).append(pruned)
    predicted = {kind: np.stack([pruned.predicted for pruned in some]) for kind, some in known.items()}
    n, rows = len(merged.gold), []
    for kind in (kind for kind in (FULL, *SUBNETWORKS) if kind in known):
        share = float(np.mean([pruned.share for pruned in known[kind]]))
        score = mean_score(metric, merged.gold, predicted[kind]).fields()
        rows.append(Subnetwork(kind="subnetwork", name=kind, share=share, n=n, seeds=len(known[kind]), **score))
    for better, other in ((GOOD, BAD), (GOOD, RANDOM), (FULL, GOOD)):
        if better in known and other in known:
            more = score_difference(metric, merged.gold, predicted[better], predicted[other])
            name, seeds = f"{better} less {other}", min(len(known[better]), len(known[other]))
            rows.append(Subnetwork(kind="difference", name=name, n=n, seeds=seeds, **more.fields()))
    return rows


def _components(orders: Sequence[Order]) -> list[SubnetworkComponent]:
    """Return in how many seeds each component survived, and its mean rank in the order (1: first pruned)."""
    if not orders:
        return []
    components = []
    for name in sorted(orders[0].order):
        places = [order.order.index(name) + 1 for order in orders]
        kept = sum(name in order.kept for order in orders)
        component = SubnetworkComponent(
            name=name,
            value=kept / len(orders),
            n=len(orders),
            place=float(np.mean(places)),
            of_components=len(orders[0].order),
        )
        components.append(component)
    return components


def _survivor_classes(orders: Sequence[Order]) -> list[SurvivorClass]:
    """Return class shares among surviving heads' maps minus pruned heads', over inputs."""
    known = [order for order in orders if order.classes.size]
    if not known:
        return []
    classes = []
    for number, name in enumerate(known[0].names):
        differences, survived = [], []
        for order in known:
            stays = np.zeros(order.classes.shape[1:], dtype=bool)
            for head in (Head.parse(part) for part in order.kept if "-" not in part):
                stays[head.layer, head.head] = True
            mine = order.classes == number
            if stays.any() and not stays.all():
                differences.append(mine[:, stays].mean(1) - mine[:, ~stays].mean(1))
                survived.append(mine[:, stays].mean())
        if not differences:
            continue
        mean = np.mean(differences, 0)
        low, high = (float(end[0]) for end in mean_interval(mean[:, None]))
        survivor = SurvivorClass(
            name=name, value=float(mean.mean()), low=low, high=high, n=len(mean), share=float(np.mean(survived)),
            note="share among surviving heads' maps less that among the others', over inputs",
        )  # fmt: skip
        classes.append(survivor)
    return classes


# ---------------------------------------------------------------- pruning and fine-tuning


def pruned_before(on: "Bench", recipe: Recipe, seed: int, key: str, share: float, scope: "Scope") -> np.ndarray:
    """Set the smallest weights (globally or per layer) to 0, then fine-tune the model. Return its dev predictions."""
    return studies.probing.trials.trial(
        on,
        recipe,
        seed,
        key,
        before=lambda model: tuning.model.hold(model, tuning.model.magnitude_masks(model, share, scope)),
    )[1]


def pruned_after(
    on: "Bench", recipe: Recipe, seed: int, key: str, points: Sequence[tuple[str, float]]
) -> list[np.ndarray]:
    """Fine-tune a model, then prune it separately to each (scope, fraction) in `points`. Return the dev predictions."""
    model, _ = studies.probing.trials.trial(on, recipe, seed, key)
    weights = deepcopy(model.state_dict())
    predictions = []
    for scope, share in points:
        tuning.model.zeroed(model, tuning.model.magnitude_masks(model, share, scope))  # type: ignore[arg-type]
        predictions.append(studies.probing.trials.predicted(model, on))
        model.load_state_dict(weights)
    return predictions


def removal_order(
    on: "Bench", recipe: Recipe, seed: int, key: str, kept_share: float, classifier: bytes | None
) -> tuple[np.ndarray, Order]:
    """Fine-tune a model and prune its components, least important first. Importance is recomputed at every step.

    Return the dev predictions of the unpruned model, and the order of pruning. The components `kept` are those left
    when the next step would cost more than 1 - kept_share of the score (otherwise the last two). `classifier` has the
    weights of the pattern classifier for the maps of the unpruned model (None: no classes).
    """
    model, full = studies.probing.trials.trial(on, recipe, seed, key)
    tuned = models.checkpoint.Checkpoint(on.base.name, model, on.base.tokenizer, weights_hash=key)
    weights = deepcopy(model.state_dict())
    least = kept_share * _score(on, full)
    rows = [(example.encoding, example.label) for example in on.train[:ORDER_ROWS]]
    gone: list[Component] = []
    kept: list[Component] | None = None
    while len(gone) < len(capture.pruning.every_component(tuned)):
        scores = capture.pruning.component_importance(
            tuned, [encoding for encoding, _ in rows], [label for _, label in rows]
        )
        left = [component for component in capture.pruning.every_component(tuned) if component not in set(gone)]
        step: list[Component] = []
        for kind, total in ((Head, tuned.layers * tuned.heads), (LayerBlock, tuned.layers)):
            own = sorted(
                (component for component in left if isinstance(component, kind)),
                key=lambda component: (scores[component], str(component)),
            )
            step += own[: max(1, round(total / 10))]
        gone += step
        tuning.model.zeroed(model, capture.pruning.masks_without(tuned, step))
        if kept is None and _score(on, studies.probing.trials.predicted(model, on)) < least:
            back = set(gone[: -len(step)])
            kept = [component for component in capture.pruning.every_component(tuned) if component not in back]
    model.load_state_dict(weights)
    stays = kept if kept is not None else gone[-2:]
    return full, Order(seed, tuple(map(str, gone)), tuple(map(str, stays)), *_classes(tuned, on, classifier))


def _score(on: "Bench", predictions: np.ndarray) -> float:
    value = metrics(on.task, on.gold, predictions)[on.task.metric]
    return -1.0 if value is None else float(value)


def _classes(
    tuned: "models.checkpoint.Checkpoint", on: "Bench", weights: bytes | None
) -> tuple[tuple[str, ...], np.ndarray]:
    """Classify the maps of the unpruned model by pattern."""
    if weights is None:
        return (), np.zeros((0, 0, 0), dtype=np.int16)
    encodings = [example.encoding for example in on.dev[:CLASS_ROWS]]
    patterns = studies.patterns.map_classification.classified(tuned, encodings, weights, dtype="float32")
    return patterns.names, patterns.classes


def retrained_without(
    on: "Bench", recipe: Recipe, seed: int, key: str, components: Sequence[str]
) -> tuple[np.ndarray, float]:
    """Retrain a subnetwork from pre-trained weights. Return its predictions and the fraction of masked components."""
    stays = {component for name in components for component in parse_components(name)}

    def mask(model: Any) -> None:
        fresh = models.checkpoint.Checkpoint(on.base.name, model, on.base.tokenizer)
        gone = [component for component in capture.pruning.every_component(fresh) if component not in stays]
        tuning.model.hold(model, capture.pruning.masks_without(fresh, gone))

    every = len(capture.pruning.every_component(on.base))
    return studies.probing.trials.trial(on, recipe, seed, key, before=mask)[1], 1 - len(stays) / every
