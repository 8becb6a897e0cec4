"""Facts about one head with their sources, and the most similar heads."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from statistics import NormalDist

import numpy as np
import pandas as pd
from jaxtyping import Float

from ..attention import Head
from ..config import command_line
from ..drawing.packing import Grid
from ..drawing.page import GridTabs, Part, Table, Words, html_page
from ..drawing.panes import Pane
from ..drawing.payload import as_bytes
from ..errors import JobError
from ..scoring.corrections import ALPHA
from ..scoring.registry import MAP_SCORES
from ..studies.attention import statistics
from ..studies.headline import Fact, HeadScores
from ..studies.hypotheses.records import JudgedHypothesis
from ..studies.lookup import find_study
from ..studies.patterns import pattern_shares

# ---------------------------------------------------------------- the page of one head


@dataclass(frozen=True)
class Shelved:
    """An input in the gallery of a head, with its attention map and its score.

    `where` is the rank of the input as text; `tokens` label the rows and columns of the map.
    """

    where: str
    value: float
    text: str
    tokens: tuple[str, ...]
    weights: Float[np.ndarray, "query key"]
    causal: bool = False


@dataclass(frozen=True)
class Gallery:
    """Inputs ranked by a score of one head. `of` describes the score and the number of inputs."""

    inputs: Sequence[Shelved] = ()
    of: str = ""


def head_page(
    head: Head,
    checkpoint: str,
    scores: pd.DataFrame,
    rows: pd.DataFrame,
    *,
    task: str | None = None,
    maps: Grid | str = "",
    gallery: Gallery = Gallery(),
    hypotheses: Sequence[JudgedHypothesis] = (),
) -> str:
    """Return an HTML page about one attention head: its known facts, maps, most similar heads, hypotheses and scores.

    `scores` are those of all heads on one task, `rows` those of this head as shown in the table, and `maps` the maps of
    all heads on one input, or the reason why there are none.
    """
    known = facts(scores, head)
    sources = "; ".join(f"{fact.about}: {fact.source}" for fact in known)
    parts: list[Part] = [Words(text=f"Sources: {sources}" if known else "")]
    grids = {} if isinstance(maps, str) else {"all heads": maps}
    for example in gallery.inputs:
        weights = as_bytes(example.weights)
        pane = Pane(
            f"{head}, {example.where}", 1, 1, example.tokens, weights, example.causal, named=str(head), scores={}
        )
        note = f"{example.where}, {example.value:.3f}: {example.text}"
        grids[f"{example.where}: {example.value:.3f}"] = Grid([pane], example.text[:200], str(head), note=note)
    parts += [GridTabs(grids, "Maps", gallery.of and f"Gallery: {gallery.of}.")] if grids else []
    parts += [Words(text=maps)] if isinstance(maps, str) else []
    if alike := nearest(scores, head):
        text = ", ".join(f"{other} ({apart:.2f})" for other, apart in alike)
        said = "by their statistics: root mean square difference, in standard deviations over heads"
        parts.append(Words("Nearest heads", f"{text}\n{said}"))
    for number, one in enumerate(hypotheses):
        parts.append(Words("" if number else "Hypotheses", f"{one.sentence}: {one.verdict}"))
        if one.criteria:
            columns = ["criterion", "state", "what", "value", "low", "high", "baseline", "n", "p, Holm", "level"]
            criteria = [
                (criterion.criterion, criterion.state, criterion.measure, criterion.amount, criterion.low,
                 criterion.high, criterion.baseline, criterion.n, criterion.adjusted, criterion.level)
                for criterion in one.criteria
            ]  # fmt: skip
            parts.append(Table(columns, criteria))
    cells = rows.astype(object).where(rows.notna(), None).to_numpy().tolist()
    parts.append(Table([str(name) for name in rows.columns], cells, "Every score"))
    parts.append(Words("Command for the same scores", command=command_of(checkpoint, task)))
    place = f"{checkpoint} · {task} · " if task else f"{checkpoint} · "
    lead = f"{sentence(known)}\n{place}{date.today():%d %B %Y} · L1H1 is the first head of the first layer"
    return html_page(f"{head} of {checkpoint}", parts, lead=lead)


def command_of(checkpoint: str, task: str | None) -> str:
    """Return the terminal command that prints all head scores of a checkpoint."""
    return command_line("atlas", checkpoint, *(["--task", task] if task else []))


# ---------------------------------------------------------------- two heads compared


COLUMNS = ("score", "first", "first_low", "first_high", "second", "second_low", "second_high", "difference", "sure")
_OF_INTERVALS = NormalDist().inv_cdf(0.975)  # a 95 % interval reaches so many standard errors to either side


def scores_beside(first: pd.DataFrame, head: Head, second: pd.DataFrame, other: Head) -> pd.DataFrame:
    """Compare two heads by the scores that are known for both heads. The most significant differences come first.

    Standard errors come from the intervals (width / (2 * 1.96)) and are added as for independent samples, which is
    conservative for positively correlated measurements on the same inputs. `first` and `second` are atlas rows of one
    checkpoint on one task each. The result has COLUMNS: both values with their 95 % intervals, second minus first, and
    `sure`, whether a z test is significant at 5 % familywise (Bonferroni); None without an interval. Scores without
    intervals are last.
    """
    mine, theirs = (_of_head(frame, of) for frame, of in ((first, head), (second, other)))
    both = mine.merge(theirs, on="score", suffixes=("_mine", "_theirs"))
    found = pd.DataFrame({"score": both["score"]})
    for name, side in (("first", "mine"), ("second", "theirs")):
        found[name] = both[f"value_{side}"]
        found[f"{name}_low"], found[f"{name}_high"] = both[f"low_{side}"], both[f"high_{side}"]
    found["difference"] = found["second"] - found["first"]
    widths = [(found[f"{name}_high"] - found[f"{name}_low"]) / (2 * _OF_INTERVALS) for name in ("first", "second")]
    errors = np.sqrt(widths[0] ** 2 + widths[1] ** 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = (found["difference"] / errors).mask(found["difference"].eq(0) & errors.notna(), 0.0)
    tested = int(z.notna().sum())
    bound = NormalDist().inv_cdf(1 - ALPHA / 2 / tested) if tested else float("inf")
    found["sure"] = (z.abs() > bound).astype(object).where(z.notna(), None)
    order = z.abs().sort_values(ascending=False, kind="stable", na_position="last").index
    return found.loc[order, list(COLUMNS)].reset_index(drop=True)


def _of_head(scores: pd.DataFrame, head: Head) -> pd.DataFrame:
    mine = scores[(scores["layer"] == head.layer) & (scores["head"] == head.head) & scores["value"].notna()]
    return mine.drop_duplicates("score")[["score", "value", "low", "high"]]


CLASS_SHARE = f"{pattern_shares.STUDY.name}/{pattern_shares.SHARE}"
STATISTICS = [f"{statistics.STUDY.name}/{score.name}" for score in MAP_SCORES]


def facts(scores: pd.DataFrame, head: Head) -> list[Fact]:
    """Return short sentences that describe a head by its stored scores on one task, each with the source of the score.

    The facts include its pattern class, roles, attention compared with chance level, relations and frames, the effect
    of ablating it, its importance among all heads, and its change by fine-tuning.
    """
    named = scores["score"].str.partition("/")
    mine = (scores["layer"] == head.layer) & (scores["head"] == head.head)
    studies = []
    for name in named.loc[mine, 0].unique():
        try:
            studies.append(find_study(name))
        except JobError:  # stored by an older version
            continue
    told: list[Fact] = []
    for study in sorted(studies, key=lambda study: study.said_at):
        own, every = scores.assign(score=named[2]), named[0] == study.name
        told += study.facts(HeadScores(own[every & mine], own[every]))
    return told


def sentence(known: list[Fact]) -> str:
    """Join all facts about a head into a paragraph."""
    return " ".join(fact.text for fact in known) or "No results about this head are stored yet."


def nearest(scores: pd.DataFrame, head: Head, most: int = 5) -> list[tuple[Head, float]]:
    """Return the heads with the most similar statistics, nearest first, with their distances.

    The distance is the root mean square difference over the statistics of MAP_SCORES, in standard deviations over
    heads.
    """
    some = scores[scores["score"].isin(STATISTICS)]
    table = some.pivot_table("value", ["layer", "head"], "score", aggfunc="first").dropna(axis=1, how="any")
    if (head.layer, head.head) not in table.index or table.shape[1] == 0:
        return []
    spread = table.std().replace(0, np.nan)
    scaled = ((table - table.mean()) / spread).dropna(axis=1)
    apart = np.sqrt(((scaled - scaled.loc[(head.layer, head.head)]) ** 2).mean(axis=1))
    order = apart.drop((head.layer, head.head)).sort_values(kind="stable")
    return [(Head(*place), float(value)) for place, value in order.head(most).items()]


def classes(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the most frequent pattern class of each head on one task. The column `kind` contains the class, and
    `value` the share of the head's maps in this class."""
    shares = scores[scores["score"].str.startswith(CLASS_SHARE) & scores["value"].notna()]
    best = shares.sort_values("value", ascending=False, kind="stable").drop_duplicates(["layer", "head"])
    return best.assign(kind=best["score"].str.removeprefix(CLASS_SHARE))
