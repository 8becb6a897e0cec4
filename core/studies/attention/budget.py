"""Attention budget: how the attention of each head is divided between [CLS], [SEP], neighbours, syntax and other words.

The shares of a head add up to 1. Statistics: "budget" for the tokens of the text as queries, and "classifying budget"
for the token that classifiers read. Each row has a head, category, checkpoint and task, with `value` (the share, with a
95 % interval over inputs), `baseline` (the share under uniform attention) and `enrichment` (value / baseline, with an
interval). For other occurrences of a word, its syntactic head and its dependents, `effect` is the share minus attention
to other words at the same distances. The row "contested" is the attention to a syntactic head or dependent that is
counted in an earlier category. `core.scoring.budget` defines the categories.

With `parts_of_speech`, "budget of nouns" and so on are budgets of these queries, and "distance of a part of speech" is
the Jensen-Shannon distance between the budget of one class and that of all other words. Its baseline is the distance
under uniform attention, and p is from 199 permutations of the words of each sentence, corrected over classes (Holm).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pydantic.dataclasses

from ... import scoring, studies
from ...errors import InputError
from ...scoring.definitions import BUDGET_CATEGORIES, GROUP_OF, QUERY_CLASSES
from ...scoring.registry import CLARK, HeadScore
from ...store.rows import Row
from ...tasks.glue import task_name
from ..contract import Flag
from ..headline import Fact, Headline, HeadScores, each, head_interval
from ..options import Pipeline
from .attending import Attending, at_head, beside_null, ends, of_heads, score_of
from .inputs import AttendingOptions
from .partials import BudgetSums, Pieces
from .records import BudgetScore

if TYPE_CHECKING:
    from .measures import BudgetMeasure

BUDGET, CLASSIFYING, CONTESTED = "budget", "classifying budget", "contested"
BY_CLASS = "budget of "  # and the name of a class of queries
DISTANCE = "distance of a part of speech"
DRAWS = 199  # permutations
LEAST_DISTANCE, LEVEL = 0.1, 0.05
SYNTAX = ("governor", "dependent")
WITHOUT = "none"  # the value for "no pipeline"


@pydantic.dataclasses.dataclass(frozen=True)
class BudgetOptions(AttendingOptions):
    """Options for measuring how heads divide their attention. Use `pipeline` "none" for languages without a parser."""

    pipeline: Pipeline = None
    parts_of_speech: Annotated[
        bool,
        Flag(
            "also measure attention to kinds of tokens separately for queries of each part of speech, and test for "
            "differences between parts of speech"
        ),
    ] = False


class BudgetStudy(Attending[BudgetOptions, BudgetSums]):
    """Measure which share of each head's attention goes to [CLS], [SEP], neighbours, syntax and other words."""

    name, options, partial = "budget", BudgetOptions, Pieces[BudgetSums]
    question = "Where does each head's attention go?"
    kinds = (BudgetScore,)
    head_scores = (
        HeadScore(BUDGET, "share of attention", "mean over queries of the attention to the category's keys",
                  ("weights", "links"), 0.0, 1.0, CLARK, about="category"),
        HeadScore(CLASSIFYING, "share of the classifying token's attention",
                  "attention of the classifying token to the category's keys", ("weights", "links"), 0.0, 1.0,
                  CLARK, about="category"),
        *(HeadScore(f"{BY_CLASS}{name}", f"share of attention, {name} as queries",
                    f"mean over queries that are {name} of the attention to the category's keys",
                    ("weights", "links"), 0.0, 1.0, CLARK, about="category") for name in QUERY_CLASSES),
        HeadScore(DISTANCE, "difference between parts of speech",
                  "Jensen-Shannon distance between the budget of these queries and of all others",
                  ("weights", "links"), 0.0, 1.0, CLARK, about="feature"),
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
        if options.parts_of_speech and not syntax:
            raise InputError(
                "Attention budgets by part of speech need a language pipeline with a tagger and a parser; the chosen "
                "pipeline lacks them. Choose another pipeline, or leave the parts of speech out."
            )
        draws = DRAWS if options.parts_of_speech else None
        return studies.attention.measures.BudgetMeasure(checkpoint, syntax=syntax, draws=draws, seed=options.seed)

    def scores(self, options: BudgetOptions, sums: BudgetSums) -> list[BudgetScore]:
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
        return scores + (self._by_class(sums, left_out) if sums.counts.size else [])

    def _by_class(self, sums: BudgetSums, left_out: set[str]) -> list[BudgetScore]:
        """Return the budget of each class of queries, and how far it is from that of all other queries."""
        whole, scores, width = sums.by_class.result(), list[BudgetScore](), len(BUDGET_CATEGORIES)
        found = scoring.budget.class_distances(sums.by_class, sums.drawn, sums.counts, sums.even)
        q = scoring.corrections.q_of_all(list(np.moveaxis(found.p, -1, 0)))
        for number, name in enumerate(QUERY_CLASSES):
            n = int(sums.counts[0, number].max())
            if not n:
                continue
            for k, category in enumerate(BUDGET_CATEGORIES):
                if category not in left_out:
                    about, share = (
                        score_of(BudgetScore, sums, BY_CLASS + name, category),
                        whole.part(number * width + k),
                    )
                    scores += [at_head(about, share, *head, most=1.0) for head in sums.names]
            about = replace(score_of(BudgetScore, sums, DISTANCE, name), n=n)
            for head in sums.names:
                at = (*head, number)
                if np.isfinite(found.value[at]):
                    scores.append(
                        replace(
                            about,
                            layer=head.layer,
                            head=head.head,
                            value=float(found.value[at]),
                            baseline=float(found.even[at]),
                            p=float(found.p[at]),
                            q=float(q[number][tuple(head)]),
                        )
                    )
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
        groups = " and ".join(f"{group} ({shares[group]:.0%})" for group in most)
        found = [Fact(self.name, f"This head attends most to {groups}.", source)] if groups else []
        apart = scores.own[scores.own["score"].str.startswith(f"{DISTANCE}/")]
        is_apart = (apart["value"] - apart["baseline"] >= LEAST_DISTANCE) & (apart["q"] <= LEVEL)
        apart = apart[is_apart].sort_values("value")
        if len(apart):
            best = apart.iloc[-1]
            word_class = best["score"].rpartition("/")[2]
            text = (
                f"Queries that are {word_class} differ most from other queries in how this head divides its attention "
                "among kinds of tokens. The Jensen-Shannon distance between the two distributions is "
                f"{best['value']:.2f} ({best['baseline']:.2f} with uniform attention)."
            )
            found.append(Fact(self.name, text, best["source"]))
        return found

    def headline(self, rows: Sequence[Row]) -> Headline:
        all_scores = [score for score in BudgetScore.of_heads(rows) if score.statistic == BUDGET]
        if not all_scores:
            return Headline(
                "Attention to kinds of tokens was not measured, because no input has a text token that can attend to "
                "another token."
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
            f"Head {best.name} gives {best.value:.0%} to {BUDGET_CATEGORIES[best.feature or '']}.",
            best.n,
            "inputs",
            head_interval(best.name, best.low, best.high, "{:.0f} %", 100),
            f"With uniform attention, this head would give {best.baseline:.0%} of its attention to "
            f"{BUDGET_CATEGORIES[best.feature or '']}.",
        )

    def warnings(self, rows: Sequence[Row]) -> list[str]:
        features = {row.get("feature") for row in rows}
        if features and not features & set(SYNTAX):
            return [
                "Without a language pipeline that parses, syntactic heads and dependents are counted as other words."
            ]
        return []


STUDY = BudgetStudy()
