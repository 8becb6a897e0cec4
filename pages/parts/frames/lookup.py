"""One sentence: proposed targets and elements, words marked by clicks, and every head between the marked words."""

from collections.abc import Sequence
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import streamlit as st

from core import config
from core.attention import Head
from core.errors import AtlasError
from core.frames.lexicon import Lexicon, Proposal, Roles, bundled_lexicon, head_of, propose_elements, release_lexicon
from core.frames.records import AnnotatedSentence, Element, Span, Spans
from core.frames.release import open_release
from core.frames.rows import write_sentences
from core.studies.frames.frame_lookup import (
    LinkReading,
    distance_null,
    headline,
    links_for,
    picture,
    propose_targets,
    spaced,
    spans_of,
    strips,
)
from core.studies.tagging import tag
from pages.parts.charts.encoding import LARGE, Shade
from pages.parts.charts.heads import clicked_heads, head_picture
from pages.parts.charts.matrices import token_strips
from pages.parts.frames.sets import show_runs
from pages.parts.reports.study_view import details
from pages.parts.shell import context, resources, url
from pages.parts.shell.links import show_links
from pages.parts.shell.messages import clear_errors, plain
from pages.parts.widgets.files import show_files
from pages.parts.widgets.tables import show_table

# -------------------- The words of a sentence that are marked as a frame's target and element


MOST_WORDS = 40  # longer texts do not fit a row of words to click
ALTERNATIVES = 3  # other frames of a guess that are offered beside it
_HERE = Path(__file__).resolve().parent
_sentence = st.components.v2.component(
    "atlas_sentence",
    js=(_HERE / "sentence.js").read_text(encoding="utf-8"),
    css=(_HERE / "sentence.css").read_text(encoding="utf-8"),
    html='<div class="root"></div>\n',
)


class Marked(NamedTuple):
    """The marked sentence: text, target, element, and their names."""

    text: str
    target: Spans
    element: Element
    frame: str | None
    unit: str | None


class Parsed(NamedTuple):
    """A text with its words, the proposed targets and the known frames."""

    text: str
    spans: list[Span]
    tagged: Any
    targets: list[Any]
    lexicon: Lexicon

    def phrase(self, words: Sequence[int]) -> str:
        """Return some words as one string."""
        return " ".join(self.text[slice(*self.spans[k])] for k in words)


@st.cache_resource(show_spinner="Reading the frames ...", max_entries=2)
def lexicon(folder: str | None) -> Lexicon:
    """Return the index of FrameNet if a release folder is configured, otherwise the bundled lexicon."""
    if folder is None:
        return bundled_lexicon()
    return release_lexicon(open_release(folder))


def parsed(text: str) -> Parsed:
    """Return the words of a text with proposed targets; without a language pipeline, white space separates words."""
    folder = config.settings().framenet
    frame_lexicon = lexicon(str(folder) if folder else None)
    try:
        tagged = tag([text], resources.pipeline())[0]
    except AtlasError:
        tagged = spaced(text)
    return Parsed(text, tagged.spans, tagged, propose_targets(tagged, frame_lexicon), frame_lexicon)


def mark(text: str) -> Marked | None:
    """Ask for frame, target words and element words; None while something is missing."""
    sentence = parsed(text)
    if len(sentence.spans) > MOST_WORDS:
        st.warning(
            f"Words can be clicked only in sentences of up to {MOST_WORDS} words. This sentence has "
            f"{len(sentence.spans)} words. Shorten it."
        )
        return None
    linked = _marking_clicked(sentence) or _linked(len(sentence.spans))
    words = st.container()  # the sentence stands above the lists, though what they propose is known first
    left, right = st.columns(2)
    with left:
        number = _pick_target(sentence, linked)
    target = sentence.targets[number] if number < len(sentence.targets) else None
    frame = target.frame if target else None
    start = list(target.words) if target else linked["target"]
    with right:
        element = _pick_element(sentence, number, start, frame, linked)
    elements = list(element.words) if element else linked["element"] if start == linked["target"] else []
    with words:
        marked = _click(sentence, f"{text}|{start}|{elements}", start, elements)
    if marked[0] != start:  # clicked: the frame is that of the words, if any is known
        target = next((proposed for proposed in sentence.targets if list(proposed.words) == marked[0]), None)
        frame = target.frame if target else None
    _keep(frame, *marked, as_proposed=(frame, *marked) == _first(sentence))
    _say_unknown(sentence, marked[0], frame)
    if not all(marked):
        st.info(
            "In the sentence, click the word that evokes a frame (its target), and then the words of one frame "
            "element.",
            icon=":material/touch_app:",
        )
        return None
    roles = sentence.lexicon.of(frame) if frame else Roles("", ())
    name = (element.name if element else None) or "element"
    spans = [spans_of(sentence.spans, chosen) for chosen in marked]
    return Marked(text, spans[0], roles.element(name, spans[1]), frame, target.unit if target else None)


