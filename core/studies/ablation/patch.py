"""Patching over pairs: the task's rows and what a perturbation made of them; what does each component bring back?

A is the row, B the perturbed row. m is the logit of the label that A predicts less that of the label that B predicts
(its strongest rival where they agree); of a score, the score. Every component of B in turn takes its output from A at
the words both have. Recovered share, a ratio of means over pairs with its interval (of a pair with m(A) below m(B) both
differences change their sign), and p corrected over all components (core.scoring.recovered_share).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import pydantic.dataclasses

from ... import capture, studies
from ...errors import InputError
from ...scoring.recovered_share import FLOOR, recovered_share
from ...scoring.registry import HeadScore
from ...store.rows import Row
from ...tasks.glue import task_of
from ..contract import Done, Flag, Need, Study, Unit
from ..headline import SURE, Headline, percent, plural
from ..options import Limit
from ..provenance import provenance
from . import disabling
from .disabling import RowOptions, units_of
from .perturb import DEFAULT, made_of
from .records import Patched

WHAT = ("heads", "layers", "blocks", "feedforward", "layers-whole")


@pydantic.dataclasses.dataclass(frozen=True)
class PatchOptions(RowOptions):
    """What is patched, of which checkpoint, on pairs made how."""

    limit: Limit = 100
    kind: Annotated[str, Flag(f"how B is made of a row: {', '.join(DEFAULT)}")] = "drop"
    what: Annotated[str, Flag("heads, layers (all heads of one), blocks, feedforward or layers-whole")] = "heads"
    floor: Annotated[float, Flag("pairs whose logit differences differ less are left out and counted", least=0.0)] = (
        FLOOR
    )


@dataclass(frozen=True)
class PatchPartial:
    """m of some pairs: of A, of B, and of B under every variant; 0 where a pair could not be made.

    Attributes:
        rows: their places in the task. *Shape:* (row,), int.
        made: whether the pair could be made. *Shape:* (row,), bool.
        first: m of A. *Shape:* (row,).
        second: m of B. *Shape:* (row,).
        patched: m of B with the variant's outputs from A. *Shape:* (variant, row).
    """

    rows: np.ndarray
    layers: int
    heads: int
    made: np.ndarray
    first: np.ndarray
    second: np.ndarray
    patched: np.ndarray
    attending: tuple[int, ...] = ()


class PatchStudy(Study[PatchOptions, PatchPartial]):
    """Run perturbed rows with components' outputs taken from the rows as they were: what does each bring back?"""

    name, options, partial, arguments = "patch", PatchOptions, PatchPartial, disabling.Slice
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
    needs = frozenset({Need.CLASSIFIER, Need.LABELS})

    def units(self, options: PatchOptions) -> list[Unit]:
        """Slices of the task's rows; options that cannot be are refused here."""
        if options.what not in WHAT:
            raise InputError(f'What is patched is one of {", ".join(WHAT)}; "{options.what}" is none of them.')
        if options.kind not in DEFAULT:
            raise InputError(f'A pair is made by one of {", ".join(DEFAULT)}; "{options.kind}" is none of them.')
        return units_of(options)

    def run(self, options: PatchOptions, unit: Unit) -> Done[PatchPartial]:
        """m of these pairs."""
        opened, all_rows = disabling.opened(options), disabling.rows_of(options)
        checkpoint, rows = opened.checkpoint, [all_rows[k] for k in unit.arguments.rows]
        variants = disabling.variants_of(options.what, "", checkpoint.layers, checkpoint.heads, checkpoint.attending)
        texts = [
            made_of(options.kind, row, options.seed + row_number, checkpoint.tokenizer.mask_token)
            for row, row_number in zip(rows, unit.arguments.rows, strict=True)
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
            np.array(unit.arguments.rows), checkpoint.layers, checkpoint.heads,
            np.array([text is not None for text in texts]), first, second, patched,
            checkpoint.attending,
        )  # fmt: skip
        return Done(partial, provenance(checkpoint, [row.id for row in rows]))

    def merge(self, options: PatchOptions, partials: Sequence[PatchPartial]) -> PatchPartial:
        """All pairs, in the task's order."""
        order = np.argsort(np.concatenate([part.rows for part in partials]))
        names = ("rows", "made", "first", "second", "patched")
        whole = {
            name: np.concatenate([getattr(part, name) for part in partials], axis=-1)[..., order] for name in names
        }
        first = partials[0]
        return PatchPartial(layers=first.layers, heads=first.heads, attending=first.attending, **whole)

    def results(self, options: PatchOptions, merged: PatchPartial) -> list[Patched]:
        """A record per component: the share it brings back with its interval and corrected p."""
        made = merged.made.astype(bool)
        if not made.any():
            raise InputError(
                f'None of the {len(made)} rows could be changed by "{options.kind}": choose another kind of pair.'
            )
        shares = recovered_share(
            merged.first[made], merged.second[made], merged.patched[:, made], floor=options.floor, seed=options.seed
        )
        body, task = [], task_of(options.task).key
        variants = disabling.variants_of(options.what, "", merged.layers, merged.heads, merged.attending)
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
        sure = sum(component.p is not None and component.p < SURE for component in components)
        return Headline(
            f"Patched alone, {best.name} brings back most of the first answer ({best.recovered:.0%}); "
            f"{plural(sure, len(components), 'components')} are beyond luck.",
            best.n,
            "pairs",
            percent(best.low, best.high, "{:.0f}"),
            "0 %: nothing comes back",
        )

    def shown(self, rows: Sequence[Row]) -> list[list[Row] | str]:
        names = ("name", "recovered", "low", "high", "p", "n", "under_floor", "not_made")
        components = sorted(Patched.among(rows), key=lambda component: -component.recovered)
        return [[component.columns(*names) for component in components]]


def differences(first: object, second: object, patched: object) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """m of both inputs of pairs, and of B patched.

    The logit of the label that A predicts less that of the label that B predicts (its strongest rival on A where they
    agree); of a score, the score.

    Args:
        first: logits of A. *Shape:* (pair, choice).
        second: logits of B. *Shape:* (pair, choice).
        patched: logits of B under every variant. *Shape:* (variant, pair, choice).

    Returns:
        m of A and of B, *Shape:* (pair,), and of B patched, *Shape:* (variant, pair).
    """
    a, b, patched_logits = (np.asarray(logits, dtype=float) for logits in (first, second, patched))
    if a.shape[-1] == 1:
        return a[:, 0], b[:, 0], patched_logits[..., 0]
    pair = np.arange(len(a))
    best, rival = a.argmax(-1), b.argmax(-1)
    beaten = a.copy()
    beaten[pair, best] = -np.inf
    rival = np.where(rival == best, beaten.argmax(-1), rival)
    return tuple(logits[..., pair, best] - logits[..., pair, rival] for logits in (a, b, patched_logits))


STUDY = PatchStudy()
