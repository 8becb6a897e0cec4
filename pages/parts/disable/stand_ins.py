"""Inputs about replacement outputs: what means are over, and which examples fit constants."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from core.attention import Head
from core.errors import InputError
from core.studies.ablation.setup import FITTED_ROWS, MEANS
from pages.parts.shell import resources, url
from pages.parts.shell.messages import plain
from pages.parts.widgets import pickers

if TYPE_CHECKING:
    from core.capture.interventions import StandInSource


def mean_by(operator: str, *, key: str) -> dict[str, str]:
    """Ask what the mean is over, as an option of studies; {} for other ablation methods."""
    if operator != "mean":
        return {}
    return {"mean_by": url.pick(st.selectbox, "Mean by", MEANS, key=key)}


def pick_fitting_task() -> str:
    """Ask for the task whose labelled train examples fit the constants."""
    task = pickers.pick_task("Fit the constants on train examples of", key="fitted_on")
    st.caption(
        f"This method uses {FITTED_ROWS} examples, which are drawn with seed 0. The checkpoint must be a "
        "classifier for this task."
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
