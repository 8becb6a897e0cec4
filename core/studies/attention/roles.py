"""Which roles heads play: previous, next, first, separator, duplicate, induction, rare word, dependency, copying.

On a task's rows, and for duplicates and induction on random words that come twice. Rows, one a head and role: the
weight (for the rare word: the share of largest weights) with its 95% interval and n inputs, baseline, effect (weight
less baseline, with interval); the same with the first token, the sink, taken out, as "<role> without sink"; `has`:
whether the weight is above `times` the baseline, with q corrected over all heads and roles, so a head may have several
roles or none; and one a head of "copying", which is of the weights alone and has no interval.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pydantic.dataclasses

from ... import studies
from ...errors import InputError
from ...scoring.registry import CLARK, HeadScore, Need
from ...scoring.roles import TIMES, RoleMeans, role_q
from ...store.rows import Row
from ..contract import Flag, Unit
from ..head_facts import Fact, HeadScores, each, number
from ..headline import Headline
from ..options import Pipeline
from .attending import Attending, at_head, beside_null, score_of
from .headlines import outstanding
from .inputs import AttendingOptions
from .partials import Pieces, RoleSums
from .records import RoleScore

if TYPE_CHECKING:
    from .role_measure import RoleMeasure

SURE = 0.05


@pydantic.dataclasses.dataclass(frozen=True)
class RolesOptions(AttendingOptions):
    """Which inputs are looked at, and how many random ones."""

    pipeline: Pipeline = None
    sequences: Annotated[int, Flag("random sequences whose words come twice", least=2)] = 50
    period: Annotated[int, Flag("words of a sequence before it comes again", least=2)] = 20
    times: Annotated[float, Flag("a role needs more than so many times the baseline's weight", least=1)] = TIMES


OLSSON = "Olsson et al. 2022"


def _role(
    name: str, label: str, formula: str, source: str, needs: tuple[Need, ...] = ("weights", "tokens"), **fields: Any
) -> list[HeadScore]:
    """The score of a role, and the same without the sink."""
    role_score = HeadScore(name, f"role: {label}", formula, needs, 0.0, 1.0, source, **fields)
    without_sink = HeadScore(f"{name} without sink", f"role: {label}, no sink",
                             f"{formula}; the first token taken out, rows scaled to sum to 1", needs, 0.0, 1.0, source,
                             **fields)  # fmt: skip
    return [role_score, without_sink]


ROLE_SCORES = (
    *_role("previous", "previous token", "mean weight on the token before", CLARK),
    *_role("next", "next token", "mean weight on the token after", CLARK, causal=False),
    *_role("first", "first token (sink)", "mean weight on the first token", CLARK)[:1],
    *_role("separator", "separator", "mean weight on all separators together", CLARK),
    *_role("duplicate", "duplicate token", "on random tokens that come twice: from the second to the first", OLSSON),
    *_role("prefix", "induction", "on random tokens that come twice: from the second to the one after the first",
           OLSSON),
    *_role("rare", "rare word", "share of queries whose largest weight is on the least frequent word",
           "Voita et al. 2019"),
    *_role("dependency", "dependency", "mean weight from a word to its governor or dependents", "Voita et al. 2019",
           ("weights", "tags", "links")),
    HeadScore("copying", "OV copying", "sum of the eigenvalues of W_E W_V W_O W_U over the sum of their sizes",
              ("values",), -1.0, 1.0, "Elhage et al. 2021"),
)  # fmt: skip
OWN_LABELS = {score.name: score.label.removeprefix("role: ") for score in ROLE_SCORES}


class Roles(Attending[RolesOptions, RoleSums]):
    """Roles of heads against baselines, with and without the sink, tested over heads and roles (Pande et al. 2021)."""

    name, options, partial = "roles", RolesOptions, Pieces[RoleSums]
    kinds = (RoleScore,)
    head_scores = ROLE_SCORES
    section = "where it looks"
    said_at = 2
    gives = "roles against baselines"

    def units(self, options: RolesOptions) -> list[Unit]:
        """Chunks of rows; the first of each task has the random sequences too."""
        if options.sequences < 2 or options.period < 2 or options.times < 1:
            raise InputError(
                "Roles need at least 2 sequences, a period of at least 2 and at least 1 times the baseline; seen "
                f"{options.sequences}, {options.period} and {options.times:g}."
            )
        return super().units(options)

    def measure(self, options: RolesOptions, checkpoint: Any) -> "RoleMeasure":
        """Roles on one checkpoint."""
        return studies.attention.role_measure.RoleMeasure(checkpoint)

    def after(self, options: RolesOptions, measure: Any, start: int) -> None:
        """The random sequences, once a task."""
        if start == 0:
            measure.repeats(sequences=options.sequences, period=options.period, seed=options.seed)

    def scores(self, options: RolesOptions, sums: RoleSums) -> list[RoleScore]:
        """Every role, as it is and without the sink, and copying; one without a head where no input has it."""
        roles = RoleMeans(sums.layers, sums.heads)
        roles.means = sums.means
        q, scores = role_q(roles, times=options.times), []
        for role, whole in roles.result().items():
            for name, value, effect in (
                (role, whole.weight, whole.effect),
                (f"{role} without sink", whole.without_sink, whole.effect_without_sink),
            ):
                about = replace(score_of(RoleScore, sums, name), role=role)
                if not value.n[0]:
                    note = "not without the sink" if whole.weight.n[0] else "no input has such tokens"
                    scores.append(replace(about, n=0, note=note))
                    continue
                for head in np.ndindex(sums.layers, sums.heads):
                    score = beside_null(at_head(about, value, *head), effect, *head)
                    scores.append(replace(score, q=float(q[role][head]), has=bool(q[role][head] < SURE)))
        copying = score_of(RoleScore, sums, "copying")
        return scores + [
            replace(copying, layer=layer, head=head, value=float(value))
            for (layer, head), value in np.ndenumerate(sums.copying)
        ]

    def facts(self, scores: HeadScores) -> list[Fact]:
        roles = scores.own[~scores.own["score"].str.endswith("without sink") & scores.own["q"].notna()]
        told = []
        for row in each(roles[roles["q"] < SURE].sort_values("value", ascending=False)):
            label = OWN_LABELS[row["score"]]
            told.append(Fact(self.name, f"{label} {number(row)} (baseline {row['baseline']:.2f})", row["source"]))
        none = f"none of {len(roles)} roles above three times its baseline"
        return told or [Fact(self.name, none, source) for source in roles["source"].head(1)]

    def headline(self, rows: Sequence[Row]) -> Headline:
        scores = [score for score in RoleScore.of_heads(rows) if score.has and score.statistic == score.role]
        counts = {role: sum(score.role == role for score in scores) for role in dict.fromkeys(s.role for s in scores)}
        heads, n = len({score.name for score in scores}), max(int(score.n or 0) for score in RoleScore.of_heads(rows))
        counted = ", ".join(f"{count} {role}" for role, count in counts.items())
        return Headline(
            f"{heads} {'head has' if heads == 1 else 'heads have'} a role" + (f": {counted}." if counted else "."),
            n,
            "inputs",
        )

    def shown(self, rows: Sequence[Row]) -> list[list[Row] | str]:
        return outstanding(rows, "value")


STUDY = Roles()
