"""Sets of sentences: starting the study, showing significant heads, comparing two checkpoints, export."""

from typing import Any

import pandas as pd
import streamlit as st

from core import config
from core.attention import Head
from core.frames.papers import parse_list
from core.frames.rows import parse_sentences, write_sentences
from core.jobs import api
from core.reading import decoded, lines_of
from core.scoring.few_inputs import FEWEST
from core.studies.frames.records import FrameHead, FrameSentence, FrameSummary
from core.studies.imports import result_rows
from pages.parts.charts.curves import dots_and_controls
from pages.parts.charts.encoding import LARGE, Shade
from pages.parts.charts.heads import head_picture
from pages.parts.reports.result_card import show_answer
from pages.parts.reports.stored_runs import known_runs
from pages.parts.reports.study_view import boxed, details, drawer, fits
from pages.parts.shell import context, people, resources, url
from pages.parts.shell.links import show_links
from pages.parts.shell.messages import clear_errors, counted, plain
from pages.parts.widgets.files import show_files
from pages.parts.widgets.job_progress import begin, say_time, show_job
from pages.parts.widgets.tables import show_table

SOURCES = {
    "bundled": "the 137 bundled sentences",
    "upload": "a file: JSON lines, or JSON of Kovaleva et al. or the GPT-2 replication",
    "search": "found in an indexed release",
}
DIRECTIONS = {
    "element_to_target": "element → target (as in the code of Kovaleva et al. 2019)",
    "target_to_element": "target → element (as in the text of Kovaleva et al. 2019)",
    "later_to_earlier": "later → earlier (possible in encoders and decoders)",
}
BOUND: dict[str, Any] = {"bind": "query-params"}
_NUMBER = st.column_config.NumberColumn
TOLD: dict[str, Any] = {  # columns of the table of heads, as it shows them
    "name": "head",
    "value": _NUMBER("weight", format="%.3f"),
    "low": _NUMBER(format="%.3f"),
    "high": _NUMBER(format="%.3f"),
    "baseline": _NUMBER(
        "same distance",
        format="%.3f",
        help="The mean attention weight after the links are moved to other positions at the same distance (first "
        "baseline).",
    ),
    "exchanged": _NUMBER(
        "exchanged",
        format="%.3f",
        help="The mean attention weight if each sentence gets the links of another sentence of equal length "
        "(second baseline).",
    ),
    "excess": _NUMBER(
        "over other words",
        format="%.2f",
        help="The attention from the linked word to the key, minus the attention from other words to the same key. "
        "The effect of distance is removed. Values are multiples of uniform attention (in decoders: log odds).",
    ),
    "q": _NUMBER(
        "q",
        format="%.4f",
        help="The largest of the four p-values against the four baselines, corrected for the "
        "number of heads (Benjamini-Hochberg).",
    ),
    "survives": None,
    "beats_places": "beats places",
    "to_previous": _NUMBER(
        "to previous", format="%.2f", help="The mean attention weight of the same queries on the previous token."
    ),
    "to_next": _NUMBER("to next", format="%.2f"),
    "to_first": _NUMBER("to position 0", format="%.2f"),
}
CONTROLS = {"baseline": "control: same distance elsewhere", "exchanged": "control: links of another sentence"}
SHOWN_BARS = 12
SENTENCES_LISTED = 200


def show_sets() -> None:
    with clear_errors():
        show_runs()
    with drawer("Run with other settings", "frame-heads"):
        first, second, options = _inputs()
        with clear_errors():
            _start(first, second, options)


def _inputs() -> tuple[str | None, str | None, dict[str, Any]]:
    places = st.columns(2, vertical_alignment="bottom")
    first, second = context.now().checkpoint, context.now().beside
    source = url.pick(places[0].selectbox, "Sentences", SOURCES, key="frame_source")
    direction = url.pick(places[1].selectbox, "Direction", DIRECTIONS, key="frame_direction")
    options: dict[str, Any] = {"direction": direction} | _sentences(source) | _filter()
    return first, second, options