def _marking_clicked(sentence: Parsed) -> dict[str, list[int]] | None:
    """Return what was just clicked, so that the lists follow; None without a new click."""
    click = getattr(st.session_state.get("sentence"), "marked", None)
    if not isinstance(click, dict) or click == st.session_state.get("_sentence_followed"):
        return None
    st.session_state["_sentence_followed"] = click
    if not str(click.get("key", "")).startswith(f"{sentence.text}|"):
        return None
    numbers = range(len(sentence.spans))
    marked = {name: [k for k in click.get(name, []) if k in numbers] for name in ("target", "element")}
    key = f"frame|{sentence.text}"
    fitting = [k for k, target in enumerate(sentence.targets) if list(target.words) == marked["target"]]
    if st.session_state.get(key) not in fitting:
        st.session_state[key] = next(iter(fitting), len(sentence.targets))
    st.session_state.pop(f"element|{sentence.text}|{st.session_state[key]}|{marked['target']}", None)
    return marked


def _linked(words: int) -> dict[str, list[int]]:
    """Return the target and element in the URL; None if they do not fit the sentence."""
    numbers = {}
    for name in ("target", "element"):
        listed = [url.number_of(part) or 0 for part in st.query_params.get(name, "").split(",")]
        numbers[name] = sorted({part - 1 for part in listed if 0 < part <= words})
    return numbers


def _first(sentence: Parsed) -> tuple[str | None, list[int], list[int]]:
    """Return the default marking, which is not stored in the URL."""
    if not sentence.targets:
        return None, [], []
    target = sentence.targets[0]
    head_word = head_of(sentence.tagged.words, target.words)
    proposals = propose_elements(sentence.tagged, head_word, sentence.lexicon.of(target.frame))
    return target.frame, list(target.words), list(proposals[0].words) if proposals else []


def _keep(frame: str | None, target: list[int], element: list[int], *, as_proposed: bool) -> None:
    word_numbers = {"target": target, "element": element}
    places = {name: ",".join(str(k + 1) for k in numbers) or None for name, numbers in word_numbers.items()}
    url.keep(dict.fromkeys(("frame", *places)) if as_proposed else {"frame": frame, **places})


def _pick_target(sentence: Parsed, linked: dict[str, list[int]]) -> int:
    targets, key = sentence.targets, f"frame|{sentence.text}"
    labels = [f"{sentence.phrase(target.words)}: {target.frame} ({target.unit})" for target in targets] + [
        "other words"
    ]
    if key not in st.session_state or url.went_back():
        st.session_state[key] = _target_in_link(targets, linked["target"])
    number = st.selectbox(
        "Target and frame",
        range(len(labels)),
        format_func=labels.__getitem__,
        key=key,
        help="The frame is guessed from the word and its part of speech. Choose another frame, or click other words.",
    )
    if number < len(targets):
        _offer_others(targets, number, key)
    return number


def _target_in_link(targets: Sequence[Any], words: list[int]) -> int:
    """Return the proposal in the URL by its words and frame, the first without one, or "other words"."""
    if not words:
        return 0
    fitting = [number for number, target in enumerate(targets) if list(target.words) == words]
    linked = [number for number in fitting if targets[number].frame == st.query_params.get("frame")]
    return next(iter(linked + fitting), len(targets))


def _offer_others(targets: Sequence[Any], number: int, key: str) -> None:
    """State that the frame is a guess, and offer up to three others for the same words."""
    alternatives = [k for k, target in enumerate(targets) if target.words == targets[number].words and k != number]
    with st.container(horizontal=True, vertical_alignment="center", key="other_frames"):
        if alternatives:
            st.caption("Other frames:", width="content")
        for k in alternatives[:ALTERNATIVES]:
            st.button(
                plain(targets[k].frame),
                key=f"{key}|{k}",
                type="tertiary",
                on_click=_marking_take,
                args=(key, k),
                help=plain(targets[k].unit),
            )


def _marking_take(key: str, number: int) -> None:
    st.session_state[key] = number


