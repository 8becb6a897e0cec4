"""Headlines of what probes, layers, roles and pruned weights say; a part of `core.report.headlines`."""

from collections.abc import Callable, Sequence

from core.report.readings import picked
from core.report.sentences import Headline, defined, percent
from core.store.rows import Row
from core.studies.ablation.pruning_records import Subnetwork
from core.studies.ablation.translation_records import UntouchedTranslation, ZeroedHead
from core.studies.attention.records import AlikeHead, LayerSimilarity, RoleScore, Score
from core.studies.probing.records import ParsedScore, ProbedLayer
from core.studies.tuning.records import BestLayer, Transferred


def _syntax(rows: Sequence[Row]) -> Headline:
    scores = ParsedScore.defined(rows)
    probe = max(picked(scores, kind="probe"), key=lambda score: defined(score.value))
    simple = max(picked(scores, kind="baseline"), key=lambda score: defined(score.value))
    return Headline(
        f"The probe {probe.name} gives {defined(probe.value):.0%} of words their governor, {simple.name} "
        f"{defined(simple.value):.0%}.",
        probe.n, "words", percent(probe.low, probe.high, "{:.0f}"),
        f"{simple.name} {100 * defined(simple.value):.0f} %",
    )  # fmt: skip


def _probe(rows: Sequence[Row]) -> Headline:
    layers = [layer for layer in ProbedLayer.defined(rows) if layer.selectivity is not None]
    best = max(layers, key=lambda layer: defined(layer.selectivity))
    return Headline(
        f"Of {len(layers)} properties and layers, {best.property} in layer {best.layer} is furthest above its control "
        f"task: accuracy {best.value:.2f} against {best.control:.2f}.",
        best.n, "words", percent(best.low, best.high, "{:.2f}", 1), f"control task {best.control:.2f}",
    )  # fmt: skip


def _representation(rows: Sequence[Row]) -> Headline:
    pairs = picked(LayerSimilarity.among(rows), similarity="random pairs")
    first, last = pairs[0], pairs[-1]
    return Headline(
        f"Words of different inputs have a mean cosine of {first.value:.2f} in the embeddings and {last.value:.2f} in "
        f"layer {last.layer}.",
        last.n, "inputs", percent(last.low, last.high, "{:.2f}", 1), "0: no shared direction",
    )  # fmt: skip


def _transfer(rows: Sequence[Row]) -> Headline:
    best = max(BestLayer.defined(rows), key=lambda layer: layer.n)
    floor = picked(Transferred.defined(rows), kind="baseline")[0]
    return Headline(
        f"{best.reading.capitalize()}: layer {best.layer} is best on half of the rows; on the other half it scores "
        f"{100 * defined(best.value):+.1f} points more than the last layer.",
        best.n, "dev rows", percent(best.low, best.high), f"constant label {100 * defined(floor.value):.1f}",
    )  # fmt: skip


def _subnetworks(rows: Sequence[Row]) -> Headline:
    networks = Subnetwork.defined(rows)
    less = next(network for network in networks if network.kind == "difference" and network.name == "good less bad")
    full = next(network for network in networks if network.name == "full")
    return Headline(
        f"Retrained, what is kept scores {100 * defined(less.value):+.1f} points more than what went.",
        less.n, "dev rows", percent(less.low, less.high), f"nothing removed {100 * defined(full.value):.1f}",
    )  # fmt: skip


def _roles(rows: Sequence[Row]) -> Headline:
    scores = [score for score in RoleScore.of_heads(rows) if score.has and score.statistic == score.role]
    counts = {role: sum(score.role == role for score in scores) for role in dict.fromkeys(s.role for s in scores)}
    heads, n = len({score.name for score in scores}), max(int(score.n or 0) for score in RoleScore.of_heads(rows))
    said = ", ".join(f"{count} {role}" for role, count in counts.items())
    return Headline(
        f"{heads} {'head has' if heads == 1 else 'heads have'} a role" + (f": {said}." if said else "."), n, "inputs"
    )


def _norms(rows: Sequence[Row]) -> Headline:
    first = [score for score in Score.of_heads(rows) if score.feature is None]
    most = max(picked(first, statistic=first[0].statistic), key=lambda score: defined(score.value))
    return Headline(
        f"By norms {most.name} has the largest {most.statistic}: {most.value:.2f}.", most.n, "inputs",
        percent(most.low, most.high, "{:.2f}", 1),
    )  # fmt: skip


def _redundancy(rows: Sequence[Row]) -> Headline:
    heads = AlikeHead.among(rows)
    near = min(heads, key=lambda head: head.value)
    return Headline(
        f"{near.name} and {near.other} are most alike (distance {near.value:.3f}), of {len(heads)} heads in "
        f"{len({head.group for head in heads})} groups.", near.n, "inputs",
    )  # fmt: skip


def _translation(rows: Sequence[Row]) -> Headline:
    untouched, zeroed = UntouchedTranslation.among(rows)[0], ZeroedHead.among(rows)
    worst = min(zeroed, key=lambda head: head.value)
    return Headline(
        f"Without {worst.name} of the {worst.part} heads exact translations change most, by {100 * worst.value:+.1f} "
        "points.", worst.n, "rows", percent(worst.low, worst.high), f"untouched {100 * untouched.exact:.1f}",
    )  # fmt: skip


PROBE_HEADLINES: dict[str, Callable[[Sequence[Row]], Headline]] = {
    "syntax": _syntax,
    "probe": _probe,
    "representation": _representation,
    "transfer": _transfer,
    "subnetworks": _subnetworks,
    "roles": _roles,
    "norms": _norms,
    "redundancy": _redundancy,
    "translation": _translation,
}
