"""Kinds of hypotheses about heads ("predicates"), with typed parameters and the study that measures each."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import pydantic.dataclasses

from ...attention import Head
from ...codebook.registry import SHIPPED
from ...errors import InputError, check_choice
from ...scoring.definitions import BUDGET_CATEGORIES
from ...tasks.features import feature_of
from ...tasks.perturbations import PERTURBATIONS
from ...tasks.relations import SAME_WORD, relation_of

OFFSETS = ("previous", "next", "first")
COMPONENTS = ("position", "token", "earlier heads", "feed-forward")
DIRECTIONS = ("forward", "backward")
CLASSES = {name: shipped.names for name, shipped in SHIPPED.items()}  # of the bundled classifiers, by class set
LINKS = ("element_to_target", "target_to_element")
CHANGES = tuple(kind for kind in PERTURBATIONS if kind not in ("typed", "same"))
INPUTS = ("q", "k", "v")
MARGIN = 0.01  # nats of the task's loss
LEAST_WEIGHT = "0.01"  # attention beyond chance; untrained weights reach 0.002, and significantly
LEAST_SIMILARITY = "0.3"
Parameters = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kind of hypothesis. If `default` is None, the parameter is required."""

    name: str
    meaning: str
    check: Callable[[str], object]
    default: str | None = None


@dataclass(frozen=True)
class Predicate:
    """A kind of hypothesis about a head: a sentence template, typed parameters and the study that measures it."""

    key: str
    sentence: str
    study: str
    parameters: tuple[Parameter, ...]
    apart: str = ""


def _among(names: tuple[str, ...]) -> Callable[[str], object]:
    def check(value: str) -> None:
        check_choice("The value", value, names)

    return check


def _number(value: str) -> float:
    """Return the number that a text states, or NaN if it states none."""
    try:
        return float(value)
    except ValueError:
        return math.nan


def _margin(value: str) -> None:
    if not 0 < _number(value) < math.inf:
        raise InputError(
            f'A margin must be a number of nats above 0, such as {MARGIN}; got "{value[:60]}". Correct the margin.'
        )


def _share(value: str) -> None:
    if not 0 < _number(value) < 1:
        raise InputError(f'A share must be a fraction between 0 and 1; got "{value[:60]}". Correct the share.')


def counterpart_of(value: str) -> tuple[str, Head]:
    """Parse the name of a head in another checkpoint, such as "checkpoint:L2H3". Raises InputError for invalid text."""
    checkpoint, colon, name = value.rpartition(":")
    if not colon or not checkpoint.strip():
        raise InputError(
            "A counterpart must be given as a checkpoint and a head, such as atlas-encoder-sst2:L2H3; got "
            f'"{value[:60]}". Correct the counterpart.'
        )
    return checkpoint.strip(), Head.parse(name.strip())