def _pick_element(
    sentence: Parsed, number: int, target: list[int], frame: str | None, linked: dict[str, list[int]]
) -> Proposal | None:
    """Ask for one of the proposed elements (None: clicked words)."""
    roles = sentence.lexicon.of(frame) if frame else None
    head_word = head_of(sentence.tagged.words, target)
    proposals = propose_elements(sentence.tagged, head_word, roles) if target else []
    labels = [
        f"{proposal.name or 'element'}: {sentence.phrase(proposal.words)} ({proposal.place})" for proposal in proposals
    ]
    key = f"element|{sentence.text}|{number}|{target}"
    if key not in st.session_state or url.went_back():
        linked_words = linked["element"] if target == linked["target"] else []
        fitting = [k for k, proposal in enumerate(proposals) if list(proposal.words) == linked_words]
        st.session_state[key] = next(iter(fitting), len(proposals) if linked_words else 0)
    chosen = st.selectbox(
        "Element",
        range(len(labels) + 1),
        format_func=[*labels, "other words"].__getitem__,
        key=key,
        help="The frame element is guessed from the parse of the sentence. Choose another element, or click other "
        "words.",
    )
    return proposals[chosen] if chosen < len(proposals) else None


def _click(sentence: Parsed, key: str, target: list[int], element: list[int]) -> tuple[list[int], list[int]]:
    """Show the sentence with clickable words, and return the marked target and element."""
    spelled = [sentence.text[start:end] for start, end in sentence.spans]
    payload = {"words": spelled, "target": target, "element": element, "key": key}
    clicked = _sentence(key="sentence", data=payload, on_marked_change=lambda: None).marked
    if not isinstance(clicked, dict) or clicked.get("key") != key:
        return target, element
    numbers = range(len(spelled))
    return tuple([k for k in clicked.get(name, []) if k in numbers] for name in ("target", "element"))  # type: ignore[return-value]


def _say_unknown(sentence: Parsed, words: list[int], frame: str | None) -> None:
    target_words = {k for target in sentence.targets for k in target.words}
    if words and (frame is None or not set(words) & target_words):
        st.caption(plain(f"No frame is known for “{sentence.phrase(words)}”, so its elements have no names here."))


EXAMPLES = (
    "He was becoming agitated about the noise.",
    "The old teacher explained the rules to her class.",
    "The captain was angry about the delay.",
)
RANKED = {"score": "weight", "difference": "weight minus mean"}
PROSE = {
    "target_to_element": "target → element (the target is the query, as in the text of Kovaleva et al. 2019)",
    "element_to_target": "element → target (the element is the query, as in the code of Kovaleva et al. 2019)",
}
TOP = 10


def null_of(name: str) -> Any:
    """Return the attention of each head over each distance in the bundled sentences."""
    opened = resources.checkpoint(name)
    with st.spinner("Looking at the bundled sentences ..."):
        return _null_of(opened.weights_hash, opened)


@st.cache_resource(show_spinner=False, max_entries=8)
def _null_of(weights: str, _checkpoint: Any) -> Any:
    return distance_null(_checkpoint)


def show_lookup() -> None:
    """Show the view as a fragment, so that a click reruns nothing else."""
    with clear_errors():
        view_context = context.now()
        first, second, text = view_context.checkpoint, view_context.beside, view_context.text or ""
        if not text.strip():
            st.caption("Type a sentence and press Enter, or choose an example.")
            st.subheader("Results for sets of sentences")
            show_runs()
            return
        marked = mark(text)
        if marked is None:
            return
        shown = st.container()
        more = details()
        with more:
            settings = _settings()
            _offer_annotation(marked)
        chosen = [name for name in (first, second) if name]
        if not chosen:
            st.info("Choose a checkpoint at the top of the page.", icon=":material/arrow_upward:")
        looked_up = []
        for name in chosen:
            with shown, clear_errors():
                looked_up.append(_looked_up(name, marked, settings))
        with shown:
            _show_beside(looked_up, marked, settings, more)


def offer_examples() -> None:
    """Show examples as small buttons that fill the sentence field (outside the fragment)."""
    text = context.now().text or ""
    with st.popover("Examples", icon=":material/list:", help="Fill the sentence field with an example."):
        for example in EXAMPLES:
            st.button(example, type="tertiary", on_click=_take, args=(example,), disabled=example == text.strip())


def _offer_annotation(marked: Marked) -> None:
    """Offer the marked sentence as a line in this program's format."""
    sentence = AnnotatedSentence("typed", marked.text, marked.target, marked.frame, marked.unit, (marked.element,))
    st.download_button("Annotation (JSONL)", write_sentences([sentence]), file_name="frames.jsonl", on_click="ignore",
                       icon=
                           ":material/download:", help="Saves this sentence as one line of JSON, which the mode "
                                                       "“A set of sentences” can read.")  # fmt: skip


def _take(text: str) -> None:
    st.session_state["text"] = text


# ---------------------------------------------------------------- the heads


