"""What the three pages about what heads attend to share: where rows come from, pictures side by side, files."""

from collections.abc import Callable, Collection, Mapping, Sequence
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
from core.studies.attention.records import Score
from core.studies.contract import declared, identity
from core.studies.lookup import find_study
from core.tasks.glue import TASKS, sampled
from core.tasks.tables import read_given, read_pasted
from pages.parts.charts.encoding import CELL, LARGE, Shade
from pages.parts.charts.heads import cell_of, head_picture, wrapped_title
from pages.parts.reports.headlines import DIFFERENCE, rows_second_less_first
from pages.parts.reports.stored_runs import drawer, pick_run
from pages.parts.shell import context, resources, uploads, url
from pages.parts.shell.messages import counted, plain
from pages.parts.widgets import job_progress, own_rows, pickers
from pages.parts.widgets.head_links import show_links
from pages.parts.widgets.tables import show_table

EXAMPLES = f"""The keys to the old cabinet were never on the table.
When Mary met her sister, she smiled at her.
{TEXT} | {PAIR}"""
MOST_SENTENCES = 200
WEIGHTS, NORMS = "weights", "norms"
BY_NORMS = "Norms: weight times the length of what is read, each row over its sum (Kobayashi et al. 2020)"
MIDDLE = 36  # pixels of a cell where two pictures share a row, so that their legends fit into 800 pixels too
TOO_FEW = "too few"  # inputs; docs/results/few-inputs.md says how many that are
SURE = 0.05  # q below which a head counts as above its null
S = TypeVar("S", bound=Score)


@dataclass(frozen=True)
class ShownScores(Generic[S]):
    """Scores to show, the row that each was read from, a caption that says where they are from, for links a
    checkpoint and an input like theirs, and whether tasks are those of the bundled samples."""

    scores: list[S]
    rows: Sequence[Row]
    caption: str
    checkpoint: str
    text: str
    pair: str
    bundled: bool = False

    def title(self, checkpoint_task: tuple[str, str]) -> str:
        """What stands above a picture of one checkpoint and task."""
        return place_title(checkpoint_task, bundled=self.bundled)

    def where(self, condition: Callable[[S], bool]) -> "ShownScores[S]":
        """The same of some of its scores."""
        matching = [(score, row) for score, row in zip(self.scores, self.rows, strict=True) if condition(score)]
        return replace(self, scores=[score for score, _ in matching], rows=[row for _, row in matching])

    @property
    def frame(self) -> pd.DataFrame:
        """Its rows, one column a key, for files."""
        return pd.DataFrame(self.rows)


def measured_by(study: str, statistics: Collection[str]) -> tuple[str, Callable[[Score], bool]]:
    """The study itself, or the one of norms |alpha f(x)| where the user asks; and which of its rows are `statistics`.

    The study norms has the statistics and the features of norm-based maps among its rows.
    """
    chosen = url.pick(st.segmented_control, "By", [WEIGHTS, NORMS], key="by", help=BY_NORMS)
    if chosen == WEIGHTS:
        return study, lambda score: True
    featured = study == "features"
    return "norms", lambda score: score.statistic in statistics and (score.feature is not None) == featured


def pick_kinds(label: str, labels: Mapping[str, str], *, key: str, help: str) -> list[str]:
    """Features or relations to look for: all of these unless others are chosen, and any that is typed."""
    return url.pick_many(
        st.multiselect, label, list(labels), key=key, default=list(labels), accept_new_options=True, help=help,
        format_func=lambda name: labels.get(name, name),
    )  # fmt: skip


def rows_of(study: str, kind: type[S], *, task: str, options: dict[str, Any]) -> ShownScores[S] | None:
    """Rows of pasted sentences or of a stored run; None (and what to do next) when there are none.

    kind: of record that its rows are read as. options: of the study, beyond checkpoint, task and texts; both ways of
    getting rows use them.
    """
    titles = {"task rows": "results on a task's rows", "sentences": "sentences of your own"}
    input_kind = url.pick(st.segmented_control, "Inputs", titles, key="inputs", required=True)
    return _pasted(study, kind, options) if input_kind == "sentences" else _stored(study, kind, task, options)