def _sentences(source: str) -> dict[str, Any]:
    if source == "search":
        rows = st.session_state.get("_frame_found", "")
        st.caption(
            f"{counted(len(lines_of(rows)), 'sentences')} found by the search will be used."
            if rows
            else "No sentences have been chosen. Search a FrameNet release and press “Test heads on these sentences”."
        )
        return {"rows": rows or None}
    if source == "bundled":
        return {}
    upload = people.ask_file("Annotated sentences", ["jsonl", "json"], key="frame_file", max_upload_size=20,
                              help="Upload JSON lines with the fields text, target, frame and elements (with spans). "
                                   "The JSON files of sentences by Kovaleva et al. 2019 or by the GPT-2 replication "
                                   "can also be read.")  # fmt: skip
    if upload is None:
        return {"rows": None}
    return {"rows": _as_rows(upload.name, upload.getvalue())}


def _as_rows(name: str, content: bytes) -> str | None:
    """Return the lines of an upload in this program's format; other formats are refused with a message."""
    with clear_errors():
        text = decoded(content, name)
        reading = parse_list(text, name) if name.endswith(".json") else parse_sentences(text, source=name)
        for remark in (*reading.skipped, *reading.notes)[:10]:
            st.caption(f"{plain(remark.where)}: {plain(remark.why)}")
        st.caption(
            f"The file has {counted(len(reading.sentences), 'sentences')}. {counted(len(reading.skipped), 'rows')} "
            "could not be read and were skipped."
        )
        return write_sentences(reading.sentences)
    return None


def _filter() -> dict[str, Any]:
    """Ask for the selection rules, with the values of the paper as defaults."""
    with st.container(border=True):
        st.caption(
            "These settings select the sentences and define the score of a head. The defaults are those of "
            "Kovaleva et al. 2019, except for the pairs of tokens."
        )
        left, middle, right = st.columns(3)
        chosen: dict[str, Any] = {
            "filter": left.toggle("select sentences as in Kovaleva et al. 2019", value=True, key="f_on", **BOUND),
            "longest_sentence": int(left.number_input("longest sentence, in tokens", 1, 200, 12, key="f_sentence",
                                                      **BOUND)),
            "longest_element": int(left.number_input("longest element, in tokens", 1, 50, 3, key="f_element", **BOUND)),
            "nearest": int(middle.number_input("least distance", 1, 20, 3, key="f_near", **BOUND,
                                               help="The smallest distance in tokens between a target and a frame "
                                                    "element. Kovaleva et al. 2019 state 2, but their code requires "
                                                    "more than 2.")),
            "distance": middle.selectbox("distance by", ["strings", "places"], key="f_distance", **BOUND,
                                         help="“Strings” finds the words by their spelling and can confuse repeated "
                                              "words, as in the code of Kovaleva et al. 2019. “Places” uses the "
                                              "annotated token positions."),
            "core": middle.selectbox("core elements by", ["core_sets", "core_type", "any"], key="f_core", **BOUND,
                                     help="“core_sets” uses the core sets of FrameNet (FEcoreSets), as in the code "
                                          "of Kovaleva et al. 2019. Only 319 of 1,221 frames have core sets. "
                                          "“core_type” uses elements of FrameNet's type Core, and “any” uses all "
                                          "elements."),
            "pairing": right.selectbox("pairs of tokens", ["product", "zip"], key="f_pairing", **BOUND,
                                       help="“product” uses all pairs of tokens of two words. “zip” pairs the first "
                                            "tokens, the second tokens, and so on, as in the code of Kovaleva et al. "
                                            "2019."),
            "average": right.selectbox("mean over", ["sentences", "links"], key="f_average", **BOUND,
                                       help="Computes the mean attention weight over sentences, or over all links "
                                            "(pairs of a target and a frame element). The GPT-2 replication uses "
                                            "links."),
            "without_first": right.toggle("ignore the first token", key="f_sink", **BOUND),
        }  # fmt: skip
    return chosen


def _start(first: str | None, second: str | None, options: dict[str, Any]) -> None:
    names = list(dict.fromkeys(name for name in (first, second) if name))
    needs_rows = "rows" in options and not options["rows"]
    if names and not needs_rows:
        say_time("frame-heads", options | {"checkpoint": names[0]})
    if st.button("Find the heads", type="primary", icon=":material/play_arrow:", disabled=not names or needs_rows):
        st.session_state["_frame_jobs"] = [
            begin("frame-heads", options | {"checkpoint": name}, f"Frame heads of {name}") for name in names
        ]
    for job in st.session_state.get("_frame_jobs", []):
        if api.status(resources.database(), job).state != "done":
            show_job(job, rows=False)


# ---------------------------------------------------------------- what came out


