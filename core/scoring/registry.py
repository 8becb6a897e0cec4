"""Every score that a head can have, one record each: what it is called, its formula, what it needs, its range, source.

The maps page, the statistics, the tables, the store and the report read these records. A score of one input's maps is
added by a function of a MapBatch, a record here that names it (`of`), and a test of it by hand; the statistics study
then measures it, and the atlas, the head's page and its gallery show it. Nothing here needs torch.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from core.attention import AttentionMaps
from core.scoring import heads
from core.scoring.heads import MapBatch, SpecialPositions, SumBatch

Need = Literal["weights", "values", "tokens", "tags", "links", "labels", "gradients", "classifier", "tuned"]
CLARK, KOVALEVA = "Clark et al. 2019", "Kovaleva et al. 2019"
KOBAYASHI, MICHEL, OLSSON = "Kobayashi et al. 2020", "Michel et al. 2019", "Olsson et al. 2022"
OPERATORS = ("disable", "zero", "previous", "current", "next", "first", "mean", "resample", "constant")


@dataclass(frozen=True)
class HeadScore:
    """One score of a head.

    Attributes:
        study, name: which study measures it, and what that study calls it (its statistic).
        label: as pages show it.
        formula: one line.
        needs: what it is computed from.
        low, high: its range; None where it has no bound.
        source: the paper.
        causal: whether decoders have it.
        about: what a row's `feature` names, where one score comes in several.
        of: the score of every head on some inputs' maps, *Shape:* (batch, head), for those that need nothing else.
        of_sums: the same without the maps; a score that has none keeps the maps of long inputs whole.
    """

    study: str
    name: str
    label: str
    formula: str
    needs: tuple[Need, ...]
    low: float | None
    high: float | None
    source: str
    causal: bool = True
    about: str = ""
    of: Callable[[MapBatch], Any] | None = None
    of_sums: Callable[[SumBatch], Any] | None = None

    @property
    def key(self) -> str:
        """What the atlas calls it: study/name; a feature follows after another slash."""
        return f"{self.study}/{self.name}"


def _of_maps(
    name: str, label: str, formula: str, of: Callable[[MapBatch], Any], high: float | None = 1.0, **fields: Any
) -> HeadScore:
    """A score of maps alone."""
    return HeadScore("statistics", name, label, formula, ("weights",), 0.0, high, CLARK, of=of, **fields)


def _offset(offset: int) -> Callable[[MapBatch], Any]:
    return lambda maps: heads.to_offset(maps.weights, offset, causal=maps.causal)


def _offset_of_sums(offset: int) -> Callable[[SumBatch], Any]:
    return lambda sums: sums.to_offset(offset)


def _mean_entropy(maps: MapBatch | SumBatch) -> Any:
    return heads.mean_of_rows(maps.row_entropies, causal=maps.causal)


def _normalised_entropy(maps: MapBatch | SumBatch) -> Any:
    return heads.normalised_mean(maps.row_entropies, causal=maps.causal)


MAP_SCORES = (
    _of_maps("entropy", "entropy, nats",
             "mean over queries of -sum p ln p, in nats (decoders: without the first query, which sees itself alone)",
             _mean_entropy, None, of_sums=_mean_entropy),
    _of_maps("normalised entropy", "entropy", "entropy over ln of the number of keys that the query sees, 0 to 1",
             _normalised_entropy, of_sums=_normalised_entropy),
    _of_maps("classifying entropy", "entropy of the classifying token",
             "entropy of the classifying token's row, in nats", heads.classifying_entropy, None,
             of_sums=heads.classifying_entropy),
    _of_maps("previous", "to previous", "mean weight on the token before the query", _offset(-1),
             of_sums=_offset_of_sums(-1)),
    _of_maps("current", "to itself",
             "mean weight on the query's own token (decoders: without the first query)", _offset(0),
             of_sums=_offset_of_sums(0)),
    _of_maps("next", "to next", "mean weight on the token after the query (not in causal models)", _offset(1),
             causal=False, of_sums=_offset_of_sums(1)),
    _of_maps("first", "to first", "mean weight on the first position ([CLS], or the start token)",
             lambda maps: heads.to_own_keys(maps.weights, [(positions.first,) for positions in maps.places],
                                            causal=maps.causal), of_sums=lambda sums: sums.to_set(0)),
    _of_maps("separator", "to separator", "mean weight on all separators together",
             lambda maps: heads.to_own_keys(maps.weights, [positions.separators for positions in maps.places],
                                            causal=maps.causal), of_sums=lambda sums: sums.to_set(1)),
    _of_maps("distance", "distance",
             "mean of |query - key| weighted by attention, in tokens (decoders: without the first query)",
             lambda maps: heads.mean_distance(maps.weights, causal=maps.causal), None,
             of_sums=lambda sums: sums.mean_distance),
)  # fmt: skip


def _feature(name: str, formula: str, source: str = KOVALEVA) -> HeadScore:
    needs: tuple[Need, ...] = ("weights", "tags")
    return HeadScore("features", name, f"to feature ({name})", formula, needs, 0.0, 1.0, source, about="feature")


FEATURE_SCORES = (
    _feature("max", "mean over queries, the largest of the feature's tokens (Kovaleva et al.)"),
    _feature("sum", "mean over queries, all of the feature's tokens together (Clark et al.)", CLARK),
    _feature("max-visible", "mean over the queries that see the token, the largest of the feature's tokens"),
    _feature("classifying", "from the classifying token, the largest of the feature's tokens (Kovaleva et al., Fig 7)"),
)


def _links(study: str, name: str, label: str, formula: str, source: str) -> HeadScore:
    return HeadScore(study, name, label, formula, ("weights", "links"), 0.0, 1.0, source, about="relation")


_LINKS = (
    _links("relations", "forward", "along relation", "mean over links of the weight from dependent to governor",
           KOVALEVA),
    _links("relations", "backward", "against relation", "mean over links of the weight from governor to dependent",
           KOVALEVA),
    _links("frame-heads", "frames", "frame score", "mean over sentences of the largest weight between the pieces of a "
           "frame element and of its target", KOVALEVA),
)  # fmt: skip
_ALIKE = HeadScore(
    "statistics", "place", "distance to other heads", "mean Jensen-Shannon distance to all other heads' rows, in nats",
    ("weights",), 0.0, 0.6931471805599453, CLARK,
)  # fmt: skip


def _changed(name: str, label: str, formula: str, high: float, **fields: Any) -> HeadScore:
    needs: tuple[Need, ...] = ("weights", "tuned")
    return HeadScore("change", name, label, formula, needs, 0.0, high, KOVALEVA, about="task", **fields)


_CHANGES = (
    _changed("cosine", "cosine before and after fine-tuning", "cosine of its map before and after fine-tuning", 1.0),
    _changed("divergence", "change with fine-tuning", "mean over queries of the Jensen-Shannon divergence, in nats",
             0.6931471805599453),
    _changed("cosine_without_first", "cosine before and after, no sink", "the cosine without the first token", 1.0),
    _changed("divergence_without_first", "change with fine-tuning, no sink", "the divergence without the first token",
             0.6931471805599453),
)  # fmt: skip


def _effect(study: str, name: str, label: str, formula: str) -> HeadScore:
    source = MICHEL if "zero" in name else KOVALEVA
    return HeadScore(study, name, label, formula, ("classifier", "labels"), None, None, source, about="task")


_EFFECTS = tuple(
    _effect(study, name.format(operator), label.format(operator), formula.format(operator))
    for operator in OPERATORS
    for study, name, label, formula in (
        ("disable", "{} heads", "effect on the metric: {}", "change of the metric when the head is changed: {}"),
        ("disable", "{} all-but-one", "alone in its layer: {}", "change of the metric, the layer's others changed: {}"),
        ("operators", "{} loss change", "effect on the loss: {}", "mean change of the task's loss: {}"),
        ("race", "race {} heads", "raced effect on the loss: {}", "mean change of the task's loss, raced: {}"),
        ("race", "race {} all-but-one", "raced, alone in its layer: {}", "likewise, the layer's others changed: {}"),
    )
)
_WEIGHED = (
    HeadScore("importance", "importance", "importance", "E |dL / d xi|, l2-normalised in its layer unless raw",
              ("gradients", "labels"), 0.0, None, MICHEL, about="task"),
    HeadScore("patch", "patch recovered", "brought back by patching", "share of the logit difference that comes back",
              ("classifier",), None, None, "Zhang and Nanda 2024", about="task"),
)  # fmt: skip
_CLASSES = (
    HeadScore("classify-maps", "class", "confidence of its class", "share of its maps in its most frequent class",
              ("weights", "classifier"), 0.0, 1.0, KOVALEVA, about="class"),
    HeadScore("classify-maps", "class share", "maps of class", "share of the head's maps that are of the class",
              ("weights", "classifier"), 0.0, 1.0, KOVALEVA, about="class"),
)  # fmt: skip


def _role(
    name: str, label: str, formula: str, source: str, needs: tuple[Need, ...] = ("weights", "tokens"), **fields: Any
) -> list[HeadScore]:
    role_score = HeadScore("roles", name, f"role: {label}", formula, needs, 0.0, 1.0, source, **fields)
    without_sink = HeadScore("roles", f"{name} without sink", f"role: {label}, no sink",
                     f"{formula}; the first token taken out, rows scaled to sum to 1", needs, 0.0, 1.0, source,
                     **fields)  # fmt: skip
    return [role_score, without_sink]


ROLE_SCORES = (
    *_role("previous", "previous token", "mean weight on the token before", CLARK),
    *_role("next", "next token", "mean weight on the token after", CLARK, causal=False),
    *_role("first", "first token (sink)", "mean weight on the first token", CLARK)[:1],
    *_role("separator", "separator", "mean weight on all separators together", CLARK),
    *_role("duplicate", "duplicate token", "on random tokens that come twice: from the second to the first", OLSSON),
    *_role("prefix", "induction", "on random tokens that come twice: from the second to the one after the first",
           OLSSON),
    *_role("rare", "rare word", "share of queries whose largest weight is on the least frequent word",
           "Voita et al. 2019"),
    *_role("dependency", "dependency", "mean weight from a word to its governor or dependents", "Voita et al. 2019",
           ("weights", "tags", "links")),
    HeadScore("roles", "copying", "OV copying", "sum of the eigenvalues of W_E W_V W_O W_U over the sum of their sizes",
              ("values",), -1.0, 1.0, "Elhage et al. 2021"),
)  # fmt: skip
_NORMS = (
    *(HeadScore("norms", score.name, f"{score.label}, norms", f"{score.formula}; of |alpha f(x)|, each row over its "
                "sum", ("values",), score.low, score.high, KOBAYASHI, score.causal) for score in MAP_SCORES),
    *(HeadScore("norms", score.name, f"{score.label}, norms", f"{score.formula}; of |alpha f(x)|, each row over its "
                "sum", ("values", "tags"), 0.0, 1.0, KOBAYASHI, about="feature") for score in FEATURE_SCORES),
    HeadScore("norms", "vector norm", "length of f(x)", "mean |f(x)| over tokens of a type, over the mean of all",
              ("values", "tokens"), 0.0, None, KOBAYASHI, about="token type"),
)  # fmt: skip
_EFFECTIVE = tuple(
    HeadScore("effective", name, label, formula, ("values",), low, 1.0, "Brunner et al. 2020", about=about)
    for name, label, formula, low, about in (
        ("raw", "raw attention", "mean weight on tokens of a type", 0.0, "token type"),
        ("effective", "effective attention", "mean effective weight on tokens of a type", None, "token type"),
        ("correlation", "raw and effective", "Pearson r of raw and effective attention", -1.0, ""),
    )
)
_REDUNDANCY = (
    HeadScore("redundancy", "group", "group by mean pattern", "number of its group by mean pattern, the largest first",
              ("weights",), 1.0, None, "Bian et al. 2021"),
    HeadScore("redundancy", "clear", "how clearly of its group", "silhouette: nearer its own group than the next",
              ("weights",), -1.0, 1.0, "Bian et al. 2021"),
    HeadScore("redundancy", "nearest", "distance to the nearest head", "Jensen-Shannon distance to the most alike head",
              ("weights",), 0.0, 0.6931471805599453, "Bian et al. 2021"),
)  # fmt: skip
_WHY = (
    HeadScore("why", "score share", "score share", "share of the scores' variance over keys that a contribution of "
              "this sort has, mean of the query's and the key's side", ("values",), None, None, "Elhage et al. 2021",
              about="contribution"),
    HeadScore("why", "composition", "reads an earlier head", "share of the scores' variance over keys that the output "
              "of an earlier head has, on the side of the query or of the key", ("values",), None, None,
              "Elhage et al. 2021", about="contribution"),
)  # fmt: skip
SCORES: Mapping[str, HeadScore] = MappingProxyType({
    score.key: score
    for score in (*MAP_SCORES, _ALIKE, *FEATURE_SCORES, *_LINKS, *ROLE_SCORES, *_NORMS, *_CHANGES, *_EFFECTS, *_WEIGHED,
                  *_CLASSES, *_EFFECTIVE, *_REDUNDANCY, *_WHY)
})  # fmt: skip
ON_MAPS = ("previous", "next", "first", "separator", "normalised entropy")  # that the maps page sorts by
HEAD_SCORES = {score.name: score for score in MAP_SCORES if score.name in ON_MAPS}


def label_of(key: str) -> str:
    """How pages show a score by its key, "study/name" or "study/name/feature"."""
    study, name, feature = (*key.split("/", 2), "", "")[:3]
    record = SCORES.get(f"{study}/{name}")
    label = record.label if record else f"{name} ({study})"
    return f"{label} · {feature}" if feature else label


def head_scores(
    weights: Float[Any, "*heads query key"], *, first: int | None, separators: Sequence[int], causal: bool
) -> dict[str, Float[Any, "*heads"]]:
    """All scores of HEAD_SCORES on one input, by name.

    Args:
        weights: the input's maps, numpy or torch, rows sum to 1.
        first: position of [CLS] or the start token, as in Encoding; None: 0.
        separators: positions of the separators, as in Encoding.
        causal: whether queries see only keys up to their own.

    Returns:
        *Range:* 0 to 1; NaN where a score is not defined on the input.
    """
    places = [SpecialPositions(first or 0, tuple(separators), first or 0)]
    maps = MapBatch(weights, places, causal)
    return {name: score.of(maps) for name, score in HEAD_SCORES.items() if score.of}


def map_scores(
    maps: AttentionMaps, *, first: int | None, separators: Sequence[int]
) -> dict[str, Float[np.ndarray, "layer head"]]:
    """All scores of HEAD_SCORES of captured maps, by name.

    An entropy is over the keys that the row's layer sees, a sink among them.

    Args:
        maps: of one input.
        first: position among the keys of [CLS] or the start token; None: 0.
        separators: positions of the separators among the keys.

    Returns:
        *Range:* 0 to 1; NaN where a score is not defined. Cross attention has no token before or after its query: NaN.
    """
    scores = head_scores(maps.weights, first=first, separators=separators, causal=maps.causal)
    if maps.windows or maps.sink:
        visible = np.stack([maps.visible(layer).sum(-1) for layer in range(maps.layers)])[:, None]
        rows = heads.row_entropies(maps.weights)
        scores["normalised entropy"] = heads.normalised_mean(rows, causal=maps.causal, visible_keys=visible)
    if maps.part == "cross":
        nowhere = np.full(maps.weights.shape[:2], np.nan)
        scores |= {"previous": nowhere, "next": nowhere}
        scores["normalised entropy"] = heads.row_entropies(maps.weights).mean(-1) / np.log(max(len(maps.keys), 2))
    return scores


def even_scores(
    maps: AttentionMaps, *, first: int | None, separators: Sequence[int]
) -> dict[str, Float[np.ndarray, " layer"]]:
    """The scores of HEAD_SCORES if every query looked evenly at all it sees, by name.

    Args:
        maps: whose queries, keys and layers' windows are taken; their weights are not.
        first: position among the keys of [CLS] or the start token; None: 0.
        separators: positions of the separators among the keys.

    Returns:
        One number where all layers see the same, else one a layer.
    """
    layers = range(maps.layers if maps.windows else 1)
    visible = np.stack([maps.visible(layer) for layer in layers])[:, None].astype(np.float32)
    evenly = replace(
        maps,
        weights=visible / visible.sum(-1, keepdims=True),
        windows=tuple(maps.windows[layer] for layer in layers) if maps.windows else (),
    )
    return {name: values[:, 0] for name, values in map_scores(evenly, first=first, separators=separators).items()}
