"""Subnetworks: how many weights a task needs, and whether some components are better than others."""

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.attention import Head
from core.studies.probing.records import Subnetwork, SubnetworkComponent, SurvivorClass
from core.studies.tuning.records import TunedScore
from pages.parts.charts.curves import line_with_band, values_with_intervals
from pages.parts.charts.encoding import Axes, Shade
from pages.parts.charts.heads import head_picture
from pages.parts.reports.probing import caption_of, say, shown_probing, start_study, table_of
from pages.parts.reports.stored_runs import StoredRun, known_runs
from pages.parts.reports.study_view import details
from pages.parts.shell import url
from pages.parts.shell.messages import clear_errors, plain
from pages.parts.widgets import job_progress
from pages.parts.widgets.files import show_files

LEARNS = {"pooling": "mean", "epochs": 6}  # settings with which the bundled encoder learns SST-2-like


def is_at_chance(result: StoredRun) -> bool:
    """Return whether the unpruned model is no better than a constant prediction."""
    networks = [network for network in result.among(Subnetwork) if network.kind in ("subnetwork", "curve")]
    full = next((network for network in networks if network.name == "full" or network.share == 0), None)
    return not (full is None or full.constant is None or (full.low is not None and full.low > full.constant))


def offer_better_model(result: StoredRun) -> None:
    """Offer a run with settings with which the model learns the task."""
    best = best_tuned(result)
    elsewhere = (
        f"With other settings, fine-tuning the same checkpoint gives a score of {100 * best:.1f} (see Fine-tuning > "
        "Train). "
        if best
        else ""
    )
    st.markdown(
        "The unpruned model is at chance level, so pruning cannot lower its score. The curves of this run do not show "
        + f"how many weights the task needs. {elsewhere}"
        + "Run the study again with mean pooling, six epochs and up to 2,000 train examples, so that the model learns "
          "the task."
    )  # fmt: skip
    st.button("Run the study again with better settings", icon=":material/play_arrow:", type="primary",
              key="run_learning",
              help="Before pruning, the model is fine-tuned with mean pooling for six epochs on up to 2,000 train "
                   "examples.", on_click=_run_learning, args=(result,))  # fmt: skip


def best_tuned(result: StoredRun) -> float | None:
    """Return the best mean score of stored fine-tuning runs of the same model, task and metric, 0 to 1."""
    metric = next((network.metric for network in result.among(Subnetwork) if network.metric), "accuracy")
    scores = [
        score.of_metric(str(metric))
        for tuned in known_runs("finetune")
        if (tuned.checkpoint, tuned.task) == (result.checkpoint, result.task)
        for score in tuned.among(TunedScore)
        if (score.kind, score.initialisation) == ("mean", "pretrained")
    ]
    return max((score for score in scores if score is not None), default=None)


def _run_learning(result: StoredRun) -> None:
    with clear_errors():
        settings = (result.told.get("settings") or {}) | LEARNS
        options = dict(result.told) | {"settings": {k: v for k, v in settings.items() if k != "train_limit"}}
        job_progress.begin("subnetworks", options, result.title)


def show_curves(result: StoredRun) -> None:
    steps = [network for network in result.among(Subnetwork) if network.kind == "curve"]
    if not steps:
        st.info("This result does not include magnitude pruning.", icon=":material/info:")
        return
    curves: dict[str, list[Subnetwork]] = {}
    for step in steps:
        curves.setdefault(f"{step.moment} fine-tuning, {step.scope}", []).append(step)
    lines = [
        {"percent": _percent(step), "value": step.value, "low": step.low, "high": step.high, "of": name}
        for name, curve_steps in curves.items()
        for step in curve_steps
    ]
    axes = Axes(x="percent", y="value", low="low", high="high", colour="of", x_title="pruned weights, %")
    chart = line_with_band(
        _in_percent(pd.DataFrame(lines)),
        replace(axes, y_title=f"{steps[0].metric}, %"),
        title="Score by share of pruned weights (dashed: constant prediction)",
        rule=None if steps[0].constant is None else 100 * steps[0].constant,
    )
    st.altair_chart(chart)
    with details():
        for name, curve_steps in curves.items():
            st.markdown(f"{plain(name.capitalize())}: {free_share(curve_steps)}")
        say(f"{caption_of(result)} · {_counted(steps)}")
        show_files(table_of(result, "curve"), [chart], "pruning")


