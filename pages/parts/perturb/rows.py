"""The same on a task's rows, as jobs: perturbed inputs, patching, cut edges, and whether [SEP] is a no-op."""

from typing import Any

import pandas as pd
import streamlit as st

from core import capture
from core.store.runs import study_rows
from core.studies import patch, perturb
from core.studies.contract import declared
from core.studies.knockout import Options
from pages.parts.charts.curves import bars_with_intervals
from pages.parts.charts.encoding import Axes, Shade
from pages.parts.charts.heads import head_picture
from pages.parts.disable.sweeps import active_jobs, shared_options
from pages.parts.frame import bound, resources
from pages.parts.frame.messages import clear_errors, plain
from pages.parts.reports.stored_runs import drawer, pick_run
from pages.parts.widgets import job_progress

STUDIES = {
    "perturb": "changed inputs: how often does the prediction change?",
    "patch": "patching: what brings the first input's answer back?",
    "knockout": "cut edges: what happens without them?",
    "separators": "is attention to [SEP] a no-op?",
}


def show_rows() -> None:
    """Start a study; see what is running; look at results."""
    study = bound.pick(st.selectbox, "Question", list(STUDIES), key="study", format_func=STUDIES.__getitem__)
    with drawer("Measure another checkpoint or task", study):
        _start(study)
    active_jobs(study)
    with clear_errors():
        picked = pick_run(study, "Nothing has been measured yet: choose a fine-tuned checkpoint and press Measure.")
        if picked is not None:
            rows = study_rows(resources.database(), picked[0])
            RESULTS[study](rows)
            about = picked[1]
            n = int(rows["n"].dropna().max()) if "n" in rows else 0
            st.caption(plain(f"{about['checkpoint']} · {about['task']} · n up to {n} · {about['created']:%d %B %Y}"))


def _start(study: str) -> None:
    shared = shared_options()
    told = _told(study)
    if st.button("Measure", type="primary", disabled=shared is None) and shared:
        with clear_errors():
            job_progress.begin(study, shared | told, f"{study} of {shared['checkpoint']}")
            st.rerun()


def _told(study: str) -> dict[str, Any]:
    """What more a study is told."""
    if study == "perturb":
        return {"kinds": st.multiselect("Changes", perturb.DEFAULT, default=perturb.DEFAULT, key="kinds")}
    if study == "knockout":
        default = declared(Options)["edges"].default
        return {
            "edges": st.multiselect(
                "Edges",
                list(capture.knockout.EDGES),
                default=list(default),
                format_func=capture.knockout.EDGES.get,
                key="cuts",
            )
        }
    if study == "patch":
        left, right = st.columns(2)
        kind = left.selectbox("The second input is made by", perturb.DEFAULT,
                              index=perturb.DEFAULT.index("drop"), key="made_by")  # fmt: skip
        return {"kind": kind, "what": right.selectbox("Patched", patch.WHAT, key="patched_what")}
    return {}


def _perturbed(rows: pd.DataFrame) -> None:
    baseline, body = rows[rows["kind"] == "baseline"].iloc[0], rows[(rows["kind"] != "baseline") & (rows["n"] > 1)]
    metric = next(name for name in ("accuracy", "f1", "pearson") if name in rows)
    if "changed_rate" in body and body["changed_rate"].notna().any():
        chart = bars_with_intervals(
            body,
            Axes(
                x="name",
                y="changed_rate",
                low="changed_low",
                high="changed_high",
                x_title="change",
                y_title="share of predictions that change",
            ),
            title="Predictions that change with the input (95% Wilson)",
            tooltip=["n"],
        )
        st.altair_chart(chart)
    said = f"Full input: {metric} {baseline[metric]:.3f}"
    if pd.notna(baseline.get("constant")):
        said += f"; the commonest label alone: {baseline['constant']:.3f}"
    for _, row in body[body["kind"] == "partial input"].iterrows():
        said += f"; {row['name']}: {row[metric]:.3f}"
    st.markdown(plain(said + "."))
    _table(body, ["name", "n", "of", "changed_rate", "changed_low", "changed_high", f"{metric}_full", metric,
                  f"{metric}_change", f"{metric}_low", f"{metric}_high", "constant", "p"])  # fmt: skip


