"""What the three pages about what heads attend to share: where rows come from, pictures side by side, files."""

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from core.attention import Head
from core.errors import InputError
from core.jobs.worker import find_study
from core.store import runs as store
from core.studies.attending import AttendingOptions
from core.studies.contract import declared, identity
from core.tasks.glue import TASKS
from pages.parts.charts.encoding import Shade
from pages.parts.charts.heads import head_picture
from pages.parts.frame import bound, resources
from pages.parts.frame.messages import clear_errors, plain
from pages.parts.reports.stored_runs import drawer, pick_run
from pages.parts.widgets import job_progress, pickers
from pages.parts.widgets.head_links import show_links

EXAMPLES = """The keys to the old cabinet were never on the table.
When Mary met her sister, she smiled at her.
The company said profits rose sharply. | Profits went up, the company reported."""
MOST_SENTENCES = 200
WEIGHTS, NORMS = "weights", "norms"
BY_NORMS = "Norms: weight times the length of what is read, each row over its sum (Kobayashi et al. 2020)"
TOO_FEW = "too few"  # inputs; docs/few-inputs.md says how many that are
SURE = 0.05  # q below which a head counts as above its null


class Found(NamedTuple):
    """Rows to show, a caption that says where they are from, and for links a checkpoint and an input like theirs."""

    rows: pd.DataFrame
    caption: str
    checkpoint: str
    text: str
    pair: str


def measured_by(study: str, statistics: Collection[str]) -> tuple[str, Callable[[pd.DataFrame], pd.DataFrame]]:
    """The study itself, or the one of norms |alpha f(x)| where the user asks; and what leaves its rows of `statistics`.

    The study norms has the statistics and the features of norm-based maps among its rows.
    """
    chosen = bound.pick(st.segmented_control, "By", [WEIGHTS, NORMS], key="by", help=BY_NORMS)
    if chosen == WEIGHTS:
        return study, lambda rows: rows
    featured = study == "features"
    return "norms", lambda rows: rows[rows["statistic"].isin(statistics) & (rows["feature"].notna() == featured)]


def rows_of(study: str, *, task: str, options: dict[str, Any]) -> Found | None:
    """Rows of pasted sentences or of a stored run; None (and what to do next) when there are none.

    options: of the study, beyond checkpoint, task and texts; both ways of getting rows use them.
    """
    titles = {"task rows": "results on a task's rows", "sentences": "sentences of your own"}
    place = bound.pick(
        st.segmented_control, "Inputs", list(titles), key="inputs", required=True, format_func=titles.__getitem__
    )
    return _pasted(study, options) if place == "sentences" else _stored(study, task, options)


def _pasted(study: str, options: dict[str, Any]) -> Found | None:
    name = pickers.pick_checkpoint()
    text = st.text_area(
        "Sentences, one a line",
        value=EXAMPLES,
        key="sentences",
        height=110,
        help=f'At most {MOST_SENTENCES}. "first | second" is a pair. Apply with Ctrl+Enter.',
    )
    wanted = st.toggle("Measure these sentences", key="measure", help="Again on each change", bind="query-params")
    if not name or not wanted:
        st.info(
            "Switch on “Measure these sentences” to see what every head does on them.", icon=":material/play_circle:"
        )
        return None
    texts = [line for line in text.splitlines() if line.strip()]
    if not 0 < len(texts) <= MOST_SENTENCES:
        raise InputError(
            f"Between 1 and {MOST_SENTENCES} sentences are measured here; there are {len(texts)}: type fewer, or "
            "run task rows."
        )
    wanted = find_study(study).read(options | {"checkpoint": name, "texts": texts})
    mark = identity(study, wanted)
    if st.session_state.get("measured_mark") != mark:
        with st.spinner("Measuring every head ..."):
            st.session_state["measured_rows"] = measured(study, wanted)
        st.session_state["measured_mark"] = mark
    caption = f"{plain(name)} · pasted sentences, {len(texts)} inputs"
    return Found(notes(pd.DataFrame(st.session_state["measured_rows"])), caption, name, *_first_of(wanted))


def measured(study: str, options: AttendingOptions) -> list[dict[str, Any]]:
    """Rows of a study on a few sentences, at once, with the checkpoint and pipeline that this app keeps open."""
    checkpoint = resources.checkpoint(options.checkpoint)
    pipeline = resources.pipeline(options.pipeline) if study in ("features", "relations", "norms") else None
    return find_study(study).measured_now(options, checkpoint, pipeline)


