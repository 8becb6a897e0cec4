"""Outputs that replace those of ablated heads for the methods mean, resample and constant, from training examples."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import pydantic.dataclasses

from ... import capture
from ...errors import InputError, check_choice
from ...tasks.glue import TaskRow, read_rows
from ..options import DrawnRows, MeanBy, Reference
from .setup import ExampleOptions, Opened

if TYPE_CHECKING:
    from torch import Tensor

    from ...attention import Head
    from ...capture.constants import Fitted
    from ...capture.interventions import StandInSource

ROWS: int = 200  # reference rows
FITTED_ROWS = 64  # those that fit constants
DRAWS: int = 3  # rows drawn for each input
STEPS = 20  # of the constants' descent
MEANS = {"class": "class of position", "position": "absolute position", "all": "all positions together"}


@pydantic.dataclasses.dataclass(frozen=True)
class ReferenceOptions(ExampleOptions):
    """Options of the ablation methods mean, resample and constant, which replace the output of a head by another."""

    reference: Reference = ROWS
    draws: DrawnRows = DRAWS
    mean_by: MeanBy = "class"


def check(operator: str, options: ReferenceOptions) -> None:
    """Raise InputError if the settings for replacing the outputs of heads do not fit the ablation method."""
    if operator in ("mean", "resample", "constant") and options.reference < 2:
        raise InputError(
            f'The ablation method "{operator}" needs at least two reference examples; got '
            f"{max(0, options.reference)}. Use more reference examples."
        )
    if operator == "mean":
        check_choice("The grouping for mean ablation", options.mean_by, MEANS)
    if operator == "resample" and options.draws < 1:
        raise InputError(
            f"Resample ablation must draw at least one example for each input; got {options.draws}. Raise the "
            "number of draws."
        )


def sources(operator: str, opened: Opened, options: ReferenceOptions) -> "list[StandInSource | None]":
    """Create the replacements for head outputs, one per random draw; [None] if the ablation method needs none."""
    check(operator, options)
    if operator not in capture.interventions.FROM_REFERENCE:
        return [None]
    if operator == "constant":
        return [constants(opened, options).source]
    encodings = opened.encoded(reference_rows(opened, options))
    if operator == "mean":
        return [capture.outputs.mean_outputs(opened.checkpoint, encodings, by=options.mean_by)]
    return [
        capture.outputs.Donors(opened.checkpoint, tuple(encodings), options.seed, draw) for draw in range(options.draws)
    ]


def reference_rows(opened: Opened, options: ReferenceOptions, most: int | None = None) -> list[TaskRow]:
    """Sample the training examples from which replacement outputs are computed."""
    limit = options.reference if most is None else min(most, options.reference)
    return read_rows(opened.task, "train", folder=options.data, limit=limit, seed=options.seed)


def constants(opened: Opened, options: ReferenceOptions) -> "Fitted":
    """Return a constant output for every head, chosen to minimise the loss. The constants are cached in the worker."""
    about = opened.checkpoint
    key = (about.name, about.weights_hash, opened.task.key, options.data, options.seed, options.reference)
    if key not in _FITTED:
        _FITTED.clear()  # a worker meets one job at a time
        _FITTED[key] = fit(opened, reference_rows(opened, options, FITTED_ROWS))
    return _FITTED[key]


def fit(opened: Opened, rows: list[TaskRow], heads: "Collection[Head] | None" = None) -> "Fitted":
    """Fit the constant outputs that minimise the loss when they replace the outputs of heads."""
    return capture.constants.optimal_constants(
        opened.checkpoint, opened.encoded(rows), opened.outputs(rows), steps=STEPS, heads=heads
    )


_FITTED: dict[tuple[Any, ...], "Fitted"] = {}


def expected(logits: "Sequence[Tensor]", *, is_score: bool) -> "Tensor":
    """Average model outputs over draws: the log of the mean probabilities of classes, or the mean of scores."""
    import torch  # 1.3 s of start-up

    if len(logits) == 1:
        return logits[0]
    stacked = torch.stack(list(logits))
    return stacked.mean(0) if is_score else torch.softmax(stacked, -1).mean(0).log()
