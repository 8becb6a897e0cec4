"""The pictures and numbers of a stored sweep."""

import json
from typing import Any

import pandas as pd
import streamlit as st

from core.attention import Head
from core.measuring.disabling import PARTS
from core.store.runs import head_scores, known_runs, run_rows, study_rows
from core.studies.disable import first_metric, shared
from pages.parts.charts.curves import bars_with_intervals, histogram, points
from pages.parts.charts.encoding import Axes, Shade
from pages.parts.charts.heads import head_picture
from pages.parts.frame import resources
from pages.parts.frame.messages import plain
from pages.parts.reports.stored_runs import pick_run, title_of
from pages.parts.widgets.head_links import asked_heads, pick_and_link
from pages.parts.widgets.pickers import task_name

ENDS = ("low", "high")
BESIDE = "{}_beyond"  # columns of groups of near-duplicates


def show_results() -> None:
    """Pictures, numbers and what they are worth, of a stored sweep."""
    picked = pick_run("disable", "Nothing has been swept yet: choose a fine-tuned checkpoint and press Sweep.")
    if picked is None:
        return
    run, about = picked
    rows = study_rows(resources.database(), run)
    variants, baseline = rows[rows["kind"] == "variant"], rows[rows["kind"] == "baseline"].iloc[0]
    metric = first = first_metric(baseline.dropna().to_dict())
    names = [name for name in ("accuracy", "f1", "pearson") if name in rows]
    if len(names) > 1:
        metric = st.segmented_control("Metric", names, default=metric, required=True) or metric
    _headline(variants, baseline, metric, first, rows[rows["kind"] == "split half"])
    if baseline["what"] == "duplicates":
        _duplicates(variants, metric)
    elif baseline["what"] in ("layers", "groups", *PARTS):
        _bars(variants, baseline, metric)
    else:
        _heads(variants, baseline, metric)
    if baseline["what"] in ("heads", "layers", "all-but-one"):
        _beside_another(run)
    _table(variants, metric)
    flipped = "what each row adds to the change of r" if first == "pearson" else "right and wrong rows"
    said_so = (
        f"{about['checkpoint']} · {task_name(baseline['task'])} {about['split']} · n = {int(baseline['n'])} rows",
        f"operator {baseline['operator']} · {about['dtype']} · {about['created']:%d %B %Y}",
        f"intervals: paired bootstrap, 95%, one at a time; p: max-T over random signs of {flipped}, corrected over all",
    )
    if pd.notna(baseline.get("effect_within")):
        said_so += (
            f"{int(baseline['in_float32'])} of {len(variants)}, every claim among them, computed again in float32; the "
            f"others' effects are within {100 * baseline['effect_within']:.2f} points of it",
        )
    st.caption(plain(" · ".join(said_so)))
    if baseline["what"] in ("heads", "all-but-one"):
        names = [str(Head(int(a), int(b))) for a, b in zip(variants["layer"], variants["head"], strict=True)]
        pick_and_link(str(about["checkpoint"]), names, here="disable", key="go_on")
    _everywhere(asked_heads())


def _headline(variants: pd.DataFrame, baseline: pd.Series, metric: str, first: str, halves: pd.DataFrame) -> None:
    """first: the metric that chooses and that luck is judged by."""
    kept = variants[variants["p"] < 0.05]
    if variants[f"{metric}_change"].isna().all():
        st.info(f"{metric} is undefined here: the untouched checkpoint predicts the same for every row.")
        return
    best = variants.loc[variants[f"{metric}_change"].astype(float).idxmax()]
    left, middle, right = st.columns(3)
    left.metric(
        "change beyond luck", f"{len(kept)} of {len(variants)}", help=f"{first}, p < 0.05 after correction over all"
    )
    middle.metric(f"{metric}, untouched", f"{100 * baseline[metric]:.1f}")
    right.metric(f"best: {best['name']}", f"{100 * best[metric]:.1f}", f"{100 * best[f'{metric}_change']:+.1f}")
    if len(halves):
        half = halves.iloc[0]
        st.markdown(
            f"Chosen by {first} on one half of the rows, the best gains **{100 * half['chosen']:+.1f}** there and "
            f"**{100 * half['held_out']:+.1f}** on the other half (the middle 95% of random splits of these rows: "
            f"{100 * half['low']:+.1f} to {100 * half['high']:+.1f}, no confidence interval); {half['name']} is chosen "
            f"in {half['same']:.0%} of the splits."
        )


