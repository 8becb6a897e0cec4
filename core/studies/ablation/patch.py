"""Activation patching between examples and perturbed examples: which component restores the prediction?

A is the example and B the perturbed example. m is the logit of the label predicted for A minus that predicted for B
(the runner-up if both are equal), or the score. Each component of B takes its output from A at the words that both
share. The recovered logit difference is a ratio of means over pairs (`core.scoring.effects`). If m(A) is below
m(B), both differences change their sign. p is corrected over all components.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import pydantic.dataclasses

from ... import capture, studies
from ...errors import InputError, check_choice
from ...scoring.effects import FLOOR, recovered_share
from ...scoring.registry import HeadScore
from ...store.rows import Row
from ...tasks.glue import TaskRow, task_of
from ..contract import ExampleUnit, Flag, Unit
from ..headline import SIGNIFICANT, Headline, percent, plural
from ..merging import PerExample, Positions
from ..options import Limit
from . import setup
from .perturb import DEFAULT, made_of
from .records import Patched
from .setup import ExampleOptions

WHAT = ("heads", "layers", "blocks", "feedforward", "layers-whole")


@pydantic.dataclasses.dataclass(frozen=True)
class PatchOptions(ExampleOptions):
    """Options for activation patching: what is patched, in which checkpoint, and how pairs of inputs are created."""

    limit: Limit = 100
    kind: Annotated[
        str, Flag(f"how an example is changed to create the second input of a pair; one of {', '.join(DEFAULT)}")
    ] = "drop"
    what: Annotated[
        str,
        Flag(
            "components to patch: heads, layers (all heads of a layer), blocks (the attention sublayer of a layer), "
            "feedforward (the feed-forward sublayer) or layers-whole (both sublayers)"
        ),
    ] = "heads"
    floor: Annotated[
        float,
        Flag(
            "smallest change in the logit difference between the two inputs of a pair; pairs with a smaller change "
            "are excluded",
            least=0.0,
        ),
    ] = FLOOR


@dataclass(frozen=True)
class PatchPartial:
    """Logit differences for pairs of inputs A and B, with and without patching activations from A into B.

    Attributes:
        first, second: m of A and of B. *Shape:* (pair,).
        patched: m of B with the output of each component taken from A. *Shape:* (component, pair).
    """

    rows: Positions
    layers: int
    heads: int
    made: PerExample
    first: PerExample
    second: PerExample
    patched: PerExample
    attending: tuple[int, ...] = ()


class PatchStudy(setup.ExampleStudy[PatchOptions, PatchPartial]):
    """Copy activations from original into perturbed examples, and measure how far the logit difference recovers."""

    name, options, partial = "patch", PatchOptions, PatchPartial
    one_by_one = True
    kinds = (Patched,)
    short_in = ("table", "latex")
    head_scores = (
        HeadScore("patch recovered", "brought back by patching", "share of the logit difference that comes back",
                  ("classifier",), None, None, "Zhang and Nanda 2024", about="task"),
    )  # fmt: skip
    said_at = 15
    called = "Patched {what} of {checkpoint}, {kind}"
    question = "Which activations restore the prediction when they are patched?"
    section = "effect"

    def units(self, options: PatchOptions) -> list[Unit]:
        check_choice("What is patched", options.what, WHAT)
        check_choice("The perturbation that makes the second input", options.kind, DEFAULT)
        return super().units(options)

    def on_examples(
        self, options: PatchOptions, opened: setup.Opened, rows: Sequence[TaskRow], unit: ExampleUnit
    ) -> tuple[PatchPartial, str | None]:
        checkpoint = opened.checkpoint
        variants = setup.targets_of(options.what, "", checkpoint.layers, checkpoint.heads, checkpoint.attending)
        texts = [
            made_of(options.kind, row, options.seed + row_number, checkpoint.tokenizer.mask_token)
            for row, row_number in zip(rows, unit.positions, strict=True)
        ]
        made = [k for k, text in enumerate(texts) if text is not None]
        first, second, patched = np.zeros(len(rows)), np.zeros(len(rows)), np.zeros((len(variants), len(rows)))
        if made:
            pairs = studies.ablation.input_pairs.aligned(
                checkpoint, [(rows[k].text, rows[k].pair) for k in made], [text for text in texts if text is not None]
            )
            seen = capture.patching.patch(
                checkpoint, capture.patching.InputPairs(*pairs), [variant.components for variant in variants]
            )
            first[made], second[made], patched[:, made] = differences(seen.first, seen.second, seen.patched)
        partial = PatchPartial(
            np.array(unit.positions), checkpoint.layers, checkpoint.heads,
            np.array([text is not None for text in texts]), first, second, patched,
            checkpoint.attending,
        )  # fmt: skip
        return partial, None

    def results(self, options: PatchOptions, merged: PatchPartial) -> list[Patched]:
        made = merged.made.astype(bool)
        if not made.any():
            raise InputError(
                f'The perturbation "{options.kind}" must change at least one example; it changes none of the '
                f"{len(made)} examples. Choose another perturbation."
            )
        shares = recovered_share(
            merged.first[made], merged.second[made], merged.patched[:, made], floor=options.floor, seed=options.seed
        )
        body, task = [], task_of(options.task).key
        variants = setup.targets_of(options.what, "", merged.layers, merged.heads, merged.attending)
        for k, variant in enumerate(variants):
            low, high, p = (
                None if np.isnan(column[k]) else float(column[k]) for column in (shares.low, shares.high, shares.p)
            )
            recovered, is_head = float(shares.share[k]), options.what == "heads"
            body.append(Patched(
                **variant.facts(), what=options.what, made_by=options.kind, task=task, n=shares.n,
                under_floor=shares.left_out, not_made=int((~made).sum()), operator="patch", recovered=recovered,
                low=low, high=high, p=p,
                statistic="patch recovered" if is_head else None,
                feature=f"{options.task} {options.kind}" if is_head else None,
                value=recovered if is_head else None, baseline=0.0 if is_head else None,
            ))  # fmt: skip
        return body

    def headline(self, rows: Sequence[Row]) -> Headline:
        components = Patched.among(rows)
        best = max(components, key=lambda component: component.recovered)
        sure = sum(component.p is not None and component.p < SIGNIFICANT for component in components)
        effective = plural(sure, len(components), "components")
        return Headline(
            (
                f"Patching {best.name} alone recovers {best.recovered:.0%} of the logit difference, more than "
                f"patching any other component. After correction, {effective} have significant effects."
            ),
            best.n,
            "pairs",
            percent(best.low, best.high, "{:.0f}"),
            "Without patching, 0 % of the logit difference is recovered.",
        )

    def shown(self, rows: Sequence[Row]) -> list[list[Row] | str]:
        names = ("name", "recovered", "low", "high", "p", "n", "under_floor", "not_made")
        components = sorted(Patched.among(rows), key=lambda component: -component.recovered)
        return [[component.columns(*names) for component in components]]


def differences(first: object, second: object, patched: object) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compute the logit difference on A, on B, and on B with each component patched. The two classes are those
    predicted for A and for B. If these are the same, the two most likely classes for A are used."""
    a, b, patched_logits = (np.asarray(logits, dtype=float) for logits in (first, second, patched))
    if a.shape[-1] == 1:
        return a[:, 0], b[:, 0], patched_logits[..., 0]
    pair = np.arange(len(a))
    best, rival = a.argmax(-1), b.argmax(-1)
    rival = np.where(rival == best, setup.strongest_rival(a, best), rival)
    return tuple(logits[..., pair, best] - logits[..., pair, rival] for logits in (a, b, patched_logits))


STUDY = PatchStudy()
