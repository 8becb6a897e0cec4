"""Jobs on the examples of a task: perturbations, patching, cut edges, attention to [SEP], and sinks."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import fmean
from typing import Any

import pandas as pd
import streamlit as st

from core import capture
from core.interval import Estimate, or_nan
from core.store.rows import Row
from core.studies.ablation import knockout, patch, perturb, separators, sinks
from core.studies.ablation.knockout import WORD_LINKS
from core.studies.ablation.records import (
    Changed,
    EdgeCut,
    LinkContrast,
    Patched,
    Perturbation,
    SeparatorLayer,
    Unmodified,
    too_few_flips,
)
from core.studies.contract import declared
from core.studies.outcomes import Metric
from pages.parts.charts.curves import values_with_intervals
from pages.parts.charts.encoding import LARGE, Axes, Shade
from pages.parts.charts.heads import head_picture
from pages.parts.disable.settings import shared_options
from pages.parts.reports.caveats import warn_at_chance
from pages.parts.reports.study_view import drawer, shown_result
from pages.parts.shell import url
from pages.parts.shell.messages import clear_errors, plain
from pages.parts.widgets import job_progress
from pages.parts.widgets.tables import show_table

STUDIES = {module.STUDY.name: module.STUDY.question for module in (perturb, patch, knockout, separators, sinks)}


def show_rows() -> None:
    study = url.pick(st.selectbox, "Question", STUDIES, key="study")
    with drawer("Measure another checkpoint or task", study):
        shared, told = shared_options(), _told(study)
        job_progress.offer_start(study, asdict(shared) | told if shared else None, "Measure")
    job_progress.show_jobs(study)
    with (
        clear_errors(),
        shown_result(study, "No result is stored yet. Choose a fine-tuned checkpoint and press Measure.") as stored,
    ):
        if stored is not None:
            rows = stored.result_rows
            for untouched in Unmodified.among(rows)[:1]:
                accuracy = untouched.metrics.of("accuracy")
                warn_at_chance(stored, accuracy.value if accuracy else None, untouched.n)
            n = RESULTS[study](rows)
            st.caption(plain(f"{stored.checkpoint} · {stored.task} · n up to {n} · {stored.date}"))


def _told(study: str) -> dict[str, Any]:
    """Ask for further options of a study."""
    if study == perturb.STUDY.name:
        return {
            "kinds": st.multiselect(
                "Changes", perturb.DEFAULT, default=perturb.DEFAULT, key="kinds", bind="query-params"
            )
        }
    if study == knockout.STUDY.name:
        edges, default = capture.knockout.EDGES | WORD_LINKS, list(declared(knockout.KnockoutOptions)["edges"].default)
        return {"edges": url.pick_many(st.multiselect, "Edges", edges, key="cuts", default=default)}
    if study == patch.STUDY.name:
        left, right = st.columns(2)
        kind = left.selectbox("Perturbation of the input", perturb.DEFAULT,
                              index=perturb.DEFAULT.index("drop"), key="made_by", bind="query-params")  # fmt: skip
        unit_kind = right.selectbox("Patched", patch.WHAT, key="patched_what", bind="query-params")
        return {"kind": kind, "what": unit_kind}
    return {}


def _perturbed(rows: list[Row]) -> int:
    baseline, perturbations = Unmodified.among(rows)[0], Perturbation.among(rows)
    body = [row for row in perturbations if row.n > 1]
    first = baseline.metrics.first
    if any(row.changed_rate is not None for row in body):
        chart = values_with_intervals(
            pd.DataFrame(body, columns=["name", "changed_rate", "changed_low", "changed_high", "n"]),
            Axes(
                x="name",
                y="changed_rate",
                low="changed_low",
                high="changed_high",
                x_title="change",
                y_title="share of predictions that change",
            ),
            title="Share of predictions that differ between the two inputs (95 % CI, Wilson)",
            tooltip=["n"],
        )
        st.altair_chart(chart)
    sentence = f"Full input: {first.name} {or_nan(first.value):.3f}"
    if baseline.constant is not None:
        sentence += f"; constant prediction of the most frequent label: {baseline.constant:.3f}"
    for row in body:
        if row.kind == "partial input":
            sentence += f"; {row.name}: {or_nan(_metric(row, first.name).value):.3f}"
    st.markdown(plain(sentence + "."))
    _table([
        {"name": row.name, "n": row.n, "of": row.of_rows, "changed_rate": row.changed_rate,
         "changed_low": row.changed_low, "changed_high": row.changed_high,
         f"{first.name}_full": _metric(row, first.name).full, **_changes(row, first.name),
         "constant": row.constant, "p": row.p}
        for row in body
    ])  # fmt: skip
    return max(baseline.n, *(row.n for row in perturbations))


def _patched(rows: list[Row]) -> int:
    patched = Patched.among(rows)
    frame = pd.DataFrame(patched)
    if all(row.head is not None for row in patched):
        chart = head_picture(
            frame,
            Shade("recovered", label="recovered logit difference", diverging=True, cell=LARGE),
            title="Logit difference recovered by patching each head alone",
            tooltip=["p"],
        )
        st.altair_chart(chart, width="content")
    else:
        chart = values_with_intervals(
            frame,
            Axes(x="name", y="recovered", low="low", high="high"),
            rule=0.0,
            title="Logit difference recovered by patching each component alone",
        )
        st.altair_chart(chart)
    patched.sort(key=lambda row: -row.recovered)
    significant = [row.name for row in patched if row.p is not None and row.p < 0.05]
    first = Patched.among(rows)[0]
    st.markdown(
        plain(
            f"Beyond luck (p < 0.05, corrected over {len(rows)}): {', '.join(significant) or 'none'}. {first.n} pairs "
            f"by {first.made_by}; {first.under_floor} differ too little, {first.not_made} were not made."
        )
    )
    show_table(pd.DataFrame(patched, columns=["name", "recovered", "low", "high", "p"]))
    return max(row.n for row in patched)


def _cut(rows: list[Row]) -> int:
    cuts = EdgeCut.among(rows)
    _without(cuts, {cut.name: cut.with_edges for cut in cuts}, Unmodified.among(rows)[0])
    for contrast in LinkContrast.among(rows):
        if contrast.value is not None and contrast.low is not None:
            st.markdown(
                f"Blocking attention along {plain(contrast.first)} links in all layers changes the prediction (a "
                f"score, or the difference between the two largest logits) by {contrast.value:+.2g} more (95 % CI "
                f"{contrast.low:.2g} to {contrast.high:.2g}) than blocking attention along {plain(contrast.other)} "
                f"links. In {contrast.n} examples, {contrast.links} links of "
                "each kind were blocked. Links of both kinds have the same distances."
            )
    return max(*(cut.n for cut in cuts), *(untouched.n for untouched in Unmodified.among(rows)))


def _without(body: Sequence[Changed], with_edges: Mapping[str, int | None], baseline: Unmodified) -> None:
    """Show predictions without edges, in one layer or in all. `with_edges` counts examples with such edges, by name."""
    metric = baseline.metrics.first.name
    lines = [
        {"name": row.name, "with_edges": with_edges[row.name], "n": row.n, **_changes(row, metric),
         "flipped": row.flipped, "changed_low": row.changed_low, "changed_high": row.changed_high,
         "mcnemar": row.mcnemar, "p": row.p}
        for row in body
    ]  # fmt: skip
    chart = values_with_intervals(
        pd.DataFrame(lines),
        Axes(x="name", y=f"{metric}_change", low=f"{metric}_low", high=f"{metric}_high", y_title=f"change of {metric}"),
        rule=0.0,
        title="Without these edges",
        tooltip=["n"],
    )
    st.altair_chart(chart)
    _table(lines)


def _separators(rows: list[Row]) -> int:
    separator_rows = SeparatorLayer.among(rows)
    layers = [row for row in separator_rows if row.layer is not None]
    if any(row.ratio is not None for row in layers):
        chart = values_with_intervals(
            pd.DataFrame(layers),
            Axes(
                x="name",
                y="ratio",
                low="ratio_low",
                high="ratio_high",
                x_title="layer",
                y_title="gradient for separators / gradient for other tokens",
            ),
            rule=1.0,
            tooltip=["weight_on_separators"],
            title="Gradient of the loss with respect to attention to separators, relative to other tokens",
        )
        st.altair_chart(chart)
    if any(row.norm_on_separators is not None for row in layers):
        st.altair_chart(_weights_and_norms(layers))
        st.caption(
            "A norm is the attention weight times the length of the transformed value vector. If attention to "
            "separators is a no-op, their share of the norms is smaller than their share of the weights."
        )
        st.caption("In this chart, the dashed line is the share of separators among all tokens.")
    columns = ["name", "separators_of_pieces", "weight_on_separators", "norm_on_separators", "gradient_separator",
               "gradient_other", "ratio", "ratio_low", "ratio_high"]  # fmt: skip
    show_table(pd.DataFrame(layers, columns=columns).dropna(axis=1, how="all"))
    baseline = Unmodified.among(rows)
    _without(separator_rows, {row.name: row.with_separators for row in separator_rows}, baseline[0])
    return max(baseline[0].n, *(row.n for row in separator_rows if row.n is not None))


def _weights_and_norms(layers: Sequence[SeparatorLayer]) -> Any:
    """Show the fractions of weights and of norms that separators have, by layer."""
    lines = [
        {"name": row.name, "of": "weights", "share": row.weight_on_separators,
         "low": row.weight_on_separators_low, "high": row.weight_on_separators_high}
        for row in layers
    ] + [
        {"name": row.name, "of": "norms", "share": row.norm_on_separators,
         "low": row.norm_on_separators_low, "high": row.norm_on_separators_high}
        for row in layers
    ]  # fmt: skip
    return values_with_intervals(
        pd.DataFrame(lines),
        Axes(x="name", y="share", low="low", high="high", colour="of", x_title="layer", y_title="share on separators"),
        rule=fmean(row.separators_of_pieces for row in layers if row.separators_of_pieces is not None),
        title="Share of separators in attention weights and in norms of weighted vectors (95 % CI)",
    )


def _sinks(rows: list[Row]) -> int:
    scores = sinks.SinkScore.among(rows)
    shares = [score for score in scores if score.statistic == sinks.SHARE]
    named = [asdict(score) | {"name": score.name} for score in scores if score.verdict is not None]
    if effects := [line for line in named if line["statistic"] != sinks.SHARE]:
        axes = Axes(x="name", y="value", low="low", high="high", colour="statistic", x_title="head",
                    y_title=effects[0]["measure"])  # fmt: skip
        st.altair_chart(
            values_with_intervals(
                pd.DataFrame(effects),
                axes,
                rule=effects[0]["baseline"],
                tooltip=["feature", "verdict"],
                title="Change in the output by head (joint 95 % CIs; line: smallest change that matters)",
            )
        )
        _table([line for line in named if line["statistic"] == sinks.SHARE], only=SINK_COLUMNS)
    if layers := sinks.SinkLayer.among(rows):
        st.markdown("Effect of removing all sinks of a layer together")
        _table([asdict(layer) for layer in layers], only=SINK_LAYER_COLUMNS)
    massive = sinks.MassiveLayer.among(rows)
    axes = Axes(x="name", y="ratio", x_title="layer", y_title="largest activation / median magnitude")
    st.altair_chart(
        values_with_intervals(
            pd.DataFrame(massive),
            axes,
            tooltip=["at", "channel", "above_100", "above_1000"],
            title="Largest activation after each layer, relative to the median",
        )
    )
    most = max(massive, key=lambda layer: layer.ratio)
    st.caption(
        plain(
            f"The largest activation is {most.ratio:.0f} times the median magnitude of its layer: {most.name}, channel "
            f"{most.channel}, at the {most.at}. Activations above 100 or 1,000 times the median are called massive."
        )
    )
    _table([asdict(layer) for layer in massive], only=MASSIVE_COLUMNS)
    return int((shares or massive)[0].n or 0)


SINK_COLUMNS = ["name", "feature", "value", "low", "high", "baseline", "verdict", "length", "energy", "rank", "varies"]
SINK_LAYER_COLUMNS = ["name", "heads", "verdict", "value", "low", "high", "replaced", "whole", "margin"]
MASSIVE_COLUMNS = ["name", "ratio", "at", "channel", "at_sink", "above_100", "above_1000"]


def _metric(row: Changed, name: str) -> Metric:
    return row.metrics.of(name) or Metric(name)


def _changes(row: Changed, name: str) -> dict[str, float | None]:
    """Return a metric, its change and the interval of the change as columns."""
    metric = _metric(row, name)
    change = metric.change or Estimate(float("nan"))
    if too_few_flips(row.flipped, row.n):
        change = Estimate(change.value)  # its interval would be a bound, several times too wide
    return {name: metric.value, f"{name}_change": change.value, f"{name}_low": change.low, f"{name}_high": change.high}


def _table(lines: Sequence[Mapping[str, Any]], only: list[str] | None = None) -> None:
    """Show rows without empty columns."""
    show_table(pd.DataFrame(lines, columns=only).dropna(axis=1, how="all"))


RESULTS = {
    perturb.STUDY.name: _perturbed,
    patch.STUDY.name: _patched,
    knockout.STUDY.name: _cut,
    separators.STUDY.name: _separators,
    sinks.STUDY.name: _sinks,
}
