"""The finding of a run in one sentence, and what scores say about one head."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

SIGNIFICANT = 0.05  # corrected p below which an effect is called significant


@dataclass(frozen=True)
class Headline:
    """A one-sentence summary of a run. `n` is the sample size (None if unknown); `interval` is a 95 % CI or
    a sentence, and `baseline` a sentence; "" if there is none.
    """

    sentence: str
    n: int | None = None
    of: str = "examples"
    interval: str = ""
    baseline: str = ""


def percent(low: float | None, high: float | None, form: str = "{:+.1f}", times: int = 100) -> str:
    """Return a 95 % interval as text, or "" if there is no interval. Bounds are multiplied by `times` (100 by default)
    and formatted by `form`.
    """
    if low is None or high is None:
        return ""
    return f"95 % CI {form.format(times * low)} to {form.format(times * high)}"


def head_interval(head: str, low: float | None, high: float | None, form: str = "{:.2f}", times: int = 1) -> str:
    """Return a sentence with the 95 % interval of one head, or "" if there is no interval."""
    interval = percent(low, high, form, times)
    return f"{head} has a {interval.replace('CI', 'CI of', 1)}." if interval else ""


def defined(value: float | None) -> float:
    """Return the value unchanged. Raises ValueError if it is None."""
    if value is None:
        raise ValueError("undefined")
    return value


def points_more(share: float, than: str) -> str:
    """Return a difference of two fractions as text in percentage points, such as "1.7 points more than this"."""
    points = round(100 * share, 1)
    if not points:
        return f"as much as {than}"
    return f"{abs(points):.1f} points {'more' if points > 0 else 'less'} than {than}"


def plural(count: int, of: int, what: str) -> str:
    """Return a count as text, such as "3 of 12 changes"."""
    return f"{count} of {of} {what}"


MOST, WORTH = 2, 0.05  # features, and relations, that the sentence names; how far above their baseline they are


@dataclass(frozen=True)
class Fact:
    """A sentence about one attention head, called "it". `about` is the kind of fact, and `source` says where its number
    comes from.
    """

    about: str
    text: str
    source: str


@dataclass(frozen=True)
class HeadScores:
    """The scores of one head from one study on one task (`own`), and the same scores of all heads (`every`). The
    study's name is removed from the column `score`.
    """

    own: "pd.DataFrame"
    every: "pd.DataFrame"

    def above(self, prefix: str = "") -> "pd.DataFrame":
        """Return at most MOST of the head's scores with a name prefix that are significantly above their baseline, by
        at least WORTH. The largest difference comes first.
        """
        worth = self.own["value"] - self.own["baseline"] >= WORTH
        some = self.own[self.own["score"].str.startswith(prefix) & (self.own["q"] < SIGNIFICANT) & worth]
        return some.loc[(some["value"] - some["baseline"]).sort_values(ascending=False, kind="stable").index].head(MOST)


def each(rows: "pd.DataFrame") -> Iterable["pd.Series"]:
    """Iterate over the rows of a data frame as Series."""
    return (row for _, row in rows.iterrows())


def number(row: "pd.Series", digits: int = 2) -> str:
    """Return the value in a row with its interval as text, such as "0.99 [0.98, 0.99]"."""
    value, low = f"{row['value']:.{digits}f}", row["low"]
    return value if low is None or low != low else f"{value} [{low:.{digits}f}, {row['high']:.{digits}f}]"
