"""A race as rows: how it went, a verdict for each head with its intervals, and what every look settled."""

from typing import Any

import numpy as np

from ...scoring import effects
from ...scoring.racing import Rules, taken
from ..estimate import estimate_of
from ..metric_columns import Metric, Metrics
from ..outcomes import finite, metrics_of
from ..records import Result
from .races import BACKWARD, HOPELESS, Race
from .records import RaceLook, RaceSummary, RaceVerdict

INTERVALS = "bets"  # what the intervals are by; earlier versions have "at looks" or "anytime"


def table(race: Race) -> list[Result]:
    """The race, its verdicts in the order of the heads, its looks."""
    return [_race(race), *_verdicts(race), *_looks(race)]


def _about(race: Race) -> Any:
    options = race.options
    return {"task": race.task.key, "what": options.what, "operator": options.operator, "n": len(race.rows)}


def _race(race: Race) -> RaceSummary:
    rules, state = race.rules, race.standings
    verdicts = state.verdicts
    return RaceSummary(
        **_about(race), loss="squared error" if race.task.is_score else "nats", margin=rules.margin, clip=rules.clip,
        fewest=rules.fewest, alpha=rules.alpha, looks=" ".join(str(look) for look in rules.looks),
        intervals=INTERVALS, matters=verdicts.count("matters"),
        does_not_matter=verdicts.count("does not matter"), open=verdicts.count("open"),
        hopeless=int(state.hopeless.sum()),
        over=race.has_begun and race.next().over, **_work(race), **_gradient(race),
    )  # fmt: skip


def _work(race: Race) -> Any:
    """What the verdicts took, in row evaluations and in passes of a row, against all rows of every variant. What the
    metric of survivors took beyond them is not counted."""
    rules, state = race.rules, race.standings
    rows = np.where(state.rows > 0, state.rows, np.minimum(taken(race.exact), rules.first))
    full = rules.rows * (1 + race.costs.sum())
    passes = float((race.costs * rows).sum() + rows.max() + BACKWARD * rules.first)
    return {
        "evaluations": int(rows.sum()),
        "evaluations_full": rules.rows * rules.heads,
        "passes": passes,
        "passes_full": float(full),
        "forward_ratio": float(full / passes) if passes else None,
    }


def _gradient(race: Race) -> Any:
    """How far the gradient alone would lead, on the rows of the first look: ranks, and signs of heads that matter."""
    if not race.has_begun:
        return {"gradient_spearman": None, "gradient_wrong_signs": None}
    first = race.rules.first
    exact, slope = race.exact[:, :first].mean(1), race.first_order[:, :first].mean(1)
    matter = np.array([verdict == "matters" for verdict in race.standings.verdicts])
    wrong = matter & (np.sign(exact) != np.sign(slope))
    agreement = effects.rank_agreement(exact, slope)
    return {"gradient_spearman": agreement.spearman, "gradient_wrong_signs": int(wrong.sum())}


def _verdicts(race: Race) -> list[RaceVerdict]:
    state, metrics, first = race.standings, _metrics(race), race.rules.first
    exact, slope = (effects[:, :first].mean(1) for effects in (race.exact, race.first_order))
    return [
        RaceVerdict(
            **variant.facts(), **_about(race), margin=race.rules.margin, verdict=state.verdicts[k],
            rows=int(state.rows[k]), effect=finite(state.value[k]), effect_low=finite(state.low[k]),
            effect_high=finite(state.high[k]), exact_first=finite(exact[k]), gradient_first=finite(slope[k]),
            metrics=Metrics(tuple(metrics.get(k, ()))), **_score(race, k),
        )
        for k, variant in enumerate(race.variants)
    ]  # fmt: skip


def _score(race: Race, k: int) -> Any:
    """The fields that make a row of one head a head score in the store."""
    state = race.standings
    if race.options.what not in ("heads", "all-but-one") or finite(state.value[k]) is None:
        return {}
    return {
        "statistic": f"race {race.options.operator} {race.options.what}",
        "feature": f"{race.options.task} loss",
        "value": finite(state.value[k]),
        "low": finite(state.low[k]),
        "high": finite(state.high[k]),
    }


def _metrics(race: Race) -> dict[int, list[Metric]]:
    """The metrics of survivors that ran on all rows, with the interval of their change; for F1 and Pearson too."""
    part, verdicts = race.taken, race.standings.verdicts
    if len(part.rows) < len(race.rows) or np.isnan(part.plain).any():
        return {}
    whole = [k for k in range(len(verdicts)) if verdicts[k] == "matters" and not np.isnan(part.changed[k]).any()]
    if not whole:
        return {}
    metrics: dict[int, list[Metric]] = {k: [] for k in whole}
    for name in metrics_of(race.task):
        changes = effects.metric_intervals(name, part.gold, part.plain, part.changed[whole])
        for k, change in zip(whole, changes, strict=True):
            metrics[k].append(Metric(name, change=estimate_of(change)))
    return metrics


def _looks(race: Race) -> list[RaceLook]:
    """Per look: how many were open before it, and what it settled."""
    rules: Rules = race.rules
    state, rows = race.standings, []
    for look in rules.looks:
        at = [v for v, n in zip(state.verdicts, state.rows, strict=True) if n == look]
        before = int((state.rows >= look).sum())
        if before:
            settled: Any = {"settled": sum(v != "open" for v in at), "matters": at.count("matters")}
            rows.append(RaceLook(name=f"{look} rows", rows=look, open=before, **settled, **_about(race)))
    return rows


def verdict_sentence(race: RaceSummary) -> str:
    """How a race went, in sentences."""
    counts = f"{race.matters} matter, {race.does_not_matter} do not, {race.open} stay open{_hopeless(race)}"
    took = (
        f"{race.evaluations:,} of {race.evaluations_full:,} row evaluations, {race.forward_ratio:.1f}x less "
        f"forward work than a full sweep ({race.passes:,.0f} against {race.passes_full:,.0f} passes of a row)"
    )
    rho = "undefined" if race.gradient_spearman is None else f"{race.gradient_spearman:.2f}"
    return (
        f"At a margin of {race.margin:.4g} {race.loss}: {counts}{_promise(race)}.{_clipping(race)} It took {took}. "
        f"On the rows of the first look, first-order effects rank the heads with a correlation of {rho} with exact "
        f"effects and have the wrong sign for {race.gradient_wrong_signs} of the heads that matter."
    )


def _promise(race: RaceSummary) -> str:
    """How often any verdict is wrong; of tests of earlier versions, that this does not hold."""
    if race.intervals != INTERVALS:
        return (
            ". An earlier version made these intervals, which miss the mean too often where few rows carry an effect: "
            "run the test again"
        )
    return f", with any verdict wrong in at most {race.alpha:.0%} of such tests (all heads and looks)"


def _hopeless(race: RaceSummary) -> str:
    """How many of the open ones take no more rows."""
    if not race.hopeless:
        return ""
    return (
        f" ({race.hopeless} of them without more rows: all there are would bring a verdict in less than {HOPELESS:.0%})"
    )


def _clipping(race: RaceSummary) -> str:
    """What rare effects the verdicts speak of; nothing of races of before."""
    if race.clip is None:
        return ""
    sentence = (
        f" A row's loss counts up to {race.clip:.3g}: what a head does to fewer than "
        f"{race.margin / race.clip:.1%} of the rows lies within the margin."
    )
    if race.fewest is not None and race.fewest > race.n:
        sentence += f" That a head does not matter takes {race.fewest:,} rows, and there are {race.n:,}."
    return sentence