def show_runs() -> None:
    db = resources.database()
    stored_runs = {stored.run: stored for stored in known_runs("frame-heads")}
    if not stored_runs:
        st.info(
            "No result about heads that attend along frame links is stored yet. Choose sentences and a checkpoint, "
            "and press “Find the heads”.",
            icon=":material/arrow_upward:",
        )
        return
    labels = {
        run: f"{stored.checkpoint} · {stored.settings.direction} · {stored.created:%d %b %H:%M} · " + stored.origin
        for run, stored in stored_runs.items()
    }
    finished = [api.status(db, job).run for job in st.session_state.get("_frame_jobs", [])]
    suited = [run for run, stored in stored_runs.items() if fits(stored)]
    default = [run for run in finished if run in labels][:2] or suited[:1] or list(labels)[:1]
    if st.session_state.get("_frame_runs_newest", default) != default:
        st.session_state["frame_runs"] = default  # what has just come is shown
    st.session_state["_frame_runs_newest"] = default
    chosen = url.pick_many(st.multiselect, "Results", labels, key="frame_runs", default=default, max_selections=2,
                             help="Choose one result to show it, or two results to compare them.")  # fmt: skip
    rows_of = {run: result_rows(db, run) for run in chosen}
    most = max((head.value or 0.0 for rows in rows_of.values() for head in FrameHead.among(rows)), default=1.0)
    for column, run in zip(st.columns(max(1, len(chosen))), chosen, strict=False):
        key = f"frames_{run[:8]}"
        with column, clear_errors(), boxed(stored_runs[run], key):
            show_answer(
                stored_runs[run], key=key, question="Which heads attend to frame elements?" if len(chosen) == 1 else ""
            )
            show_result(run, rows_of[run], most, wide=len(chosen) == 1)


def show_result(run: str, rows: list[dict[str, Any]], most: float, *, wide: bool) -> None:
    """Show heatmap, ranking with the 99th percentile, table, sentences and files. `wide`: on the whole width of the
    page."""
    summary = FrameSummary.of(rows[0])
    heads = pd.DataFrame([row for row in rows if row["kind"] == "head"])
    survivors = [Head.parse(name) for name in summary.survivors]
    picture = head_picture(
        heads,
        Shade("value", label="weight", domain=(0, most), cell=LARGE if wide else 22),
        title="Mean attention weight between target and frame element",
        highlight=survivors,
        select=True,
        tooltip=("low", "high", "baseline", "exchanged", "excess", "q"),
    )
    left, right = st.container(), st.container()
    if wide:
        left, right = st.columns([3, 4])
    event = left.altair_chart(picture, width="content", on_select="rerun", key=f"set|{run}")
    left.caption(
        "Heads above all four baselines are outlined. Click a head to sort the sentences by its attention weight."
    )
    dots = dots_and_controls(
        ranked_heads(heads),
        title="Attention weight of heads (95 % CI), heads above all baselines first",
        value="mean weight",
        controls=list(CONTROLS.values()),
        passing="passes all four controls",
        others="does not",
    )
    right.altair_chart(dots, key=f"bars|{run}")
    with details():
        _headline(summary, len(heads))
        st.caption(
            f"The 99th percentile of the weights of {len(heads)} heads is {summary.line_99:.3f}. It is not a "
            f"significance test, because a fixed share of heads always reaches it (here {summary.above_99} of "
            f"{len(heads)})."
        )
        names = [name for name in TOLD if name in heads]
        config = {name: settings for name, settings in TOLD.items() if settings is not None}
        show_table(heads[names], height=240, column_config=config)
    cell = event["selection"].get("cell") if event else None
    head = Head(int(cell[0]["layer"]), int(cell[0]["head"])) if cell else Head.parse(heads["name"].iloc[0])
    _sentences_of(run, FrameSentence.among(rows), summary, head)
    show_files(heads, [picture], "frame-heads", of="Heads", key=run)


def ranked_heads(heads: pd.DataFrame) -> pd.DataFrame:
    """Return up to SHOWN_BARS heads for the figure: all that pass the four controls first, then others by weight.

    Columns are head, value, low, high, passes and the means of the controls.
    """
    passes = heads["survives"].fillna(False).astype(bool) if "survives" in heads else pd.Series(False, heads.index)
    order = heads.assign(passes=passes).sort_values(["passes", "value"], ascending=False, kind="stable")
    shown = order.head(max(SHOWN_BARS, int(passes.sum())))
    for column in CONTROLS:
        if column not in shown:
            shown = shown.assign(**{column: float("nan")})
    shown = shown.drop(columns="head").rename(columns=CONTROLS | {"name": "head"})
    return shown[["head", "value", "low", "high", "passes", *CONTROLS.values()]].reset_index(drop=True)


