"""Figures and numbers of a stored ablation of every head, layer or group."""

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from core.attention import Head
from core.interval import Estimate, in_points, or_nan
from core.store.runs import head_scores
from core.studies.ablation.records import AblatedTarget, PruneStep, SplitHalf, Unmodified, shared_effects, too_few_flips
from core.studies.ablation.setup import WHOLE
from core.studies.attention.records import Score
from core.studies.outcomes import Metric
from pages.parts.charts.curves import line_with_band, points, ranked, values_with_intervals
from pages.parts.charts.encoding import LARGE, Axes, Shade
from pages.parts.charts.heads import head_picture
from pages.parts.reports.caveats import explain_difference, warn_at_chance
from pages.parts.reports.stored_runs import StoredRun, present_runs
from pages.parts.reports.study_view import details, shown_result, title_of
from pages.parts.shell import resources, url
from pages.parts.shell.links import asked_heads, pick_and_link
from pages.parts.shell.messages import plain
from pages.parts.widgets.pickers import task_name
from pages.parts.widgets.tables import show_table

SURE = 0.05  # corrected p below which a change is significant


def show_results(study: str = "disable", more: Callable[[StoredRun], None] | None = None) -> None:
    """Show the finding, figure and details of a stored ablation (study `disable` or cross-fitted); `more` draws further
    details."""
    with shown_result(
        study,
        "No ablation of all heads is stored yet. Choose a checkpoint and press “Run”.",
        key="run" if study == "disable" else study,
        prefer=lambda stored: stored.told.get("what", "heads") == "heads",
    ) as stored:
        if stored is not None:
            _draw(stored, study, more)


def _draw(stored: StoredRun, study: str, more: Callable[[StoredRun], None] | None) -> None:
    rows = stored.result_rows
    variants, baseline = AblatedTarget.among(rows), Unmodified.among(rows)[0]
    warn_at_chance(stored, _value(baseline, "accuracy"), baseline.n)
    metric = first = baseline.metrics.first.name
    names = [metric.name for metric in baseline.metrics.every]
    if len(names) > 1:
        metric = url.pick(
            st.segmented_control, "Metric", names, key="metric", default=metric, required=True, format_func=plain
        )
    if not any(_change(variant, metric) for variant in variants):
        st.info(f"{plain(metric)} is undefined: the unmodified model predicts the same score for every example.")
        return
    if baseline.what == "duplicates":
        _duplicates(variants, metric)
    elif baseline.what in ("layers", "groups", *WHOLE):
        _bars(variants, baseline, metric)
    else:
        _heads(variants, baseline, metric)
    _everywhere(asked_heads())
    explain_difference(stored)
    with details():
        _split_halves(first, SplitHalf.among(rows))
        if study == "disable" and baseline.what in ("heads", "layers", "all-but-one"):
            _beside_another(stored)
        _table(variants, metric)
        _few(variants)
        st.caption(plain(" · ".join(_facts(stored, baseline, len(variants), first))))
        if baseline.what in ("heads", "all-but-one"):
            names = [str(_head_of(variant)) for variant in variants]
            pick_and_link(stored.of, names, current_view="interventions", key="go_on")
        if more is not None:
            more(stored)


def _facts(stored: StoredRun, baseline: Unmodified, variants: int, first: str) -> list[str]:
    flipped = "the contribution of each example to r" if first == "pearson" else "correct and wrong predictions"
    facts = [
        f"{stored.checkpoint} · {stored.task_said} {stored.split} · n = {baseline.n} examples",
        f"ablation method: {baseline.operator}" + (f" · {stored.dtype}" if stored.dtype else ""),
        f"CIs: paired, 95 %, for each ablation alone; p: corrected over all ablations by max-T over {flipped}",
    ]
    if baseline.effect_within is not None:
        facts.append(
            f"{baseline.in_float32} of {variants} ablations, including every significant one, were recomputed in "
            f"float32; rounding changes the other effects by at most {100 * baseline.effect_within:.2f} points"
        )
    return facts