class LookupSettings(NamedTuple):
    """How heads are scored for all checkpoints. `zipped` and `sinkless` apply to maps, `by` to the ranking."""

    zipped: bool
    sinkless: bool
    by: str


class LookedUp(NamedTuple):
    """The maps of the sentence in one checkpoint, its links, and its heads in both directions."""

    name: str
    shown: resources.Shown
    links: Any
    readings: dict[str, Any]


def _settings() -> LookupSettings:
    with st.container(horizontal=True):
        zipped = url.switch(
            st.toggle,
            "pair tokens one to one",
            key="zip",
            help="This setting matters only if a word has several tokens. If off, every pair of tokens is used. If "
            "on, the first tokens of both words are paired, then the second tokens, and so on, as in the code of "
            "Kovaleva et al. 2019.",
        )
        sinkless = url.switch(
            st.toggle,
            "ignore the first token",
            key="sinkless",
            help="Heads often attend strongly to the first token. This option leaves out the first token and "
            "rescales each row of the map to sum to 1.",
        )
        help_text = (
            "If off, heads are ranked by the weight minus the mean weight at the same distance in this sentence. "
            "If on, heads are ranked by the weight."
        )
        raw = url.switch(st.toggle, "rank by weight", key="raw", help=help_text)
    return LookupSettings(zipped, sinkless, "score" if raw else "difference")


def _looked_up(name: str, marked: Marked, settings: LookupSettings) -> LookedUp:
    shown = resources.shown(name, marked.text)
    sentence = AnnotatedSentence("typed", marked.text, marked.target, marked.frame, marked.unit, (marked.element,))
    links = links_for(shown.encoding, sentence)
    readings = {
        way: picture(shown.maps, shown.encoding, links,
                     LinkReading(way, "zip" if settings.zipped else "product", settings.sinkless),
                     null=lambda: null_of(name))
        for way in PROSE
    }  # fmt: skip
    return LookedUp(name, shown, links, readings)


def _show_beside(looked_up: Sequence[LookedUp], marked: Marked, settings: LookupSettings, more: Any) -> None:
    """Show checkpoints side by side, in one direction and on one scale. `more` holds the choice of the direction."""
    if not looked_up:
        return
    everywhere = [way for way in PROSE if all(lookup.readings[way].visible for lookup in looked_up)]
    ways = everywhere or [way for way in PROSE if any(lookup.readings[way].visible for lookup in looked_up)]
    if not ways:
        return
    direction = url.pick(more.radio, "Rank heads by", ways, key="ranked", label_visibility="collapsed",
                         format_func=lambda way: f"rank heads by {PROSE[way]}")  # fmt: skip
    visible = [reading for lookup in looked_up for reading in lookup.readings.values() if reading.visible]
    most = max((float(np.nanmax(np.abs(reading.ranked(settings.by)))) for reading in visible), default=1.0)
    for number, (column, lookup) in enumerate(zip(st.columns(len(looked_up)), looked_up, strict=True), 1):
        with column, clear_errors():
            _show_heads(lookup, marked, number, direction, most, settings.by)


def _show_heads(lookup: LookedUp, marked: Marked, number: int, direction: str, most: float, by: str) -> None:
    """Show both directions of one checkpoint, its best heads, and the strip of the chosen head.

    `number` (1 or 2) distinguishes two checkpoints in the URL; `most` is the value of the darkest colour.
    """
    element, target = _ends(marked)
    st.markdown(f"##### {plain(f'Which heads of {lookup.name} attend between “{target}” and “{element}”?')}")
    answer = st.empty()  # the answer stands first, though it is known last
    drawn = _pictures(lookup.name, lookup.readings, number, most, by)
    reading = lookup.readings[direction]
    if not reading.visible:
        return
    is_difference = by == "difference" and (reading.places > 1 or reading.borrowed > 0)
    with answer.container(gap=None):
        st.markdown(f"**{plain(headline(reading, *_ends(marked), by))}**")
        st.caption(
            "One sentence (n = 1) allows no significance test, so heads are only ranked. The colour shows the "
            f"weight{' minus the mean weight at other positions with the same distance' * is_difference}. The three "
            "largest values are outlined."
        )
    rows = pd.DataFrame(reading.rows(by))
    head = _chosen(f"head_{number}", rows)
    _table(lookup.name, rows, reading, marked)
    show_files(rows, [drawn[direction]], "heads", key=lookup.name)
    _strip(lookup.name, head, lookup.shown, lookup.links, marked)


def _ends(marked: Marked) -> tuple[str, str]:
    """Return the words of the element and of the target."""
    return tuple(
        " ".join(marked.text[start:end] for start, end in spans) for spans in (marked.element.spans, marked.target)
    )  # type: ignore[return-value]


