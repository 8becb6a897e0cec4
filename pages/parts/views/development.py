"""Development: scores of every head over training snapshots, and the order of roles."""

from collections.abc import Sequence

import altair as alt
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.attention import Head
from core.scoring.definitions import CLASS_SHARE, bound_of
from core.studies.comparison.development import (
    OWN,
    ROLE_NAMES,
    STUDY,
    bundled_curves,
    order_sentence,
    role_records,
    spread_sentence,
)
from core.studies.comparison.records import Beginning, CurvePoint, RoleBeginnings
from core.studies.lookup import label_of
from pages.parts.charts.encoding import SYMBOLS, Layers, colours_of
from pages.parts.charts.heads import cell_of
from pages.parts.reports.result_card import show_own_answer
from pages.parts.reports.study_view import shown_result
from pages.parts.shell import context, url
from pages.parts.shell.links import say_missing
from pages.parts.shell.messages import clear_errors, plain
from pages.parts.widgets import job_progress, pickers
from pages.parts.widgets.files import show_files
from pages.parts.widgets.tables import show_table

# -------------------- Curves of every head over snapshots, as small multiples


CELL = 78  # pixels of one head's curve, at most


def small_multiples(frame: pd.DataFrame, *, label: str, title: str, bound: float | None = None) -> Layers:
    """Return one number of every head over snapshots, as small charts.

    `frame` has columns layer, head (zero-based), order, snapshot, value, low, high. `bound` is a dashed line.
    """
    drawn = frame.assign(Layer=frame["layer"] + 1, Head=frame["head"] + 1, bound=bound)
    size = cell_of(int(drawn["Head"].max()), CELL)
    top = float(max(drawn[["value", "low", "high"]].max().max(), bound or 0))
    least = float(min(0.0, drawn["value"].min()))
    y = alt.Y(
        "value:Q",
        title=None,
        scale=alt.Scale(domain=[least, top], nice=False),
        axis=alt.Axis(values=[least, top], format=".2~g"),
    )
    base = alt.Chart(drawn).encode(x=alt.X("order:Q", title=None, axis=None, scale=alt.Scale(nice=False)))
    tooltip = ["Layer:O", "Head:O", "snapshot:N", alt.Tooltip("value:Q", title=label, format=".3~g")]
    layers = [base.mark_line(strokeWidth=1.5).encode(y=y), base.mark_circle(size=14).encode(y=y, tooltip=tooltip)]
    if drawn["low"].notna().any():
        layers.insert(0, base.mark_area(opacity=0.25).encode(y=alt.Y("low:Q", title=None), y2="high:Q"))
    if bound is not None:
        # a line and no rule: in a facet a rule takes x as well, and stands upright at every snapshot
        layers.append(base.mark_line(strokeDash=[4, 3], color="#D55E00", strokeWidth=1, aria=False).encode(y="bound:Q"))
    panel = alt.layer(*layers).properties(width=size, height=round(size * 0.6))
    header = alt.Header(labelPadding=2, titlePadding=2)
    return panel.facet(
        row=alt.Row("Layer:O", title="layer", header=header),
        column=alt.Column("Head:O", title="head", header=header),
        spacing=6,
    ).properties(title=title)


SHIPPED, MINE = "bundled snapshots", "your snapshots"


def start() -> None:
    typed = st.text_area(
        "Snapshots in order, one per line",
        key="snapshots",
        height=110,
        help="Enter one snapshot per line, as a name, a folder or a hub ID. owner/name@step0..step1000 stands for "
        "all revisions from step0 to step1000.",
    )
    names = [line.strip() for line in typed.splitlines() if line.strip()]
    tasks = pickers.pick_tasks("sst2")
    if st.button("Measure", type="primary", disabled=not (names and tasks)):
        with clear_errors():
            options = {"checkpoints": names, "tasks": tasks, "data": pickers.data_folder()}
            job_progress.begin("development", options, f"Development from {names[0]} to {names[-1]}")
            st.rerun()
    job_progress.show_jobs("development")


def roles_picture(begun: Sequence[Beginning], snapshots: Sequence[str]) -> alt.Chart:
    """Show how many heads have each role at each snapshot."""
    frame = pd.DataFrame([
        {"snapshot": snapshot, "role": role, "heads": sum(head.score == role and head.order <= k for head in begun)}
        for role in dict.fromkeys(head.score for head in begun)
        for k, snapshot in enumerate(snapshots)
    ], columns=["snapshot", "role", "heads"])  # fmt: skip
    labels = {role: ROLE_NAMES.get(role, role.removeprefix(CLASS_SHARE)) for role in frame["role"]}
    colours = colours_of([role.removeprefix(CLASS_SHARE) for role in labels])
    scale = alt.Scale(domain=list(labels.values()), range=colours)
    x_title = "snapshot, in order of training (not to scale)"
    if snapshots[0].endswith(" %"):  # bundled curves
        x_title = "share of training steps before the snapshot (not to scale)"
    chart = alt.Chart(frame.assign(role=frame["role"].map(labels))).mark_line(point=True).encode(
        x=alt.X("snapshot:O", sort=list(snapshots), title=x_title,
                axis=alt.Axis(labelAngle=0, labelOverlap=True)),
        y=alt.Y("heads:Q", title="number of heads"),
        color=alt.Color("role:N", scale=scale, title="mostly to", legend=alt.Legend(**SYMBOLS)),
        tooltip=["role", "snapshot", "heads"],
    )  # fmt: skip
    return chart.properties(title="Number of heads that attend mostly to one kind of token during training", height=240)