def _head_of(variant: AblatedTarget) -> Head:
    return Head(int(variant.layer or 0), int(variant.head or 0))


def _metric_of(row: AblatedTarget | Unmodified, name: str) -> Metric:
    return row.metrics.of(name) or Metric(name)


def _change(variant: AblatedTarget, metric: str) -> Estimate | None:
    return _metric_of(variant, metric).change


def _split_halves(first: str, halves: Sequence[SplitHalf]) -> None:
    """Show the gain of the best ablation on examples that did not select it. `first` is the selecting metric."""
    for half in halves[:1]:
        gain, held_out, low, high, share_of_splits = map(
            or_nan, (half.chosen, half.held_out, half.low, half.high, half.same)
        )
        st.markdown(
            f"The best ablation on a random half of the examples changes {plain(first)} by **{100 * gain:+.1f}** "
            f"points on this half, and by **{100 * held_out:+.1f}** points on the other half (means over random "
            f"splits). In 95 % of the splits, the change on the other half is between {100 * low:+.1f} and "
            f"{100 * high:+.1f} points. This range is not a CI. {plain(half.name)} is the best ablation in "
            f"{share_of_splits:.0%} of the splits."
        )


def _value(row: AblatedTarget | Unmodified, metric: str) -> float:
    """Return the value of the metric; NaN if undefined."""
    return or_nan(_metric_of(row, metric).value)


def _heads(variants: list[AblatedTarget], baseline: Unmodified, metric: str) -> None:
    left, right = st.columns([3, 2])
    untouched = 100 * _value(baseline, metric)
    with left:
        title = f"Change in {metric} if one head is disabled (unmodified model: {untouched:.1f})"
        st.altair_chart(_picture(variants, metric, title), width="content")
        st.caption(
            "Heads are outlined if their effect is significant after correction, or if the URL of this page names them."
        )
    with right:
        scores = pd.DataFrame([_score(variant, baseline, metric) for variant in variants])
        axes = Axes(x="rank", y="score", low="low", high="high", name="name", y_title=f"{metric} × 100")
        st.altair_chart(
            ranked(scores, axes, title="Score after ablation of each head (dashed: unmodified model)", rule=untouched)
        )
    for head in asked_heads():
        for variant in variants:
            if _head_of(variant) == head:
                st.markdown(f"**{head}**: {plain(variant_sentence(variant, metric))}.")


def _picture(variants: Sequence[AblatedTarget], metric: str, title: str) -> Any:
    """Return the change of the metric by layer and head."""
    drawn = [
        {
            "layer": variant.layer,
            "head": variant.head,
            "change": in_points(change.value) if change else None,
            "flipped": variant.flipped,
            "p": variant.p,
            metric: _metric_of(variant, metric).value,
        }
        for variant in variants
        for change in (_change(variant, metric),)
    ]
    marked = [_head_of(variant) for variant in variants if variant.p < SURE]
    return head_picture(
        pd.DataFrame(drawn).astype({"change": float}),
        Shade("change", label=f"{metric}, points", diverging=True, cell=LARGE),
        title=title,
        highlight=[*marked, *asked_heads()],
        tooltip=("flipped", "p", metric),
    )


def variant_sentence(variant: AblatedTarget, metric: str) -> str:
    change = _change(variant, metric) or Estimate(float("nan"))
    low, high = or_nan(change.low), or_nan(change.high)
    flips = f", {variant.flipped} predictions change" if variant.flipped is not None else ""
    ends = f"95 % CI of this ablation alone: {100 * low:+.1f} to {100 * high:+.1f}"
    claim = f"corrected p {variant.p:.3f}{flips}"
    return f"{metric} {100 * change.value:+.1f} points, {claim} ({too_few_flips(variant.flipped, variant.n) or ends})"


def _shown(variant: AblatedTarget, change: Estimate | None) -> Estimate:
    """Return a change with its interval, without an interval if too few predictions changed."""
    change = change or Estimate(float("nan"))
    return Estimate(change.value) if too_few_flips(variant.flipped, variant.n) else change


