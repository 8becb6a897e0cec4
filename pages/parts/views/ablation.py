"""Ablation: predictions and scores without some heads, for one sentence, on a task, and in training."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core import capture
from core.attention import Head, all_heads
from core.capture.components import Component, parse_components
from pages.parts.charts.encoding import LARGE, Shade
from pages.parts.charts.heads import clicked_heads, head_picture
from pages.parts.disable.operators import show_operators
from pages.parts.disable.results import show_results
from pages.parts.disable.settings import OPERATORS, SWEPT, constants_of, mean_by, pick_fitting_task, start_sweep
from pages.parts.disable.training import show_crossed, show_training
from pages.parts.reports.result_card import show_own_answer
from pages.parts.reports.study_view import drawer
from pages.parts.shell import context, resources, url
from pages.parts.shell.links import show_links
from pages.parts.shell.messages import clear_errors, plain
from pages.parts.widgets import job_progress, pickers
from pages.parts.widgets.tables import show_table

if TYPE_CHECKING:
    from core.capture.interventions import Operator


# ---------------------------------------------------------------- clicked heads on one sentence


def show_live() -> None:
    """Show the predictions for a sentence or pair before and after ablation."""
    view_context = context.now()
    name, text, pair = view_context.checkpoint, view_context.text or "", view_context.pair_or_none
    chosen = context.chosen()
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    chosen_method = SWEPT.get(st.session_state.get("operator", st.query_params.get("operator")), OPERATORS["disable"])
    with right.popover(f"Ablation: {plain(chosen_method)}", icon=":material/tune:", width="stretch", key="method"):
        operator = url.pick(st.selectbox, "Ablation method", SWEPT, key="operator")
        task = pick_fitting_task() if operator == "constant" else ""
        by = mean_by(operator, key="live_mean_by").get("mean_by", "class")
    with left:
        typed = pickers.pick_text(
            "Heads to change",
            key="heads",
            default=(chosen.head if chosen.text else view_context.head) or "",  # the example's head is of its sentence
            placeholder="Heads, sublayers or layers, such as L1H2, L3-attention, L3-feedforward, L3-layer",
        )
    if not name or not text:
        st.info("Type a sentence, then click heads in the grid to ablate them.", icon=":material/touch_app:")
        return
    with clear_errors():
        _compared(LiveChange(name, text, pair, typed, operator, task, by))


@dataclass(frozen=True)
class LiveChange:
    """Components as the user typed them, ablated on one input. `task` has the examples that fit constants; `by` is what
    a mean is over."""

    checkpoint: str
    text: str
    pair: str | None
    typed: str
    operator: "Operator"
    task: str
    by: str


def _compared(live_change: LiveChange) -> None:
    name, operator, pair = live_change.checkpoint, live_change.operator, live_change.pair
    checkpoint = resources.opened(name)
    components = parse_components(live_change.typed)
    heads = [component for component in components if isinstance(component, Head)]
    encoding = checkpoint.encode(live_change.text, pair, max_length=resources.PIECES_SHOWN)
    source = (
        resources.stand_in(name, checkpoint, operator, paired=pair is not None, by=live_change.by) if heads else None
    )
    if operator == "constant" and heads:
        source = constants_of(name, checkpoint, live_change.task, heads)
    changes = capture.sweeping.changes_of(components, operator, source)
    effects = capture.comparing.compare(checkpoint, encoding, changes)
    answer = st.container()
    left, right = st.columns([3, 2])
    with left:
        _picture(effects.moved, heads)
        st.caption(
            "Click a head to ablate it. Ablated heads are outlined. Their own maps can change by more than the "
            "colour scale shows."
        )
        st.caption(
            "Maps in the layers below the ablated heads cannot change. In the lowest layer with ablated heads, only "
            "the maps of these heads can change."
        )
    with right:
        outcome = _show_prediction(checkpoint, encoding, effects, components)
    if outcome:
        with answer:
            about = f"{name} · ablation method: {SWEPT[operator]} · one input (n = 1), so no test is possible"
            sure = (
                "This view shows one sentence. Other views test whether a head matters on average over the "
                "examples of a task, so their results can differ."
            )
            show_own_answer(f"What changes if {live_change.typed} is ablated?", [about], outcome, sure, key="live")
    if heads:
        show_links(name, heads[0], current_view="interventions", text=live_change.text, pair=pair or "")
        st.button("Ablate these heads on the examples of a task", icon=":material/playlist_play:", on_click=_on_rows)
    cut = f" · {encoding.cut} tokens cut" if encoding.cut else ""
    st.caption(plain(f"{len(encoding)} tokens{cut} · {checkpoint.dtype} · percentages are probabilities"))


def _picture(moved: Any, heads: list[Head]) -> None:
    model_heads = [head for head in all_heads(*moved.shape) if np.isfinite(moved[head])]  # of layers with attention
    rows = [
        {"layer": head.layer, "head": head.head, "moved": float(moved[head.layer, head.head])} for head in model_heads
    ]
    moved_elsewhere = [
        float(moved[head.layer, head.head]) for head in model_heads if head not in heads
    ]  # these are the small ones
    chart = head_picture(
        pd.DataFrame(rows),
        Shade("moved", label="share that shifts", domain=(0.0, max([0.01, *moved_elsewhere])), cell=LARGE),
        title="Share of the attention of each head that shifts to other keys",
        highlight=heads,
        select=True,
    )
    key = f"live_cells_{st.session_state.get('_live_clicks', 0)}"  # a new key forgets the click that was answered
    st.altair_chart(chart, width="content", on_select=lambda: _toggle(key), selection_mode="cell", key=key)


def _toggle(key: str) -> None:
    with clear_errors():
        heads = parse_components(st.session_state.get("heads", ""))
        for clicked in clicked_heads(st.session_state[key]):
            heads = [head for head in heads if head != clicked] if clicked in heads else [*heads, clicked]
        st.session_state.heads = ",".join(str(head) for head in heads)
        st.session_state["_live_clicks"] = st.session_state.get("_live_clicks", 0) + 1


def _on_rows() -> None:
    """Offer to ablate the clicked heads as one group on a task."""
    st.session_state.mode, st.session_state.what = "A task's rows", "groups"


def _why_nothing(checkpoint: Any, encoding: Any) -> str:
    """Return why a checkpoint predicts no word of a sentence."""
    if not hasattr(checkpoint.model, "get_output_embeddings") or checkpoint.model.get_output_embeddings() is None:
        return (
            f"{checkpoint.name} was saved without a head that predicts words, so only its maps are compared. Choose a "
            "checkpoint with a language head, or a fine-tuned classifier."
        )
    if checkpoint.tokenizer.mask_token_id is None:
        return f"The tokenizer of {checkpoint.name} has no mask token, so no word can be predicted."
    mask = checkpoint.tokenizer.mask_token
    if checkpoint.tokenizer.mask_token_id not in encoding.ids:
        return f"To see a predicted word, type {mask} into the sentence."
    return f"{checkpoint.name} predicts no word here."


def _show_prediction(checkpoint: Any, encoding: Any, effects: Any, heads: list[Component]) -> str:
    """Show the table of predictions, and return how the prediction changed, or ""."""
    if not effects.choices:
        st.info(plain(_why_nothing(checkpoint, encoding)))
        return ""
    if effects.place is not None:
        after = "the last piece" if checkpoint.causal else f"position {effects.place + 1}"
        st.markdown(f"**Word predicted {'after' if checkpoint.causal else 'at'} {after}**")
    table = pd.DataFrame(
        {
            "": [plain(choice.name) for choice in effects.choices],
            "before": [choice.before for choice in effects.choices],
            "after": [choice.after for choice in effects.choices],
            "logit before": [choice.logit_before for choice in effects.choices],
            "logit after": [choice.logit_after for choice in effects.choices],
        }
    )
    if len(effects.choices) == 1:  # a score
        table = table.drop(columns=["before", "after"])
    shares = {name: st.column_config.NumberColumn(format="percent") for name in ("before", "after")}
    logits = {name: st.column_config.NumberColumn(format="%.3f") for name in ("logit before", "logit after")}
    show_table(table, column_config=shares | logits)
    if not heads:
        st.caption("No head has been ablated yet, so both predictions are the same.")
        return ""
    without = f"If {', '.join(map(str, heads))} {'is' if len(heads) == 1 else 'are'} ablated, the prediction"
    if len(effects.choices) == 1:
        (score,) = effects.choices
        return f"{without} changes from {score.logit_before:.3f} to {score.logit_after:.3f}."
    likeliest = capture.comparing.predicted(effects.choices)
    if likeliest is None:
        return ""
    first, then = likeliest
    if first.name == then.name:
        return f"{without} stays {first.name} ({first.before:.0%} before, {then.after:.0%} after)."
    return f"{without} changes from {first.name} ({first.before:.0%}) to {then.name} ({then.after:.0%})."


# ---------------------------------------------------------------- the view


def show_sweeps() -> None:
    job_progress.show_jobs("disable")
    with clear_errors():
        show_results()
    with drawer("Run with other settings", "disable"):
        start_sweep()


VIEWS = {
    "One sentence": show_live,
    "A task's rows": show_sweeps,
    "All train rows": show_crossed,
    "Operators": show_operators,
    "Training without": show_training,
}
TITLES = {
    "One sentence": "One sentence",
    "A task's rows": "On a task",
    "All train rows": "Cross-fitted",
    "Operators": "Ablation methods",
    "Training without": "Fixed patterns",
}


def show(tools: DeltaGenerator) -> None:
    with tools:
        mode = url.pick(st.segmented_control, "Mode", TITLES, key="mode", required=True, label_visibility="collapsed")
    VIEWS[mode]()
