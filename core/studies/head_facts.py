"""What a study's scores say of one head: parts of a sentence, each with its source."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

SURE = 0.05
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
        some = self.own[self.own["score"].str.startswith(prefix) & (self.own["q"] < SURE) & worth]
        return some.loc[(some["value"] - some["baseline"]).sort_values(ascending=False, kind="stable").index].head(MOST)


def each(rows: "pd.DataFrame") -> Iterable["pd.Series"]:
    """Rows of a frame one by one."""
    return (row for _, row in rows.iterrows())


def number(row: "pd.Series", digits: int = 2) -> str:
    """A value with its interval, as "0.99 [0.98, 0.99]"."""
    value, low = f"{row['value']:.{digits}f}", row["low"]
    return value if low is None or low != low else f"{value} [{low:.{digits}f}, {row['high']:.{digits}f}]"
