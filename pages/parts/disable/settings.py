"""Inputs of ablations: the ablation method, the targets and the examples; and the form of ablation jobs."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import streamlit as st

from core.attention import Head
from core.errors import InputError
from core.studies.ablation.setup import FITTED_ROWS, MEANS, WHOLE
from pages.parts.shell import context, resources, url
from pages.parts.shell.messages import plain
from pages.parts.widgets import job_progress, pickers

if TYPE_CHECKING:
    from core.capture.interventions import Operator, StandInSource


OPERATORS: "dict[Operator, str]" = {
    "disable": "uniform (Kovaleva)",
    "zero": "zero (Michel)",
    "previous": "previous token",
    "current": "the token itself",
    "next": "next token",
    "first": "first token",
}
SWEPT: "dict[Operator, str]" = OPERATORS | {
    "mean": "mean output over 200 examples",
    "resample": "output on another example",
    "constant": "optimal constant (Li and Janson)",
}


def mean_by(operator: str, *, key: str) -> dict[str, str]:
    """Ask what the mean is over, as an option of studies; {} for other ablation methods."""
    if operator != "mean":
        return {}
    return {"mean_by": url.pick(st.selectbox, "Mean by", MEANS, key=key)}


def pick_fitting_task() -> str:
    """Ask for the task whose labelled train examples fit the constants."""
    task = pickers.pick_task("Fit the constants on train examples of", key="fitted_on")
    st.caption(
        f"The constants are fitted to {FITTED_ROWS} random examples (seed 0). The checkpoint must be a classifier for "
        "this task."
    )
    return task


def constants_of(name: str, checkpoint: Any, task: str, heads: Sequence[Head]) -> "StandInSource":
    """Return the constants of these heads, each fitted alone, and show on which examples and with which loss."""
    if checkpoint.labels is None:
        raise InputError(
            f"The method “optimal constant” needs a classifier; {name} is not a classifier. Choose a fine-tuned "
            f"classifier, or the method “mean output”."
        )
    fit = resources.constants(name, checkpoint, task, frozenset(heads))
    fitted, data_source = fit.fitted, fit.data or "the bundled samples"
    lines = [
        f"{head}: mean {fitted.mean[head]:.4f}, zero {fitted.zero[head]:.4f}, constant {fitted.fitted[head]:.4f}"
        + (" (the optimisation found nothing better)" if head in fitted.stuck() else "")
        for head in sorted(heads)
    ]
    fitting_note = (
        f"The constants were fitted on {fit.rows} train examples of {pickers.task_name(task)} ({data_source}), for "
        f"each head alone. Mean loss on these examples: "
    )
    st.caption(plain(fitting_note + "; ".join(lines) + "."))
    return fitted.source


# ---------------------------------------------------------------- jobs on the examples of a task


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


def shared_options(*, most: int | None = None) -> SweepInputs | None:
    """Ask for checkpoint, task, examples (told: at most `most`) and data; None until there is a checkpoint."""
    name, task = context.now().checkpoint, str(context.now().rows)
    left, right = st.columns([1, 4])
    limit = left.number_input(
        "Rows",
        0,
        100_000,
        500,
        key="limit",
        bind="query-params",
        help="The number of dev examples, which are drawn with a fixed seed. "
        + (f"At most {most} are used." if most else "0 uses all dev examples."),
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
