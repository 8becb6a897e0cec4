"""What the views of attention scores share: source of the scores, heatmap, and table of heads."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

import pandas as pd
import streamlit as st

from core.atlas.example import PAIR, TEXT
from core.attention import Head
from core.errors import InputError
from core.store import runs as store
from core.store.rows import Row
from core.studies.attention.inputs import AttendingOptions, Text, pair_of
from core.studies.attention.records import AlikeHead, Score
from core.studies.contract import declared, identity
from core.studies.headline import defined
from core.studies.imports import result_rows
from core.studies.lookup import find_study
from core.tasks.glue import TASKS, sampled
from core.tasks.tables import read_given, read_pasted
from pages.parts.charts.curves import dumbbells
from pages.parts.charts.encoding import LARGE, Shade
from pages.parts.charts.heads import head_picture
from pages.parts.reports.result_card import show_own_answer
from pages.parts.reports.stored_runs import DIFFERENCE, StoredRun, rows_second_less_first
from pages.parts.reports.study_view import drawer, shown_result
from pages.parts.shell import context, people, resources, url
from pages.parts.shell.links import show_links
from pages.parts.shell.messages import counted, plain, short_names
from pages.parts.widgets import job_progress, own_rows, pickers
from pages.parts.widgets.tables import show_table

EXAMPLES = f"""The keys to the old cabinet were never on the table.
When Mary met her sister, she smiled at her.
{TEXT} | {PAIR}"""
MOST_SENTENCES = 200
WEIGHTS, NORMS = "weights", "norms"
BY_NORMS = "Norms multiply each weight by the length of the transformed value vector (Kobayashi et al. 2020)."
STORED, TYPED = "task rows", "sentences"
INPUTS = {STORED: "Stored results", TYPED: "Your sentences"}
TOO_FEW = "too few"  # inputs; docs/results/few-inputs.md says how many that are
SURE = 0.05  # q below which a head counts as significant
STRONGEST = 12  # heads in a plot against their baselines
S = TypeVar("S", bound=Score)
Placed = TypeVar("Placed", bound=Score | AlikeHead)  # a row of a checkpoint and a task


@dataclass(frozen=True)
class ShownScores(Generic[S]):
    """Scores to show.

    Attributes:
        rows: the rows behind the scores.
        about: the source of the scores, in words.
        checkpoint, text, pair: for links.
        bundled: whether tasks are those of the bundled samples.
        stored: the run; None for typed sentences.
        notes: what could not be measured.
    """

    scores: list[S]
    rows: Sequence[Row]
    about: list[str]
    checkpoint: str
    text: str
    pair: str
    bundled: bool = False
    stored: StoredRun | None = None
    notes: Sequence[str] = ()

    def title(self, checkpoint_task: tuple[str, str]) -> str:
        """Return the title of a figure for one checkpoint and task."""
        return place_title(checkpoint_task, bundled=self.bundled)

    def where(self, condition: Callable[[S], bool]) -> "ShownScores[S]":
        """Return the checkpoint and task of some scores, in words."""
        matching = [(score, row) for score, row in zip(self.scores, self.rows, strict=True) if condition(score)]
        return replace(self, scores=[score for score, _ in matching], rows=[row for _, row in matching])

    @property
    def frame(self) -> pd.DataFrame:
        """Return the rows as a data frame for files."""
        return pd.DataFrame(self.rows)


def measured_by(container: Any, study: str, statistics: Collection[str]) -> tuple[str, Callable[[Score], bool]]:
    """Return the study, or the study of norms |alpha f(x)| if the user chooses norms, and the kind of its rows.

    The study of norms also has the statistics and features of norm-based maps.
    """
    with container:
        chosen = url.pick(st.segmented_control, "Measured by", [WEIGHTS, NORMS], key="by", help=BY_NORMS,
                          label_visibility="collapsed")  # fmt: skip
    if chosen == WEIGHTS:
        return study, lambda score: True
    featured = study == "features"
    return "norms", lambda score: score.statistic in statistics and (score.feature is not None) == featured


def pick_inputs(tools: Any, more: Mapping[str, str] | None = None) -> str:
    """Ask whether to show stored results, typed sentences, or `more`."""
    with tools:
        return url.pick(st.segmented_control, "Inputs", INPUTS | dict(more or {}), key="inputs", required=True,
                        label_visibility="collapsed")  # fmt: skip


def pick_kinds(label: str, labels: Mapping[str, str], *, key: str, help: str) -> list[str]:
    """Ask for features or relations (default: all of these); others can be typed."""
    return url.pick_many(
        st.multiselect, label, list(labels), key=key, default=list(labels), accept_new_options=True, help=help,
        format_func=lambda name: labels.get(name, name),
    )  # fmt: skip


@contextmanager
def shown_scores(
    study: str, kind: type[S], inputs: str, *, task: str, options: Callable[[], dict[str, Any]]
) -> Iterator[ShownScores[S] | None]:
    """Yield scores of typed sentences or of a stored run; None, with a hint, if there are none.

    `kind` is the record class of the rows. `options` asks for further options of the study.
    """
    if inputs == TYPED:
        yield _pasted(study, kind, options())
        return
    job_progress.show_jobs(study, most=2)
    with shown_result(
        study,
        "No result is stored yet. Run the study below.",
        f"run_{study}",
        question="",
        icon=":material/database:",
        answered=False,
    ) as stored:
        yield None if stored is None else _of_run(stored, kind)
    with drawer("Run with other settings", study):
        _start(study, task, options())


def _pasted(study: str, kind: type[S], options: dict[str, Any]) -> ShownScores[S] | None:
    name = context.now().checkpoint
    text = pickers.pick_text(
        "Sentences, one on each line",
        key="sentences",
        default=EXAMPLES,
        height=110,
        help=f'Type at most {MOST_SENTENCES} sentences, one per line. Write a sentence pair as "first | second". '
        "Press Ctrl+Enter to apply.",
    )
    file = people.ask_file("or a file of sentences", list(own_rows.ENDINGS), key="sentences_file",
                            max_upload_size=own_rows.LARGEST, help=own_rows.HELP)  # fmt: skip
    is_readable = own_rows.preview(lambda: own_rows.text_of(file)) if file else True
    is_measuring = url.switch(
        st.toggle,
        "Measure these sentences",
        key="measure",
        help="Measures every head on these sentences, and measures the heads again after every change to the "
        "sentences.",
    )
    if not name or not is_measuring:
        st.info(
            "Switch on “Measure these sentences” to measure every head on your sentences.",
            icon=":material/play_circle:",
        )
        return None
    if not is_readable:  # the preview says why
        return None
    texts = own_rows.inputs_of(file) if file else typed_texts(text)
    if not 0 < len(texts) <= MOST_SENTENCES:
        raise InputError(
            f"The number of sentences must be between 1 and {MOST_SENTENCES}; got {len(texts)}. "
            + ("Use fewer sentences, or run the study on a task." if texts else "Type or upload a sentence.")
        )
    study_options = find_study(study).read(options | {"checkpoint": name, "texts": texts})
    mark = identity(study, study_options)
    if st.session_state.get("_measured_mark") != mark:
        with st.spinner("Measuring every head ..."):
            measured_rows = measured(study, study_options)
            st.session_state["_measured_scores"] = (measured_rows, kind.among(measured_rows))
        st.session_state["_measured_mark"] = mark
    about = [name, "typed sentences", counted(len(texts), "inputs")]
    rows, scores = st.session_state["_measured_scores"]
    return _scores_of_heads(rows, scores, about, (name, *_first_of(study_options)))


def typed_texts(text: str) -> list[Text]:
    """Return the inputs of a text field, read as in own_rows; "first | second" on a line of a list is a pair."""
    if not text.strip():
        return []
    table = read_given(text)
    inputs = read_pasted(text)
    if table.form != "list":
        return [(sentence, pair) for sentence, pair in inputs]
    return [pair_of(sentence) if pair is None else (sentence, pair) for sentence, pair in inputs]


def measured(study: str, options: AttendingOptions) -> list[dict[str, Any]]:
    """Return the rows of a study on a few sentences, measured now with the open checkpoint and pipeline."""
    attending: Any = find_study(study)  # one of those that look at inputs
    return attending.measured_now(options, resources.checkpoint(options.checkpoint), resources.pipeline)


def _of_run(stored: StoredRun, kind: type[S]) -> ShownScores[S]:
    settings = stored.settings
    rows, scores = _read(stored.run, store.holder(resources.database(), stored.run), kind)
    about = [stored.date, stored.origin]
    measured = _scores_of_heads(rows, scores, about, (settings.checkpoint, *_first_of(settings)))
    return replace(measured, bundled=stored.sampled, stored=stored)


@st.cache_resource(show_spinner=False, max_entries=8, hash_funcs={type: lambda kind: kind.__name__})
def _read(run: str, holder: str, kind: type[S]) -> tuple[list[Row], list[S]]:
    """Return the rows of a stored run and their records, cached because they do not change."""
    rows = result_rows(resources.database(), run)
    rows = rows_second_less_first(rows)
    return rows, kind.among(rows)


def _scores_of_heads(
    rows: Sequence[Row], scores: Sequence[S], about: list[str], links: tuple[str, str, str]
) -> ShownScores[S]:
    """Return the scores of heads; other records are notes about inputs without data."""
    all_scores = ShownScores(list(scores), rows, about, *links, notes=notes(scores))
    return all_scores.where(lambda score: score.note is None and score.layer is not None)


def _first_of(options: AttendingOptions) -> tuple[str, str]:
    """Return the first input of a run, if it was typed or its task is bundled."""
    if options.texts:
        first = options.texts[0]
        return (first, "") if isinstance(first, str) else (first[0], first[1] or "")
    if options.data or options.tasks[0] not in TASKS:
        return "", ""
    row = pickers.task_rows(options.tasks[0], options.split)[0]
    return row.text, row.pair or ""


def _start(study: str, task: str, options: dict[str, Any]) -> None:
    limit = declared(find_study(study).options)["limit"]
    name, beside = context.now().checkpoint, context.now().beside
    tasks = pickers.pick_tasks(task, key=f"tasks_{study}")
    places = st.columns(3)
    most = places[0].number_input(
        "Examples per task, at most",
        0,
        1_000_000,
        limit.default,
        key=f"limit_{study}",
        bind="query-params",
        help=limit.help,
    )
    data_folder = pickers.ask_folder(places[1], key="folder", label="Folder with the GLUE tasks as TSV files")
    pipeline = places[2].text_input(
        "spaCy pipeline", key="pipeline", bind="query-params", placeholder="the bundled one"
    )
    study_options = options | {"checkpoint": name, "compare": beside, "tasks": tasks, "limit": int(most)}
    study_options |= {"data": data_folder, "pipeline": pipeline or None}
    job_title = f"{study} of {name}" + (f" and {beside}" if beside else "")
    job_progress.offer_start(
        study,
        study_options if name and tasks else None,
        "Run",
        title=lambda: f"{job_title} on {pickers.named(tasks, data_folder)}",
        keep_as=f"_job_{study}",
        key=f"start_{study}",
    )


def most_inputs(scores: Sequence[Score]) -> int:
    """Return the largest n among these scores; 0 for none."""
    return max((int(score.n or 0) for score in scores), default=0)


def by_place(scores: Sequence[Placed]) -> dict[tuple[str, str], list[Placed]]:
    """Return the scores by checkpoint and task, in order."""
    places: dict[tuple[str, str], list[Placed]] = {}
    for score in scores:
        places.setdefault((str(score.checkpoint), str(score.task)), []).append(score)
    return places


def chosen_first(places: dict[tuple[str, str], list[Placed]]) -> dict[tuple[str, str], list[Placed]]:
    """Return the same, with the task of the context first."""
    return dict(sorted(places.items(), key=lambda group: group[0][1] != context.now().rows))


def place_title(checkpoint_task: tuple[str, str], *, bundled: bool) -> str:
    """Return a checkpoint and task in words. `bundled`: the examples only imitate the task."""
    checkpoint, task = checkpoint_task
    return f"{Path(checkpoint).name} · {task_said(task, bundled=bundled)}"


def task_said(task: str, *, bundled: bool) -> str:
    """Return the name of a task; "SST-2-like" for bundled samples."""
    name = pickers.task_name(task)
    return sampled(name) if bundled else name


def pick_place(container: Any, scores: Sequence[S]) -> list[S]:
    """Ask for a task, and for one checkpoint or the difference between two; return its scores."""
    places = chosen_first(by_place(scores))
    task = next(iter(places))[1]
    of_task = {checkpoint: found for (checkpoint, of), found in places.items() if of == task}
    if len(of_task) == 1:
        return next(iter(of_task.values()))
    order = sorted(of_task, key=lambda name: (name == DIFFERENCE, name != context.now().checkpoint))
    names = short_names([name for name in order if name != DIFFERENCE]) | {DIFFERENCE: "difference"}
    if len(names) == 3 and Path(order[0]).name in Path(order[1]).name:  # the second was fine-tuned from the first
        names |= {order[0]: "before", order[1]: "after"}
    chosen = url.pick(
        container.segmented_control, "Checkpoint", order, key="place", default=order[0], required=True,
        format_func=lambda name: plain(names.get(name, name)),
        help="The difference is the value of the second checkpoint minus the value of the first.",
    )  # fmt: skip
    return of_task[chosen]


def heatmap(scores: Sequence[Score], value: str, label: str, *, title: str, diverging: bool = False) -> Any:
    """Show a layer x head heatmap with heads that are not significant faded."""
    frame, changed = pd.DataFrame(scores), scores[0].checkpoint == DIFFERENCE
    tested_at_all = any(score.q is not None for score in scores)
    return head_picture(
        frame,
        Shade(value, label, diverging or changed, cell=LARGE),
        title=title,
        full=above_null(scores) if tested_at_all else None,
        tooltip=[name for name in ("low", "high", "n", "baseline", "q") if frame[name].notna().any()],
    )


def against_baseline(scores: Sequence[Score], *, value: str, baseline: str) -> Any:
    """Show the strongest heads as dots joined to their baselines; tested heads that are not significant are marked."""
    sure, tested = above_null(scores), any(score.q is not None for score in scores)
    strongest = sorted(
        (score for score in scores if score.value is not None and score.baseline is not None),
        key=lambda score: -(defined(score.value) - defined(score.baseline) if score.effect is None else score.effect),
    )[:STRONGEST]
    return dumbbells(
        pd.DataFrame([
            {"head": score.name if not tested or Head.parse(score.name) in sure else f"{score.name} n.s.",
             "value": score.value, "baseline": score.baseline, "low": score.low, "high": score.high}
            for score in strongest
        ]),
        title=f"The {len(strongest)} heads furthest above their "
              f"baseline{' (n.s.: not significant)' if tested else ''}",
        value=value,
        baseline=baseline,
    )  # fmt: skip


def answered(
    measured: ShownScores[S],
    scores: Sequence[S],
    container: Any,
    question: str,
    sentence: str,
    sure: str,
    key: str,
    *,
    what: str = "inputs",
) -> None:
    """Show the question and the answer of a view whose controls choose the question."""
    n = most_inputs(scores)
    parts = [] if not scores else [measured.title((str(scores[0].checkpoint), str(scores[0].task)))]
    if measured.stored is None:
        parts = []
    elif second := measured.stored.told.get("compare"):
        parts.append(f"second checkpoint: {short_names([str(second)])[str(second)]}")
    with container:
        show_own_answer(question, [*parts, f"n = {n:,} {what}", *measured.about], sentence, sure, key=f"run_{key}",
                        stored=measured.stored)  # fmt: skip


def above_null(scores: Sequence[Score]) -> list[Head]:
    """Return heads whose effect is significantly above 0 (for a difference: in either direction) after correction."""
    judged = any(score.effect is not None for score in scores)
    return [
        Head(int(score.layer or 0), int(score.head or 0))
        for score in scores
        if score.q is not None
        and score.q < SURE
        and (not judged or score.checkpoint == DIFFERENCE or (score.effect is not None and score.effect > 0))
    ]


def shared_heads(scores: Sequence[Score]) -> list[Head]:
    """Return heads that are significant on every task of a checkpoint that was measured on several."""
    tasks = dict.fromkeys(score.task for score in scores)
    groups = [set(above_null([score for score in scores if score.task == task])) for task in tasks]
    return sorted(set.intersection(*groups)) if len(groups) > 1 else []


def table(measured: ShownScores, scores: Sequence[Score], columns: Sequence[str], *, by: str, key: str) -> None:
    """Show heads with these columns, the largest `by` first; the chosen head links to its maps."""
    if not scores:
        show_table(pd.DataFrame(columns=["checkpoint", "task", "head"]), key=f"table_{key}")
        return
    frame = pd.DataFrame(scores).assign(name=[score.name for score in scores])
    size = pd.to_numeric(frame[by])
    order = (size.abs() if key == "differences" else size).sort_values(ascending=False).index
    column_names = {by}.union(*measured.rows)
    shown_columns = ["checkpoint", "task", "name", *(name for name in columns if name in column_names)]
    shown = frame.loc[order, shown_columns].rename(columns={"name": "head", "low": "95% from", "high": "95% to"})
    shown = shown.assign(**{name: tested(shown[name]) for name in ("p", "q") if name in shown})
    shown["task"] = [task_said(str(task), bundled=measured.bundled) for task in shown["task"]]
    short = {name: st.column_config.NumberColumn(format="%.3g") for name in shown.select_dtypes("float").columns}
    event = show_table(
        shown,
        height=min(280, 37 + 35 * len(shown)),
        column_config=short,
        on_select="rerun",
        selection_mode="single-row",
        key=f"table_{key}",
    )
    chosen = scores[order[(event.selection.rows or [0])[0]]]
    name = measured.checkpoint if chosen.checkpoint == DIFFERENCE else str(chosen.checkpoint)
    show_links(name, chosen.name, current_view="", text=measured.text, pair=measured.pair)


def tested(values: pd.Series) -> pd.Series:
    """Return p or q for a table; "too few" if too few inputs are nonzero for a test."""
    numbers = pd.to_numeric(values)
    if numbers.notna().all():
        return numbers
    return numbers.map(lambda p: TOO_FEW if pd.isna(p) else f"{p:.3g}")


def notes(scores: Sequence[Score]) -> list[str]:
    """Return sentences about what occurs in no input."""
    noted: dict[str, dict[str, None]] = {}
    for score in scores:
        if score.note is not None:
            noted.setdefault(score.note, {}).setdefault(str(score.feature or score.statistic))
    return [f"{', '.join(names)}: {note}." for note, names in noted.items()]