def _chosen(key: str, rows: pd.DataFrame) -> Head:
    """Return the head that was clicked or is in the URL, otherwise the first of the ranking."""
    head_name = st.query_params.get(key, "") if url.went_back() else st.session_state.get(key, st.query_params.get(key))
    st.session_state[key] = head_name
    url.keep({key: head_name})
    return Head.parse(head_name) if head_name in set(rows["name"]) else Head.parse(rows["name"].iloc[0])


def _pictures(name: str, readings: dict[str, Any], number: int, most: float, by: str) -> dict[str, Any]:
    """Show two layer x head heatmaps with the first three heads outlined, where a click chooses a head; return them by
    direction."""
    charts_made: dict[str, Any] = {}
    beside = st.container(horizontal=True)  # wraps where there is no room for both
    for direction, reading in readings.items():
        with beside.container(width="content" if reading.visible else 220):
            if not reading.visible:
                st.caption(PROSE[direction])
                st.markdown(
                    ":gray-background[always 0] :gray[In a decoder, no query can attend to later tokens. In this "
                    "sentence, every key comes after its query.]"
                )
                continue
            frame = pd.DataFrame(reading.rows(by))
            best = frame.head(3)
            value = by if reading.places > 1 or reading.borrowed else "score"
            drawn = charts_made[direction] = head_picture(
                frame,
                Shade(value, RANKED[value], value == "difference", (-most * (value == "difference"), most), cell=LARGE),
                title=PROSE[direction].split(" (")[0],
                highlight=[Head(int(a), int(b)) for a, b in zip(best["layer"], best["head"], strict=True)],
                tooltip=("rank", "same_distance"),
                select=True,
            )
            key = f"picture|{name}|{direction}"
            st.altair_chart(drawn, width="content", on_select=partial(_clicked, key, f"head_{number}"), key=key)
    return charts_made


def _clicked(key: str, chosen: str) -> None:
    """Store the clicked head; a click outside all heads removes it."""
    st.session_state[chosen] = next((str(head) for head in clicked_heads(st.session_state[key])), "")


def _table(name: str, rows: pd.DataFrame, reading: Any, marked: Marked) -> None:
    shown = rows.head(TOP)[["rank", "name", "score", "same_distance", "difference", "place_rank"]]
    show_table(
        shown.assign(place_rank=[f"{rank:.0f} of {reading.places}" for rank in shown["place_rank"]]),
        column_config={
            "rank": st.column_config.NumberColumn(
                "rank", help=f"The rank of this head among all {len(rows)} heads of the model."
            ),
            "name": "head",
            "score": st.column_config.NumberColumn("weight", format="%.3f"),
            "same_distance": st.column_config.NumberColumn(
                "same distance",
                format="%.3f",
                help="The mean attention weight at all other positions of this sentence with the same distance and "
                "the same number of tokens. If there are none, the bundled sentences are used.",
            ),
            "difference": st.column_config.NumberColumn("difference", format="%.3f"),
            "place_rank": st.column_config.TextColumn(
                "rank of link",
                help="The rank of the attention weight on this link among all pairs of positions at the same distance.",
            ),
        },
    )
    comparison = (
        "no other position at this distance"
        if reading.places == 1
        else f"compared with {reading.places - 1} other positions"
    )
    comparison += (
        f", so compared with {reading.borrowed:,} pairs of words in the bundled sentences instead"
        if reading.borrowed
        else ""
    )
    if 1 < reading.places <= 20 and not reading.borrowed:
        comparison += (
            f", and the best of {reading.places} ranks has p = {1 / reading.places:.2f}, which is not significant"
        )
    st.caption(
        f"{plain(name)} · {plain(marked.frame or 'no frame')} · one sentence (n = 1), so heads are ranked but not "
        f"tested · {comparison} · {date.today():%d %B %Y}"
    )


def _strip(name: str, head: Head, shown: resources.Shown, links: Any, marked: Marked) -> None:
    """Show the strip of Fig 3: what target and element attend to, and what attends to the target."""
    st.altair_chart(
        token_strips(pd.DataFrame(strips(shown.maps, shown.encoding, links, head)), title=str(head)),
        key=f"strip|{name}",
    )
    st.caption(
        "Rows named “from” show the attention of one word to all keys. The row named “to” shows the attention of "
        "all queries to one word."
    )
    st.caption(
        "If a word has several tokens, weights from them are averaged, and weights to them are summed. The first token "
        "is marked as the attention sink."
    )
    show_links(name, head, current_view="linguistics/frames", text=marked.text)
