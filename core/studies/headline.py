"""The finding of a run in one sentence, and what scores say about one head."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

SIGNIFICANT = 0.05  # corrected p below which an effect is called significant


@dataclass(frozen=True)
class Headline:
    """What a run found. n: sample size, None if unknown; interval, baseline: in words, "" without one."""

    sentence: str
    n: int | None = None
    of: str = "examples"
    interval: str = ""
    baseline: str = ""


def percent(low: float | None, high: float | None, form: str = "{:+.1f}", times: int = 100) -> str:
    """An interval in words; "" without one."""
    if low is None or high is None:
        return ""
    return f"95 % CI {form.format(times * low)} to {form.format(times * high)}"


def defined(value: float | None) -> float:
    """The value. Raises ValueError where there is none, of which nothing can be said."""
    if value is None:
        raise ValueError("undefined")
    return value


def points_more(share: float, than: str) -> str:
    """A difference of shares as a person says it: "1.7 points more than this", "1.7 points less than this"."""
    points = round(100 * share, 1)
    if not points:
        return f"as much as {than}"
    return f"{abs(points):.1f} points {'more' if points > 0 else 'less'} than {than}"


def plural(count: int, of: int, what: str) -> str:
    """ "3 of 12 changes"."""
    return f"{count} of {of} {what}"


MOST, WORTH = 2, 0.05  # features, and relations, that the sentence names; how far above their baseline they are


@dataclass(frozen=True)
class Fact:
    """One part of what is known. about: the kind of knowledge; source: where the number comes from."""

    about: str
    text: str
    source: str


@dataclass(frozen=True)
class HeadScores:
    """A study's scores on one task, as the atlas has them, `score` without the study's name. every: of all heads."""

    own: "pd.DataFrame"
    every: "pd.DataFrame"

    def above(self, prefix: str = "") -> "pd.DataFrame":
        """The head's scores that begin so and are surely, and by WORTH, above their baseline; at most MOST, the
        furthest above it first."""
        worth = self.own["value"] - self.own["baseline"] >= WORTH
        some = self.own[self.own["score"].str.startswith(prefix) & (self.own["q"] < SIGNIFICANT) & worth]
        return some.loc[(some["value"] - some["baseline"]).sort_values(ascending=False, kind="stable").index].head(MOST)


def each(rows: "pd.DataFrame") -> Iterable["pd.Series"]:
    """Rows of a frame one by one."""
    return (row for _, row in rows.iterrows())


def number(row: "pd.Series", digits: int = 2) -> str:
    """A value with its interval, as "0.99 [0.98, 0.99]"."""
    value, low = f"{row['value']:.{digits}f}", row["low"]
    return value if low is None or low != low else f"{value} [{low:.{digits}f}, {row['high']:.{digits}f}]"