_CLASS_NAMES = tuple(dict.fromkeys(name for names in CLASSES.values() for name in names))
_MARGIN = Parameter(
    "margin", "smallest rise of the loss, in nats, if the head is ablated (empty: the head is not ablated)", _margin, ""
)
_COUNTERPART = Parameter(
    "counterpart", "corresponding head of another checkpoint, such as checkpoint:L2H3", counterpart_of, ""
)
_LEAST = Parameter("least", "smallest attention weight above chance", _share, LEAST_WEIGHT)
_ALL = (
    Predicate(
        "looks-at", "looks at {feature}", "features",
        (Parameter("feature", "noun, negation, tag:JJ ...", feature_of),
         _LEAST, Parameter("control", "feature to which the head attends less", feature_of, ""),
         _MARGIN, _COUNTERPART),
    ),
    Predicate(
        "offset", "looks at the {offset} token", "roles",
        (Parameter("offset", "previous, next or first", _among(OFFSETS)),
         _LEAST, Parameter("control", "token to which the head attends less: previous, next or first", _among(OFFSETS),
                           ""), _MARGIN, _COUNTERPART),
    ),
    Predicate(
        "budget", "gives at least {least} of its attention to the category {category}", "budget",
        (Parameter("category", ", ".join(BUDGET_CATEGORIES), _among(tuple(BUDGET_CATEGORIES))),
         Parameter("least", "smallest share of the head's attention, 0 to 1", _share, "0.5"),
         Parameter("control", "category to which the head attends less", _among(tuple(BUDGET_CATEGORIES)), ""),
         _MARGIN, _COUNTERPART),
    ),
    Predicate(
        "relation", "looks along {relation}, {direction}", "relations",
        (Parameter("relation", "verb-object, dep:amod ...", relation_of),
         Parameter("direction", "forward: from dependent to governor; or backward", _among(DIRECTIONS)),
         _LEAST, Parameter("control", "relation along which the head attends less", relation_of, ""),
         _MARGIN, _COUNTERPART),
    ),
    Predicate(
        "same-word", "looks at the same word in the other sentence, {direction}", "relations",
        (Parameter("direction", "forward: from the first sentence to the second; or backward", _among(DIRECTIONS),
                   "forward"),
         _LEAST, Parameter("control", "relation along which the head attends less", relation_of, ""),
         _MARGIN, _COUNTERPART),
    ),
    Predicate(
        "decided-by", "looks where it looks because of {component}: at least {least} of its scores", "why",
        (Parameter("component", ", ".join(COMPONENTS), _among(COMPONENTS)),
         Parameter("least", "smallest share of the variance of attention scores over keys, 0 to 1", _share, "0.5"),
         Parameter("control", "component with a smaller share", _among(COMPONENTS), ""), _COUNTERPART),
    ),
    Predicate(
        "needed-for", "is needed for the task: without it the loss rises by more than {margin} nats", "operators",
        (Parameter("margin", "smallest rise of the loss, in nats, if the head is ablated", _margin, str(MARGIN)),
         _COUNTERPART),
    ),
    Predicate(
        "class", "has maps of the class {class}: at least {least} of them", "pattern-shares",
        (Parameter("class", "pattern class, such as vertical or diagonal", _among(_CLASS_NAMES)),
         Parameter("set", f"class set: {' or '.join(CLASSES)}", _among(tuple(CLASSES)), next(iter(CLASSES))),
         Parameter("least", "smallest share of the head's maps, 0 to 1", _share, "0.5"),
         Parameter("control", "class with fewer maps", _among(_CLASS_NAMES), ""), _MARGIN, _COUNTERPART),
        apart="set",
    ),
    Predicate(
        "frame-link", "looks along frame links, {direction}", "frame-heads",
        (Parameter("direction", ", ".join(LINKS), _among(LINKS)), _LEAST, _COUNTERPART), apart="direction",
    ),
    Predicate(
        "property", "carries what {kind} takes away: at least {least} of the answer's difference", "patch",
        (Parameter("kind", f"how an input is changed: {', '.join(CHANGES)}", _among(CHANGES)),
         Parameter("least", "smallest recovered share of the logit difference, 0 to 1", _share, "0.05"), _COUNTERPART),
        apart="kind",
    ),
    Predicate(
        "read-by", "is read by {reader} through {input}: at least {least} of the answer's difference", "edge-effects",
        (Parameter("reader", "head of a later layer, such as L3H4", Head.parse),
         Parameter("input", "input of the later head: q, k or v", _among(INPUTS)),
         Parameter("least", "smallest share of the logit difference that the edge carries, 0 to 1", _share, "0.01")),
    ),
    Predicate(
        "counterpart", "is the counterpart of {of}", "counterparts",
        (Parameter("of", "head of another checkpoint, such as checkpoint:L2H3", counterpart_of),
         Parameter("least", "smallest similarity of map rows, 0 to 1", _share, LEAST_SIMILARITY),
         Parameter("control", "less similar head of the other checkpoint, such as L2H4", Head.parse, "")),
        apart="of",
    ),
)  # fmt: skip
PREDICATES: Mapping[str, Predicate] = MappingProxyType({predicate.key: predicate for predicate in _ALL})