def _pasted(study: str, kind: type[S], options: dict[str, Any]) -> ShownScores[S] | None:
    name = context.now().checkpoint
    text = pickers.pick_text(
        "Sentences, one a line",
        key="sentences",
        default=EXAMPLES,
        height=110,
        help=f'At most {MOST_SENTENCES}. "first | second" is a pair. Apply with Ctrl+Enter.',
    )
    file = uploads.ask_file("or a file of sentences", list(own_rows.ENDINGS), key="sentences_file",
                            max_upload_size=own_rows.LARGEST, help=own_rows.HELP)  # fmt: skip
    if file:
        own_rows.preview(lambda: own_rows.text_of(file))
    is_measuring = url.switch(st.toggle, "Measure these sentences", key="measure", help="Again on each change")
    if not name or not is_measuring:
        st.info(
            "Switch on “Measure these sentences” to see what every head does on them.", icon=":material/play_circle:"
        )
        return None
    texts = own_rows.inputs_of(file) if file else typed_texts(text)
    if not 0 < len(texts) <= MOST_SENTENCES:
        raise InputError(
            f"Between 1 and {MOST_SENTENCES} sentences are measured here; there are {len(texts)}: type fewer, or "
            "run task rows."
        )
    study_options = find_study(study).read(options | {"checkpoint": name, "texts": texts})
    mark = identity(study, study_options)
    if st.session_state.get("measured_mark") != mark:
        with st.spinner("Measuring every head ..."):
            measured_rows = measured(study, study_options)
            st.session_state.measured_scores = (measured_rows, kind.among(measured_rows))
        st.session_state.measured_mark = mark
    caption = f"{plain(name)} · pasted sentences, {len(texts)} inputs"
    rows, scores = st.session_state.measured_scores
    return _scores_of_heads(rows, scores, caption, (name, *_first_of(study_options)))


def typed_texts(text: str) -> list[Text]:
    """The inputs of a text field: as own_rows reads them, and "first | second" on a line of a list is a pair."""
    if not text.strip():
        return []
    table = read_given(text)
    inputs = read_pasted(text)
    if table.form != "list":
        return [(sentence, pair) for sentence, pair in inputs]
    return [pair_of(sentence) if pair is None else (sentence, pair) for sentence, pair in inputs]


def measured(study: str, options: AttendingOptions) -> list[dict[str, Any]]:
    """Rows of a study on a few sentences, at once, with the checkpoint and pipeline that this app keeps open."""
    attending: Any = find_study(study)  # one of those that look at inputs
    return attending.measured_now(options, resources.checkpoint(options.checkpoint), resources.pipeline)


def _stored(study: str, kind: type[S], task: str, options: dict[str, Any]) -> ShownScores[S] | None:
    with drawer("Run on a task's rows", study):
        _start(study, task, options)
    job = st.session_state.get(f"job_{study}")
    if job:
        job_progress.show_job(job, rows=False)
    stored = pick_run(
        study,
        "Run this on a task's rows above, and its results stand here.",
        f"run_{study}",
        icon=":material/database:",
    )
    if stored is None:
        return None
    shown = [fact for fact in (stored.checkpoint, stored.task_said, stored.split) if fact]
    inputs = counted(stored.inputs, "inputs") if stored.inputs else "rows of several tasks"
    caption = " · ".join([*(plain(fact) for fact in shown), inputs, stored.date])
    settings = stored.settings
    rows, scores = _read(stored.run, store.holder(resources.database(), stored.run), kind)
    measured = _scores_of_heads(rows, scores, caption, (settings.checkpoint, *_first_of(settings)))
    return replace(measured, bundled=stored.sampled)


@st.cache_resource(show_spinner=False, max_entries=8, hash_funcs={type: lambda kind: kind.__name__})
def _read(run: str, holder: str, kind: type[S]) -> tuple[list[Row], list[S]]:
    """Rows of a stored run, which do not change, and their records."""
    rows = store.run_rows(resources.database(), run)
    rows = rows_second_less_first(rows)
    return rows, kind.among(rows)


def _scores_of_heads(
    rows: Sequence[Row], scores: Sequence[S], caption: str, links: tuple[str, str, str]
) -> ShownScores[S]:
    """Say what no input has; the scores of heads."""
    notes(scores)
    all_scores = ShownScores(list(scores), rows, caption, *links)
    return all_scores.where(lambda score: score.note is None and score.layer is not None)


def _first_of(options: AttendingOptions) -> tuple[str, str]:
    """The first input of a run, where it was typed or its task is bundled."""
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
        "Rows of each task, at most",
        0,
        1_000_000,
        limit.default,
        key=f"limit_{study}",
        bind="query-params",
        help=limit.help,
    )
    data_folder = pickers.ask_folder(places[1], key="folder", label="Folder in GLUE's TSV form")
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
        keep_as=f"job_{study}",
        key=f"start_{study}",
    )


def most_inputs(scores: Sequence[Score]) -> int:
    """The largest n among these scores; 0 of none."""
    return max((int(score.n or 0) for score in scores), default=0)


def by_place(scores: Sequence[S]) -> dict[tuple[str, str], list[S]]:
    """The scores of each checkpoint and task, in order."""
    places: dict[tuple[str, str], list[S]] = {}
    for score in scores:
        places.setdefault((str(score.checkpoint), str(score.task)), []).append(score)
    return places


def chosen_first(places: dict[tuple[str, str], list[S]]) -> dict[tuple[str, str], list[S]]:
    """The same, those on the rows of the context before the others."""
    return dict(sorted(places.items(), key=lambda group: group[0][1] != context.now().rows))


