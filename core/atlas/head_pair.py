"""Two heads beside each other, of two checkpoints or of one: every score that both have, second less first."""

from statistics import NormalDist

import numpy as np
import pandas as pd

from ..attention import Head

COLUMNS = ("score", "first", "first_low", "first_high", "second", "second_low", "second_high", "difference", "sure")
LEVEL = 0.05
_OF_INTERVALS = NormalDist().inv_cdf(0.975)  # a 95 % interval reaches so many standard errors to either side


def scores_beside(first: pd.DataFrame, head: Head, second: pd.DataFrame, other: Head) -> pd.DataFrame:
    """The scores that two heads share, the clearest difference first.

    Standard errors are read from the intervals (their width over twice 1.96) and added as of independent samples. Where
    both heads are measured on the same inputs that is conservative as long as inputs do to both what they do to one.

    Args:
        first: rows of the atlas of one checkpoint on one task: score, layer, head, value, low, high.
        head: whose rows of `first` are taken.
        other: whose rows of `second` are taken.

    Returns:
        COLUMNS, one row a score: both values with their 95 % intervals, second less first in the score's own unit, and
        `sure`: whether a z test of the difference holds 5 % familywise over all scores with intervals (Bonferroni);
        None where an interval is lacking. In order of |z|; scores without intervals last.
    """
    mine, theirs = (_of_head(frame, of) for frame, of in ((first, head), (second, other)))
    both = mine.merge(theirs, on="score", suffixes=("_mine", "_theirs"))
    found = pd.DataFrame({"score": both["score"]})
    for name, side in (("first", "mine"), ("second", "theirs")):
        found[name] = both[f"value_{side}"]
        found[f"{name}_low"], found[f"{name}_high"] = both[f"low_{side}"], both[f"high_{side}"]
    found["difference"] = found["second"] - found["first"]
    z = _standardised(found)
    found["sure"] = (z.abs() > _bound(int(z.notna().sum()))).astype(object).where(z.notna(), None)
    order = z.abs().sort_values(ascending=False, kind="stable", na_position="last").index
    return found.loc[order, list(COLUMNS)].reset_index(drop=True)


def _of_head(scores: pd.DataFrame, head: Head) -> pd.DataFrame:
    mine = scores[(scores["layer"] == head.layer) & (scores["head"] == head.head) & scores["value"].notna()]
    return mine.drop_duplicates("score")[["score", "value", "low", "high"]]


def _standardised(found: pd.DataFrame) -> pd.Series:
    """The difference in standard errors; NaN where an interval is lacking, 0 where nothing differs."""
    widths = [(found[f"{name}_high"] - found[f"{name}_low"]) / (2 * _OF_INTERVALS) for name in ("first", "second")]
    errors = np.sqrt(widths[0] ** 2 + widths[1] ** 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        return (found["difference"] / errors).mask(found["difference"].eq(0) & errors.notna(), 0.0)


def _bound(scores: int) -> float:
    return NormalDist().inv_cdf(1 - LEVEL / 2 / scores) if scores else float("inf")