def _few(variants: Sequence[AblatedTarget]) -> None:
    """Show how many targets have no interval, and the reason for the first one."""
    few = [note for variant in variants if (note := too_few_flips(variant.flipped, variant.n))]
    if few:
        st.caption(f"{len(few)} of {len(variants)} ablations have no CI, for example {few[0].removeprefix('no CI, ')}.")


def _score(variant: AblatedTarget, baseline: Unmodified, metric: str) -> dict[str, Any]:
    """Return the score of one target, times 100, with its interval around the unmodified model."""
    change = _shown(variant, _change(variant, metric))
    low, high = (100 * (_value(baseline, metric) + end) for end in (or_nan(change.low), or_nan(change.high)))
    return {"name": variant.name, "score": 100 * _value(variant, metric), "low": low, "high": high,
            "flipped": variant.flipped, "p": variant.p}  # fmt: skip


def _bars(variants: list[AblatedTarget], baseline: Unmodified, metric: str) -> None:
    untouched = _value(baseline, metric)
    shown = [_score(variant, baseline, metric) for variant in variants]
    st.altair_chart(
        values_with_intervals(
            pd.DataFrame(shown),
            Axes(x="name", y="score", low="low", high="high", x_title="disabled", y_title=f"{metric} × 100"),
            rule=100 * untouched,
            title="Score after each ablation (dashed: unmodified model)",
            tooltip=("flipped", "p"),
        )
    )


def _duplicates(variants: list[AblatedTarget], metric: str) -> None:
    """Show near-duplicate heads ablated together and singly, and random heads of the same layers."""
    lines, worse = [], []
    for variant in variants:
        cost = _metric_of(variant, metric)
        few = bool(too_few_flips(variant.flipped, variant.n))
        ways = {
            "together": cost.change,
            "sum of the effects of single heads": cost.apart,
            "random heads from the same layers": cost.control,
        }
        lines += [
            {"group": variant.name, "disabled": way, "heads": variant.heads, "change": 100 * estimate.value,
             "low": None if few else in_points(estimate.low), "high": None if few else in_points(estimate.high)}
            for way, estimate in ways.items() if estimate is not None
        ]  # fmt: skip
        beyond = cost.beyond_apart
        if not few and beyond is not None and beyond.high is not None and beyond.high < 0:
            worse.append(variant.name)
    chart = values_with_intervals(
        pd.DataFrame(lines),
        Axes(x="group", y="change", low="low", high="high", colour="disabled", y_title=f"change of {metric}, points"),
        rule=0,
        title="Change in score if near-duplicate heads are disabled",
        tooltip=("heads",),
    )
    st.altair_chart(chart)
    st.markdown(
        "The heads of a group can replace each other if ablating all of them lowers the score by more than the sum of "
        f"the single effects. This holds for **{len(worse)} of {len(variants)}** groups (95 % CI of the difference "
        "below 0)" + (f": {', '.join(worse)}." if worse else ".")
    )


def _beside_another(stored: StoredRun) -> None:
    """Compare the changes with another ablation, such as on another task."""
    other_sweeps = {
        sweep.run: sweep
        for sweep in present_runs("disable")
        if sweep.run != stored.run and sweep.settings.what == stored.settings.what
    }
    if not other_sweeps:
        return
    other_run = url.pick(
        st.selectbox,
        "Compare with another ablation",
        ["", *other_sweeps],
        key="other_run",
        format_func=lambda run: title_of(other_sweeps[run]) if run else "none",
    )
    if not other_run:
        return
    rows, other_rows = stored.result_rows, other_sweeps[other_run].result_rows
    pairs, agreement = shared_effects(rows, other_rows)
    if not pairs:
        st.info("The two results have no head in common. Choose another result for the comparison.")
        return
    changes = ["this", "other"]
    change_table = pd.DataFrame(pairs).astype(dict.fromkeys(changes, float))
    change_table[changes] *= 100
    rho = "undefined" if agreement.spearman is None else f"{agreement.spearman:.2f} (p {agreement.p:.3f})"
    title = f"Changes in two results, in points (Spearman {rho}, n = {agreement.n})"
    left, right = st.columns([3, 2])
    left.altair_chart(points(change_table, Axes(x="this", y="other", name="name"), title=title))
    variants = AblatedTarget.among(other_rows)
    if all(variant.head is not None for variant in variants):
        metric = variants[0].metrics.first.name
        name = task_name(str(variants[0].task))
        right.altair_chart(_picture(variants, metric, f"Other result: {metric} on {name}"), width="content")