def _heads(variants: pd.DataFrame, baseline: pd.Series, metric: str) -> None:
    left, right = st.columns([3, 2])
    drawn, asked = variants.astype({"layer": int, "head": int}), asked_heads()
    with left:
        title = f"Change of {metric} from {100 * baseline[metric]:.1f} (Fig 8)"
        st.altair_chart(_picture(variants, metric, title), width="content")
        st.caption("Outlined: beyond luck, or asked for by the link to this page.")
    with right:
        scores = pd.DataFrame({metric: 100 * drawn[metric].astype(float)}).dropna()
        title, untouched = "Heads by score without them (Michel Fig 1)", 100 * baseline[metric]
        st.altair_chart(histogram(scores, x=metric, counted="heads", title=title, rule=untouched))
    for head in asked:
        mine = drawn[(drawn["layer"] == head.layer) & (drawn["head"] == head.head)]
        for _, row in mine.iterrows():
            st.markdown(f"**{head}**: {said(row, metric)}.")


def _picture(variants: pd.DataFrame, metric: str, title: str) -> Any:
    """Change of the metric by layer and head."""
    drawn = variants.astype({"layer": int, "head": int}).assign(change=100 * variants[f"{metric}_change"].astype(float))
    sure = drawn[drawn["p"] < 0.05]
    marked = [Head(int(a), int(b)) for a, b in zip(sure["layer"], sure["head"], strict=True)]
    return head_picture(
        drawn,
        Shade("change", label=f"{metric}, points", diverging=True),
        title=title,
        highlight=[*marked, *asked_heads()],
        tooltip=("flipped", "p", metric),
    )


def said(row: pd.Series, metric: str) -> str:
    """One variant in words."""
    ends = f"{100 * row[f'{metric}_low']:+.1f} to {100 * row[f'{metric}_high']:+.1f}"
    flips = f", {int(row['flipped'])} predictions change" if pd.notna(row["flipped"]) else ""
    claim = f"corrected p {row['p']:.3f}{flips}"
    return f"{metric} {100 * row[f'{metric}_change']:+.1f} points, {claim} (this one alone, 95%: {ends})"


def _bars(variants: pd.DataFrame, baseline: pd.Series, metric: str) -> None:
    shown = variants.assign(
        score=100 * variants[metric].astype(float),
        low=100 * (baseline[metric] + variants[f"{metric}_low"].astype(float)),
        high=100 * (baseline[metric] + variants[f"{metric}_high"].astype(float)),
    )
    st.altair_chart(
        bars_with_intervals(
            shown,
            Axes(x="name", y="score", low="low", high="high", x_title="disabled", y_title=f"{metric} x 100"),
            rule=100 * baseline[metric],
            title="Score without each; dashed: untouched (Fig 9)",
            tooltip=("flipped", "p"),
        )
    )


def _duplicates(variants: pd.DataFrame, metric: str) -> None:
    """Near-duplicates together, one at a time, and random heads of the same layers."""
    kinds = {"change": "together", "apart": "one at a time, added up", "control": "random heads of the same layers"}
    lines = []
    for row in variants.to_dict("records"):
        for field, said_of_it in kinds.items():
            ends = {end: row[f"{metric}_{end}" if field == "change" else f"{metric}_{field}_{end}"] for end in ENDS}
            if pd.notna(row[f"{metric}_{field}"]):
                points = {name: 100 * value for name, value in (ends | {"change": row[f"{metric}_{field}"]}).items()}
                lines.append({"group": row["name"], "disabled": said_of_it, "heads": row["heads"], **points})
    chart = bars_with_intervals(
        pd.DataFrame(lines),
        Axes(x="group", y="change", low="low", high="high", colour="disabled", y_title=f"change of {metric}, points"),
        rule=0,
        title="Do near-duplicates stand in for each other?",
        tooltip=("heads",),
    )
    st.altair_chart(chart)
    worse = variants[variants[f"{metric}_beyond_apart_high"].astype(float) < 0]
    st.markdown(
        "A group whose heads stand in for each other loses more together than its heads lose one at a time: "
        f"**{len(worse)} of {len(variants)}** groups do (95% interval of the difference below 0, one at a time)"
        + (f": {', '.join(worse['name'])}." if len(worse) else ".")
    )