def show_curves(points: Sequence[CurvePoint], source: str, *, answered: bool = False, more: str = "") -> None:
    """Show how many heads have each role over snapshots, one score of every head, and files. `answered`: the finding is
    shown. `more`: what other runs show."""
    records = role_records(points)
    orders = [record for record in records if isinstance(record, RoleBeginnings)]
    begun_heads = [record for record in records if isinstance(record, Beginning)]
    snapshots = list(dict.fromkeys(point.snapshot for point in sorted(points, key=lambda point: point.order)))
    counted = f"n = {points[0].n} inputs" if points[0].n else "confidence intervals were not measured"
    if not answered:
        sure = f"{len(snapshots)} snapshots from {snapshots[0]} to {snapshots[-1]} of the training; {counted}. {more}"
        show_own_answer(STUDY.question, [source], order_sentence(orders), sure, key="development")
    positions = [head for head in begun_heads if not head.score.startswith(CLASS_SHARE)] or begun_heads
    roles_chart = roles_picture(positions, snapshots)
    st.altair_chart(roles_chart)
    names = list(dict.fromkeys(point.score for point in points))
    score = url.pick(st.selectbox, "Score", names, key="score", format_func=_label, width=260)
    frame = pd.DataFrame([vars(point) for point in points if point.score == score])
    frame[["value", "low", "high"]] = frame[["value", "low", "high"]].astype(float)
    label = _label(score)
    bound = bound_of(score)
    title = f"{label} of every head during training" + ("" if bound is None else " (dashed: threshold)")
    chart = small_multiples(frame, label=label, title=title, bound=bound)
    st.altair_chart(chart, width="content")
    st.caption(
        ("" if bound is None else "A head has the role while its score is above the dashed line. ")
        + "Snapshots are evenly spaced here; changes between two snapshots are not visible."
        + (" Bands are 95 % CIs." if points[0].n else "")
    )
    st.subheader("Earliest snapshot in which any head has the role", anchor=False)
    column_titles = {"score": "role: attends mostly to", "heads": "heads at the end", "earliest": "first head by",
                     "median": "half of the heads by"}  # fmt: skip
    if points[0].n:
        column_titles |= {"low": "95 % from", "high": "to", "first": "comes first (share of draws)"}
    orders_table = pd.DataFrame(orders, columns=list(column_titles)).replace({"score": ROLE_NAMES})
    show_table(orders_table.round({"first": 2}).rename(columns=column_titles))
    begun = pd.DataFrame([_named(record) for record in begun_heads])
    with st.expander(f"Snapshot from which each head keeps its role ({len(begun)} rows)", icon=":material/table:"):
        show_table(begun)
    show_files(frame, [roles_chart, chart], "development")


def _label(score: str) -> str:
    if score.startswith(CLASS_SHARE):
        return f"share of maps: {score.removeprefix(CLASS_SHARE)}"
    return label_of(f"statistics/{score}") if score != "row maximum" else score


def show_shipped(name: str, runs: dict[str, list[CurvePoint]]) -> None:
    """Show one of the bundled runs, and what the runs with several seeds have in common."""
    run = url.pick(st.segmented_control, "Run", list(runs), key="run_of", required=True) if len(runs) > 1 else OWN
    if run == OWN:
        source = f"pre-training of {name}, measured on 80 MRPC-like pairs"
        show_curves(runs[run], source, more=f"“Run” opens {len(runs) - 1} other runs." if len(runs) > 1 else "")
    else:
        st.markdown(plain(spread_sentence(_orders(name))))
        source = f"the recipe of {name} on 12 million tokens, {run}, whose weights are not bundled; MRPC-like pairs"
        show_curves(runs[run], source)


@st.cache_resource(show_spinner=False, max_entries=4)
def _curves(name: str) -> dict[str, list[CurvePoint]]:
    return bundled_curves(name)


@st.cache_resource(show_spinner=False, max_entries=4)
def _orders(name: str) -> dict[str, list[RoleBeginnings]]:
    """Return the orders of roles by seed."""
    return {
        seed: [record for record in role_records(points) if isinstance(record, RoleBeginnings)]
        for seed, points in _curves(name).items()
        if seed != OWN
    }


def _named(record: Beginning) -> dict[str, object]:
    return {
        "head": str(Head(record.layer, record.head)),
        "looks at": record.score,
        "began after": record.after,
        "and by": record.by,
        "by interval from": record.earliest,
        "to": record.latest,
    }


def show(tools: DeltaGenerator) -> None:
    """Show the bundled curves of a bundled checkpoint, or those of the user's snapshots."""
    name = str(context.now().checkpoint)
    shipped = _curves(name)
    with tools:
        chosen = url.pick(
            st.segmented_control, "Snapshots", [SHIPPED, MINE], key="snapshots_of", required=True,
            default=SHIPPED if shipped else MINE, label_visibility="collapsed",
        )  # fmt: skip
    with clear_errors():
        if chosen == SHIPPED and shipped:
            show_shipped(name, shipped)
            return
        if chosen == SHIPPED:
            st.info(
                f"No training history of {plain(name)} is bundled. Choose atlas-encoder or atlas-decoder at the top "
                "of the page."
            )
            return
        say_missing(name)
        start()
        with shown_result(
            "development",
            "No scores during training are stored yet. Enter snapshots and press “Measure”.",
            icon=":material/timeline:",
        ) as stored:
            if stored is not None:
                points = stored.among(CurvePoint)
                show_curves(points, f"{stored.title}, {stored.date}", answered=True)
