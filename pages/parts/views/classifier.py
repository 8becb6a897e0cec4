"""Pattern classifier: retraining on labels, its scores, and use for suggestions."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core import config
from core.interval import or_nan
from core.jobs import api
from core.labelling.crowd import METHODS
from core.patterns.agreement import consensus, inputs_of
from core.patterns.classifier_registry import bundled_about, bundled_classifier, bundled_labels, training_options
from core.patterns.retraining import compared
from core.patterns.snapshot import current_labels, snapshot, with_bundled
from core.reading import lines_of, read_text
from core.store import classifiers
from core.store.database import Database
from core.studies.patterns.records import Calibration, ClassScore, Confusion, HeldOutScore, LearningPoint
from core.studies.records import record_of
from pages.parts.charts.curves import calibration, line_with_band
from pages.parts.charts.encoding import Axes
from pages.parts.charts.matrices import matrix
from pages.parts.label.label_tools import pick_class_set
from pages.parts.label.map_pictures import pictures
from pages.parts.label.retraining import HeldOut, KnownClassifier, offer_only_mine, show_figures
from pages.parts.reports.result_card import show_own_answer
from pages.parts.shell import people, resources, url
from pages.parts.shell.messages import clear_errors, counted, plain
from pages.parts.widgets import job_progress
from pages.parts.widgets.tables import show_table

# ---------------------------------------------------------------- what a trained classifier is worth


MOST_PICTURES = 12


@dataclass(frozen=True)
class ClickedCell:
    """A cell of the confusion matrix: the class of the labels and that of the predictions."""

    truth: str
    predicted: str


@dataclass(frozen=True)
class ScoredMap:
    """A map with its label and the prediction of a classifier that was not trained on it."""

    map_id: str
    truth: str
    predicted: str


@dataclass(frozen=True)
class Epoch:
    """A line of a training log: unit, epoch, number of epochs, loss in nats, macro F1."""

    unit: str
    epoch: int
    of: int
    loss: float
    f1: float


def answer(classifier: KnownClassifier) -> None:
    """Show how well the bundled classifier recognises patterns, compared with one that does not see the map."""
    held_out = classifier.held_out
    scores = [score for score in HeldOutScore.among(held_out.rows) if score.part == "scores"]
    score = next((score for score in scores if score.on == held_out.on), None)
    if score is None or score.macro_f1 is None:
        return
    beside = "" if score.identity_f1 is None else (
        f", compared with {score.identity_f1:.2f} for a baseline that knows only the head and not the map"
    )  # fmt: skip
    show_own_answer(
        "How well does the bundled classifier recognise patterns?",
        [f"n = {score.maps:,} maps of {score.inputs} inputs", "maps with tied labels are left out"],
        f"On {score.on}, its macro F1 is {score.macro_f1:.2f}{beside}.",
        f"95 % CI {score.low:.2f} to {score.high:.2f} over inputs. Macro F1 measures agreement with the labels of an "
        "AI model. Your database has no classifier yet.",
        key="classifier",
    )


def show_results(db: Database, classifier: KnownClassifier, *, counted_above: bool = False) -> None:
    """Show everything that was measured when the classifier was trained. `counted_above`: n is in the answer."""
    held_out = classifier.held_out
    scores = HeldOutScore.among(held_out.rows)
    headlines = [score for score in scores if score.part == "scores"]
    headlines.sort(key=lambda score: score.on != held_out.on)
    n_differs = len({(score.maps, score.inputs) for score in headlines}) > 1
    for column, score in zip(st.columns(max(3, len(headlines))), headlines, strict=False):
        low, high = or_nan(score.low), or_nan(score.high)
        column.metric(
            f"Macro F1 on {plain(score.on)}",
            f"{score.macro_f1:.3f}",
            f"95 % CI {low:.3f} to {high:.3f}"
            + (f", n = {score.maps:,} maps of {score.inputs} inputs" if n_differs or not counted_above else ""),
            delta_color="off",
            delta_arrow="off",
            help=_beside(score) or None,
        )
        if score.identity_f1 is not None:
            column.caption(
                f"Baseline without the map: {score.identity_f1:.3f} (95 % CI "
                f"{score.identity_low:.3f}–{score.identity_high:.3f})"
            )
    left, right = st.columns([1, 1])
    with left:
        _per_class(ClassScore.among(held_out.rows))
    with right:
        _confusion(db, Confusion.among(held_out.rows), held_out, classifier.classes)
    checkpoints = [score for score in scores if score.part == "checkpoint"]
    if checkpoints:
        st.markdown(plain("Each checkpoint, classified by a classifier that was trained without its maps"))
        show_table(pd.DataFrame([
            {"checkpoint": score.checkpoint, "maps": score.maps, "accuracy": score.accuracy,
             "macro F1": score.macro_f1, "95 % from": score.low, "to": score.high, "calibration error": score.ece,
             "wrong with p > 0.8": score.sure_errors, "unsure": score.unsure, "outside": score.outside}
            for score in checkpoints
        ]).dropna(axis=1, how="all").round(3))  # fmt: skip
        st.caption(
            "“Unsure”: share of maps for which no class has a probability of at least one half. “Outside”: share of "
            "maps that are unlike the training maps; the classifier can still be right about such maps."
        )
        st.caption(
            "Macro F1 covers only classes with at least ten maps. These classes differ between checkpoints, so "
            "macro F1 can be higher for one checkpoint than for the maps of all checkpoints."
        )
    left, right = st.columns(2)
    with left:
        _curve(LearningPoint.among(held_out.rows), next((score.identity_f1 for score in headlines), None))
    with right:
        _calibration(Calibration.among(held_out.rows))


def _beside(score: HeldOutScore) -> str:
    """Return further scores next to macro F1 (all classes, calibration error, confident errors); "" for earlier
    versions."""
    notes = [f"over all classes {score.macro_f1_all:.3f}"] if score.macro_f1_all is not None else []
    if score.ece is not None:
        ends = "" if score.ece_low is None else f" ({score.ece_low:.3f} to {score.ece_high:.3f}, 95 % over heads)"
        notes.append(f"calibration error {score.ece:.3f}{ends}")
    if score.sure_errors is not None:
        notes.append(f"wrong with p above 0.8: {score.sure_errors:.1%}")
    is_over_all = score.macro_f1_all == score.macro_f1  # also if fewer than two classes have ten maps
    return (
        plain(f"{'Macro F1' if is_over_all else 'Classes of at least ten maps;'} {'; '.join(notes)}.") if notes else ""
    )


def _per_class(scores: Sequence[ClassScore]) -> None:
    if not scores:
        return
    lines = [
        {"class": score.name, "precision": score.precision, "recall": score.recall, "f1": score.f1,
         "support": score.support}
        for score in scores
    ]  # fmt: skip
    show_table(pd.DataFrame(lines).round(3))
    rare = [score.name for score in scores if 0 < score.support < 20]
    if rare:
        st.caption(plain(f"Classes with fewer than 20 evaluated maps: {', '.join(rare)}. Their F1 is unreliable."))


def _confusion(db: Database, pairs: Sequence[Confusion], held_out: HeldOut, names: Sequence[str]) -> None:
    if not pairs:
        return
    chart = matrix(
        pd.DataFrame(pairs),
        Axes(x="predicted", y="truth"),
        value="n",
        title="Confusion matrix: labels (rows) and predictions (columns)",
        order=names,
        select=True,
    )
    picked = st.altair_chart(chart, width="content", on_select="rerun", selection_mode="cell", key="confusion_cell")
    cells = picked.selection.get("cell", [])
    if not cells:
        st.caption("Click a cell of the matrix to see its maps.")
        return
    clicked = record_of(ClickedCell, cells[0])
    truth, predicted = clicked.truth, clicked.predicted
    scored_maps = [record_of(ScoredMap, row) for row in held_out.maps]
    maps = [scored.map_id for scored in scored_maps if (scored.truth, scored.predicted) == (truth, predicted)]
    st.markdown(plain(f"{counted(len(maps), 'maps')} with the label {truth} and the prediction {predicted}"))
    pictures(db, maps[:MOST_PICTURES])


def _curve(steps: Sequence[LearningPoint], identity: float | None) -> None:
    if not steps:
        st.caption("No learning curve was computed when this classifier was trained.")
        return
    st.altair_chart(
        line_with_band(
            pd.DataFrame(steps),
            Axes(
                x="labels",
                y="macro_f1",
                low="low",
                high="high",
                x_title="number of labelled training maps",
                y_title="macro F1 on unseen inputs",
            ),
            title="Learning curve"
            if identity is None
            else "Learning curve (dashed: baseline that knows only the head)",
            domain=(0, 1),
            rule=identity,
        )
    )


def _calibration(bins: Sequence[Calibration]) -> None:
    if not bins:
        return
    st.altair_chart(
        calibration(
            pd.DataFrame(bins),
            Axes(x="confidence", y="accuracy", x_title="confidence", y_title="accuracy"),
            counted="n",
            title="Calibration",
        )
    )
    st.caption(
        f"The expected calibration error is {bins[0].error:.3f} (n = "
        f"{sum(calibration.n for calibration in bins)} maps). On the dashed diagonal, confidence equals "
        "accuracy."
    )


def show_log(folder: str, *, live: bool) -> None:
    """Show loss and F1 by epoch from the logs in `folder`, updated every second while training."""
    with clear_errors():
        if folder and config.inside(folder).is_dir():  # the options of a stored job may name any folder
            st.fragment(_log, run_every=1.0 if live else None)(folder)


def _log(folder: str) -> None:
    with clear_errors():
        files = sorted(config.inside(folder).glob("*.jsonl"))
        lines = [line for file in files for line in lines_of(read_text(file, given=True))]
        rows = [json.loads(line) for line in lines if line.endswith("}")]
        if not rows:
            st.caption("The first epoch of the training has not finished yet.")
            return
        epochs = pd.DataFrame(rows)
        newest = record_of(Epoch, rows[-1])
        st.caption(
            f"{plain(newest.unit)}: epoch {newest.epoch} of {plain(newest.of)} has a loss of {newest.loss:.3f} and "
            f"a macro F1 of {newest.f1:.3f} on the training maps."
        )
        left, right = st.columns(2)
        left.altair_chart(line_with_band(epochs, Axes(x="epoch", y="loss", colour="unit"), title="Loss (nats)"))
        right.altair_chart(
            line_with_band(
                epochs, Axes(x="epoch", y="f1", colour="unit"), domain=(0, 1), title="Macro F1 on the training maps"
            )
        )


KINDS = {
    "trees": "decision trees on statistics of a map (the default)",
    "both": "the network of the paper plus the statistics",
    "paper": "the network of the paper (eight convolutions)",
    "replication": "the network of the replication (strided)",
    "baseline": "logistic regression on the statistics (a simple baseline)",
}
WITHOUT_EPOCHS = ("trees", "baseline")
STUDY = "train-patterns"
CLASS = "class"  # a column of labels


def start(db, class_set: str) -> None:
    """Show the button that starts the job, and folded options."""
    place = st.container(horizontal=True, vertical_alignment="center")
    options_place = st.expander("Training options", icon=":material/tune:")
    left, middle, right = options_place.columns([3, 1, 1], vertical_alignment="bottom")
    kind = url.pick(left.selectbox, "Classifier", KINDS, key="kind")
    epochs = middle.number_input(
        "Epochs", 1, 2000, 200, key="epochs", bind="query-params", disabled=kind in WITHOUT_EPOCHS
    )
    folds = right.number_input("Folds", 2, 20, 5, key="folds", bind="query-params",
                               help="The number of folds in the cross-validation. All maps of one input (for the "
                                    "score on unseen heads, of one head) are in the same fold.")  # fmt: skip
    weights = left.toggle(
        "Give rare classes more weight in training (no effect on decision trees)",
        key="class_weights",
        bind="query-params",
    )
    beside = left.toggle(
        "Also compute a learning curve",
        help="Also trains classifiers on fewer labels, to show whether more labels would improve the scores. "
        "Classifiers other than decision trees are then also evaluated on unseen checkpoints. This takes longer.",
        key="curve",
        bind="query-params",
    )
    only_mine = offer_only_mine(class_set, left)
    seed = middle.number_input("Seed", 0, 10**6, 0, key="seed", bind="query-params")
    method = url.pick(
        left.selectbox,
        "Combine several labels of a map by",
        ["", *METHODS],
        key="method",
        format_func=lambda way: (
            f"{METHODS[way]}, as soft labels" if way else "shares of votes; maps with a tie are not evaluated"
        ),
        help="The method that combines the labels of several annotators into one training label. “Projects > "
        "Aggregated labels” shows the result of each aggregation method.",
    )
    chosen = next((candidate for candidate in METHODS if candidate == method), None)
    pressed = place.button("Train", type="primary")
    with place:
        job_progress.say_time(STUDY, {"class_set": class_set, "kind": kind, "folds": folds})
    if pressed:
        with clear_errors():
            mine = snapshot(db, class_set, method=chosen)
            options = training_options(
                db,
                mine if only_mine else with_bundled(mine),
                kind=kind,
                epochs=epochs,
                folds=folds,
                seed=seed,
                class_weights=weights,
                beside=beside,
                curve=beside,
                annotator=people.person().name,
            )
            api.start(db, STUDY, options, f"Pattern classifier, {class_set}, {kind}")
            st.rerun()


def watch() -> None:
    for job in job_progress.jobs_under_way(STUDY)[:3]:
        job_progress.show_job(job, rows=False)
        options = job_progress.options_of(job)
        if options.get("kind") not in WITHOUT_EPOCHS:
            show_log(options.get("log", ""), live=True)


def show(tools: DeltaGenerator) -> None:
    db = resources.database()
    with tools:
        class_set = pick_class_set(db, bare=True)
    nobody, trained = current_labels(db, class_set).empty, classifiers.classifiers(db, class_set)
    above, below = st.container(), st.container()
    results, form = (above, below) if trained.empty else (below, above)
    with form:
        _train(db, class_set)
    with results:
        if not trained.empty:
            stored(db, class_set, trained)
        elif about := bundled_about(class_set):
            shipped = KnownClassifier.of(about)
            answer(shipped)
            show_results(db, shipped, counted_above=True)
            if nobody:
                st.caption(
                    "To train your own classifier, label maps on “Annotate > Label”, or add the bundled annotations."
                )
        else:
            st.info("No classifier has been trained on this class set yet.", icon=":material/model_training:")


def _train(db: Database, class_set: str) -> None:
    """Show the stored labels, the form that trains a classifier on them, and training under way."""
    standing = current_labels(db, class_set)
    if not standing.empty:
        st.subheader("Train a classifier on your labels", anchor=False)
        labelled = consensus(standing)
        st.caption(
            plain(
                f"In your database: {counted(len(labelled), 'labelled maps')} of "
                f"{counted(inputs_of(labelled).nunique(), 'inputs')}, "
                f"annotators: {', '.join(standing.annotator.unique())}; "
            )
            + ", ".join(f"{plain(name)} {n}" for name, n in labelled[CLASS].value_counts().items())
        )
        start(db, class_set)
    if st.button("Add the bundled annotations and their classifier", icon=":material/inventory_2:"):
        with clear_errors():
            new, classifier_name = bundled_labels(db, class_set), bundled_classifier(db, class_set)
            st.toast(f"{counted(new, 'new labels')}; classifier: {plain(classifier_name or 'none is bundled')}")
            st.rerun()
    watch()


def against(db, suggests: str, chosen: str) -> None:
    """Compare, behind a button, the chosen classifier with the current one on the same maps."""
    drawer = st.popover(
        "Compare with the classifier used for suggestions",
        icon=":material/compare_arrows:",
        key="against",
        on_change="rerun",
    )
    if drawer.open:
        with drawer, clear_errors():
            show_figures(compared(db, suggests, chosen), suggests)


def stored(db, class_set: str, trained) -> None:
    """Show the stored classifiers, which one is used for suggestions, and the scores of the chosen one."""
    st.subheader("Trained classifiers")
    suggests = classifiers.suggesting(db, class_set)
    names = list(trained.classifier)
    titles = {
        stored.classifier: f"{stored.title} · macro F1 {stored.macro_f1:.3f} · {stored.stored:%d %B %H:%M}"
        + (" · suggests" if stored.classifier == suggests else "")
        for stored in trained.itertuples()
    }
    left, right = st.columns([4, 1], vertical_alignment="bottom")
    chosen = url.pick(left.selectbox, "Version", names, key="version", format_func=titles.__getitem__)
    label = "Stop suggesting" if chosen == suggests else "Use for suggestions"
    if right.button(label, width="stretch"):
        with clear_errors():
            classifiers.choose(db, class_set, None if chosen == suggests else chosen, annotator=people.person().name)
            st.session_state.pop("queue", None)
            st.rerun()
    if suggests and suggests != chosen:
        against(db, suggests, chosen)
    show_results(db, KnownClassifier.of(classifiers.one_classifier(db, chosen)))
    st.caption(
        plain(
            f"Class set {class_set} · evaluated on checkpoints that were not used for training if there are labels "
            f"of several checkpoints, otherwise on inputs that were not used; only on maps that were drawn at random "
            f"and labelled without suggestions · {date.today():%d %B %Y}"
        )
    )
