"""Measured scores for each exhibit: Table 1, change, ablation, importance, pruning, probes, subnetworks; and values of
every head for heatmaps."""

from collections.abc import Sequence
from dataclasses import replace

from ...interval import Estimate
from ...studies.ablation.records import AblatedTarget, PruneStep
from ...studies.attention.records import Score
from ...studies.probing.records import BestHeadTree, ParsedScore, ProbedLayer, Subnetwork
from ...studies.records import Valued, picked
from ...studies.tuning.records import BestLayer, FinetunedTask, TunedScore, finetuned_task
from ...tasks.glue import SPLIT, TASKS
from ...tuning.recipe import Recipe
from .. import readings
from ..estimates import correlation_interval, f1_interval, mean_over, share_interval
from ..evidence import Evidence, StepResult
from ..ids import Condition, ExhibitId, Item, Part, Quantity
from ..records import HeadRecord
from ..verdicts import Measured
from .maps import layers_of

BEST_KEPT = "; the best epoch by these dev rows was kept, so the score is too high"

# ---------------------------------------------------------------- fine-tuning


def table_one(evidence: Evidence) -> list[Measured]:
    """Collect the scores of Table 1, as means over seeds with confidence intervals over dev examples."""
    values = []
    for result in evidence.of(Part.TUNING):
        tuning = finetuned_task(result.rows)
        for mean in tuning.means:
            note = f"{mean.n} seed{'s' * ((mean.n or 0) > 1)}" + ("; " + mean.note if mean.note else "")
            note += (
                BEST_KEPT
                if (Recipe.of(result.step.options.preset, result.step.options.settings).keep == "best")
                else ""
            )
            for metric in ("accuracy", "f1", "pearson", "mse"):
                if mean.of_metric(metric) is not None:
                    item, estimate = Item(Quantity.SCORE, metric), scored(mean, metric, tuning.rows)
                    about = (estimate, tuning.rows, "dev rows", result.run, note)
                    condition = Condition(mean.initialisation or "")
                    values.append(Measured(ExhibitId.TABLE_1, result.task, item, condition, *about))
    return values


def scored(score: TunedScore, metric: str, n: int) -> Estimate:
    """Return a score on n examples with its confidence interval. Mean squared error has no interval."""
    value = float(score.of_metric(metric) or 0.0)
    if metric == "accuracy":
        return share_interval(value, n)
    if metric == "f1":
        return f1_interval(value, float(score.accuracy or 0.0), n)
    return correlation_interval(value, n) if metric == "pearson" else Estimate(value)


def constant_score(tuning: FinetunedTask, task: str | None) -> float | None:
    """Return the dev score of the constant prediction (the better of two labels), 0 if undefined, None if unknown."""
    if tuning.constant is None:
        return None
    score = tuning.constant.of_metric(tuning.metric) or 0.0
    two_labels = tuning.metric == "accuracy" and len(TASKS[task or ""].labels) == 2
    return max(score, 1 - score) if two_labels else score


def nothing_to_lose(evidence: Evidence, task: str | None) -> str | None:
    """Explain that ablation cannot lower the score of a model that is no better than a constant prediction. Return None
    if the score can be lowered."""
    result = evidence.one(Part.TUNING, task)
    if result is None:
        return None
    tuning = finetuned_task(result.rows)
    tuned, floor, metric = tuning.mean("pretrained"), constant_score(tuning, task), tuning.metric
    if tuned is None or floor is None:
        return None
    if tuned.of_metric(metric) is None:
        return "Nothing can be lost: the fine-tuned checkpoint makes the same prediction for every example."
    score = scored(tuned, metric, tuning.rows)
    if score.low is None or score.low > floor:
        return None
    score_text = f"{metric} {score.value:.3f} ({score.low:.3f} to {score.high:.3f})"
    return (
        f"Nothing can be lost: the {score_text} of the fine-tuned checkpoint is not above that of a constant "
        f"prediction, {floor:.3f}."
    )


def change(evidence: Evidence) -> list[Measured]:
    """Collect, for each layer, the mean cosine between maps before and after fine-tuning (Kovaleva et al., Fig. 5)."""
    values = []
    for result in evidence.of(Part.CHANGE):
        layers = cosines(result)
        if layers:
            like = Measured(
                ExhibitId.CHANGE, result.task, Item(Quantity.LAYER), Condition.NONE, layers[0].estimate,
                int(layers[0].n or 0), "inputs", result.run,
            )  # fmt: skip
            values += layers_of([layer.estimate for layer in layers], like)
    return values