def _in_percent(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the scores and their intervals times 100."""
    return frame.assign(**{name: 100 * frame[name].astype(float) for name in ("value", "low", "high")})


def _percent(step: Subnetwork) -> float:
    return 100 * float(step.share or 0)


def _counted(networks: Sequence[Subnetwork]) -> str:
    seeds = max(int(network.seeds or 0) for network in networks)
    return f"n = {max(network.n for network in networks)} dev examples, {seeds} seed{'s' * (seeds > 1)}"


def free_share(steps: Sequence[Subnetwork]) -> str:
    """Return the fraction of weights that can be pruned before the score falls significantly."""
    ordered = sorted(steps, key=_percent)
    first = next((step for step in ordered if step.change_high is not None and step.change_high < 0), None)
    if first is None:
        return f"the score does not fall significantly up to {_percent(ordered[-1]):.0f} % pruned weights (95 % CI)."
    before = max((_percent(step) for step in ordered if _percent(step) < _percent(first)), default=float("nan"))
    change = first.change_estimate
    return (
        f"the score does not fall significantly up to {before:.0f} % pruned weights; at {_percent(first):.0f} % it "
        f"has changed by {100 * change.value:+.1f} points ({100 * float(change.low or 0):+.1f} to "
        f"{100 * float(change.high or 0):+.1f})."
    )


def show_networks(result: StoredRun) -> None:
    """Show good, bad and random subnetworks, surviving components, and the classes of their maps."""
    subnetworks = result.among(Subnetwork)
    networks = [network for network in subnetworks if network.kind == "subnetwork"]
    if not networks:
        st.info(
            "This result does not include the comparison of three subnetworks: the components that survive pruning "
            "(good), those that are pruned first (bad), and random components.",
            icon=":material/info:",
        )
        return
    bars = values_with_intervals(
        _in_percent(pd.DataFrame(networks)),
        Axes(x="name", y="value", low="low", high="high", x_title="", y_title=f"{networks[0].metric}, %"),
        title="Score after retraining (dashed: constant prediction)",
        rule=None if networks[0].constant is None else 100 * networks[0].constant,
        tooltip=["share"],
    )
    left, right = st.columns([3, 2])
    left.altair_chart(bars)
    with right:
        _survivors(result.among(SubnetworkComponent))
    for network in subnetworks:
        if network.kind == "difference":
            value, low, high = (100 * float(end or 0) for end in (network.value, network.low, network.high))
            st.markdown(
                f"The difference “{plain(network.name.replace(' less ', ' minus '))}” is {value:+.1f} points (95 % CI "
                f"{low:+.1f} to {high:+.1f})."
            )
    gone = next(network.share for network in networks if network.name == "good")
    say(
        f"{caption_of(result)} · the subnetworks lack {float(gone or 0):.0%} of heads "
        f"and feed-forward sublayers · {_counted(networks)}"
    )
    _classes(result.among(SurvivorClass))
    show_files(table_of(result, "subnetwork", "difference", "component", "survivor class"), [bars], "subnetworks")


def _classes(classes: Sequence[SurvivorClass]) -> None:
    if not classes:
        return
    axes = Axes(x="name", y="value", low="low", high="high", x_title="pattern class")
    st.altair_chart(
        values_with_intervals(
            pd.DataFrame(classes),
            replace(axes, y_title="share in survivors minus share in other heads"),
            rule=0.0,
            title="Pattern classes of surviving heads compared with other heads",
        )
    )
    say(f"n = {max(pattern_class.n for pattern_class in classes)} inputs; classes by the bundled pattern classifier")


def _survivors(components: Sequence[SubnetworkComponent]) -> None:
    heads = [(Head.parse(head.name), head) for head in components if "-" not in head.name]
    lines = [
        {"layer": position.layer, "head": position.head, "value": head.value, "place": head.place, "n": head.n}
        for position, head in heads
    ]
    picture = head_picture(
        pd.DataFrame(lines),
        Shade("value", label="survived", domain=(0, 1), cell=34),
        tooltip=("place", "n"),
        title="Share of seeds in which each head survives pruning",
    )
    st.altair_chart(picture, width="content")
    surviving_blocks = [block.name.split("-")[0] for block in components if "-" in block.name and block.value > 0]
    st.caption(
        "Layers whose feed-forward sublayer survives pruning in at least one seed: "
        f"{plain(', '.join(surviving_blocks) or 'none')}"
    )


VIEWS = {"Weights by magnitude": show_curves, "Good, bad and random": show_networks}


def show(tools: DeltaGenerator) -> None:
    with tools:
        mode = url.pick_mode(list(VIEWS))
    with clear_errors(), shown_probing("subnetworks", key="pruned") as result:
        if result is not None:
            if not is_at_chance(result):
                VIEWS[mode](result)
            else:
                offer_better_model(result)
                with st.expander(
                    "Results of this run (not informative, because the model is at chance level)",
                    icon=":material/show_chart:",
                ):
                    VIEWS[mode](result)
    start_study("subnetworks", view="subnetworks")
