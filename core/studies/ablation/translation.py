"""Heads of an encoder-decoder on a translation task (Michel et al. 2019), and cross attention as word alignment.

`sweep` zeroes each head alone; `importance` is |dL/dxi_h|; `prune` removes the heads of one kind, least important
first, in an order from training examples; `align` measures how often a cross-attention head attends most to the word
that is being translated, compared with the best guess from positions. The metric is the fraction of sentences whose
greedy translation equals the reference.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
import pydantic.dataclasses

from ... import capture, config, studies
from ...attention import PARTS, Head, all_heads
from ...errors import InputError, check_choice
from ...interval import Interval
from ...reading import lines_of, read_text
from ...scoring import effects
from ...scoring.alignment import PositionTable, hits
from ...store.rows import Row
from ..contract import Done, Flag, NamedUnit, Study, Unit, provenance
from ..headline import SIGNIFICANT, Headline, percent
from ..options import Checkpoint, Dtype, FirstRows, Seed, SomePath
from ..records import Figure, Result

if TYPE_CHECKING:
    from ...models.checkpoint import Checkpoint as Opened
    from ...models.encoding import Encoding


# ---------------------------------------------------------------- sentences, translations and word alignments

# Each line has source, target and alignments "0-0 1-2 ..." (zero-based source word - target word, as in Pharaoh
# files), separated by tabs. The third column is optional.


BUNDLED = config.DATA / "translation"
_FORM = "source, tab, target, and optionally tab and alignments such as 0-0 1-2"


@dataclass(frozen=True)
class Translation:
    """A translation example: a source sentence, its translation and an optional word alignment.

    Attributes:
        links: zero-based pairs (source word, target word), of words separated by spaces; empty if unknown.
        number: line number, from 1.
    """

    source: str
    target: str
    links: tuple[tuple[int, int], ...] = ()
    number: int = 1

    @property
    def id(self) -> str:
        return f"line-{self.number}"


def read_translations(
    file: str | Path | None = None, *, split: str = "dev", limit: int | None = None
) -> list[Translation]:
    """Read translation examples from a file or a bundled split. Raises InputError that names the invalid line."""
    path = config.inside(file) if file else BUNDLED / f"{split}.tsv"
    try:
        lines = lines_of(read_text(path, given=True))
    except OSError as error:
        raise InputError(
            f"A translation file must be a readable text file; {path} cannot be read ({error.strerror or error}). "
            "Choose another file, or omit the option to use the bundled examples."
        ) from error
    rows = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        source, _, rest = line.partition("\t")
        target, _, listed = rest.partition("\t")
        if not source.strip() or not target.strip():
            raise InputError(
                f"A line of a translation file must be {_FORM}; line {number} has "
                f"{'no target' if source.strip() else 'no source'}. Correct this line."
            )
        try:
            pairs = [link.split("-") for link in listed.split()]
            links = tuple((int(source_word), int(target_word)) for source_word, target_word in pairs)
        except ValueError as error:
            raise InputError(
                f"A line of a translation file must be {_FORM}; line {number} has the alignments {listed[:40]!r}. "
                "Correct this line."
            ) from error
        words = len(source.split()), len(target.split())
        outside = [pair for pair in links if not (0 <= pair[0] < words[0] and 0 <= pair[1] < words[1])]
        if outside:
            raise InputError(
                f"Alignments must be zero-based indices of words; line {number} has {words[0]} source words, "
                f"{words[1]} target words and the alignment {outside[0][0]}-{outside[0][1]}. Correct the "
                "alignment."
            )
        rows.append(Translation(source.strip(), target.strip(), links, number))
    if not rows:
        raise InputError(f"A translation file must have at least one line of text; {path} has none. Add lines.")
    return rows[:limit]


# ---------------------------------------------------------------- translation


PARTS_OF_IT = ("sweep", "importance", "prune", "align")
COLUMNS = {"encoder": "Enc-Enc", "cross": "Enc-Dec", "decoder": "Dec-Dec"}  # Michel et al.'s names


@pydantic.dataclasses.dataclass(frozen=True)
class TranslationOptions:
    """Options for the study of an encoder-decoder for translation."""

    checkpoint: Checkpoint = "atlas-translator"
    what: Annotated[
        tuple[str, ...],
        Flag(
            "what to measure: sweep (effect of ablating each head), importance (by gradients), prune (scores with "
            "fewer heads) or align (word alignment); repeat the option for several measurements"
        ),
    ] = PARTS_OF_IT
    data: Annotated[
        str | None,
        SomePath,
        Flag("file of translations on which heads are measured (default: bundled examples)"),
    ] = None
    train: Annotated[
        str | None,
        Flag(
            "file of training examples, which set the pruning order, the position-based baseline and the best "
            "alignment head (default: bundled examples)"
        ),
    ] = None
    limit: FirstRows = 300
    order_rows: Annotated[
        int,
        Flag(
            "number of training examples that determine the pruning order and, for word alignment, the position-based "
            "baseline and the best head",
            least=2,
        ),
    ] = 300
    dtype: Dtype = "float32"
    seed: Seed = 0


@dataclass(frozen=True)
class TranslationMeasurement:
    """The result of one measurement on the heads of an encoder-decoder. Fields that do not apply are empty.

    Attributes:
        names: heads ("Cross L1H2"); for pruning, in the order of removal within each kind.
        exact: whether each translation is right, without ablation first, [target, example]. For an alignment, whether
            each word is found, by positions first, [guess, linked word].
        share: fraction of right tokens in each example, 0 to 1; for an alignment, `exact` on training examples.
        values: importance of each head.
        row: for an alignment, the example of each linked word.
    """

    what: str
    names: tuple[str, ...]
    exact: np.ndarray
    share: np.ndarray
    values: np.ndarray
    row: np.ndarray


@dataclass(frozen=True)
class TranslationPartial:
    """Measurements of an encoder-decoder, as a partial result that can be merged with others."""

    seen: tuple[TranslationMeasurement, ...]


@dataclass(frozen=True, kw_only=True)
class UnmodifiedTranslation(Result):
    """The scores of the unmodified translation model, as fractions of exact translations and of correct tokens."""

    KINDS: ClassVar[tuple[str, ...]] = ("baseline",)
    name: str
    exact: float
    tokens: float
    n: int


@dataclass(frozen=True, kw_only=True)
class TranslationHead(Result):
    """Base class of records about one head of an encoder-decoder. `part` is "encoder", "decoder" or "cross"."""

    name: str
    part: str
    layer: int
    head: int
    value: float
    statistic: str | None = None


@dataclass(frozen=True, kw_only=True)
class ZeroedHead(TranslationHead):
    """The effect of zeroing one head of an encoder-decoder on exact translations and correct tokens."""

    KINDS: ClassVar[tuple[str, ...]] = ("zeroed",)
    FIGURE = Figure("value", "change of exact rows", "{name}")
    low: float | None
    high: float | None
    n: int
    p: float
    flipped: int
    tokens_change: float | None
    tokens_low: float | None
    tokens_high: float | None


@dataclass(frozen=True, kw_only=True)
class ImportantTranslationHead(TranslationHead):
    """The gradient-based importance of one head of an encoder-decoder."""

    KINDS: ClassVar[tuple[str, ...]] = ("importance",)
    FIGURE = Figure("value", "importance", "{name}")


@dataclass(frozen=True, kw_only=True)
class PrunedColumn(Result):
    """The scores of an encoder-decoder after `removed` heads of one kind, such as cross-attention, are pruned."""

    KINDS: ClassVar[tuple[str, ...]] = ("pruned",)
    column: str
    removed: int
    share: float
    heads: str
    exact: float
    change: float | None
    low: float | None
    high: float | None
    n: int
    baseline: float


@dataclass(frozen=True, kw_only=True)
class AlignedHead(TranslationHead):
    """How often a cross-attention head attends most to the source word that is aligned with the translated word.

    `baseline` is the best guess from positions and `above` the difference. `best` marks the best head on training
    examples.
    """

    KINDS: ClassVar[tuple[str, ...]] = ("alignment",)
    FIGURE = Figure("value", "alignment", "{name}")
    low: float | None
    high: float | None
    n: int
    baseline: float
    above: float | None
    above_low: float | None
    above_high: float | None
    p: float
    words: int
    best: bool


class TranslationStudy(Study[TranslationOptions, TranslationPartial]):
    """Zero, rank and prune the heads of an encoder-decoder, and compare cross-attention with word alignments."""

    name, options, partial, arguments = "translation", TranslationOptions, TranslationPartial, NamedUnit
    kinds = (UnmodifiedTranslation, ZeroedHead, ImportantTranslationHead, PrunedColumn, AlignedHead)
    short_in = ("table", "latex")
    counts = "rows"

    def units(self, options: TranslationOptions) -> list[Unit]:
        check_choice("A measurement of a translation study", options.what, PARTS_OF_IT)
        rows, train = _rows(options), _train_rows(options)
        for kind, some in (("examples", rows), ("training examples", train)):
            if "align" in options.what and not any(row.links for row in some):
                raise InputError(
                    "Measuring word alignment needs gold alignments in the third column (such as 0-0 1-2); the "
                    f'{kind} have none. Add them, or omit the measurement "align".'
                )
        return [Unit(name, NamedUnit(name), size=len(rows)) for name in options.what]

    def run(self, options: TranslationOptions, unit: Unit) -> Done[TranslationPartial]:
        checkpoint = studies.worker_cache.get_checkpoint(options.checkpoint, head="language", dtype=options.dtype)
        rows = _rows(options)
        encodings = capture.translating.pairs_of(checkpoint, [(row.source, row.target) for row in rows])
        measure = {"sweep": _sweep, "importance": _importance, "prune": _prune, "align": _align}[unit.arguments.name]
        return Done(
            TranslationPartial((measure(checkpoint, encodings, options),)),
            provenance(checkpoint, [translated.id for translated in rows]),
        )

    def results(self, options: TranslationOptions, merged: TranslationPartial) -> list[Result]:
        made = {"sweep": _swept, "importance": _important, "prune": _pruned, "align": _aligned}
        return [result for measurement in merged.seen for result in made[measurement.what](measurement, options.seed)]

    def headline(self, rows: Sequence[Row]) -> Headline:
        untouched, zeroed = UnmodifiedTranslation.among(rows)[0], ZeroedHead.among(rows)
        worst = min(zeroed, key=lambda head: head.value)
        return Headline(
            (
                f"The share of exact translations is lowest if head {worst.name} ({worst.part}) is ablated: "
                f"{100 * worst.value:+.1f} points compared with the unmodified model."
            ),
            worst.n,
            "examples",
            percent(worst.low, worst.high),
            f"The unmodified model translates {100 * untouched.exact:.1f} % of the examples exactly.",
        )

    def shown(self, rows: Sequence[Row]) -> list[list[Row] | str]:
        names = ("column", "removed", "exact", "low", "high", "n")
        blank: Row = dict.fromkeys(names)
        untouched = [blank | model.columns("exact", "n") for model in UnmodifiedTranslation.among(rows)]
        sentences = []
        if zeroed := ZeroedHead.among(rows):
            matter = [head.name for head in sorted(zeroed, key=lambda head: head.value) if head.p < SIGNIFICANT]
            named = f": {', '.join(matter[:8])}{' ...' if len(matter) > 8 else ''}" if matter else ""
            sentences.append(
                f"For {len(matter)} of {len(zeroed)} heads, zeroing only this head changes the number of exact "
                f"translations significantly (p < {SIGNIFICANT}, corrected over heads){named}."
            )
        best = next((head for head in AlignedHead.among(rows) if head.best), None)
        if best is not None:
            sentences.append(
                f"Head {best.name}, which was chosen on training examples, attends most to the aligned source word for "
                f"{best.value:.0%} of the words (95 % CI {best.low:.0%} to {best.high:.0%}, n = {best.n} sentences). A "
                f"guess from positions is right for {best.baseline:.0%} of the words. The difference is "
                f"{best.above:+.0%} (95 % CI {best.above_low:+.0%} to {best.above_high:+.0%})."
            )
        return [[*untouched, *(step.columns(*names) for step in PrunedColumn.among(rows))], " ".join(sentences)]


STUDY = TranslationStudy()


def _rows(options: TranslationOptions) -> list[Translation]:
    rows = read_translations(options.data, limit=options.limit)
    if len(rows) < 2:
        raise InputError(f"A translation study needs at least two examples; got {len(rows)}. Add examples.")
    return rows


def _train_rows(options: TranslationOptions) -> list[Translation]:
    return read_translations(options.train, split="train", limit=options.order_rows)


# ---------------------------------------------------------------- rows


def _about(name: str) -> Any:
    head = Head.parse(name)
    return {"name": name, "part": head.part, "layer": head.layer, "head": head.head}


def _swept(measurement: TranslationMeasurement, seed: int) -> list[Result]:
    before, after = measurement.exact[0], measurement.exact[1:]
    p = effects.max_t(before, after, seed=seed)
    intervals = effects.mean_intervals(before, after)
    tokens = effects.mean_intervals(measurement.share[0], measurement.share[1:])
    exact, share = float(before.mean()), float(measurement.share[0].mean())
    results: list[Result] = [UnmodifiedTranslation(name="untouched", exact=exact, tokens=share, n=len(before))]
    for k, name in enumerate(measurement.names):
        head = ZeroedHead(
            **_about(name), statistic="exact change", value=float(after[k].mean() - before.mean()),
            low=intervals[k].low, high=intervals[k].high, n=len(before), p=float(p[k]),
            flipped=int((before != after[k]).sum()),
            tokens_change=tokens[k].value, tokens_low=tokens[k].low, tokens_high=tokens[k].high,
        )  # fmt: skip
        results.append(head)
    return results


def _important(measurement: TranslationMeasurement, seed: int) -> list[Result]:
    return [
        ImportantTranslationHead(**_about(name), statistic="importance", value=float(value))
        for name, value in zip(measurement.names, measurement.values, strict=True)
    ]


def _pruned(measurement: TranslationMeasurement, seed: int) -> list[Result]:
    """Return one record per stack and number of pruned heads, beginning with none. Intervals are of the change."""
    intervals = effects.mean_intervals(measurement.exact[0], measurement.exact[1:])
    whole = float(measurement.exact[0].mean())
    results: list[Result] = []
    for part, column in COLUMNS.items():
        mine = [k for k, name in enumerate(measurement.names) if name.startswith(PARTS[part])]
        none = Interval(0.0, 0.0, 0.0)
        for removed, change in enumerate([none, *(intervals[k] for k in mine)]):
            gone = [measurement.names[k] for k in mine[:removed]]
            pruned = PrunedColumn(
                column=column, removed=removed, share=removed / len(mine), heads=",".join(gone),
                exact=whole + (change.value or 0), change=change.value, low=change.low, high=change.high,
                n=int(measurement.exact.shape[1]), baseline=whole,
            )  # fmt: skip
            results.append(pruned)
    return results


def _aligned(measurement: TranslationMeasurement, seed: int) -> list[Result]:
    """Return one record per cross-attention head, marking the head that was right most often on training examples."""
    sentences = np.unique(measurement.row)
    by_row = np.stack([measurement.exact[:, measurement.row == number].mean(1) for number in sentences], 1)
    intervals = effects.mean_intervals(by_row[0], by_row[1:])
    alone = effects.mean_intervals(np.zeros(len(sentences)), by_row[1:])
    p = effects.max_t(by_row[0], by_row[1:], seed=seed)
    best = int(measurement.share[1:].mean(1).argmax())
    return [
        AlignedHead(
            **_about(name), statistic="alignment", value=float(by_row[1 + k].mean()), low=alone[k].low,
            high=alone[k].high, baseline=float(by_row[0].mean()), above=intervals[k].value, above_low=intervals[k].low,
            above_high=intervals[k].high, p=float(p[k]), n=len(sentences), words=int(measurement.exact.shape[1]),
            best=k == best,
        )
        for k, name in enumerate(measurement.names)
    ]  # fmt: skip


# ---------------------------------------------------------------- measuring


def _every_head(checkpoint: "Opened", part: str = "") -> list[Head]:
    sets = [head_set for head_set in checkpoint.sets if part in ("", head_set.part)]
    return [head for stack in sets for head in all_heads(stack.layers, stack.heads, part=stack.part)]


def _under(checkpoint: "Opened", encodings: "list[Encoding]", variants: Sequence[Sequence[Head]]) -> tuple[Any, ...]:
    """Return exact matches and token shares [target, example], with the unmodified model first."""
    changes_of = [(), *([capture.interventions.Intervention("zero", frozenset(heads))] for heads in variants)]
    answers = [capture.translating.right(checkpoint, encodings, changes) for changes in changes_of]
    return np.array([outcome.exact for outcome in answers]), np.array([outcome.share for outcome in answers])


def _sweep(checkpoint: "Opened", encodings: "list[Encoding]", options: TranslationOptions) -> TranslationMeasurement:
    heads = _every_head(checkpoint)
    exact, share = _under(checkpoint, encodings, [[head] for head in heads])
    return _seen("sweep", heads, exact=exact, share=share)


def _importance(
    checkpoint: "Opened", encodings: "list[Encoding]", options: TranslationOptions
) -> TranslationMeasurement:
    values = np.concatenate([scores.ravel() for scores in capture.translating.part_importance(checkpoint, encodings)])
    return _seen("importance", _every_head(checkpoint), values=values)


def _prune(checkpoint: "Opened", encodings: "list[Encoding]", options: TranslationOptions) -> TranslationMeasurement:
    train = capture.translating.pairs_of(checkpoint, [(row.source, row.target) for row in _train_rows(options)])
    order: list[Head] = []
    variants: list[Sequence[Head]] = []
    for head_set, scores in zip(checkpoint.sets, capture.translating.part_importance(checkpoint, train), strict=True):
        heads = _every_head(checkpoint, head_set.part)
        ranked = [heads[k] for k in np.argsort(scores.ravel(), kind="stable")]
        order += ranked
        variants += [ranked[: k + 1] for k in range(len(ranked))]
    exact, share = _under(checkpoint, encodings, variants)
    return _seen("prune", order, exact=exact, share=share)


def _align(checkpoint: "Opened", encodings: "list[Encoding]", options: TranslationOptions) -> TranslationMeasurement:
    train = _train_rows(options)
    table = PositionTable([(len(row.source.split()), len(row.target.split()), row.links) for row in train])
    word_pairs = capture.translating.pairs_of(checkpoint, [(row.source, row.target) for row in train])
    right, row = _hits(checkpoint, encodings, _rows(options), table)
    chosen, _ = _hits(checkpoint, word_pairs, train, table)
    return _seen("align", _every_head(checkpoint, "cross"), exact=right, share=chosen, row=row)


def _hits(
    checkpoint: "Opened", encodings: "list[Encoding]", rows: Sequence[Translation], table: PositionTable
) -> tuple[np.ndarray, np.ndarray]:
    """Return which linked words are found [guess, word], by positions first, and the example of each word."""
    counts, numbers = [], []
    for number, (row, words) in enumerate(
        zip(rows, capture.translating.aligned_words(checkpoint, encodings), strict=True)
    ):
        if row.links:
            positions = table.guesses(len(row.source.split()), len(row.target.split()))
            counts.append(hits(np.vstack([positions, words.reshape(-1, words.shape[-1])]), row.links))
            numbers += [number] * counts[-1].shape[1]
    return np.concatenate(counts, 1), np.array(numbers)


def _seen(what: str, heads: Sequence[Head], **arrays: np.ndarray) -> TranslationMeasurement:
    nothing = {name: np.zeros(0) for name in ("exact", "share", "values", "row")}
    return TranslationMeasurement(what, tuple(str(head) for head in heads), **(nothing | arrays))
