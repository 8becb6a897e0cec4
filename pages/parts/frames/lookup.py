"""One sentence: propose targets and elements, let words be clicked, show every head between the two places."""

from collections.abc import Sequence
from datetime import date
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import streamlit as st

from core import config
from core.attention import Head
from core.errors import AtlasError
from core.frames.lexicon import Lexicon, Roles, bundled_lexicon, release_lexicon
from core.frames.records import AnnotatedSentence, Element, Span, Spans
from core.frames.release import open_release
from core.frames.rows import write_rows
from core.measuring.distance_null import distance_null
from core.measuring.frame_lookup import (
    Reading,
    headline,
    links_for,
    picture,
    propose_elements,
    propose_targets,
    spaced,
    spans_of,
    strips,
)
from core.measuring.tagging import tag
from pages.parts.charts.encoding import Shade
from pages.parts.charts.heads import head_picture
from pages.parts.charts.matrices import token_strips
from pages.parts.frame import resources
from pages.parts.frame.messages import clear_errors, plain
from pages.parts.frames.sets import show_runs
from pages.parts.widgets import pickers
from pages.parts.widgets.files import show_files
from pages.parts.widgets.head_links import show_links

EXAMPLES = (
    "He was becoming agitated about the noise.",
    "The old teacher explained the rules to her class.",
    "Angry as never before, the captain left.",
)
PROSE = {
    "element_to_target": "element → target (query = element; the paper's code)",
    "target_to_element": "target → element (query = target; the paper's prose)",
}
TOP = 10
MOST_WORDS = 40  # longer texts do not fit a row of words to click


class Marked(NamedTuple):
    """What is marked: the sentence's text, target, element, and what they are called."""

    text: str
    target: Spans
    element: Element
    frame: str | None
    unit: str | None


@st.cache_resource(show_spinner="Reading the frames ...", max_entries=2)
def lexicon(folder: str | None) -> Lexicon:
    """FrameNet's own index where a release folder is configured, else the bundled facts."""
    if folder is None:
        return bundled_lexicon()

    return release_lexicon(open_release(folder))


def null_of(name: str) -> Any:
    """How much each head of a checkpoint looks over each distance in the bundled sentences."""
    opened = resources.checkpoint(name)
    with st.spinner("Looking at the bundled sentences ..."):
        return _null_of(opened.weights_hash, opened)


@st.cache_resource(show_spinner=False, max_entries=8)
def _null_of(weights: str, _checkpoint: Any) -> Any:
    return distance_null(_checkpoint)


def show_lookup() -> None:
    """The whole view; a fragment, so that a click reruns nothing else."""
    with clear_errors():
        first, second, text = _inputs()
        if not text.strip():
            _offer_examples()
            return
        marked = mark(text)
        if marked is None:
            return
        _offer_annotation(marked)
        chosen = [name for name in (first, second) if name]
        if not chosen:
            st.info("Choose a checkpoint above.", icon=":material/arrow_upward:")
        for place, name in zip(st.columns(max(1, len(chosen))), chosen, strict=False):
            with place, clear_errors():
                show_heads(name, marked)


def _offer_examples() -> None:
    st.caption("Type a sentence above and press Enter, or start with one of these.")
    for place, example in zip(st.columns(len(EXAMPLES)), EXAMPLES, strict=True):
        place.button(example, on_click=_take, args=(example,), width="stretch")
    st.subheader("In many sentences at once")
    show_runs()


def _offer_annotation(marked: Marked) -> None:
    """What is marked as a line of our own form; several lines make a set for the next view."""
    sentence = AnnotatedSentence("typed", marked.text, marked.target, marked.frame, marked.unit, (marked.element,))
    st.download_button("Annotation (JSONL)", write_rows([sentence]), file_name="frames.jsonl", on_click="ignore",
                       icon=":material/download:", help="A line of the form that the set view reads.")  # fmt: skip


def _take(text: str) -> None:
    st.session_state["text"] = text


def _inputs() -> tuple[str | None, str | None, str]:
    places = st.columns([3, 3, 6], vertical_alignment="bottom")
    with places[0]:
        first = pickers.pick_checkpoint()
    with places[1]:
        second = pickers.pick_checkpoint("Compare with", key="beside", none="no second checkpoint")
    with places[2]:
        text = pickers.pick_text(placeholder="Type a sentence and press Enter")
    return first, second, text


# ---------------------------------------------------------------- marking the places


