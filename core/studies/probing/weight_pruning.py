"""Fine-tuning with parts of a model masked, before it or after, and the order in which heads and blocks may go."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ...attention import Head
from ...capture.component_masks import component_importance, every_component, masks_without
from ...capture.components import Component, LayerBlock, parse_components
from ...models.checkpoint import Checkpoint
from ...tasks.metrics import metrics
from ...tuning.masks import Scope, hold, magnitude_masks, zeroed
from ...tuning.recipe import Recipe
from ..patterns.map_classification import classified
from .trials import Bench, predicted, trial

ORDER_ROWS, CLASS_ROWS = 300, 40


@dataclass(frozen=True)
class Full:
    """The full model, fine-tuned.

    Attributes:
        predicted: labels of the dev rows as the task numbers them, or scores. *Shape:* (dev row,).
        names: of pattern classes, by number; empty without a pattern classifier.
        classes: of its maps of some dev rows. *Shape:* (input, layer, head), int.
    """

    predicted: np.ndarray
    names: tuple[str, ...]
    classes: np.ndarray


def before(on: Bench, recipe: Recipe, seed: int, key: str, share: float, scope: Scope) -> np.ndarray:
    """What a model says of the dev rows that was fine-tuned after a share of its weights went.

    Args:
        on: the task's rows, and the checkpoint that it starts from.
        key: as in `trial`.
        share: of the weights that go, those nearest to 0; 0 to 1.
        scope: "global" or "layer": of all layers together, or of each.

    Returns:
        Labels as the task numbers them, or scores. *Shape:* (dev row,).
    """
    return trial(on, recipe, seed, key, before=lambda model: hold(model, magnitude_masks(model, share, scope)))[1]


def after(on: Bench, recipe: Recipe, seed: int, key: str, points: Sequence[tuple[str, float]]) -> list[np.ndarray]:
    """What one fine-tuned model says of the dev rows without a share of its weights.

    Args:
        on: the task's rows, and the checkpoint that it starts from.
        key: as in `trial`.
        points: (scope, share) as in `before`.

    Returns:
        Predictions at each point. *Shape:* (dev row,) each.
    """
    model, _ = trial(on, recipe, seed, key)
    weights = {name: value.detach().clone() for name, value in model.named_parameters()}
    predictions = []
    for scope, share in points:
        zeroed(model, magnitude_masks(model, share, scope))  # type: ignore[arg-type]
        predictions.append(predicted(model, on))
        with torch.no_grad():
            for name, value in model.named_parameters():
                value.copy_(weights[name])
    return predictions


def ordered(
    on: Bench, recipe: Recipe, seed: int, key: str, kept_share: float, classifier: bytes | None
) -> tuple[Full, tuple[str, ...], tuple[str, ...]]:
    """The order in which the components of a model may go, least important first, weighed anew at every step.

    Args:
        on: the task's rows, and the checkpoint that the model is fine-tuned from.
        key: as in `trial`.
        kept_share: of the full model's score that must be left, 0 to 1.
        classifier: the file of a pattern classifier; None for none.

    Returns:
        The full model; all components as they go; those that are left when the next step would cost more than 1 -
        kept_share of the score, or the last two to go where no step does.
    """
    model, full = trial(on, recipe, seed, key)
    tuned = Checkpoint(on.base.name, model, on.base.tokenizer, weights_hash=key)
    weights = {name: value.detach().clone() for name, value in model.named_parameters()}
    least = kept_share * _score(on, full)
    rows = [(example.encoding, example.label) for example in on.train[:ORDER_ROWS]]
    gone: list[Component] = []
    kept: list[Component] | None = None
    while len(gone) < len(every_component(tuned)):
        step = _next(tuned, gone, rows)
        gone += step
        zeroed(model, masks_without(tuned, step))
        if kept is None and _score(on, predicted(model, on)) < least:
            back = set(gone[: -len(step)])
            kept = [component for component in every_component(tuned) if component not in back]
    with torch.no_grad():
        for name, value in model.named_parameters():
            value.copy_(weights[name])
    names, classes = _classes(tuned, on, classifier)
    stays = kept if kept is not None else _next_kept(gone)
    return (
        Full(full, names, classes),
        tuple(str(component) for component in gone),
        tuple(str(component) for component in stays),
    )


def _next_kept(gone: Sequence[Component]) -> list[Component]:
    """Where the score never fell: the last step's components, so that there is something to compare."""
    return list(gone[-2:])


def _next(tuned: Checkpoint, gone: Sequence[Component], rows: Sequence[tuple[Any, Any]]) -> list[Component]:
    """The least important tenth of the heads, and of the blocks, among those that are left."""
    scores = component_importance(tuned, [encoding for encoding, _ in rows], [label for _, label in rows])
    left = [component for component in every_component(tuned) if component not in set(gone)]
    step: list[Component] = []
    for kind, total in ((Head, tuned.layers * tuned.heads), (LayerBlock, tuned.layers)):
        own = sorted(
            (component for component in left if isinstance(component, kind)),
            key=lambda component: (scores[component], str(component)),
        )
        step += own[: max(1, round(total / 10))]
    return step


def _score(on: Bench, predictions: np.ndarray) -> float:
    value = metrics(on.task, on.gold, predictions)[on.task.metric]
    return -1.0 if value is None else float(value)


def _classes(tuned: Checkpoint, on: Bench, weights: bytes | None) -> tuple[tuple[str, ...], np.ndarray]:
    """Pattern classes of the full model's maps, by a pattern classifier."""
    if weights is None:
        return (), np.zeros((0, 0, 0), dtype=np.int16)
    encodings = [example.encoding for example in on.dev[:CLASS_ROWS]]
    patterns = classified(tuned, encodings, weights, dtype="float32")
    return patterns.names, patterns.classes


def retrained(on: Bench, recipe: Recipe, seed: int, key: str, components: Sequence[str]) -> tuple[np.ndarray, float]:
    """What a subnetwork says of the dev rows that was fine-tuned from the pre-trained weights.

    Args:
        on: the task's rows, and the checkpoint that it starts from.
        key: as in `trial`.
        components: names of the components that stay; all others are masked.

    Returns:
        Predictions, *Shape:* (dev row,), and the share of components gone.
    """
    stays = {component for name in components for component in parse_components(name)}

    def mask(model: Any) -> None:
        fresh = Checkpoint(on.base.name, model, on.base.tokenizer)
        gone = [component for component in every_component(fresh) if component not in stays]
        hold(model, masks_without(fresh, gone))

    every = len(every_component(on.base))
    return trial(on, recipe, seed, key, before=mask)[1], 1 - len(stays) / every
