"""One head under every operator side by side, and how far operators agree on which heads matter."""

import pandas as pd
import streamlit as st

from core.attention import Head
from core.store.runs import study_rows
from core.studies import operators
from pages.parts.charts.curves import bars_with_intervals
from pages.parts.charts.encoding import Axes, Shade
from pages.parts.charts.export import together
from pages.parts.charts.heads import head_picture
from pages.parts.disable.live import SWEPT
from pages.parts.disable.stand_ins import mean_by
from pages.parts.disable.sweeps import active_jobs, shared_options
from pages.parts.frame import resources
from pages.parts.frame.messages import clear_errors, plain
from pages.parts.reports.stored_runs import drawer, pick_run
from pages.parts.widgets import job_progress
from pages.parts.widgets.head_links import pick_and_link


def show_operators() -> None:
    """Start the study; see what is running; look at results."""
    with drawer("Measure another checkpoint or task", "operators"):
        _start()
    active_jobs("operators")
    with clear_errors():
        picked = pick_run("operators", "Nothing has been measured yet: choose a fine-tuned checkpoint.")
        if picked is not None:
            _shown(study_rows(resources.database(), picked[0]), picked[1])


def _start() -> None:
    shared = shared_options()
    chosen = st.multiselect("Operators", list(SWEPT), default=list(operators.DEFAULT), format_func=SWEPT.__getitem__,
                            key="operators")  # fmt: skip
    how = mean_by("mean" if "mean" in chosen else "", key="operators_mean_by")
    if st.button("Set side by side", type="primary", disabled=shared is None) and shared:
        with clear_errors():
            options = shared | how | {"operators": chosen, "limit": min(shared["limit"] or 200, 200)}
            job_progress.begin("operators", options, f"Operators on {shared['checkpoint']}")
            st.rerun()


def _shown(rows: pd.DataFrame, about: pd.Series) -> None:
    effects, baseline = rows[rows["kind"] == "effect"], rows[rows["kind"] == "baseline"].iloc[0]
    names = list(dict.fromkeys(effects["name"]))
    strongest = effects.loc[effects["value"].abs().idxmax(), "name"]
    left, right = st.columns([3, 2])
    with left:
        name = st.selectbox("Head", names, index=names.index(strongest), key="operators_head")
        here = effects[effects["name"] == name]
        chart = bars_with_intervals(
            here,
            Axes(x="operator", y="value", low="low", high="high", y_title="change of the loss"),
            rule=0.0,
            title=f"{name} under each operator (95%)",
            tooltip=["p"],
        )
        st.altair_chart(chart)
        under = list(here[(here["p"] < 0.05) & (here["value"] > 0)]["operator"])
        st.markdown(plain(f"Without {name} the loss rises beyond luck (p < 0.05, corrected over all of them) "
                          f"under {', '.join(under) or 'no operator'}."))  # fmt: skip
        _fit(here)
    with right:
        _agreement(rows[rows["kind"] == "agreement"])
    st.altair_chart(together(_pictures(effects, name)), width="content")
    st.dataframe(effects[["name", "operator", "value", "low", "high", "p"]], hide_index=True)
    st.caption(plain(
        f"{about['checkpoint']} · {about['task']} · n = {int(baseline['n'])} rows, loss {baseline['loss']:.3f} "
        f"· {about['created']:%d %B %Y} · intervals: bootstrap over rows; p: max-T over heads and operators"
    ))  # fmt: skip
    pick_and_link(str(about["checkpoint"]), names, here="disable", key="operators_go_on")


def _pictures(effects: pd.DataFrame, name: str) -> list:
    largest = float(effects["value"].abs().max()) or 1.0
    return [
        head_picture(
            effects[effects["operator"] == operator],
            Shade("value", label="change of loss", diverging=True, domain=(-largest, largest)),
            title=str(operator),
            highlight=[Head.parse(name)],
            tooltip=["low", "high", "p"],
        )
        for operator in dict.fromkeys(effects["operator"])
    ]


def _agreement(rows: pd.DataFrame) -> None:
    if rows.empty:
        return
    st.markdown("**Do operators rank heads alike?** Kendall's tau of mean effects (1 the same order, 0 no relation)")
    columns = [name for name in ("name", "kendall", "low", "high", "itself", "same_rows") if name in rows]
    st.dataframe(rows[columns], hide_index=True)
    st.caption(
        "Each operator on another half of the rows, since noise that both share would pass for agreement (same_rows "
        "has it). itself: how well each agrees with itself across halves, the most that could be seen. 95% over heads."
    )


def _fit(effects: pd.DataFrame) -> None:
    if "fit_constant" not in effects or effects["fit_constant"].isna().all():
        return
    fitted = effects.dropna(subset=["fit_constant"]).iloc[0]
    start = min(fitted["fit_mean"], fitted["fit_zero"])
    said = f"Loss on the rows that fitted its constant: mean {fitted['fit_mean']:.4f}, zero {fitted['fit_zero']:.4f}, "
    said += f"constant {fitted['fit_constant']:.4f}."
    if fitted["fit_constant"] >= start:
        said += " The descent found nothing better than where it began."
    st.caption(said)