def predicate_of(key: str) -> Predicate:
    """Return the kind of hypothesis with the given key. If the key is unknown, raises InputError with all keys."""
    check_choice("A predicate", key, PREDICATES)
    return PREDICATES[key]


def checked(key: str, values: Mapping[str, str]) -> Parameters:
    """Validate the parameters of a hypothesis and fill in defaults. Raises InputError for invalid parameters."""
    predicate = predicate_of(key)
    names = [parameter.name for parameter in predicate.parameters]
    for name in values:
        if name not in names:
            raise InputError(
                f'A parameter of the predicate {key} must be one of {", ".join(names)}; got "{name[:60]}". '
                "Correct the name of the parameter."
            )
    whole = []
    for parameter in predicate.parameters:
        value = values.get(parameter.name, parameter.default)
        if value is None or (parameter.default is None and not value.strip()):
            raise InputError(
                f"The predicate {key} needs the parameter {parameter.name} ({parameter.meaning}); it is missing. "
                "Add the parameter."
            )
        if value:
            parameter.check(value)
        whole.append((parameter.name, value))
    parameters = dict(whole)
    if key == "class":
        for name in filter(None, (parameters["class"], parameters["control"])):
            if name not in CLASSES[parameters["set"]]:
                raise InputError(
                    f"A class of the class set {parameters['set']} must be one of "
                    f"{', '.join(CLASSES[parameters['set']])}; got {name}. Choose one of them, or another class set."
                )
    named = ("feature", "offset", "category", "relation", "component", "class")
    if parameters.get("control") and parameters["control"] in (parameters.get(name) for name in named):
        raise InputError(
            f"The predicate {key} must compare two different properties; the property and its control are both "
            f'"{parameters["control"]}". Change one of them.'
        )
    return tuple(whole)


@pydantic.dataclasses.dataclass(frozen=True)
class Hypothesis:
    """A testable claim about one attention head. Layer and head indices count from 0."""

    hypothesis: str
    layer: int
    head: int
    predicate: str
    parameters: Parameters

    @property
    def subject(self) -> Head:
        return Head(self.layer, self.head)

    def parameter(self, name: str) -> str:
        """Return the value of a parameter of the hypothesis, or "" if the hypothesis has no such parameter."""
        return dict(self.parameters).get(name, "")

    @property
    def least_name(self) -> str:
        """Return the name of the parameter that sets the smallest effect of interest: "margin" or "least"."""
        return "margin" if self.predicate == "needed-for" else "least"

    @property
    def least(self) -> float:
        """Return the smallest effect of interest, in the unit of the measured effect."""
        default = next(p.default for p in predicate_of(self.predicate).parameters if p.name == self.least_name)
        return float(self.parameter(self.least_name) or default or 0)

    def with_least(self, least: float) -> "Hypothesis":
        """Return a copy of the hypothesis with `least` as the smallest effect of interest."""
        others = tuple(pair for pair in self.parameters if pair[0] != self.least_name)
        return replace(self, parameters=(*others, (self.least_name, repr(least))))

    @property
    def measured_by(self) -> str:
        """Return the study that measures the hypothesis, with its variant if there is one, such as "patch:drop"."""
        predicate = predicate_of(self.predicate)
        apart = self.parameter(predicate.apart) if predicate.apart else ""
        apart = counterpart_of(apart)[0] if predicate.apart == "of" else apart
        return f"{predicate.study}:{apart}" if apart else predicate.study

    @property
    def is_of_words(self) -> bool:
        """Return True for a "looks-at" hypothesis about words, not about special, first or last tokens."""
        return self.predicate == "looks-at" and not feature_of(self.parameter("feature")).special

    @property
    def relation(self) -> str:
        return SAME_WORD if self.predicate == "same-word" else self.parameter("relation")

    @property
    def sentence(self) -> str:
        return f"{self.subject} {predicate_of(self.predicate).sentence.format(**dict(self.parameters))}"
