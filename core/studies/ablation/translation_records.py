"""The rows of `translation`."""

from dataclasses import dataclass
from typing import ClassVar

from ..records import Figure, Result


@dataclass(frozen=True, kw_only=True)
class UntouchedTranslation(Result):
    """The model as it is: shares of rows that are exact and of tokens that are right."""

    KINDS: ClassVar[tuple[str, ...]] = ("baseline",)
    name: str
    exact: float
    tokens: float
    n: int


@dataclass(frozen=True, kw_only=True)
class TranslationHead(Result):
    """A head of an encoder-decoder. part: encoder, decoder or cross."""

    name: str
    part: str
    layer: int
    head: int
    value: float
    statistic: str | None = None


@dataclass(frozen=True, kw_only=True)
class ZeroedHead(TranslationHead):
    """A head zeroed: the change of exact rows (value), of tokens, and rows that flipped. p: corrected over heads."""

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
    """A head's importance."""

    KINDS: ClassVar[tuple[str, ...]] = ("importance",)
    FIGURE = Figure("value", "importance", "{name}")


@dataclass(frozen=True, kw_only=True)
class PrunedColumn(Result):
    """`removed` heads of one column are gone, a share of its heads. change, low, high: of exact rows."""

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
    """How often a cross head's largest weight is on the aligned word, over n sentences; beside it the guess from
    positions (baseline) and what it has more (above). best: the head that was right most often on train rows."""

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
