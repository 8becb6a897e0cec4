"""Attention budget: how the attention of each head is divided between [CLS], [SEP], neighbours, syntax and other words.

The shares of a head add up to 1. Statistics: "budget" for the tokens of the text as queries, and "classifying budget"
for the token that classifiers read. Each row has a head, category, checkpoint and task, with `value` (the share, with a
95 % interval over inputs), `baseline` (the share under uniform attention) and `enrichment` (value / baseline, with an
interval). For other occurrences of a word, its syntactic head and its dependents, `effect` is the share minus attention
to other words at the same distances. The row "contested" is the attention to a syntactic head or dependent that is
counted in an earlier category. `core.scoring.budget` defines the categories.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pydantic.dataclasses

from ... import scoring, studies
from ...scoring.definitions import BUDGET_CATEGORIES, GROUP_OF
from ...scoring.registry import CLARK, HeadScore
from ...store.rows import Row
from ...tasks.glue import task_name
from ..headline import Fact, Headline, HeadScores, each, head_interval
from ..options import Pipeline
from .attending import Attending, at_head, beside_null, ends, of_heads, score_of
from .inputs import AttendingOptions
from .partials import BudgetSums, Pieces
from .records import BudgetScore, outstanding

if TYPE_CHECKING:
    from .measures import BudgetMeasure

BUDGET, CLASSIFYING, CONTESTED = "budget", "classifying budget", "contested"
SYNTAX = ("governor", "dependent")
WITHOUT = "none"  # the pipeline that is none


@pydantic.dataclasses.dataclass(frozen=True)
class BudgetOptions(AttendingOptions):
    """Options of attention budgets. The pipeline "none" leaves out syntax, for languages without a parser."""

    pipeline: Pipeline = None


class Budget(Attending[BudgetOptions, BudgetSums]):
    """Measure how each head's attention is divided between [CLS], [SEP], neighbours, syntax and other words; the shares
    sum to 1."""

    name, options, partial = "budget", BudgetOptions, Pieces[BudgetSums]
    question = "Where does each head's attention go?"
    kinds = (BudgetScore,)
    head_scores = (
        HeadScore(BUDGET, "share of attention", "mean over queries of the attention to the category's keys",
                  ("weights", "links"), 0.0, 1.0, CLARK, about="category"),
        HeadScore(CLASSIFYING, "share of the classifying token's attention",
                  "attention of the classifying token to the category's keys", ("weights", "links"), 0.0, 1.0,
                  CLARK, about="category"),
    )  # fmt: skip
    section = "where it looks"
    said_at = 2
    gives = "shares of attention by category"

    def measure(self, options: BudgetOptions, checkpoint: Any) -> "BudgetMeasure":
        syntax = options.pipeline != WITHOUT
        if syntax and options.pipeline is not None:
            try:
                studies.worker_cache.pipeline(options.pipeline)
            except studies.tagging.NoParserError:
                syntax = False
        return studies.attention.measures.BudgetMeasure(checkpoint, syntax=syntax)

    def scores(self, options: BudgetOptions, sums: BudgetSums) -> list[BudgetScore]:
        """Return the share of every category for each head in both budgets, then of tokens in several categories."""
        layout, whole, scores = scoring.budget, sums.means.result(), []
        left_out = {"next"} if sums.causal else set()
        left_out |= set() if sums.syntax else set(SYNTAX)
        for statistic, shares, enriched, expected in (
            (BUDGET, layout.SHARES, layout.ENRICHED, layout.EXPECTED),
            (CLASSIFYING, layout.CLASSIFYING, layout.CLASSIFYING_ENRICHED, layout.CLASSIFYING_EXPECTED),
        ):
            for number, category in enumerate(BUDGET_CATEGORIES):
                if category in left_out:
                    continue
                share, times, even = (whole.part(part.start + number) for part in (shares, enriched, expected))
                beyond = None
                if statistic == BUDGET and number in layout.BEYOND:
                    beyond = whole.part(layout.BEYOND_DISTANCE.start + layout.BEYOND.index(number))
                if not np.nan_to_num(even.value).any():
                    scores.append(score_of(BudgetScore, sums, statistic, category, note="no input has such a key"))
                    continue
                about = score_of(BudgetScore, sums, statistic, category)
                for head in sums.names:
                    score = at_head(about, share, *head, most=1.0)
                    if beyond is not None and np.isfinite(beyond.value[(*head, 0)]):
                        score = beside_null(score, beyond, *head)
                    enrichment, low, high = ends(times, *head)
                    score = replace(score, baseline=float(even.value[(*head, 0)]), enrichment=enrichment,
                                    enrichment_low=low, enrichment_high=high)  # fmt: skip
                    scores.append(score)
        if sums.syntax:
            contested = whole.part(layout.CONTEST)
            scores += of_heads(BudgetScore, sums, contested, CONTESTED, otherwise="no input has two tokens")
        return scores

    def facts(self, scores: HeadScores) -> list[Fact]:
        shares: dict[str, float] = {}
        source = ""
        own = scores.own[scores.own["score"].str.startswith(f"{BUDGET}/") & scores.own["value"].notna()]
        for row in each(own):
            group = GROUP_OF[row["score"].rpartition("/")[2]]
            shares[group] = shares.get(group, 0.0) + row["value"]
            source = row["source"]
        most = sorted(shares, key=lambda group: -shares[group])[:2]
        told = " and ".join(f"{group} ({shares[group]:.0%})" for group in most)
        return [Fact(self.name, f"The largest shares of its attention go to {told}.", source)] if told else []

    def headline(self, rows: Sequence[Row]) -> Headline:
        all_scores = [score for score in BudgetScore.of_heads(rows) if score.statistic == BUDGET]
        if not all_scores:
            return Headline(
                "No input has a text token that can attend to another token, so no attention budget was measured."
            )
        first = all_scores[0]
        scores = [score for score in all_scores if (score.checkpoint, score.task) == (first.checkpoint, first.task)]
        heads = {score.name for score in scores}
        means = {
            category: sum(score.value or 0.0 for score in scores if score.feature == category) / len(heads)
            for category in dict.fromkeys(score.feature or "" for score in scores)
        }
        largest, second = sorted(means, key=lambda category: -means[category])[:2]
        best = max(scores, key=lambda score: score.value or 0.0)
        return Headline(
            f"On {task_name(first.task)}, the heads of {first.checkpoint} give {means[largest]:.0%} of their attention "
            f"to {BUDGET_CATEGORIES[largest]} and {means[second]:.0%} to {BUDGET_CATEGORIES[second]}. "
            f"{best.name} gives {best.value:.0%} to {BUDGET_CATEGORIES[best.feature or '']}.",
            best.n,
            "inputs",
            head_interval(best.name, best.low, best.high, "{:.0f} %", 100),
            f"Uniform attention would give this category {best.baseline:.0%}.",
        )

    def warnings(self, rows: Sequence[Row]) -> list[str]:
        features = {row.get("feature") for row in rows}
        if features and not features & set(SYNTAX):
            return [
                "Without a language pipeline that parses, syntactic heads and dependents are counted as other words."
            ]
        return []

    def shown(self, rows: Sequence[Row]) -> list[list[Row] | str]:
        return outstanding(rows, "value")


STUDY = Budget()
