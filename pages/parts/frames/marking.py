"""The words of a sentence that are marked as a frame's target and element: proposed, chosen from a list, or clicked.

What is marked stands in the URL (frame, target, element: numbers of words from 1), so that a link opens it again.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import streamlit as st

from core import config
from core.errors import AtlasError
from core.frames.element_candidates import Proposal, head_of, propose_elements
from core.frames.lexicon import Lexicon, Roles, bundled_lexicon, release_lexicon
from core.frames.records import Element, Span, Spans
from core.frames.release import open_release
from core.studies.frames.frame_lookup import propose_targets, spaced, spans_of
from core.studies.tagging import tag
from pages.parts.shell import history, resources
from pages.parts.shell.messages import plain

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
    """What is marked: the sentence's text, target, element, and what they are called."""

    text: str
    target: Spans
    element: Element
    frame: str | None
    unit: str | None


class Parsed(NamedTuple):
    """A text with its words, the proposed targets and the frames that are known."""

    text: str
    spans: list[Span]
    tagged: Any
    targets: list[Any]
    lexicon: Lexicon

    def phrase(self, words: Sequence[int]) -> str:
        """These words as one string."""
        return " ".join(self.text[slice(*self.spans[k])] for k in words)


@st.cache_resource(show_spinner="Reading the frames ...", max_entries=2)
def lexicon(folder: str | None) -> Lexicon:
    """FrameNet's own index where a release folder is configured, else the bundled facts."""
    if folder is None:
        return bundled_lexicon()
    return release_lexicon(open_release(folder))


def parsed(text: str) -> Parsed:
    """Words of a text with proposed targets; without a language pipeline words end at white space."""
    folder = config.settings().framenet
    frame_lexicon = lexicon(str(folder) if folder else None)
    try:
        tagged = tag([text], resources.pipeline())[0]
    except AtlasError:
        tagged = spaced(text)
    return Parsed(text, tagged.spans, tagged, propose_targets(tagged, frame_lexicon), frame_lexicon)


def mark(text: str) -> Marked | None:
    """Choose frame, target words and element words; None while something is missing."""
    sentence = parsed(text)
    if len(sentence.spans) > MOST_WORDS:
        st.warning(
            f"Words can be clicked in sentences of up to {MOST_WORDS}; this one has {len(sentence.spans)}: shorten it."
        )
        return None
    linked = _clicked(sentence) or _linked(len(sentence.spans))
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
        st.info("Click the words of a target and of an element in the sentence.", icon=":material/touch_app:")
        return None
    roles = sentence.lexicon.of(frame) if frame else Roles("", ())
    name = (element.name if element else None) or "element"
    spans = [spans_of(sentence.spans, chosen) for chosen in marked]
    return Marked(text, spans[0], roles.element(name, spans[1]), frame, target.unit if target else None)


def _clicked(sentence: Parsed) -> dict[str, list[int]] | None:
    """What has just been clicked: the lists follow it. None where nothing new was, since the last run."""
    click = getattr(st.session_state.get("sentence"), "marked", None)
    if not isinstance(click, dict) or click == st.session_state.get("sentence_followed"):
        return None
    st.session_state["sentence_followed"] = click
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
    """What the URL says of target and element; nothing where it does not fit the sentence."""
    numbers = {}
    for name in ("target", "element"):
        listed = [part for part in st.query_params.get(name, "").split(",") if part.isascii() and part.isdigit()]
        numbers[name] = sorted({int(part) - 1 for part in listed if len(part) < 4 and 0 < int(part) <= words})
    return numbers


def _first(sentence: Parsed) -> tuple[str | None, list[int], list[int]]:
    """What is marked before anybody chose: it needs no place in the URL."""
    if not sentence.targets:
        return None, [], []
    target = sentence.targets[0]
    head_word = head_of(sentence.tagged.words, target.words)
    proposals = propose_elements(sentence.tagged, head_word, sentence.lexicon.of(target.frame))
    return target.frame, list(target.words), list(proposals[0].words) if proposals else []