def place_title(checkpoint_task: tuple[str, str], *, bundled: bool) -> str:
    """A checkpoint and a task in words; bundled: its rows are only like the task's."""
    checkpoint, task = checkpoint_task
    return f"{Path(checkpoint).name} · {task_said(task, bundled=bundled)}"


def task_said(task: str, *, bundled: bool) -> str:
    """A task by its name; "SST-2-like" where its rows are the bundled ones."""
    name = pickers.task_name(task)
    return sampled(name) if bundled else name


def pictures(
    scores: Sequence[Score],
    value: str,
    label: str,
    *,
    title: Callable[[tuple[str, str]], str],
    diverging: bool = False,
) -> list[Any]:
    """One layer x head picture a checkpoint and task, side by side on one scale; heads above their null outlined."""
    drawn: list[Any] = []
    groups = list(chosen_first(by_place(scores)).items())
    measured = [score for score in scores if score.checkpoint != DIFFERENCE]  # a difference has its own scale
    values = pd.to_numeric(pd.DataFrame(measured)[value]).dropna() if measured else ()
    domain = (min(0.0, float(min(values))), float(max(values))) if len(values) else (0.0, 1.0)
    a_row = min(3, max(1, len(groups)))
    cell = (LARGE, MIDDLE, CELL)[a_row - 1]
    columns = 1 + max((int(score.head or 0) for score in scores), default=0)
    lines = max(
        (len(wrapped_title(title(checkpoint_task), columns, cell_of(columns, cell))) for checkpoint_task, _ in groups),
        default=1,
    )
    for start in range(0, len(groups), a_row):
        beside = st.container(horizontal=True)  # wraps where a narrow window has no room for all of a row
        for (checkpoint, task), task_scores in groups[start : start + a_row]:
            frame, changed, sure = pd.DataFrame(task_scores), checkpoint == DIFFERENCE, above_null(task_scores)
            shade = Shade(value, label, diverging or changed, None if changed else domain, cell=cell)
            chart = head_picture(
                frame,
                shade,
                title=title((checkpoint, task)),
                highlight=sure if 2 * len(sure) < len(task_scores) else (),  # most outlined: none stands out
                tooltip=[name for name in ("low", "high", "n", "baseline", "q") if frame[name].notna().any()],
                lines=lines,
            )
            container = beside.container(width="content")
            container.altair_chart(chart, width="content", key=f"picture_{checkpoint}_{task}_{label}")
            drawn.append(chart)
    return drawn


def above_null(scores: Sequence[Score]) -> list[Head]:
    """Heads whose effect is above 0 (of a difference: either way) after the correction for all heads."""
    judged = any(score.effect is not None for score in scores)
    return [
        Head(int(score.layer or 0), int(score.head or 0))
        for score in scores
        if score.q is not None
        and score.q < SURE
        and (not judged or score.checkpoint == DIFFERENCE or (score.effect is not None and score.effect > 0))
    ]


def shared_heads(scores: Sequence[Score]) -> list[Head]:
    """Heads above their null in every task of a checkpoint that was measured on several."""
    tasks = dict.fromkeys(score.task for score in scores)
    groups = [set(above_null([score for score in scores if score.task == task])) for task in tasks]
    return sorted(set.intersection(*groups)) if len(groups) > 1 else []


def sure_table(
    measured: ShownScores, scores: Sequence[Score], columns: Sequence[str], *, by: str, key: str, heading: str
) -> None:
    """The heads that stand out, as many as the heading says; a switch shows the others too. heading: before the
    count."""
    sure = {(score.checkpoint, score.task, head) for score in scores for head in above_null([score])}
    st.subheader(f"{heading}: {len(sure)}")
    everything = url.switch(st.toggle, "All heads", key=f"every_{key}", help=f"Those with q of {SURE} and more too")
    if scores and not sure:
        st.caption("None stands out: every head is listed.")
    listed = [
        score for score in scores if everything or not sure or (score.checkpoint, score.task, _head(score)) in sure
    ]
    table(measured, listed, columns, by=by, key=key)


def _head(score: Score) -> Head:
    return Head(int(score.layer or 0), int(score.head or 0))


def table(measured: ShownScores, scores: Sequence[Score], columns: Sequence[str], *, by: str, key: str) -> None:
    """Heads by name with these columns, most of `by` first; the chosen one, or the first, leads to its maps."""
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
    """p or q for a table: "too few" in words where too few inputs differ from 0 for a test."""
    numbers = pd.to_numeric(values)
    if numbers.notna().all():
        return numbers
    return numbers.map(lambda p: TOO_FEW if pd.isna(p) else f"{p:.3g}")


def notes(scores: Sequence[Score]) -> None:
    """Say what no input has."""
    noted: dict[str, dict[str, None]] = {}
    for score in scores:
        if score.note is not None:
            noted.setdefault(score.note, {}).setdefault(str(score.feature or score.statistic))
    for note, names in noted.items():
        st.caption(plain(f"{', '.join(names)}: {note}."))
