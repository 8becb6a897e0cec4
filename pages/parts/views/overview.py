"""The atlas: every head of a checkpoint by any of its scores, as a heatmap and in a plane."""

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.store.rows import Row
from core.studies.lookup import label_of
from pages.parts.atlas import analysing, atlas_view, choices, head_pictures
from pages.parts.atlas.atlas_view import Axis, Plane, axis_of, kinds_of, show_atlas
from pages.parts.atlas.measuring import offer_to_measure
from pages.parts.charts.heads import budget_grid, budget_parts, clicked_heads
from pages.parts.shell import context, links, url
from pages.parts.shell.messages import clear_errors, counted, plain
from pages.parts.widgets.files import show_files
from pages.parts.widgets.tables import show_table

SURE = "hypothesis/held out and causal"
SCORE_PARAMETERS = {"across", "up", "colour", "bars", "sure", "brushed"}
BUDGET, PLANE, LIKENESS, COMPARE = "attention budget", "two scores", "alike heads", "two places"
LAYOUTS = {PLANE: "two scores as axes", LIKENESS: "similar heads", COMPARE: "two tasks or models"}


def rows_of(frame: pd.DataFrame, key: str) -> pd.DataFrame:
    return frame[frame["score"] == key]


def colour_of(frame: pd.DataFrame, key: str, shape: tuple[int, int]) -> Axis:
    """Return the score or kind by which heads are coloured."""
    kinds = choices.kinds(frame, key)
    if kinds is not None:
        return kinds_of(kinds, choices.label_of_any(key), shape)
    return axis_of(rows_of(frame, key), label_of(key), shape)