def _table(variants: list[AblatedTarget], metric: str) -> None:
    """Show the table; p is corrected over all targets, and intervals are for single targets."""
    lines = []
    for variant in variants:
        score = _metric_of(variant, metric)
        change = _shown(variant, score.change)
        line: dict[str, Any] = {
            "name": variant.name,
            metric: score.value,
            f"{metric}_change": change.value,
            "p": variant.p,
            f"{metric}_low": change.low,
            f"{metric}_high": change.high,
            "flipped": variant.flipped,
            "mcnemar": variant.mcnemar,
            "heads": variant.heads,
        }
        line |= {} if variant.distance is None else {"distance": variant.distance}
        for name, beyond in (("beyond_apart", score.beyond_apart), ("beyond_control", score.beyond_control)):
            if beyond is not None:
                ends = {f"{metric}_{name}_low": beyond.low, f"{metric}_{name}_high": beyond.high}
                line |= {f"{metric}_{name}": beyond.value} | ends
        lines.append(line)
    show_table(pd.DataFrame(lines))


def _everywhere(heads: list[Head]) -> None:
    """Show the effects of the requested heads in every stored ablation of single heads."""
    if not heads:
        return
    present = {stored.run for stored in present_runs("disable")}
    sweep_scores = head_scores(resources.database(), study="disable")
    stored = sweep_scores[sweep_scores["run"].isin(present)].to_dict("records")
    scores = [
        score
        for score in Score.of_heads(stored)
        if str(score.statistic).endswith(" heads") and Head(int(score.layer or 0), int(score.head or 0)) in heads
    ]
    if not scores:
        st.info(
            f"No stored ablation of single heads includes {', '.join(map(str, heads))}. Choose a checkpoint and "
            "press “Run”."
        )
        return
    lines = [
        {
            "head": score.name,
            "checkpoint": score.checkpoint,
            "metric": score.feature,
            "operator": str(score.statistic).removesuffix(" heads"),
            "change, points": in_points(score.value),
            "p corrected": score.p,
            "95% from": in_points(score.low),
            "95% to": in_points(score.high),
        }
        for score in scores
    ]
    signed = ("change, points", "95% from", "95% to")
    st.markdown(f"**Ablations of {', '.join(map(str, heads))} in all stored results**")
    show_table(
        pd.DataFrame(lines),
        column_config={name: st.column_config.NumberColumn(format="%+.2f") for name in signed},
    )
    st.caption(
        "Each row is the ablation of one head. The p-values are corrected for the number of heads, but the CIs are not."
    )


# ---------------------------------------------------------------- pruning curves


def draw_curves(steps: Sequence[PruneStep]) -> None:
    """Show the metric by the fraction of pruned heads for each order."""
    first = steps[0]
    st.altair_chart(
        line_with_band(
            pd.DataFrame([_in_percent(step) for step in steps]),
            Axes(
                x="percent",
                y="score",
                low="low",
                high="high",
                colour="order",
                x_title="removed heads, %",
                y_title=f"{first.metric} × 100",
            ),
            rule=100 * first.baseline,
            title="Score by share of pruned heads (dashed: model with all heads)",
        )
    )


def _in_percent(step: PruneStep) -> dict[str, float | str | None]:
    score, low, high = map(in_points, (step.score, step.low, step.high))
    return {"percent": 100 * step.share, "score": score, "low": low, "high": high, "order": step.order}
