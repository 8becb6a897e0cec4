"""Pattern shares: the fraction of each pattern class among the maps of a task (Fig 2), and the main class of each head.

Kovaleva et al. 2019, section 4.1 (up to 1,000 dev examples per task); the GPT-2 replication used 200. Maps are
classified as they are computed and are not stored.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pydantic.dataclasses

from ... import patterns, studies
from ...errors import InputError
from ...interval import finite
from ...reading import read_bytes
from ...scoring.registry import KOVALEVA, HeadScore
from ...store.rows import Row
from ...store.runs import Provenance
from ...tasks.glue import TaskRow, read_rows, task_of
from ..contract import ChunkUnit, Done, Study, Unit
from ..headline import Fact, Headline, HeadScores, each, percent
from ..merging import AllOf, MergedBy, PerExampleFirst, Summed
from ..options import Data, InputSplit, Limit, Seed, TaskName
from ..outcomes import share_interval
from ..records import picked
from .records import ClassNote, ClassRow, ClassShare, HeadClass, HeadClassShare, MovedShare

ROWS_A_UNIT = 50
SHARE = "class share/"  # prefix of these scores


@pydantic.dataclasses.dataclass(frozen=True)
class PatternSharesOptions:
    """Options for pattern shares: which attention maps are classified, and by which classifier.

    `classifier` is a file of weights and `name` the name of the classifier in the store. `confusions` on held-out maps
    [input, true, predicted] correct the shares.
    """

    checkpoints: tuple[str, ...] = ("atlas-encoder",)
    task: TaskName = "mrpc"
    split: InputSplit = "dev"
    data: Data = None
    limit: Limit = 1000
    seed: Seed = 0
    classifier: str = ""
    name: str = ""
    class_set: str = ""
    confusions: tuple[tuple[tuple[float, ...], ...], ...] = ()
    dtype: str = "bfloat16"


@dataclass(frozen=True)
class ClassifiedChunk:
    """The pattern class of every attention map for a chunk of inputs. The first axis of each array is over inputs.

    Attributes:
        classes: class numbers. *Shape:* (input, layer, head), int.
        unsure, outside: number of maps with an uncertain class, and outside the training distribution.
        cut, cropped: number of truncated tokens, and whether the maps were cropped.
        small: number of inputs that are too short to have a pattern.
    """

    checkpoint: str
    row_ids: AllOf[str]
    names: tuple[str, ...]
    classes: PerExampleFirst
    unsure: PerExampleFirst
    outside: PerExampleFirst
    cut: PerExampleFirst
    cropped: PerExampleFirst
    small: Summed[int] = 0


@dataclass(frozen=True)
class Counts:
    """The predicted pattern classes of the attention maps, separately for each checkpoint."""

    pieces: Annotated[tuple[ClassifiedChunk, ...], MergedBy("checkpoint")]


class PatternSharesStudy(Study[PatternSharesOptions, Counts]):
    """Measure how frequent each attention pattern is, also corrected for classifier errors (Kovaleva et al. Fig. 2)."""

    name, options, partial, arguments = "pattern-shares", PatternSharesOptions, Counts, ChunkUnit
    question = "Which attention patterns are most frequent?"
    typed_after = None
    looks_at_maps = True
    kinds = (ClassShare, HeadClass, HeadClassShare, ClassNote, MovedShare)
    head_scores = (
        HeadScore("class", "confidence of its class", "share of its maps in its most frequent class",
                  ("weights", "classifier"), 0.0, 1.0, KOVALEVA, about="class"),
        HeadScore("class share", "maps of class", "share of the head's maps that are of the class",
                  ("weights", "classifier"), 0.0, 1.0, KOVALEVA, about="class"),
    )  # fmt: skip
    called = "Class shares, {task}"
    section = "pattern class"
    said_at = 1
    counts = "inputs"

    def typed(self, options: PatternSharesOptions) -> list[str]:
        asked = {"task": options.task, "limit": options.limit, "split": options.split, "data": options.data,
                 "classifier": None if options.name.startswith("bundled-") else options.name,
                 "class-set": options.class_set, "seed": options.seed or None}  # fmt: skip
        given = [word for name, value in asked.items() if value for word in (f"--{name}", str(value))]
        return ["study", "shares", *options.checkpoints, *given]

    def units(self, options: PatternSharesOptions) -> list[Unit]:
        if not options.classifier:
            raise InputError(
                "Pattern shares need a trained classifier; got none. Train a classifier on the Classifier page."
            )
        count = len(_rows(options))
        return [
            Unit(
                f"{checkpoint} rows {start + 1}-{min(start + ROWS_A_UNIT, count)}",
                ChunkUnit(checkpoint, options.task, start, min(start + ROWS_A_UNIT, count)),
                min(ROWS_A_UNIT, count - start),
            )
            for checkpoint in options.checkpoints
            for start in range(0, count, ROWS_A_UNIT)
        ]

    def run(self, options: PatternSharesOptions, unit: Unit) -> Done[Counts]:
        of: ChunkUnit = unit.arguments
        checkpoint = studies.worker_cache.get_checkpoint(of.checkpoint)
        chunk = _rows(options)[of.start : of.stop]
        rows, encodings = studies.patterns.map_classification.large_enough(checkpoint, chunk)
        maps = studies.patterns.map_classification.classified(
            checkpoint, encodings, _bytes(options.classifier), dtype=options.dtype
        )
        cut = np.array([encoding.cut for encoding in encodings])
        cropped = np.array([maps.size is not None and len(encoding) > maps.size for encoding in encodings])
        row_ids = tuple(row.id for row in rows)
        provenance = Provenance(
            checkpoint=checkpoint.name,
            weights_hash=checkpoint.weights_hash,
            task=options.task,
            split=options.split,
            row_ids=row_ids,
            seed=options.seed,
            dtype=checkpoint.dtype,
        )
        return Done(
            Counts(
                (
                    ClassifiedChunk(
                        checkpoint.name,
                        row_ids,
                        maps.names,
                        maps.classes,
                        maps.unsure,
                        maps.outside,
                        cut,
                        cropped,
                        len(chunk) - len(rows),
                    ),
                )
            ),
            provenance,
        )

    def results(self, options: PatternSharesOptions, merged: Counts) -> list[ClassRow]:
        results: list[ClassRow] = []
        for piece in merged.pieces:
            if not len(piece.classes):
                raise studies.patterns.map_classification.all_too_small(piece.small, options.task)
            about, names, inputs = _about(options, piece), piece.names, len(piece.classes)
            counts = np.stack([(piece.classes == k).sum((1, 2)) for k in range(len(names))], axis=1)
            parts: dict[str, Any] = {"share": patterns.class_shares.shares(counts, names, seed=options.seed)}
            if len(options.confusions) and len(options.confusions[0]) == len(names):
                confusions = np.array(options.confusions, dtype=int)
                corrected = patterns.class_shares.corrected_shares(counts, confusions, names, seed=options.seed)
                parts["corrected"] = corrected
            results += [
                ClassShare(
                    **about,
                    part=part,
                    name=of.name,
                    share=of.share,
                    low=finite(of.low),
                    high=finite(of.high),
                    maps=of.count,
                    misfit=getattr(of, "misfit", None),
                )
                for part, shares in parts.items()
                for of in shares
            ]
            counts = np.stack([(piece.classes == k).sum(0) for k in range(len(names))])
            heads = np.argwhere(counts.any(0)).tolist()  # in layers that have attention
            results += [
                HeadClass(
                    **about,
                    layer=layer,
                    head=head,
                    name=names[int(counts[:, layer, head].argmax())],
                    share=float(counts[:, layer, head].max() / inputs),
                    counts={name: int(n) for name, n in zip(names, counts[:, layer, head], strict=True)},
                    statistic="class",
                    **_share_of(int(counts[:, layer, head].max()), inputs),
                )
                for layer, head in heads
            ]
            results += [
                HeadClassShare(
                    **about,
                    layer=layer,
                    head=head,
                    name=name,
                    feature=name,
                    **_share_of(int(counts[k, layer, head]), inputs),
                )
                for k, name in enumerate(names)
                for layer, head in heads
            ]
            maps = int(piece.classes.size)
            results.append(ClassNote(
                **about, maps=maps, unsure=int(piece.unsure.sum()) / maps, outside=int(piece.outside.sum()) / maps,
                cropped=int(piece.cropped.sum()), cut=int((piece.cut > 0).sum()), small=piece.small,
            ))  # fmt: skip
        if len(merged.pieces) != 2 or set(merged.pieces[0].row_ids) != set(merged.pieces[1].row_ids):
            return results
        first, second = merged.pieces  # the change of each share, paired by input
        order = [second.row_ids.index(row_id) for row_id in first.row_ids]
        before, after = (
            np.stack([np.bincount(numbers.ravel(), minlength=len(first.names)) for numbers in classes])
            for classes in (first.classes, second.classes[order])
        )
        moved = patterns.class_shares.moved_shares(before, after, list(first.names), seed=options.seed)
        about = _about(options, second)
        return results + [
            MovedShare(**about, before=first.checkpoint, name=change.name, share=change.change, low=change.low,
                       high=change.high, low_all=change.low_all, high_all=change.high_all)
            for change in moved
        ]  # fmt: skip

    def facts(self, scores: HeadScores) -> list[Fact]:
        best = scores.own[scores.own["score"].str.startswith(SHARE) & scores.own["value"].notna()]
        best = best.sort_values("value", ascending=False, kind="stable").head(1)
        return [
            Fact(
                "class",
                f"{row['value']:.0%} of {row['n']} maps of this head are classified as "
                f"{row['score'].removeprefix(SHARE)}.",
                row["source"],
            )
            for row in each(best)
        ]

    def headline(self, rows: Sequence[Row]) -> Headline:
        all_shares = ClassShare.among(rows)
        shares = picked(all_shares, part="corrected") or picked(all_shares, part="share")
        mine = picked(shares, checkpoint=shares[0].checkpoint)
        most = max(mine, key=lambda share: share.share)
        corrected = "The share is corrected for confusions between classes by the classifier."
        if most.part != "corrected":
            corrected = "The share is not corrected for confusions between classes by the classifier."
        interval = percent(most.low, most.high, "{:.0f}")
        strange = [
            note
            for note in ClassNote.among(rows)
            if note.outside is not None and patterns.classifier_registry.unfamiliar(note.unsure or 0.0, note.outside)
        ]
        warning = "".join(
            f" This result is uncertain, because {_why_unfamiliar(note, Path(str(note.checkpoint)).name)}."
            for note in strange[:1]
        )
        return Headline(
            f"{most.name.capitalize()} is the most frequent pattern on {task_of(most.task or '').name}: "
            f"{most.share:.0%} of the maps.{warning}",
            most.inputs,
            "inputs",
            f"{interval} %. {corrected}" if interval else corrected,
            f"Each class would have {1 / len(mine):.0%} of the maps if all {len(mine)} classes were equally frequent.",
        )


STUDY = PatternSharesStudy()


def _why_unfamiliar(note: ClassNote, name: str) -> str:
    if (note.outside or 0.0) > patterns.classifier_registry.WARNED_OUTSIDE:
        return f"{note.outside:.0%} of the maps of {name} are unlike the maps that the classifier was trained on"
    return f"the classifier is unsure about {note.unsure or 0.0:.0%} of the maps of {name}"


def _rows(options: PatternSharesOptions) -> list[TaskRow]:
    return read_rows(options.task, options.split, folder=options.data, limit=options.limit, seed=options.seed)


def _bytes(file: str) -> bytes:
    try:
        return read_bytes(file, given=True)
    except OSError as error:
        raise InputError(
            f"The classifier file {Path(file).name} must be readable; it cannot be read ({error.strerror or error}). "
            "Start the job again."
        ) from error


def _about(options: PatternSharesOptions, piece: ClassifiedChunk) -> Any:
    """Return the fields that say which checkpoint, task and classifier a row is about."""
    return {"checkpoint": piece.checkpoint, "task": options.task, "classifier": options.name,
            "class_set": options.class_set, "inputs": len(piece.classes)}  # fmt: skip


def _share_of(count: int, inputs: int) -> Any:
    """Return the columns of a head score for a head's share of maps in one class, with its 95 % Wilson interval."""
    value, low, high = share_interval(np.arange(inputs) < count)
    return {"value": value, "low": low, "high": high, "n": inputs}