def changed(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    """Return second minus first by head, without intervals, because only a paired study has them."""
    paired = first.merge(second, on=["layer", "head"], suffixes=("", "_second"))
    return paired.assign(value=paired["value_second"] - paired["value"], low=None, high=None)


def brushed_before() -> list[str]:
    """Return the heads that were selected, here or by the link to the page."""
    if "brushed" not in st.session_state or url.went_back():
        st.session_state.brushed = [name for name in st.query_params.get("brushed", "").split(",") if name]
    brushed: list[str] = st.session_state.brushed
    return brushed


def only_sure(task_scores: pd.DataFrame) -> pd.DataFrame:
    """Return all scores, or those of heads with a confirmed and causal hypothesis."""
    tested = rows_of(task_scores, SURE)
    if tested.empty or not url.switch(
        st.toggle,
        "Held out and causal",
        key="sure",
        help="Shows only heads with a hypothesis that meets this criterion.",
    ):
        return task_scores
    sure = tested[tested["value"] == 1]
    if sure.empty:
        st.caption(
            "No head has a hypothesis that was confirmed both on held-out examples and by ablation, so all "
            "heads are shown."
        )
        return task_scores
    places = set(zip(sure["layer"], sure["head"], strict=True))
    return task_scores[
        [layer_head in places for layer_head in zip(task_scores["layer"], task_scores["head"], strict=True)]
    ]


def show_place(frame: pd.DataFrame, name: str, task: str | None) -> None:
    task_scores = choices.on_task(frame, task)
    keys = choices.keys_of(task_scores)
    budgets = budget_parts(task_scores)
    layouts = ([] if budgets.empty else [BUDGET]) + [PLANE, LIKENESS, COMPARE]
    shape = (int(task_scores["layer"].max()) + 1, int(task_scores["head"].max()) + 1)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        usual = PLANE if SCORE_PARAMETERS & set(st.query_params) else layouts[0]  # a link to a score opens it
        layout = url.pick(
            st.segmented_control, "Show", {name: plain(LAYOUTS.get(name, name)) for name in layouts}, key="layout",
            default=usual, required=True,
        )  # fmt: skip
        across_key = colour_key = keys[0]
        if layout in (PLANE, COMPARE):
            across_key = colour_key = choices.pick_score("Across", keys, choices.FIRST[0], key="across")
        up_key = choices.pick_score("Up", keys, choices.FIRST[1], key="up") if layout == PLANE else across_key
        if layout in (PLANE, LIKENESS):
            colour_key = choices.pick_score("Colour", choices.colours(keys), choices.FIRST[2], key="colour")
        if layout != BUDGET:
            bars = url.switch(
                st.toggle, "Intervals", key="bars", help="Draws the 95 % CI of each score as an error bar."
            )
            task_scores = only_sure(task_scores)
    if layout == BUDGET:
        show_budgets(budgets, name, task)
        return
    across, up = (axis_of(rows_of(task_scores, key), label_of(key), shape) for key in (across_key, up_key))
    colour = colour_of(task_scores, colour_key, shape)
    note = choices.meaning(colour_key)
    if layout == LIKENESS:
        across, up, note = atlas_view.places(name, task, task_scores, shape)
    elif layout == COMPARE:
        across, up, colour, note = compared(across_key, task_scores, frame, f"{name} · {task}", shape)
    lines, before = atlas_view.lines(task_scores, shape), brushed_before()
    brushed, opened = show_atlas(
        Plane(shape, across, up, colour), key=url.keyed("atlas_heads"), bars=bars, labels=lines, selected=before
    )
    if opened:
        links.go("heads/one", head=opened, checkpoint=name, rows=task)
    st.session_state.brushed = brushed
    url.keep({"brushed": ",".join(brushed) or None})
    st.caption(
        plain(
            f"{note} · Hover to read a value, drag to select heads, click to open a head · L1H1 is the first head "
            f"of the first layer"
        )
    )
    table(
        task_scores,
        brushed,
        [colour_key] if layout == LIKENESS else list(dict.fromkeys([across_key, up_key, colour_key])),
    )


def show_budgets(budgets: pd.DataFrame, name: str, task: str | None) -> None:
    """Show the attention budget of every head as one stacked bar."""
    heads = budgets.drop_duplicates(["layer", "head"])
    means = budgets.groupby("group", sort=False)[["value", "baseline"]].sum() / len(heads)
    most = means.sort_values("value", ascending=False).head(2)
    shares = [
        f"{row.value:.0%} {'of the attention of a head goes ' * (number == 0)}to {row.Index} (uniform attention: "
        f"{row.baseline:.0%})"
        for number, row in enumerate(most.itertuples())
    ]
    st.subheader("What does each head attend to?", anchor=False)
    st.markdown(f"**{plain('On average, ' + ' and '.join(shares))}.**")
    one_sided = budgets.loc[budgets["value"].idxmax()]
    st.caption(
        plain(
            f"The largest share of one head is that of {one_sided['name']}: {one_sided['value']:.1%} to "
            f"{one_sided['keys']} (95 % CI {one_sided['interval']}; uniform attention: {one_sided['baseline']:.0%}). "
            f"{len(heads)} heads, n = {int(one_sided['n'])} inputs; queries are tokens of the text. The start token is "
            "[CLS] or the first token. A key counts in the first category of the legend that fits. Click a head to "
            "open its page."
        )
    )
    picked = st.altair_chart(budget_grid(budgets), on_select="rerun", selection_mode="cell", key="budget_grid")
    if opened := clicked_heads(picked):
        links.go("heads/one", head=str(opened[0]), checkpoint=name, rows=task)
    if (beside := context.now().beside) not in (None, name):
        other = budget_parts(choices.on_task(choices.scores_of(str(beside)), task))
        st.subheader(plain(str(beside)), anchor=False)
        if other.empty:
            st.caption(plain(f"No attention budget of {beside} on these examples is stored yet."))
        else:
            st.altair_chart(budget_grid(other))
    show_files(budgets.drop(columns=["start", "end"]), [budget_grid(budgets)], "attention-budget")


def compared(
    key: str, task_scores: pd.DataFrame, frame: pd.DataFrame, title: str, shape: tuple[int, int]
) -> tuple[Axis, Axis, Axis, str]:
    """Show one score, and the same score on another task or checkpoint; colour is the change."""
    other_checkpoint = context.now().beside
    frame = choices.scores_of(other_checkpoint) if other_checkpoint else frame
    task = choices.pick_task(frame, "beside_task")
    context_task = choices.task_here(task_scores)
    first, second = rows_of(task_scores, key), rows_of(choices.on_task(frame, task), key)
    if other_checkpoint in (None, context.now().checkpoint) and task == context_task:
        second = second[:0]  # a score beside itself says nothing
    second, match_note = _side_by_side(second, other_checkpoint, shape)
    label = f"{label_of(key)}, {other_checkpoint or ''} {task or ''}"
    note = (
        f"{choices.meaning(key)}; colour: second minus first checkpoint{match_note}"
        if len(second)
        else _nothing_beside(label, other_checkpoint, task == context_task)
    )
    return (
        axis_of(first, f"{label_of(key)}, {title}", shape),
        axis_of(second, label, shape),
        axis_of(changed(first, second), "second minus first", shape, diverging=True),
        note,
    )


def _side_by_side(
    second: pd.DataFrame, other_checkpoint: str | None, shape: tuple[int, int]
) -> tuple[pd.DataFrame, str]:
    """Return the second scores at the positions of the first heads, or at their counterparts if requested, with a
    remark."""
    counterparts = head_pictures.matched_with(str(context.now().checkpoint), other_checkpoint)
    explained = (
        "If on, each head is compared with its counterpart, which is the most similar head of the other "
        "checkpoint (see “Heads > Counterparts”). If off, heads of the same number are compared."
    )
    if counterparts and url.switch(st.toggle, "By matched heads", key="by_match", help=explained):
        heads = shape[0] * shape[1]
        return head_pictures.at_its_counterparts(
            second, counterparts
        ), f" · {len(counterparts)} of {heads} heads have a counterpart"
    return second[(second["layer"] < shape[0]) & (second["head"] < shape[1])], ""


def _nothing_beside(label: str, other_checkpoint: str | None, same_task: bool) -> str:
    """Return why there is nothing to compare a score with."""
    if other_checkpoint in (None, context.now().checkpoint) and same_task:
        return (
            "To see differences, choose a checkpoint under “compare with” at the top of the page, or another task here."
        )
    return f"{label}: no stored result"


def table(task_scores: pd.DataFrame, brushed: list[str], keys: list[str]) -> None:
    """Show the scores of the brushed heads, or of all, with their sources."""
    shown = task_scores[task_scores["score"].isin(keys)].copy()
    shown["name"] = [f"L{a + 1}H{b + 1}" for a, b in zip(shown["layer"], shown["head"], strict=True)]
    shown = shown[shown["name"].isin(brushed)] if brushed else shown
    rows: list[Row] = shown.drop(columns=["checkpoint", "layer", "head"]).to_dict("records")
    selection = f"{counted(len(brushed), 'heads')} selected" if brushed else "every head"
    with st.expander(f"Scores and their sources: {selection}", expanded=bool(brushed), icon=":material/table:"):
        show_table(pd.DataFrame(rows), height=260)
        show_files(shown, [], "atlas")


def show(tools: DeltaGenerator) -> None:
    with clear_errors():
        checkpoint = str(context.now().checkpoint)
        analysing.offer_button(tools)
        analysing.show_analysis(checkpoint)
        scores = choices.scores_of(checkpoint)
        if len(scores):
            show_place(scores, checkpoint, choices.task_here(scores))
        choices.say_left_out(checkpoint)
        offer_to_measure(checkpoint, scores=scores)
