"""Gradient-based importance of every head, I_h = E|dL/dxi_h| (Michel et al. 2019), from one backward pass.

With the option `sweep`, every head is also ablated on the same examples, and both results are compared.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import pydantic.dataclasses
from pydantic import BeforeValidator

from ... import capture
from ...attention import Head
from ...errors import check_choice
from ...scoring import effects
from ...scoring.registry import HeadScore
from ...store.rows import Row
from ...tasks.glue import TaskRow, task_of
from ..contract import ExampleUnit, Flag, Unit
from ..headline import SIGNIFICANT, Fact, Headline, HeadScores, each, number
from ..merging import PerExample, Positions, Summed
from ..options import Split
from ..outcomes import metrics_of, outcomes
from ..records import Result
from . import setup
from .records import MICHEL, ImportantHead, RankCorrelation
from .setup import AblationOptions

READINGS = ("example", "token")
Reading = Annotated[
    str,
    Flag(
        "take the absolute value of the gradient per example (formula of Michel et al. 2019) or per token (their code)"
    ),
]
Normalize = Annotated[
    bool, Flag("divide the importance of each head by the L2 norm of importance in its layer", name="--normalize/--raw")
]


def _operator(value: Any) -> Any:
    return {True: "zero", False: None}[value] if isinstance(value, bool) else value


@pydantic.dataclasses.dataclass(frozen=True)
class ImportanceOptions(AblationOptions):
    """Options for gradient-based head importance."""

    split: Split = "train"
    reading: Reading = "example"
    normalize: Normalize = True
    sweep: Annotated[
        str | None,
        BeforeValidator(_operator),
        Flag(
            "also set every head to zero in turn, and compare its gradient importance with the measured effect",
            name="--sweep/--no-sweep",
            typed=bool,
        ),
    ] = "zero"


@dataclass(frozen=True)
class Weighed:
    """Loss gradients with respect to a scaling factor (xi) for each head's output, and predictions under ablation.

    Attributes:
        example, token: sums of |dL/dxi| over inputs, and over inputs and positions. *Shape:* (layer, head).
        inputs, tokens: numbers of terms of these sums.
        changed: predictions with each head ablated. *Shape:* (head, example).
        moved: mean absolute change of the logits. *Shape:* (head, example).
    """

    rows: Positions
    example: Summed[np.ndarray]
    token: Summed[np.ndarray]
    inputs: Summed[int]
    tokens: Summed[int]
    gold: PerExample
    plain: PerExample | None = None
    changed: PerExample | None = None
    moved: PerExample | None = None


class ImportanceStudy(setup.ExampleStudy[ImportanceOptions, Weighed]):
    """Compute the gradient-based importance of every head in one backward pass (Michel et al.)."""

    name, options, partial = "importance", ImportanceOptions, Weighed
    question = "Which heads does the loss depend on, by its gradient?"
    kinds = (ImportantHead, RankCorrelation)
    head_scores = (
        HeadScore("importance", "importance", "E |dL / d xi|, l2-normalised in its layer unless raw",
                  ("gradients", "labels"), 0.0, None, MICHEL, about="task"),
    )  # fmt: skip
    called = "Importance of heads"
    section = "effect"
    said_at = 8

    def units(self, options: ImportanceOptions) -> list[Unit]:
        check_choice("The unit over which importance is averaged", options.reading, READINGS)
        return super().units(options)

    def on_examples(
        self, options: ImportanceOptions, opened: setup.Opened, rows: Sequence[TaskRow], unit: ExampleUnit
    ) -> tuple[Weighed, str | None]:
        checkpoint = opened.checkpoint
        encodings = opened.encoded(rows)
        sums = capture.importance.gradients(checkpoint, encodings, opened.outputs(rows))
        sweep: dict[str, np.ndarray] = {}
        dtype = checkpoint.dtype
        if options.sweep:
            heads = capture.sweeping.every_head(checkpoint.layers, checkpoint.heads, checkpoint.attending)
            swept = capture.sweeping.sweep(
                checkpoint, encodings, heads, options.sweep, computing=capture.sweeping.Computing(dtype=options.dtype)
            )
            sweep = {
                "plain": opened.predicted(swept.plain),
                "changed": opened.predicted(swept.changed),
                "moved": (swept.changed - swept.plain).abs().mean(-1).numpy(),
            }
            dtype = dtype if swept.dtype == dtype else f"{dtype}, sweep in {swept.dtype}"
        gold = np.array([row.label for row in rows])
        weighed = Weighed(
            np.array(unit.positions), sums.example.numpy(), sums.token.numpy(), sums.inputs, sums.tokens,
            gold, **sweep,
        )  # fmt: skip
        return weighed, dtype

    def results(self, options: ImportanceOptions, merged: Weighed) -> list[Result]:
        import torch  # 1.3 s of start-up

        total = capture.importance.Gradients(
            torch.tensor(merged.example).double(), torch.tensor(merged.token).double(), merged.inputs, merged.tokens
        )
        scores = capture.importance.importance(total, reading=options.reading, normalize=options.normalize)  # type: ignore[arg-type]
        raw = capture.importance.importance(total, reading=options.reading, normalize=False)  # type: ignore[arg-type]
        seen = np.argwhere(~np.isnan(merged.example).all(1)[:, None].repeat(scores.shape[1], 1)).tolist()
        ranked = sorted(((layer, head) for layer, head in seen), key=lambda index: (-float(scores[index]), index))
        heads: list[Result] = [
            ImportantHead(
                name=str(Head(*index)), layer=index[0], head=index[1], rank=rank + 1, value=float(scores[index]),
                gradient=float(raw[index]), task=options.task, n=total.inputs, statistic="importance",
                feature=options.task,
            )
            for rank, index in enumerate(ranked)
        ]  # fmt: skip
        if merged.plain is None or merged.changed is None or merged.moved is None:  # without a sweep
            return heads
        task = task_of(options.task)
        lost = outcomes(task, merged.gold, merged.plain).mean() - outcomes(task, merged.gold, merged.changed).mean(1)
        measured = {f"loss of {metrics_of(task)[0]}": lost, "mean change of logits": merged.moved.mean(1)}
        if not task.is_score:
            measured |= {"predictions changed": effects.flips(merged.plain, merged.changed).astype(float)}
        by_place = np.array([float(scores[tuple(at)]) for at in seen])
        compared: list[Result] = []
        for name, values in measured.items():
            agreement = effects.rank_agreement(by_place, values)
            compared.append(RankCorrelation(
                name=name, operator=options.sweep, spearman=agreement.spearman, kendall=agreement.kendall,
                p=agreement.p, n=agreement.n,
            ))  # fmt: skip
        return heads + compared

    def facts(self, scores: HeadScores) -> list[Fact]:
        told = []
        for row in each(scores.own[scores.own["score"] == self.name]):
            every = scores.every.loc[scores.every["score"] == self.name, "value"].dropna()
            rank, importance = int((every > row["value"]).sum()) + 1, number(row)
            told.append(
                Fact(
                    self.name,
                    f"The gradient importance of this head is {importance} (rank {rank} among {len(every)} heads).",
                    row["source"],
                )
            )
        return told

    def headline(self, rows: Sequence[Row]) -> Headline:
        heads = ImportantHead.among(rows)
        first, last = max(heads, key=lambda head: head.gradient), min(heads, key=lambda head: head.gradient)
        agreements = "; ".join(
            f"{agreement.name} {agreement.spearman:.2f} "
            f"({'significant' if agreement.p is not None and agreement.p < SIGNIFICANT else 'not significant'})"
            for agreement in RankCorrelation.among(rows)
            if agreement.spearman is not None
        )
        return Headline(
            (
                f"By gradient importance, the loss depends most on head {first.name} ({first.gradient:.2g}) and least "
                f"on head {last.name} ({last.gradient:.2g})."
            ),
            first.n,
            "examples",
            "Gradient importance is an estimate without a confidence interval."
            + (
                f" Gradient importance has these rank correlations with the effect of zeroing each head: {agreements}."
                if agreements
                else ""
            ),
        )


STUDY = ImportanceStudy()
