"""Pattern classifier: retrain it on the labels, see how good it is, and let it suggest."""

from datetime import date

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.jobs import api
from core.labelling.crowd import METHODS
from core.patterns.agreement import consensus, inputs_of
from core.patterns.classifier_registry import bundled_about, bundled_classifier, bundled_labels, training_options
from core.patterns.retraining import compared
from core.patterns.snapshot import snapshot, standing_labels
from core.store import classifiers
from pages.parts.label.label_tools import pick_class_set
from pages.parts.label.retraining_report import show_figures
from pages.parts.patterns.classifier_results import show_log, show_results
from pages.parts.patterns.classifiers import KnownClassifier
from pages.parts.shell import people, resources, url
from pages.parts.shell.messages import clear_errors, counted, plain
from pages.parts.widgets import job_progress

KINDS = {
    "trees": "trees on statistics that do not depend on length",
    "both": "the paper's network and the statistics together",
    "paper": "the paper's eight convolutions",
    "replication": "the replication's strided network",
    "baseline": "logistic regression on hand-made statistics",
}
WITHOUT_EPOCHS = ("trees", "baseline")
STUDY = "train-patterns"
CLASS = "class"  # a column of labels


def start(db, class_set: str) -> None:
    """A form over the recipe; starts the job."""
    left, middle, right = st.columns([3, 1, 1], vertical_alignment="bottom")
    kind = url.pick(left.selectbox, "Classifier", KINDS, key="kind")
    epochs = middle.number_input(
        "Epochs", 1, 2000, 200, key="epochs", bind="query-params", disabled=kind in WITHOUT_EPOCHS
    )
    folds = right.number_input("Folds", 2, 20, 5, key="folds", bind="query-params",
                               help="Parts of the cross-validation; no input is in two of them.")  # fmt: skip
    weights = left.toggle("Give rare classes more weight", key="class_weights", bind="query-params")
    beside = left.toggle("Also a learning curve", help="More classifiers are fitted.", key="curve", bind="query-params")
    seed = middle.number_input("Seed", 0, 10**6, 0, key="seed", bind="query-params")
    method = url.pick(
        left.selectbox,
        "One label a map by",
        ["", *METHODS],
        key="method",
        format_func=lambda way: f"{METHODS[way]}, as soft labels" if way else "shares of votes; ties not scored",
        help="Projects, Aggregated labels, shows what each makes of the labels of many people.",
    )
    chosen = next((candidate for candidate in METHODS if candidate == method), None)
    job_progress.say_time(STUDY, {"class_set": class_set, "kind": kind, "folds": folds})
    if right.button("Train", type="primary", width="stretch"):
        with clear_errors():
            options = training_options(
                db,
                snapshot(db, class_set, method=chosen),
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
    """Trainings at work, with their loss."""
    for job in job_progress.jobs_under_way(STUDY)[:3]:
        job_progress.show_job(job, rows=False)
        options = job_progress.options_of(job)
        if options.get("kind") not in WITHOUT_EPOCHS:
            show_log(options.get("log", ""), live=True)


def show(tools: DeltaGenerator) -> None:
    """The view."""
    db = resources.database()
    class_set = pick_class_set(db)
    standing = standing_labels(db, class_set)
    nobody = standing.empty
    if not nobody:
        labelled = consensus(standing)
        st.caption(
            plain(
                f"{counted(len(labelled), 'labelled maps')} of {counted(inputs_of(labelled).nunique(), 'inputs')}, "
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

    trained = classifiers.classifiers(db, class_set)
    if trained.empty:
        if about := bundled_about(class_set):
            shipped = KnownClassifier.of(about)
            st.subheader("The classifier that ships")
            st.caption(
                f"Trained on the {shipped.labels} bundled labels, which an AI model made; nothing of it is stored here."
            )
            show_results(db, shipped)
            if nobody:
                st.caption(
                    "To train one of your own, label maps on the Label page, or start with the bundled annotations."
                )
        else:
            st.info("No classifier has been trained on this class set yet.", icon=":material/model_training:")
        return
    stored(db, class_set, trained)


def against(db, suggests: str, chosen: str) -> None:
    """Behind a button: the chosen classifier beside the one that suggests, on the same maps."""
    drawer = st.popover(
        "Beside the one that suggests", icon=":material/compare_arrows:", key="against", on_change="rerun"
    )
    if drawer.open:
        with drawer, clear_errors():
            show_figures(compared(db, suggests, chosen), suggests)


def stored(db, class_set: str, trained) -> None:
    """The classifiers that were trained here: which suggests, and how good the chosen one is."""
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
    label = "Stop suggesting" if chosen == suggests else "Let it suggest"
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
            f"Class set {class_set} · scored on checkpoints the classifier never saw where labels are of several, "
            "else on "
            f"inputs it never saw; on maps drawn at random and labelled without a suggestion · {date.today():%d %B %Y}"
        )
    )