def _keep(frame: str | None, target: list[int], element: list[int], *, as_proposed: bool) -> None:
    word_numbers = {"target": target, "element": element}
    places = {name: ",".join(str(k + 1) for k in numbers) or None for name, numbers in word_numbers.items()}
    history.keep(dict.fromkeys(("frame", *places)) if as_proposed else {"frame": frame, **places})


def _pick_target(sentence: Parsed, linked: dict[str, list[int]]) -> int:
    targets, key = sentence.targets, f"frame|{sentence.text}"
    labels = [f"{sentence.phrase(target.words)}: {target.frame} ({target.unit})" for target in targets] + [
        "other words"
    ]
    if key not in st.session_state or history.went_back():
        st.session_state[key] = _target_in_link(targets, linked["target"])
    number = st.selectbox(
        "Target and frame",
        range(len(labels)),
        format_func=labels.__getitem__,
        key=key,
        help="Proposed by lexical unit: the words of this sentence that evoke a frame.",
    )
    if number < len(targets):
        _offer_others(targets, number, key)
    return number


def _target_in_link(targets: Sequence[Any], words: list[int]) -> int:
    """The proposal that the URL names by its words and frame; the first where it names none, else "other words"."""
    if not words:
        return 0
    fitting = [number for number, target in enumerate(targets) if list(target.words) == words]
    linked = [number for number in fitting if targets[number].frame == st.query_params.get("frame")]
    return next(iter(linked + fitting), len(targets))


def _offer_others(targets: Sequence[Any], number: int, key: str) -> None:
    """That the frame is a guess, with up to three others of the same words to take instead."""
    alternatives = [k for k, target in enumerate(targets) if target.words == targets[number].words and k != number]
    with st.container(horizontal=True, vertical_alignment="center", key="other_frames"):
        st.caption("A guess from the word and its part of speech" + ("; or:" if alternatives else "."), width="content")
        for k in alternatives[:ALTERNATIVES]:
            st.button(
                plain(targets[k].frame),
                key=f"{key}|{k}",
                type="tertiary",
                on_click=_take,
                args=(key, k),
                help=plain(targets[k].unit),
            )


def _take(key: str, number: int) -> None:
    st.session_state[key] = number


def _pick_element(
    sentence: Parsed, number: int, target: list[int], frame: str | None, linked: dict[str, list[int]]
) -> Proposal | None:
    """One of the proposed elements; None for words that are clicked."""
    roles = sentence.lexicon.of(frame) if frame else None
    head_word = head_of(sentence.tagged.words, target)
    proposals = propose_elements(sentence.tagged, head_word, roles) if target else []
    labels = [
        f"{proposal.name or 'element'}: {sentence.phrase(proposal.words)} ({proposal.place})" for proposal in proposals
    ]
    key = f"element|{sentence.text}|{number}|{target}"
    if key not in st.session_state or history.went_back():
        linked_words = linked["element"] if target == linked["target"] else []
        fitting = [k for k, proposal in enumerate(proposals) if list(proposal.words) == linked_words]
        st.session_state[key] = next(iter(fitting), len(proposals) if linked_words else 0)
    chosen = st.selectbox(
        "Element",
        range(len(labels) + 1),
        format_func=[*labels, "other words"].__getitem__,
        key=key,
        help="Proposed by the parser: subject, objects, obliques, named as the frame usually places them.",
    )
    if proposals:
        st.caption("A guess from the parse; click other words, or take another from the list.")
    return proposals[chosen] if chosen < len(proposals) else None


def _click(sentence: Parsed, key: str, target: list[int], element: list[int]) -> tuple[list[int], list[int]]:
    """The sentence with its words to click; returns what is marked as target and as element."""
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
        st.caption(plain(f"No frame is known for “{sentence.phrase(words)}”: its elements have no names here."))