def _beside_another(run: str) -> None:
    """Which heads do two tasks share? Another sweep's changes against this one's."""
    known = known_runs(resources.database(), "disable").set_index("run")
    kinds = known["options"].map(lambda options: json.loads(options)["what"])
    others = known[(kinds == kinds[run]) & (known.index != run)]
    if others.empty:
        return
    other = st.selectbox(
        "Beside another sweep", [None, *others.index],
        format_func=lambda sweep: "none" if sweep is None else title_of(others.loc[sweep]),
    )  # fmt: skip
    if other is None:
        return
    here, there = run_rows(resources.database(), run), run_rows(resources.database(), other)
    pairs, agreement = shared(here, there)
    if not pairs:
        st.info("The two sweeps share no head of the same name: choose one of the same kind.")
        return
    both = pd.DataFrame(pairs).astype({"this": float, "other": float})
    both[["this", "other"]] *= 100
    rho = "undefined" if agreement.spearman is None else f"{agreement.spearman:.2f} (p {agreement.p:.3f})"
    title = f"Changes of two sweeps, points; Spearman {rho}, n = {agreement.n}"
    left, right = st.columns([3, 2])
    left.altair_chart(points(both, Axes(x="this", y="other", name="name"), title=title))
    variants = pd.DataFrame([row for row in there if row["kind"] == "variant"])
    if variants["head"].notna().all():
        name, metric = task_name(str(variants["task"].iloc[0])), first_metric(there[0])
        right.altair_chart(_picture(variants, metric, f"The other: {metric} on {name}"), width="content")


def _table(variants: pd.DataFrame, metric: str) -> None:
    with st.expander(f"All {len(variants)}"):
        columns = [
            "name",
            metric,
            f"{metric}_change",
            "p",  # corrected over all: the claim; the interval is of one variant alone
            f"{metric}_low",
            f"{metric}_high",
            "flipped",
            "mcnemar",
            "heads",
        ]
        extra = [name for name in variants if name == "distance" or name.startswith(BESIDE.format(metric))]
        st.dataframe(variants[columns + extra], hide_index=True)


def _everywhere(heads: list[Head]) -> None:
    """What the heads that were asked for do in every stored sweep of single heads, whatever the task."""
    if not heads:
        return
    scores = head_scores(resources.database(), study="disable")
    scores = scores[scores["statistic"].str.endswith(" heads")]
    scores = scores[[Head(int(a), int(b)) in heads for a, b in zip(scores["layer"], scores["head"], strict=True)]]
    if scores.empty:
        st.info(f"No sweep of single heads has {', '.join(map(str, heads))} yet: choose a checkpoint and press Sweep.")
        return
    scores = scores.assign(
        name=[str(Head(int(a), int(b))) for a, b in zip(scores["layer"], scores["head"], strict=True)],
        operator=scores["statistic"].str.removesuffix(" heads"),
        metric=scores["feature"],
        **{field: 100 * scores[field].astype(float) for field in ("value", "low", "high")},
    )
    columns = {"name": "head", "value": "change, points", "low": "95% from", "high": "95% to", "p": "p corrected"}
    st.subheader(f"{', '.join(map(str, heads))} in every sweep")
    st.dataframe(
        scores[["name", "checkpoint", "metric", "operator", "value", "p", "low", "high"]].rename(columns=columns),
        hide_index=True,
        column_config={
            name: st.column_config.NumberColumn(format="%+.2f") for name in ("change, points", "95% from", "95% to")
        },
    )
    st.caption("One head at a time; intervals are not corrected, p is, over all heads of its sweep.")