def cosines(result: StepResult) -> list[Score]:
    """Return the cosine of attention maps before and after fine-tuning for each layer, in order."""
    return sorted(picked(result.scores, kind="layer", statistic="cosine"), key=lambda score: score.layer or 0)


# ---------------------------------------------------------------- disabling


def heads(evidence: Evidence) -> list[Measured]:
    """Collect the best, mean and worst change in the score when one head is ablated (Kovaleva et al., Fig. 8)."""
    values = []
    for result in evidence.of(Part.HEADS):
        sweep = readings.sweep(result.rows)
        head_changes = sorted(sweep.known, key=lambda pair: -pair[1].value)
        if not head_changes:
            continue
        corrected = f"corrected over {len(sweep.variants)} heads"
        (best, most), (worst, least) = head_changes[0], head_changes[-1]
        found = [
            (Quantity.BEST_HEAD, most, f"{best.name}, {sweep.metric}; p {best.p:.2g} {corrected}"),
            (Quantity.WORST_HEAD, least, f"{worst.name}, {sweep.metric}; p {worst.p:.2g} {corrected}"),
        ]
        mean = mean_over(change for _, change in head_changes)
        if mean is not None:
            found.append((Quantity.MEAN_OVER_HEADS, mean, sweep.metric))
        if sweep.held_out is not None:
            unit = "share of r" if sweep.metric == "pearson" else "share of rows right"
            note = f"chosen on the other half, most often {sweep.held_out.name}; {unit}"
            found.append((Quantity.HELD_OUT_HEAD, sweep.held_out.gain, note))
        for quantity, estimate, note in found:
            about = (estimate, best.n, _rows_of(result), result.run, note)
            values.append(Measured(ExhibitId.HEADS, result.task, Item(quantity), Condition.DISABLED, *about))
    return values


def _rows_of(result: StepResult) -> str:
    """Return which examples an ablation of every head uses."""
    return "rows it never saw" if getattr(result.step.options, "split", "") == SPLIT else "dev rows"


def _by_layers(evidence: Evidence, part: Part, exhibit: ExhibitId, condition: Condition) -> list[Measured]:
    values = []
    for result in evidence.of(part):
        layer_changes = readings.sweep(result.rows).known
        if not layer_changes:
            continue
        best = best_by_layer(layer_changes)
        like = Measured(
            exhibit,
            result.task,
            Item(Quantity.LAYER),
            condition,
            best[0],
            layer_changes[0][0].n,
            _rows_of(result),
            result.run,
        )
        values += layers_of(best, like)
    return values


def best_by_layer(known: Sequence[tuple[AblatedTarget, Estimate]]) -> list[Estimate]:
    """Return the highest score change among the ablations in each layer."""
    layers = sorted({variant.layer or 0 for variant, _ in known})
    by_layer = [[change for variant, change in known if (variant.layer or 0) == layer] for layer in layers]
    return [max(changes, key=lambda change: change.value) for changes in by_layer]


def layers(evidence: Evidence) -> list[Measured]:
    """Collect, for every layer, the change in the score when the whole layer is ablated (Kovaleva et al., Fig. 9)."""
    return _by_layers(evidence, Part.LAYERS, ExhibitId.LAYERS, Condition.DISABLED)


def alone(evidence: Evidence) -> list[Measured]:
    """Collect, for each layer, the change in the score if only its best head is left (Michel et al., Table 2)."""
    return _by_layers(evidence, Part.ALONE, ExhibitId.ALONE, Condition.ZEROED)


def prune(evidence: Evidence) -> list[Measured]:
    """Collect how many heads can be pruned before the score drops (Michel et al., Fig. 3)."""
    values = []
    for result in evidence.of(Part.PRUNE):
        curves = readings.prune_curves(result.rows)
        for condition in (Condition.BY_IMPORTANCE, Condition.BY_SWEEP):
            steps = curves.get(condition.value)
            if steps:
                share, following = removable(steps)
                estimate = Estimate(share, share, following)
                about = (estimate, steps[0].n, "dev rows", result.run, f"{steps[0].metric}; from the curve's steps")
                item = Item(Quantity.REMOVABLE)
                values.append(Measured(ExhibitId.PRUNE, result.task, item, condition, *about))
    return values


def removable(steps: Sequence[PruneStep]) -> tuple[float, float]:
    """Return the fractions of pruned heads just before and at the first significant drop of the score. If the score
    never drops significantly, the second fraction is 1."""
    share = 0.0
    for step in steps:
        if step.high is not None and step.high < step.baseline:
            return share, float(step.share)
        share = float(step.share)
    return share, 1.0


