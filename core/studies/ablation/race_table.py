"""A race as rows: how it went, a verdict for each head with its intervals, and what every look settled."""

from typing import Any

import numpy as np

from core.scoring import effects
from core.scoring.racing import Rules, taken
from core.store.rows import Row
from core.studies.ablation.races import Race
from core.studies.ablation.records import RaceLook, RaceSummary
from core.studies.outcomes import metrics_of


def table(race: Race) -> list[Row]:
    """The race, its verdicts in the order of the heads, its looks."""
    return [_race(race), *_verdicts(race), *_looks(race)]


def _about(race: Race) -> Any:
    options = race.options
    return {"task": race.task.key, "what": options.what, "operator": options.operator, "n": len(race.rows)}


def _race(race: Race) -> Row:
    rules, state, choice = race.rules, race.standings, race.choice
    verdicts = state.verdicts
    return RaceSummary(
        **_about(race), loss="squared error" if race.task.is_score else "nats", margin=rules.margin, clip=rules.clip,
        fewest=rules.fewest, alpha=rules.alpha, looks=" ".join(str(look) for look in rules.looks),
        intervals="anytime" if rules.anytime else "at looks", matters=verdicts.count("matters"),
        does_not_matter=verdicts.count("does not matter"), open=verdicts.count("open"),
        over=choice is not None and race.next().over, **_control(race), **_work(race), **_gradient(race),
    ).as_row()  # fmt: skip


def _control(race: Race) -> Any:
    choice = race.choice
    if choice is None:
        return {"control": None, "foreseen_without": None, "foreseen_with": None}
    return {"control": choice.use, "foreseen_without": choice.without, "foreseen_with": choice.with_control}


def _work(race: Race) -> Any:
    """What the verdicts took, in row evaluations and in passes of a row, against all rows of every variant. What the
    metric of survivors took beyond them is not counted."""
    rules, state, choice = race.rules, race.standings, race.choice
    rows = np.where(state.rows > 0, state.rows, np.minimum(taken(race.exact), rules.first))
    full = rules.rows * (1 + race.work.heads.sum())
    slopes = rules.rows if choice is not None and choice.use else rules.first
    passes = float((race.work.heads * rows).sum() + rows.max() + race.work.backward * slopes)
    return {
        "evaluations": int(rows.sum()),
        "evaluations_full": rules.rows * rules.heads,
        "passes": passes,
        "passes_full": float(full),
        "forward_ratio": float(full / passes) if passes else None,
    }


def _gradient(race: Race) -> Any:
    """How far the gradient alone would lead, on the rows of the first look: ranks, and signs of heads that matter."""
    if race.choice is None:
        return {"gradient_spearman": None, "gradient_wrong_signs": None}
    first = race.rules.first
    exact, slope = race.exact[:, :first].mean(1), race.first_order[:, :first].mean(1)
    matter = np.array([verdict == "matters" for verdict in race.standings.verdicts])
    wrong = matter & (np.sign(exact) != np.sign(slope))
    agreement = effects.rank_agreement(exact, slope)
    return {"gradient_spearman": agreement.spearman, "gradient_wrong_signs": int(wrong.sum())}


def _verdicts(race: Race) -> list[Row]:
    state, metric, first, body = race.standings, _metric(race), race.rules.first, []
    exact, slope = (effects[:, :first].mean(1) for effects in (race.exact, race.first_order))
    for k, variant in enumerate(race.variants):
        row = {"kind": "verdict", **variant.facts(), **_about(race), "margin": race.rules.margin}
        row |= {"verdict": state.verdicts[k], "rows": int(state.rows[k])}
        values = {
            "effect": state.value[k], "effect_low": state.low[k], "effect_high": state.high[k],
            "always_low": state.always_low[k], "always_high": state.always_high[k],
            "exact_first": exact[k], "gradient_first": slope[k],
        }  # fmt: skip
        row |= {name: _known(value) for name, value in values.items()}
        body.append(row | metric.get(k, {}) | _score(race, k, row))
    return body


def _score(race: Race, k: int, row: Row) -> Row:
    """The fields that make a row of one head a head score in the store."""
    if race.options.what not in ("heads", "all-but-one") or row["effect"] is None:
        return {}
    return {
        "statistic": f"race {race.options.operator} {race.options.what}",
        "feature": f"{race.options.task} loss",
        "value": row["effect"],
        "low": row["effect_low"],
        "high": row["effect_high"],
    }


def _metric(race: Race) -> dict[int, Row]:
    """The metric of survivors that ran on all rows, with the interval of its change; for F1 and Pearson too."""
    part, verdicts = race.taken, race.standings.verdicts
    if len(part.rows) < len(race.rows) or np.isnan(part.plain).any():
        return {}
    whole = [k for k in range(len(verdicts)) if verdicts[k] == "matters" and not np.isnan(part.changed[k]).any()]
    if not whole:
        return {}
    cells: dict[int, Row] = {k: {} for k in whole}
    for name in metrics_of(race.task):
        changes = effects.metric_intervals(name, part.gold, part.plain, part.changed[whole])
        for k, change in zip(whole, changes, strict=True):
            cells[k] |= {f"{name}_change": change.value, f"{name}_low": change.low, f"{name}_high": change.high}
    return cells


def _looks(race: Race) -> list[Row]:
    """Per look: how many were open before it, and what it settled."""
    rules: Rules = race.rules
    state, rows = race.standings, []
    for look in rules.looks:
        at = [v for v, n in zip(state.verdicts, state.rows, strict=True) if n == look]
        before = int((state.rows >= look).sum())
        if before:
            settled: Any = {"settled": sum(v != "open" for v in at), "matters": at.count("matters")}
            rows.append(RaceLook(name=f"{look} rows", rows=look, open=before, **settled, **_about(race)).as_row())
    return rows


def _known(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


def verdict_sentence(row: Row) -> str:
    """How a race went, in sentences."""
    counts = f"{row['matters']} matter, {row['does not matter']} do not, {row['open']} stay open"
    took = (
        f"{row['evaluations']:,} of {row['evaluations_full']:,} row evaluations, {row['forward_ratio']:.1f}x less "
        f"forward work than a full sweep ({row['passes']:,.0f} against {row['passes_full']:,.0f} passes of a row)"
    )
    used = "were taken on all rows as a control variate" if row["control"] else "did not pay beyond the first look"
    foreseen = f"foreseen {row['foreseen_with']:,.0f} passes with them, {row['foreseen_without']:,.0f} without"
    rho = "undefined" if row["gradient_spearman"] is None else f"{row['gradient_spearman']:.2f}"
    return (
        f"At a margin of {row['margin']:.4g} {row['loss']}: {counts}, with any verdict wrong in at most "
        f"{row['alpha']:.0%} of such tests (all heads and looks).{_clipping(row)} It took {took}. First-order "
        f"effects {used} ({foreseen}); alone they rank the heads with a correlation of {rho} and have the wrong sign "
        f"for {row['gradient_wrong_signs']} of those that matter: they are no verdict."
    )


def _clipping(row: Row) -> str:
    """What rare effects the verdicts speak of; nothing of races of before."""
    if row.get("clip") is None:
        return ""
    sentence = (
        f" A row's loss counts up to {row['clip']:.3g}: what a head does to fewer than "
        f"{row['margin'] / row['clip']:.1%} of the rows lies within the margin; unseen rows are reckoned with."
    )
    if row["fewest"] > row["n"]:
        sentence += f" That a head does not matter takes {row['fewest']:,} rows, and there are {row['n']:,}."
    return sentence