def _headline(summary: FrameSummary, count: int) -> None:
    survivors = summary.survivors
    if summary.n < FEWEST:
        st.markdown(
            f"{plain(summary.checkpoint or '')}: **{summary.n} {plain(summary.average)} are too few to test heads** "
            f"(at least {FEWEST} are needed), so only weights and confidence intervals are shown."
        )
        return
    outcome = f"**{len(survivors)} of {count} heads are above all four baselines**" + (
        f": {plain(', '.join(survivors[:12]))}" if survivors else ""
    )
    st.markdown(f"{plain(summary.checkpoint or '')}: {outcome}")
    st.caption(plain(_weaker(summary, count)))
    fixed = " · ".join(f"{name} {value:.2f}" for name, value in (summary.fixed or {}).items())
    direction = DIRECTIONS[summary.direction or "element_to_target"]
    st.caption(
        f"The result covers {summary.n} {plain(summary.average)} with {summary.links} frame links. In "
        f"{summary.links_before} of these links, the frame element comes first. Direction: {direction}. Pairs of "
        f"tokens: “{plain(summary.pairing)}”."
    )
    st.caption(
        "Baseline 1: links are moved to other positions at the same distance (possible for "
        f"{summary.movable} {plain(summary.average)}). Baseline 2: links are exchanged between sentences of equal "
        f"length (possible for {summary.exchangeable} {plain(summary.average)})."
    )
    st.caption(
        "Baseline 3 is the weight that other query words give to the same key, after the mean weight at each distance "
        "is subtracted. Baseline 4 is computed in the same "
        "way, after special tokens are left out and the remaining weights are rescaled to sum to 1."
    )
    st.caption(
        f"A head is above all four baselines if q ≤ 0.05 (Benjamini-Hochberg over {count} heads, "
        f"{plain(str(summary.draws))} draws)."
    )
    st.caption(f"For comparison, artificial heads with a fixed attention pattern have these weights: {plain(fixed)}.")
    if (summary.kept or 0) < (summary.read or 0):
        reasons = ", ".join(f"{number} {reason}" for reason, number in (summary.dropped or {}).items())
        st.caption(
            f"{summary.kept} of {summary.read} sentences were selected. The other sentences were left out "
            f"for these reasons: {plain(reasons)}."
        )


def _weaker(summary: FrameSummary, count: int) -> str:
    """State what the two null models of positions alone show."""
    names = summary.beat_places
    if names is None:
        return (
            "This result is from an earlier version that tested only positions, not query words. Run the study again."
        )
    listed = f" ({', '.join(names[:12])})" if names else ""
    return (
        f"{len(names)} of {count} heads attend to the frame element more than position and distance predict{listed}. "
        "Only for the heads above all four baselines is the effect specific to the target word."
    )


def _sentences_of(run: str, sentences: list[FrameSentence], summary: FrameSummary, head: Head) -> None:
    """Show the sentences by weight of this head; a chosen one links to its maps."""
    head_index = head.layer * summary.heads + head.head
    listed = pd.DataFrame([
        {"weight": sentence.scores[head_index], "sentence": sentence.text or sentence.id, "target": sentence.target,
         "elements": ", ".join(sentence.elements), "frame": sentence.frame, "text": sentence.text}
        for sentence in sentences
    ]).sort_values("weight", ascending=False)  # fmt: skip
    with st.expander(f"Sentences ordered by the attention weight of {head}"):
        if not any(listed["text"]):
            st.caption("We may not redistribute these sentences, so only their IDs are shown.")
        event = show_table(
            listed.head(SENTENCES_LISTED).drop(columns="text"),
            on_select="rerun",
            selection_mode="single-row",
            key=f"sentences|{run}|{head}",
            column_config={"weight": st.column_config.NumberColumn(format="%.3f")},
        )
        number = event["selection"]["rows"][0] if event["selection"]["rows"] else 0
        text = listed["text"].iloc[number]
    show_links(summary.checkpoint or "", head, current_view="linguistics/frames", text=text)


def settings_folder() -> str:
    """Return the configured FrameNet folder as text."""
    folder = config.settings().framenet
    return "" if folder is None else str(folder)