def _stored(study: str, task: str, options: dict[str, Any]) -> Found | None:
    db = resources.database()
    with drawer("Run on a task's rows", study):
        _start(study, task, options)
    job = st.session_state.get(f"job_{study}")
    if job:
        job_progress.show_job(job, rows=False)
    picked = pick_run(
        study, "Nothing is stored yet: run this on a task's rows above.", f"run_{study}", icon=":material/database:"
    )
    if picked is None:
        return None
    run, facts = picked[0], store.one_run(db, picked[0])
    shown = [facts[name] for name in ("checkpoint", "task", "split") if facts.get(name)]
    inputs = f"{len(facts['row_ids'])} inputs" if facts["row_ids"] else "rows of several tasks"
    caption = " · ".join([*(plain(fact) for fact in shown), inputs, f"{facts['created']:%d %B %Y}"])
    ran = find_study(study).read(facts["options"])
    return Found(notes(store.study_rows(db, run)), caption, ran.checkpoint, *_first_of(ran))


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
    places = st.columns(3)
    with places[0]:
        name = pickers.pick_checkpoint(key="run_checkpoint")
    with places[1]:
        beside = pickers.pick_checkpoint("Less another", key="run_compare", none="no second checkpoint")
    with places[2]:
        tasks = pickers.pick_tasks(task, key=f"tasks_{study}")
    places = st.columns(3)
    most = places[0].number_input(
        "Rows of each task, at most", 0, 1_000_000, limit.default, key=f"limit_{study}", help=limit.help
    )
    data = places[1].text_input("Folder in GLUE's TSV form", key="folder", placeholder="the bundled samples")
    pipeline = places[2].text_input("spaCy pipeline", key="pipeline", placeholder="the bundled one")
    wanted = options | {"checkpoint": name, "compare": beside, "tasks": tasks, "limit": int(most)}
    wanted |= {"data": data or None, "pipeline": pipeline or None}
    if name and tasks:
        job_progress.say_time(study, wanted)
    if st.button("Run", type="primary", key=f"start_{study}", disabled=not (name and tasks)):
        with clear_errors():
            title = f"{study} of {name}" + (f" and {beside}" if beside else "") + f" on {pickers.named(tasks)}"
            st.session_state[f"job_{study}"] = job_progress.begin(study, wanted, title)
            st.rerun()


def pictures(rows: pd.DataFrame, value: str, label: str, *, diverging: bool = False) -> list[Any]:
    """One layer x head picture a checkpoint and task, side by side on one scale; heads above their null outlined."""
    drawn = []
    known = pd.to_numeric(rows[value]).dropna()
    domain = (min(0.0, float(known.min())), float(known.max())) if len(known) else (0.0, 1.0)
    groups = list(rows.groupby(["checkpoint", "task"], sort=False))
    for start in range(0, len(groups), 3):
        for place, ((checkpoint, task), some) in zip(st.columns(3), groups[start : start + 3], strict=False):
            chart = head_picture(
                some,
                Shade(
                    value,
                    label=label,
                    diverging=diverging or checkpoint == "difference",
                    domain=None if checkpoint == "difference" else domain,
                ),
                title=f"{checkpoint} · {task}",
                highlight=above_null(some),
                tooltip=[name for name in ("low", "high", "n", "baseline", "q") if name in some],
            )
            place.altair_chart(chart, width="content", key=f"picture_{checkpoint}_{task}_{value}")
            drawn.append(chart)
    return drawn


def above_null(rows: pd.DataFrame) -> list[Head]:
    """Heads whose effect is above 0 (of a difference: either way) after the correction for all heads."""
    if "q" not in rows:
        return []
    sure = pd.to_numeric(rows["q"]) < SURE
    if "effect" in rows:
        sure &= (rows["checkpoint"] == "difference") | (pd.to_numeric(rows["effect"]) > 0)
    return [Head(int(a), int(b)) for a, b in zip(rows.loc[sure, "layer"], rows.loc[sure, "head"], strict=True)]


def shared_heads(rows: pd.DataFrame) -> list[Head]:
    """Heads above their null in every task of a checkpoint that was measured on several."""
    groups = [set(above_null(some)) for _, some in rows.groupby("task", sort=False)]
    return sorted(set.intersection(*groups)) if len(groups) > 1 else []


def table(found: Found, rows: pd.DataFrame, columns: Sequence[str], *, by: str, key: str) -> None:
    """Heads by name with these columns, most of `by` first; the chosen one, or the first, leads to its maps."""
    size = rows[by].abs() if key == "differences" else rows[by]
    shown = rows.loc[size.sort_values(ascending=False).index]
    shown = shown.assign(name=[str(Head(int(a), int(b))) for a, b in zip(shown["layer"], shown["head"], strict=True)])
    kept = ["checkpoint", "task", "name", *(name for name in columns if name in shown)]
    shown = shown[kept].rename(columns={"name": "head", "low": "95% from", "high": "95% to"})
    for name in {"p", "q"} & set(shown):
        shown[name] = tested(shown[name])
    short = {name: st.column_config.NumberColumn(format="%.3g") for name in shown.select_dtypes("float").columns}
    event = st.dataframe(
        shown,
        hide_index=True,
        height=280,
        column_config=short,
        on_select="rerun",
        selection_mode="single-row",
        key=f"table_{key}",
    )
    if len(shown):
        row = shown.iloc[(event["selection"]["rows"] or [0])[0]]
        name = found.checkpoint if row["checkpoint"] == "difference" else row["checkpoint"]
        links(name, row["head"], found)


def tested(values: pd.Series) -> pd.Series:
    """p or q for a table: "too few" in words where too few inputs differ from 0 for a test."""
    numbers = pd.to_numeric(values)
    if numbers.notna().all():
        return numbers
    return numbers.map(lambda p: TOO_FEW if pd.isna(p) else f"{p:.3g}")


def links(checkpoint: str, head: str, found: Found) -> None:
    """Where to go on with a head."""
    show_links(checkpoint, head, here="", text=found.text, pair=found.pair)


def notes(rows: pd.DataFrame) -> pd.DataFrame:
    """Say what no input has; returns the rows of heads."""
    if "note" in rows:
        said = rows[rows["note"].notna()]
        names = said["feature"].fillna(said["statistic"]) if "feature" in said else said["statistic"]
        for note, some in said.assign(about=names).groupby("note"):
            st.caption(plain(f"{', '.join(dict.fromkeys(some['about'].astype(str)))}: {note}."))
        rows = rows[rows["note"].isna()]
    return rows[rows["layer"].notna()] if "layer" in rows else rows.iloc[:0]
