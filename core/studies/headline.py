"""The headline of a run, and facts about single heads."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

SIGNIFICANT = 0.05  # corrected p below which an effect is called significant


@dataclass(frozen=True)
class Headline:
    """A summary of a run in one sentence, with its sample size, confidence interval and baseline."""

    sentence: str
    n: int | None = None
    of: str = "examples"
    interval: str = ""
    baseline: str = ""


def percent(low: float | None, high: float | None, form: str = "{:+.1f}", times: int = 100) -> str:
    """Format a 95 % confidence interval as text, or return "" if a bound is None. Bounds are multiplied by `times`."""
    if low is None or high is None:
        return ""
    return f"95 % CI {form.format(times * low)} to {form.format(times * high)}"


def head_interval(head: str, low: float | None, high: float | None, form: str = "{:.2f}", times: int = 1) -> str:
    """Return a sentence with the 95 % confidence interval for one head, or "" if there is none."""
    interval = percent(low, high, form, times)
    return f"{head} has a {interval.replace('CI', 'CI of', 1)}." if interval else ""


def defined(value: float | None) -> float:
    """Return the value unchanged. Raises ValueError if it is None."""
    if value is None:
        raise ValueError("undefined")
    return value


def points_more(share: float, than: str) -> str:
    """Format the difference between two fractions as text, such as "1.7 points more than the baseline"."""
    points = round(100 * share, 1)
    if not points:
        return f"as much as {than}"
    return f"{abs(points):.1f} points {'more' if points > 0 else 'less'} than {than}"


def plural(count: int, of: int, what: str) -> str:
    """Format a count out of a total, such as "3 of 12 changes"."""
    return f"{count} of {of} {what}"


MOST, WORTH = 2, 0.05  # features, and relations, that the sentence names; how far above their baseline they are


@dataclass(frozen=True)
class Fact:
    """A sentence about one attention head. `source` states where the number in it comes from."""

    about: str
    text: str
    source: str


@dataclass(frozen=True)
class HeadScores:
    """The scores of one head (`own`) and of all heads (`every`) from one study on one task."""

    own: "pd.DataFrame"
    every: "pd.DataFrame"

    def above(self, prefix: str = "") -> "pd.DataFrame":
        """Return the two scores (or fewer) of this head that are furthest above their baselines. Only significant
        differences of at least 0.05 count, for scores whose names start with `prefix`."""
        worth = self.own["value"] - self.own["baseline"] >= WORTH
        some = self.own[self.own["score"].str.startswith(prefix) & (self.own["q"] < SIGNIFICANT) & worth]
        return some.loc[(some["value"] - some["baseline"]).sort_values(ascending=False, kind="stable").index].head(MOST)


def each(rows: "pd.DataFrame") -> Iterable["pd.Series"]:
    """Iterate over the rows of a data frame. Each row is a Series."""
    return (row for _, row in rows.iterrows())


def number(row: "pd.Series", digits: int = 2) -> str:
    """Format a value and its confidence interval as text, such as "0.99 [0.98, 0.99]"."""
    value, low = f"{row['value']:.{digits}f}", row["low"]
    return value if low is None or low != low else f"{value} [{low:.{digits}f}, {row['high']:.{digits}f}]"