def words_and_proposals(text: str) -> tuple[list[Span], Any, list[Any], Lexicon]:
    """Words of a text with proposed targets; without a language pipeline words end at white space."""
    folder = config.settings().framenet
    known = lexicon(str(folder) if folder else None)

    try:
        tagged = tag([text], resources.pipeline())[0]
    except AtlasError:
        tagged = spaced(text)
    return tagged.spans, tagged, propose_targets(tagged, known), known


def mark(text: str) -> Marked | None:
    """Choose frame, target words and element words; None while something is missing."""
    spans, tagged, targets, known = words_and_proposals(text)
    if len(spans) > MOST_WORDS:
        st.warning(f"Words can be clicked in sentences of up to {MOST_WORDS}; this one has {len(spans)}: shorten it.")
        return None
    spelled = [text[start:end] for start, end in spans]
    left, right = st.columns(2)
    with left:
        number, target_words = _pick_target(text, spelled, targets)
    frame = targets[number].frame if number < len(targets) else None
    unit = targets[number].unit if number < len(targets) else None
    with right:
        name, element_words = _pick_element(f"{text}|{number}", spelled, tagged, target_words, known, frame)
    if not target_words or not element_words:
        st.info("Click the words of a target on the left and of an element on the right.", icon=":material/touch_app:")
        return None
    roles = known.of(frame) if frame else Roles("", ())
    return Marked(text, spans_of(spans, target_words), roles.element(name, spans_of(spans, element_words)), frame, unit)


def _pick_target(text: str, spelled: list[str], targets: Sequence[Any]) -> tuple[int, list[int]]:
    said = [f"{' '.join(spelled[k] for k in one.words)}: {one.frame} ({one.unit})" for one in targets] + ["other words"]
    number = st.selectbox(
        "Target and frame", range(len(said)), format_func=said.__getitem__, key=f"frame|{text}",
        help="Proposed by lexical unit: the words of this sentence that evoke a frame.",
    )  # fmt: skip
    start = list(targets[number].words) if number < len(targets) else []
    words = _pick_words("Target words", spelled, start, f"target|{text}|{number}")
    if words and not any(set(words) & set(target.words) for target in targets):
        st.caption(
            plain(f"No frame is known for “{' '.join(spelled[k] for k in words)}”: its elements have no names here.")
        )
    elif number < len(targets) and len(targets) > 1:
        st.caption("A guess from the word and its part of speech; the list has the other frames.")
    return number, words


def _pick_element(
    key: str, spelled: list[str], tagged: Any, target: list[int], known: Lexicon, frame: str | None
) -> tuple[str, list[int]]:
    roles = known.of(frame) if frame else None
    found = propose_elements(tagged, target[0], roles) if target else []
    said = [f"{one.name or 'element'}: {' '.join(spelled[k] for k in one.words)} ({one.place})" for one in found]
    number = st.selectbox(
        "Element", range(len(said) + 1), format_func=[*said, "other words"].__getitem__, key=f"element|{key}|{target}",
        help="Proposed by the parser: subject, objects, obliques, named as the frame usually places them.",
    )  # fmt: skip
    start = list(found[number].words) if number < len(found) else []
    name = found[number].name if number < len(found) else None
    return name or "element", _pick_words("Element words", spelled, start, f"words|{key}|{target}|{number}")


def _pick_words(label: str, spelled: list[str], start: list[int], key: str) -> list[int]:
    return sorted(
        st.pills(label, range(len(spelled)), format_func=lambda k: plain(spelled[k]), selection_mode="multi", wrap=True,
                 default=start, key=key)
    )  # fmt: skip


# ---------------------------------------------------------------- the heads


def show_heads(name: str, marked: Marked) -> None:
    """Both directions of one checkpoint, its best heads, and the strip of the chosen one."""
    shown = resources.shown(name, marked.text)
    sentence = AnnotatedSentence("typed", marked.text, marked.target, marked.frame, marked.unit, (marked.element,))
    links = links_for(shown.encoding, sentence)
    st.markdown(f"**{plain(name)}**")
    answer = st.empty()  # the answer stands first, though it is known last
    options = st.columns(2)
    zipped = options[0].toggle("the paper's zip of pieces", key=f"zip|{name}", help="Default: every pair of pieces.")
    sinkless = options[1].toggle(
        "without position 0",
        key=f"sink|{name}",
        help="Position 0 gets much weight whatever follows; rows renormalised.",
    )
    found = {
        one: picture(shown.maps, shown.encoding, links, Reading(one, "zip" if zipped else "product", sinkless),
                     null=lambda: null_of(name))
        for one in PROSE
    }  # fmt: skip
    chosen, drawn = _pictures(name, found)
    visible = [one for one in found if found[one].visible]
    direction = st.radio(
        "Rank heads by", visible, format_func=PROSE.__getitem__, key=f"direction|{name}", horizontal=True
    ) or next(iter(visible), None)
    if direction is None:
        return
    by = "score" if st.toggle("rank by raw weight", key=f"raw|{name}", help="Default: by the difference from places at "
                              "the same distance in this sentence.") else "difference"  # fmt: skip
    answer.markdown(f"**{plain(headline(found[direction], *_ends(marked), by))}**")
    rows = pd.DataFrame(found[direction].rows(by))
    head = chosen or Head(int(rows["layer"][0]), int(rows["head"][0]))
    _table(name, rows, found[direction], marked)
    show_files(rows, [drawn[direction]], "heads", key=name)
    _strip(name, head, shown, links, marked)