def importance(evidence: Evidence) -> list[Measured]:
    """Correlate the gradient-based importance of heads with the effects of zeroing them (Michel et al., section 4)."""
    return [
        Measured(
            ExhibitId.IMPORTANCE, result.task, Item(Quantity.AGREEMENT, agreement.name), Condition.ZEROED,
            correlation_interval(rho, agreement.n), agreement.n, "heads", result.run, f"Spearman, p {agreement.p:.2g}",
        )
        for result in evidence.of(Part.IMPORTANCE)
        for agreement, rho in readings.agreements(result.rows)
    ]  # fmt: skip


# ---------------------------------------------------------------- probes and subnetworks


LINEAR = "linear"


def _scored(result: StepResult, exhibit: ExhibitId, subject: str, score: Valued, of: str, note: str = "") -> Measured:
    return Measured(exhibit, result.task, Item(Quantity.SCORE, subject), Condition.NONE, score.estimate,
                    score.n, of, result.run, note)  # fmt: skip


def probes(evidence: Evidence) -> list[Measured]:
    """Collect the results of probing: syntax trees from attention, properties of words by layer, and best layers."""
    values = []
    for result in evidence.of(Part.SYNTAX):
        note = "" if result.step.options.treebank else "trees parsed by machine"
        parsers = [(f"UAS, {score.name}", score) for score in ParsedScore.defined(result.rows)]
        heads = [(f"undirected UAS, best head {score.name}", score) for score in BestHeadTree.defined(result.rows)]
        for name, score in [*parsers, *heads]:
            values.append(_scored(result, ExhibitId.PROBES, name, score, "words", note))
    for result in evidence.of(Part.PROBE):
        layers = [layer for layer in ProbedLayer.defined(result.rows) if layer.probe == LINEAR]
        last = max((layer.layer for layer in layers), default=0)
        for layer in (layer for layer in layers if layer.layer in (0, last)):
            layer_name = "embeddings" if layer.layer == 0 else "last layer"
            note = f"control task {layer.control:.3f}"
            values.append(_scored(result, ExhibitId.PROBES, f"{layer.property}, {layer_name}", layer, "words", note))
    for result in evidence.of(Part.TRANSFER):
        for best in BestLayer.defined(result.rows):
            subject = f"{best.reading}: layer {best.layer} of {best.layers} less the last"
            values.append(_scored(result, ExhibitId.PROBES, subject, best, "dev rows", best.note or ""))
    return values


def subnetworks(evidence: Evidence) -> list[Measured]:
    """Collect the scores at each fraction of pruned weights, and the scores of retrained subnetworks."""
    values = []
    for result in evidence.of(Part.SUBNETWORKS):
        for score in (network for network in Subnetwork.defined(result.rows) if network.kind != "baseline"):
            name = f"{score.name} subnetwork" if score.kind == "subnetwork" else score.name
            name = name.replace("full subnetwork", "full model")
            values.append(_scored(result, ExhibitId.SUBNETWORKS, name, score, "dev rows", score.metric or ""))
    return values


# ---------------------------------------------------------------- a picture of every head


def head_maps(evidence: Evidence) -> list[HeadRecord]:
    """Collect one value per head for heatmaps like Figs. 3, 5 and 8 in Kovaleva et al."""
    records: list[HeadRecord] = []
    for result in evidence.of(Part.FRAMES):
        records += _map(result, ExhibitId.FRAMES, readings.frames(result.rows).heads, "mean largest weight")
    for result in evidence.of(Part.CHANGE):
        records += _map(result, ExhibitId.CHANGE, picked(result.scores, kind="head", statistic="cosine"), "cosine")
    for result in evidence.of(Part.HEADS):
        sweep = readings.sweep(result.rows)
        changes = [_change_score(variant, sweep.change_of(variant)) for variant in sweep.variants]
        records += _map(result, ExhibitId.HEADS, changes, f"change of {sweep.metric}")
    return records


def _change_score(variant: AblatedTarget, change: Estimate | None) -> Score:
    about = Score(layer=variant.layer, head=variant.head, n=variant.n)
    return replace(about, value=change.value, low=change.low, high=change.high) if change else about


def _map(result: StepResult, exhibit: ExhibitId, scores: Sequence[Score], label: str) -> list[HeadRecord]:
    return [
        HeadRecord(
            exhibit, result.step.checkpoint, result.task, label, result.run,
            score.layer or 0, score.head or 0, score.value, score.low, score.high, score.n,
        )
        for score in scores
    ]  # fmt: skip
