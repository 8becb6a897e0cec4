"""Ablation jobs: every head, layer, single head or group on the examples of a task."""

from dataclasses import asdict, dataclass
from typing import Any

import streamlit as st

from core.studies.ablation.setup import WHOLE
from pages.parts.disable.live import SWEPT
from pages.parts.disable.stand_ins import mean_by
from pages.parts.shell import context, url
from pages.parts.widgets import job_progress, pickers

WHAT = {
    "heads": "every head",
    "layers": "every layer",
    "all-but-one": "all other heads of each layer (one head remains)",
    "groups": "custom groups",
    "duplicates": "groups of near-duplicates",
    "blocks": "every attention sublayer in turn",
    "feedforward": "every feed-forward sublayer in turn",
    "layers-whole": "every whole layer in turn",
}


@dataclass(frozen=True)
class SweepInputs:
    """The inputs of ablations and pruning. `limit` is the number of examples (None: all), `data` the GLUE folder (None:
    samples)."""

    checkpoint: str
    task: str
    limit: int | None
    data: str | None


def shared_options() -> SweepInputs | None:
    """Ask for checkpoint, task, examples and data of ablations and pruning; None until there is a checkpoint."""
    name, task = context.now().checkpoint, str(context.now().rows)
    left, right = st.columns([1, 4])
    limit = left.number_input(
        "Rows",
        0,
        100_000,
        500,
        key="limit",
        bind="query-params",
        help="The number of dev examples, which are drawn with a fixed seed. 0 uses all dev examples.",
    )
    folder = pickers.ask_folder(right)
    if not name:
        return None
    return SweepInputs(name, task, limit or None, folder)


def start_sweep() -> None:
    shared = shared_options()
    left, middle, right, last = st.columns([2, 2, 2, 1], vertical_alignment="bottom")
    unit_kind = url.pick(left.selectbox, "Change", WHAT, key="what")
    operator = url.pick(middle.selectbox, "Ablation method", SWEPT, key="operator")
    rough = right.checkbox(
        "bfloat16",
        key="rough",
        bind="query-params",
        help="Computes in bfloat16, which is faster if the CPU supports it. If two labels are almost equally "
        "probable, the prediction may differ from that in float32.",
    )
    chosen = _groups(unit_kind) | mean_by(operator, key="mean_by")
    operator = "zero" if unit_kind in WHOLE else operator
    chosen |= {"what": unit_kind, "operator": operator, "dtype": "bfloat16" if rough else "float32"}
    job_progress.offer_start(
        "disable",
        asdict(shared) | chosen if shared else None,
        "Sweep",
        title=lambda: f"{operator}: {WHAT[unit_kind]}, {pickers.named([shared.task], shared.data) if shared else ''}",
        container=last,
    )
    st.caption(
        "To ablate heads on a task, choose a checkpoint that was fine-tuned on this task. You can train such a "
        "checkpoint on “Fine-tuning > Train”."
    )


def _groups(unit_kind: str) -> dict[str, Any]:
    """Ask for further options of groups: the heads, or the distance of near-duplicates."""
    if unit_kind == "groups":
        typed = pickers.pick_text(
            "Groups",
            key="heads",
            placeholder="L1H2,L7H6; L4H1",
            help="Separate heads by commas and groups of heads by semicolons. Heads that you click in “One "
            "sentence” are added here.",
        )
        return {"heads": typed}
    if unit_kind == "duplicates":
        share = st.slider(
            "Largest distance within a group, as a share of the mean distance", 0.1, 0.9, 0.5, 0.05,
            key="within", bind="query-params",
            help="Heads are in one group if their attention maps on 200 train examples have a small "
                 "Jensen-Shannon distance (average linkage). A smaller value gives smaller groups.",
        )  # fmt: skip
        return {"within": share}
    return {}
