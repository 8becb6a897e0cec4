"""Discovered patterns: clusters of attention maps without labels, and the pattern classes of their maps."""

from collections.abc import Sequence

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.attention import Head
from core.codebook.registry import SHIPPED
from core.drawing.conversion import map_picture
from core.patterns.discovery import CLUSTERED, FEWEST_MAPS
from core.studies.patterns.discover import ONE_CLASS, STUDY
from core.studies.patterns.records import ClusterExemplar, DiscoveredPatterns, PatternCluster
from pages.parts.charts.encoding import Axes, Layers
from pages.parts.charts.matrices import matrix
from pages.parts.label.map_pictures import show_pictures
from pages.parts.reports.stored_runs import StoredRun
from pages.parts.reports.study_view import details, show_study
from pages.parts.shell import context
from pages.parts.shell.messages import clear_errors, plain
from pages.parts.widgets import job_progress, pickers
from pages.parts.widgets.files import show_files

BY = {"annotators": "given by annotators", "classifier": "predicted by the bundled pattern classifier"}


def show(tools: DeltaGenerator) -> None:
    with clear_errors():
        show_study(STUDY.name, draw, form, empty="No maps have been clustered yet. Press Run.", key="discovered")


def form() -> None:
    name = context.now().checkpoint
    maps = st.number_input("Maps to cluster", FEWEST_MAPS, 4000, 600, 100, key="discover_maps", width=200)
    options = {
        "checkpoints": [name], "task": context.now().rows or "sst2", "maps": maps, "data": pickers.data_folder()
    }  # fmt: skip
    job_progress.offer_start(STUDY.name, options if name else None, "Run", key="start_discover", type="secondary")


def draw(stored: StoredRun) -> None:
    rows = stored.result_rows
    for number, found in enumerate(DiscoveredPatterns.among(rows)):
        clusters = [one for one in PatternCluster.among(rows) if one.checkpoint == found.checkpoint]
        exemplars = [one for one in ClusterExemplar.among(rows) if one.checkpoint == found.checkpoint]
        _draw_one(found, clusters, exemplars, key=f"{number}")


def contingency(clusters: Sequence[PatternCluster], title: str) -> tuple[pd.DataFrame, Layers]:
    """Return the percentage of each cluster's maps in each class as a table and as a heatmap."""
    names = list(dict.fromkeys(name for cluster in clusters for name in cluster.counts))
    lines = [
        {"cluster": _name(cluster), "class": name, "maps": cluster.counts.get(name, 0),
         "percent": round(100 * cluster.counts.get(name, 0) / max(1, sum(cluster.counts.values())))}
        for cluster in clusters for name in names
    ]  # fmt: skip
    frame = pd.DataFrame(lines, columns=["cluster", "class", "maps", "percent"])
    rows = [_name(cluster) for cluster in clusters]
    axes = Axes(x="class", y="cluster", x_title="", y_title="")
    return frame, matrix(frame, axes, value="percent", title=title, order=names, rows=rows)


def _name(cluster: PatternCluster) -> str:
    number = f"cluster {cluster.cluster}" if cluster.cluster else "no cluster"
    return f"{number} ({cluster.maps} maps)"


def _draw_one(
    found: DiscoveredPatterns, clusters: Sequence[PatternCluster], exemplars: Sequence[ClusterExemplar], *, key: str
) -> None:
    ordered = [*(one for one in clusters if one.cluster), *(one for one in clusters if not one.cluster)]
    table, chart = contingency(ordered, "Classes of the maps in each cluster, in percent")
    left, right = st.columns([3, 2])
    if found.classified:
        left.altair_chart(chart, width="content", key=f"contingency_{key}")
    with right:
        st.markdown("**A typical map from each cluster, with its class**")
        _pictures([next(one for one in exemplars if one.cluster == k) for k in range(1, found.clusters + 1)])
    with details():
        if found.agreement is not None and found.agreement_low is not None and found.agreement_high is not None:
            st.markdown(
                f"Clusters and classes agree with an adjusted mutual information of {found.agreement:.2f} (95 % CI "
                f"{found.agreement_low:.2f} to {found.agreement_high:.2f}; 0: chance level, 1: identical)."
            )
        across = ", ".join(f"cluster {one.cluster}" for one in clusters if one.cuts_across)
        st.markdown(
            plain(f"Clusters of several classes: {across or 'none'}. ")
            + "In such a cluster, the share of the most frequent class is significantly below "
            f"{ONE_CLASS:.0%}, corrected for the number of clusters."
        )
        class_set = SHIPPED[found.class_set].title if found.class_set in SHIPPED else found.class_set
        st.caption(
            plain(
                f"The classes (“{class_set}”) are {BY.get(found.by, found.by)}. "
                f"HDBSCAN clustered {found.maps} maps of {found.n_heads} heads on {found.n_inputs} inputs "
                "by their length-independent statistics, with at least "
                f"{found.smallest} maps in a cluster. Clusters are stable if at least {CLUSTERED:.0%} of the maps are "
                "in a cluster, and if the clusters of nearly all random halves agree more than those of data without "
                f"clusters. The adjusted Rand index is {found.heads:.2f} for halves of the heads (95 % of halves: "
                f"{found.heads_low:.2f} to {found.heads_high:.2f}) and {found.inputs:.2f} for halves of the inputs "
                f"({found.inputs_low:.2f} to {found.inputs_high:.2f})."
            )
        )
        st.markdown("**Maps that are nearest to the centre of each cluster**")
        _pictures(exemplars)
        show_files(table, [chart], "discovered", of="Clusters", key=key)


def _pictures(exemplars: Sequence[ClusterExemplar]) -> None:
    """Show exemplars, each on the scale of its largest weight."""
    show_pictures(
        [map_picture(one.weights, own_scale=True) for one in exemplars],
        [f"Cluster {one.cluster}: {Head(one.layer, one.head)}" + f", {one.name}" * bool(one.name) for one in exemplars],
        width=112,
    )
