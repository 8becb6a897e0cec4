"""Selection of annotated sentences by the rules of Kovaleva et al. 2019 (section 4.2 and their notebook)."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from ..errors import InputError
from .records import CORE_RULES, AnnotatedSentence, CoreRule, Span, covered, distance, links_of, word_spans

DistanceRule = str  # "strings" or "places"


@dataclass(frozen=True)
class Filter:
    """Selection rules with the paper's values; None turns a rule off.

    Attributes:
        longest_sentence: at most this many tokens of nltk.word_tokenize (section 4.2).
        longest_element: a sentence is dropped if an overt element has a longer span in tokens (notebook).
        nearest: least distance in tokens between target and element; the prose says "2 apart", the notebook drops what
            is
            within 2.
        distance: "strings" compares spellings near the first occurrence of the target (notebook); "places" compares
            positions.
        one_span: the target must be one span (notebook).
        one_word: the target must be one token (notebook).
        core: "core_sets" for elements in the frame's FEcoreSets (notebook), "core_type" for FrameNet's coreType, or
            "any"; a
            sentence without such an element is dropped.
    """

    longest_sentence: int | None = 12
    longest_element: int | None = 3
    nearest: int | None = 3
    distance: DistanceRule = "strings"
    one_span: bool = True
    one_word: bool = True
    core: CoreRule = "core_sets"

    def __post_init__(self) -> None:
        if self.core not in CORE_RULES:
            raise InputError(
                f"The rule for core elements must be one of {', '.join(CORE_RULES)}; got "
                f"{self.core!r}. Choose one of them."
            )
        if self.distance not in ("strings", "places"):
            raise InputError(f'distance must be "strings" or "places"; got {self.distance!r}. Choose one of them.')
        for name in ("longest_sentence", "longest_element", "nearest"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name} must be at least 1, or None to turn the rule off; got {value}. Change it.")


NO_FILTER = Filter(None, None, None, "places", one_span=False, one_word=False, core="any")


@dataclass(frozen=True)
class Selection:
    """Selected sentences, and how many each rule dropped (counted for the first rule that a sentence fails)."""

    kept: tuple[AnnotatedSentence, ...]
    dropped: dict[str, int]


def select(sentences: Iterable[AnnotatedSentence], rules: Filter | None = None) -> Selection:
    """Select sentences (default: the paper's rules)."""
    kept, dropped = [], Counter[str]()
    for sentence in sentences:
        reason = why_dropped(sentence, rules or Filter())
        if reason is None:
            kept.append(sentence)
        else:
            dropped[reason] += 1
    return Selection(tuple(kept), dict(dropped))


def why_dropped(sentence: AnnotatedSentence, rules: Filter) -> str | None:
    """Return the first rule that a sentence fails, in the notebook's order, or None."""
    if not links_of(sentence, core=rules.core):
        return f"no core element ({rules.core})"
    if rules.one_span and len(sentence.target) != 1:
        return "target in several spans"
    if rules == NO_FILTER or not (
        rules.one_word or any(x is not None for x in (rules.longest_sentence, rules.longest_element, rules.nearest))
    ):
        return None
    tokens = word_spans(sentence.text)
    if rules.longest_sentence is not None and len(tokens) > rules.longest_sentence:
        return f"more than {rules.longest_sentence} tokens"
    if rules.longest_element is not None and _longest_element(sentence, tokens) > rules.longest_element:
        return f"an element of more than {rules.longest_element} tokens"
    if rules.one_word and len(covered(sentence.target, tokens)) != 1:
        return "target is not one token"
    if rules.nearest is not None and _too_near(sentence, tokens, rules):
        return f"an element nearer than {rules.nearest} tokens"
    return None


def _longest_element(sentence: AnnotatedSentence, tokens: list[Span]) -> int:
    lengths = (len(covered((span,), tokens)) for element in sentence.elements for span in element.spans)
    return max(lengths, default=0)


def _too_near(sentence: AnnotatedSentence, tokens: list[Span], rules: Filter) -> bool:
    nearest = rules.nearest or 1
    if rules.distance == "places":
        return any(distance(element.spans, sentence.target, tokens) < nearest for element in sentence.elements)
    spelled = [sentence.text[start:end] for start, end in tokens]
    inside = {spelled[k] for element in sentence.elements for k in covered(element.spans, tokens)}
    target = [spelled[k] for k in covered(sentence.target, tokens)]
    middle = spelled.index(target[0]) if target else 0
    return not inside.isdisjoint(spelled[max(0, middle - nearest + 1) : middle + nearest])