def _patched(rows: pd.DataFrame) -> None:
    if rows["head"].notna().all():
        chart = head_picture(
            rows,
            Shade("recovered", label="share brought back", diverging=True),
            title="What each head brings back, patched alone",
            tooltip=["p"],
        )
        st.altair_chart(chart, width="content")
    else:
        chart = bars_with_intervals(
            rows,
            Axes(x="name", y="recovered", low="low", high="high"),
            rule=0.0,
            title="What each brings back, patched alone",
        )
        st.altair_chart(chart)
    kept = rows[rows["p"] < 0.05].sort_values("recovered", ascending=False)["name"]
    first = rows.iloc[0]
    st.markdown(plain(
        f"Beyond luck (p < 0.05, corrected over {len(rows)}): {', '.join(kept) or 'none'}. {int(first['n'])} pairs by "
        f"{first['made_by']}; {int(first['under_floor'])} differ too little, {int(first['not_made'])} were not made."
    ))  # fmt: skip
    _table(rows.sort_values("recovered", ascending=False), ["name", "recovered", "low", "high", "p"])


def _cut(rows: pd.DataFrame) -> None:
    body = rows[rows["kind"] != "baseline"]
    metric = next(name for name in ("accuracy", "f1", "pearson") if name in rows)
    chart = bars_with_intervals(
        body,
        Axes(x="name", y=f"{metric}_change", low=f"{metric}_low", high=f"{metric}_high", y_title=f"change of {metric}"),
        rule=0.0,
        title="Without these edges",
        tooltip=["n"],
    )
    st.altair_chart(chart)
    _table(body, ["name", "with_edges", "n", metric, f"{metric}_change", f"{metric}_low", f"{metric}_high", "flipped",
                  "changed_low", "changed_high", "mcnemar", "p"])  # fmt: skip


def _separators(rows: pd.DataFrame) -> None:
    layers = rows[(rows["kind"] == "layer") & rows["layer"].notna()]
    if layers["ratio"].notna().any():
        chart = bars_with_intervals(
            layers,
            Axes(
                x="name",
                y="ratio",
                low="ratio_low",
                high="ratio_high",
                x_title="layer",
                y_title="gradient to separators / to other tokens",
            ),
            rule=1.0,
            tooltip=["weight_on_separators"],
            title="How much the loss moves with attention to separators, beside other tokens",
        )
        st.altair_chart(chart)
    if "norm_on_separators" in layers and layers["norm_on_separators"].notna().any():
        st.altair_chart(_weights_and_norms(layers))
        st.caption(
            "A no-op has weight and adds little: its share of norms (weight times the length of what the token hands "
            "on) is smaller than its share of weights. Dashed: the separators' share of the pieces."
        )
    _table(layers, ["name", "separators_of_pieces", "weight_on_separators", "norm_on_separators", "gradient_separator",
                    "gradient_other", "ratio", "ratio_low", "ratio_high"])  # fmt: skip
    _cut(rows)


def _weights_and_norms(layers: pd.DataFrame) -> Any:
    """The separators' share of weights and of norms, layer by layer."""
    shares = {"weights": "weight_on_separators", "norms": "norm_on_separators"}
    long = pd.concat([
        layers.assign(of=kind, share=layers[name], low=layers[f"{name}_low"], high=layers[f"{name}_high"])
        for kind, name in shares.items()
    ])  # fmt: skip
    return bars_with_intervals(
        long,
        Axes(x="name", y="share", low="low", high="high", colour="of", x_title="layer", y_title="share on separators"),
        rule=float(layers["separators_of_pieces"].mean()),
        title="Weight on separators, and what it adds (95%)",
    )


def _table(rows: pd.DataFrame, columns: list[str]) -> None:
    st.dataframe(rows[[name for name in columns if name in rows]], hide_index=True)


RESULTS = {"perturb": _perturbed, "patch": _patched, "knockout": _cut, "separators": _separators}