def _ends(marked: Marked) -> tuple[str, str]:
    """The words of the element and of the target."""
    return tuple(" ".join(marked.text[start:end] for start, end in spans)
                 for spans in (marked.element.spans, marked.target))  # type: ignore[return-value]  # fmt: skip


def _pictures(name: str, found: dict[str, Any]) -> tuple[Head | None, dict[str, Any]]:
    """The two layer x head pictures; returns the head that was clicked, and the charts by direction."""
    charts_made: dict[str, Any] = {}
    most = max((float(np.nanmax(one.score)) for one in found.values() if one.visible), default=1.0)
    chosen = None
    beside = st.container(horizontal=True)  # wraps where there is no room for both
    for direction, one in found.items():
        with beside.container(width="content" if one.visible else 220):
            if not one.visible:
                st.caption(PROSE[direction])
                st.markdown(
                    ":gray-background[structurally zero] :gray[In a decoder a query sees only keys up to itself, and "
                    "here every key would lie after its query.]"
                )
                continue
            frame = pd.DataFrame(one.rows())
            best = frame.head(3)
            drawn = charts_made[direction] = head_picture(
                frame,
                Shade("score", label="weight", domain=(0, most), cell=22),
                title=PROSE[direction].split(" (")[0],
                highlight=[Head(int(a), int(b)) for a, b in zip(best["layer"], best["head"], strict=True)],
                tooltip=("rank", "same_distance"),
                select=True,
            )
            event = st.altair_chart(drawn, width="content", on_select="rerun", key=f"picture|{name}|{direction}")
            cell = event["selection"].get("cell") if event else None
            chosen = Head(int(cell[0]["layer"]), int(cell[0]["head"])) if cell else chosen
    return chosen, charts_made


def _table(name: str, rows: pd.DataFrame, found: Any, marked: Marked) -> None:
    shown = rows.head(TOP)[["rank", "name", "score", "same_distance", "difference", "place_rank"]]
    st.dataframe(
        shown.assign(place_rank=[f"{rank:.0f} of {found.places}" for rank in shown["place_rank"]]),
        hide_index=True,
        column_config={
            "rank": st.column_config.NumberColumn("rank", help=f"among {len(rows)} heads"),
            "name": "head",
            "score": st.column_config.NumberColumn("weight", format="%.3f"),
            "same_distance": st.column_config.NumberColumn(
                "same distance", format="%.3f",
                help="mean over all other places of this sentence with the same distances and piece counts",
            ),
            "difference": st.column_config.NumberColumn("difference", format="%.3f"),
            "place_rank": st.column_config.TextColumn("place", help="this link among the places at the same distance"),
        },
    )  # fmt: skip
    other = "no other place at this distance" if found.places == 1 else f"{found.places - 1} other places compared"
    other += f", so {found.borrowed:,} pairs of the bundled sentences stand beside it" if found.borrowed else ""
    st.caption(
        f"{plain(name)} · {plain(marked.frame or 'no frame')} · n = 1 sentence, so a rank and no test · {other} · "
        f"{date.today():%d %B %Y}"
    )


def _strip(name: str, head: Head, shown: resources.Shown, links: Any, marked: Marked) -> None:
    """Fig 3's strip: what the target and the element look at, and who looks at the target."""
    st.altair_chart(
        token_strips(pd.DataFrame(strips(shown.maps, shown.encoding, links, head)), title=str(head)),
        key=f"strip|{name}",
    )
    st.caption("Rows: weights of a query over all keys, pieces of a word averaged; position 0 is marked as the sink.")
    show_links(name, head, here="frames", text=marked.text)
