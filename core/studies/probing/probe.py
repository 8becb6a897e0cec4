"""Probes of the word vectors of each layer, linear and with one hidden layer, by property.

Part of speech, dependency relation and word order come from a treebank. Subject number and main auxiliary come from
templates: training examples follow both a linear and a hierarchical rule, and one test distinguishes the rules (Lin et
al. 2019). Each accuracy is compared with a control task (labels per word type; the difference is selectivity, Hewitt
and Liang 2019), random weights, the word alone, and the most frequent class. Mixing weights and their centre of gravity
follow Tenney et al. 2019. Kinds of rows: "probe", "mixing" and "centre". Layer 0 is the output of the embeddings.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import numpy as np
import pydantic.dataclasses
import scipy  # its parts load when they are used

from ... import config, models, probing, studies
from ...errors import InputError, check_choice
from ...scoring.intervals import share_difference, share_of
from ...store.rows import Row
from ...tasks.conllu import GoldSentence, plain_relation, read_part
from ...tasks.features import TaggedWord
from ..contract import Done, Flag, NamedUnit, Study, Unit, provenance
from ..headline import Headline, defined, percent
from ..options import Checkpoint, Seed
from ..records import Result
from .records import MixingWeight, ProbedLayer
from .syntax import RANDOM, TRAINED, Treebank, TreeLimit

if TYPE_CHECKING:
    from ...probing.layers import Examples
    from .probe_features import Readable


# ---------------------------------------------------------------- template sentences

# A probe trained where a linear and a hierarchical rule agree is tested where they disagree, which shows which rule
# its vectors encode. Words and templates are this project's own.
# Subject number: is the subject singular or plural, given a verb that does not show it (past tense)? "The nearest
# noun before the verb" agrees with "the subject" unless a noun of the other number stands between them.
# Main auxiliary: does this auxiliary belong to the main clause? "The first auxiliary" does unless the subject has a
# relative clause.


NUMBER, AUXILIARY = "subject number", "main auxiliary"
TRAIN, AGREE, PART = "train", "agree", "part"  # training; test where both rules agree; test where they disagree
SIZES = {TRAIN: 600, AGREE: 150, PART: 300}
LABELS = {NUMBER: ("singular", "plural"), AUXILIARY: ("embedded", "main")}


def _listed(words: str) -> list[str]:
    return words.split()


_NOUNS = _listed(
    "dog cat boy girl teacher farmer doctor sister singer pilot baker driver neighbor student king painter"
)
_PREPOSITIONS = ("near", "behind", "beside", "with")
_PAST = _listed("smiled slept waited laughed arrived danced shouted stopped")
_ADVERBS = _listed("today quietly again outside")
_AUXILIARIES = ("can", "will", "could", "would", "should", "might")
_TRANSITIVE = _listed("see help follow visit call remember")
_INTRANSITIVE = _listed("sleep run laugh wait sing dance")


@dataclass(frozen=True)
class Diagnostic:
    """A generated sentence with the indices and labels of the words that a probe classifies."""

    sentence: GoldSentence
    read: tuple[tuple[int, int], ...]


def diagnostics(task: str, split: str, *, seed: int = 0) -> list[Diagnostic]:
    """Generate the sentences of one split of a diagnostic task, without duplicates. No sentence is in two splits."""
    make = _number if task == NUMBER else _auxiliary
    used: set[str] = set()
    for known in (TRAIN, AGREE, PART):
        rng = random.Random(f"{task} {known} {seed}")  # noqa: S311 - sentences, not secrets
        some: list[Diagnostic] = []
        while len(some) < SIZES[known]:
            case = make(rng, parting=known == PART)
            if case.sentence.text not in used:
                used.add(case.sentence.text)
                some.append(case)
        if known == split:
            return some
    raise ValueError(f"The split must be one of {', '.join(SIZES)}; got {split!r}. Choose one of them.")


def _number(rng: random.Random, *, parting: bool) -> Diagnostic:
    plural = rng.random() < 0.5
    subject, other = rng.sample(_NOUNS, 2)
    words = ["the", subject + "s" * plural]
    if parting or rng.random() < 0.7:
        words += [rng.choice(_PREPOSITIONS), "the", other + "s" * (plural != parting)]
    verb = len(words)
    words += [rng.choice(_PAST), rng.choice(_ADVERBS), "."]
    return Diagnostic(_sentence(words), ((verb, int(plural)),))


def _auxiliary(rng: random.Random, *, parting: bool) -> Diagnostic:
    first, second = rng.sample(_NOUNS, 2)
    main, inner = rng.sample(_AUXILIARIES, 2)
    seen, done = rng.choice(_TRANSITIVE), rng.choice(_INTRANSITIVE)
    before = [rng.choice(_ADVERBS)] if rng.random() < 0.5 else []  # so that the position does not reveal the answer
    at = len(before)
    if parting:
        words = [*before, "the", first, "that", inner, seen, "the", second, main, done, "."]
        return Diagnostic(_sentence(words), ((at + 3, 0), (at + 7, 1)))
    words = [*before, "the", first, main, seen, "the", second, "that", inner, done, "."]
    return Diagnostic(_sentence(words), ((at + 2, 1), (at + 7, 0)))


def linear_rule(task: str, sentence: GoldSentence, place: int) -> int:
    """Predict a label from word order alone, such as whether the last noun before a word is plural."""
    words = [word.text for word in sentence.words]
    if task == AUXILIARY:
        return int(not any(word in _AUXILIARIES for word in words[:place]))
    nouns = [word for word in words[:place] if word in _NOUNS or word.removesuffix("s") in _NOUNS]
    return int(nouns[-1] not in _NOUNS)


def _sentence(words: list[str]) -> GoldSentence:
    """Join words by spaces, with a full stop and without tags."""
    spelled = [words[0].capitalize(), *words[1:]]
    text, tagged = "", []
    for number, word in enumerate(spelled):
        text += "" if not number or word == "." else " "
        tagged.append(TaggedWord(words[number], len(text), len(text) + len(word), "", "X", "dep", 0))
        text += word
    return GoldSentence(text, tuple(tagged))


# ---------------------------------------------------------------- probe


PROBES = ("linear", "one hidden layer")
TAG, RELATION, ORDER = "part of speech", "dependency relation", "word order"
PARTED = ", rules part"
TREEBANK = (TAG, RELATION, ORDER)
DIAGNOSTIC = (NUMBER, AUXILIARY)
PROPERTIES = (*TREEBANK, *DIAGNOSTIC)
PLACES = 10  # only the first ten words are numbered


@pydantic.dataclasses.dataclass(frozen=True)
class ProbeOptions:
    """Options for probing: the checkpoint, the properties of words to predict, and the treebank."""

    checkpoint: Checkpoint = config.ENCODER
    properties: Annotated[
        tuple[str, ...],
        Flag(
            f"property of words to probe: {', '.join(PROPERTIES)}; repeat the option for several properties",
            name="--property",
        ),
    ] = PROPERTIES
    treebank: Treebank = None
    limit: TreeLimit = 2000
    seed: Seed = 0


@dataclass(frozen=True)
class Answered:
    """The number of words that a probe classifies correctly, by layer and sentence. Layer 0 is the embedding output.

    Attributes:
        right, control: correct words, for the property and the control task. *Shape:* (layer, sentence), int.
        majority: fraction of the test words that have the most frequent training class.
        alone, linear: accuracy of the word without a vector, and of the linear rule (None without one).
    """

    property: str
    source: str
    probe: str
    right: np.ndarray
    control: np.ndarray
    words: np.ndarray
    classes: int
    majority: float
    alone: float
    linear: float | None = None


@dataclass(frozen=True)
class Mixed:
    """Layer weights [fit, layer] of a probe on a weighted sum of layers. All fits except the first are bootstrapped."""

    property: str
    weights: np.ndarray


@dataclass(frozen=True)
class Probed:
    """The results of probes on single layers and of probes on weighted sums of all layers."""

    answered: tuple[Answered, ...]
    mixed: tuple[Mixed, ...]


class ProbeStudy(Study[ProbeOptions, Probed]):
    """Probe every layer for part of speech, relation, position, subject number and main auxiliary, with controls."""

    name, options, partial, arguments = "probe", ProbeOptions, Probed, NamedUnit
    question = "Which linguistic properties can be read from each layer?"
    kinds = (ProbedLayer, MixingWeight)
    called = "What the layers of {checkpoint} know"
    counts = "words"

    def units(self, options: ProbeOptions) -> list[Unit]:
        check_choice("A property", options.properties, PROPERTIES)
        if not options.properties:
            raise InputError(
                f"Probing needs at least one of the properties {', '.join(PROPERTIES)}; got none. Name a property."
            )
        sizes = dict.fromkeys(PROPERTIES, 6000)
        if set(options.properties) & set(PROPERTIES[:3]):
            parts = [read_part(options.treebank, part, options.limit) for part in ("train", "test")]
            words = sum(len(sentence.words) for part in parts for sentence in part.sentences)
            sizes |= dict.fromkeys(PROPERTIES[:3], words)
        return [
            Unit(f"{source}|{name}", NamedUnit(name, source), sizes[name])
            for name in dict.fromkeys(options.properties)
            for source in (TRAINED, RANDOM)
        ]

    def run(self, options: ProbeOptions, unit: Unit) -> Done[Probed]:
        of: NamedUnit = unit.arguments
        checkpoint = studies.probing.probe_features.open_source(
            options.checkpoint, random=of.source == RANDOM, seed=options.seed
        )
        question = word_property(checkpoint, of.name, options.treebank, options.limit, seed=options.seed)
        answered = answers(question, of.source, seed=options.seed)
        mixed: tuple[Mixed, ...] = ()
        if of.source == TRAINED:
            weights = probing.layers.mixing_refits(question.train, len(question.classes), seed=options.seed)
            mixed = (Mixed(of.name, weights),)
        ids = [f"{name}-{k}" for name, test in question.tests for k in np.unique(test.groups).tolist()]
        return Done(Probed(tuple(answered), mixed), provenance(checkpoint, ids, split="test"))

    def results(self, options: ProbeOptions, merged: Probed) -> list[Result]:
        random = [answered for answered in merged.answered if answered.source == RANDOM]
        fresh = {(answered.property, answered.probe): answered for answered in random}
        trained = [answered for answered in merged.answered if answered.source == TRAINED]
        results: list[Result] = []
        for answered in trained:
            results += _probed(answered, fresh.get((answered.property, answered.probe)), options.seed)
        for mixed in merged.mixed:
            layers = mixed.weights.shape[1]
            weights = [
                MixingWeight(
                    kind="mixing",
                    property=mixed.property,
                    layer=layer,
                    name=f"{mixed.property}, layer {layer}",
                    value=float(weight),
                    uniform=1 / layers,
                )
                for layer, weight in enumerate(mixed.weights[0])
            ]
            centres = mixed.weights @ np.arange(layers)
            centre = MixingWeight(
                kind="centre",
                property=mixed.property,
                name=f"{mixed.property}, centre of gravity",
                value=float(centres[0]),
                uniform=(layers - 1) / 2,
                n=len(centres) - 1,
            )
            if len(centres) > 2:
                reach = scipy.special.stdtrit(len(centres) - 2, 0.975) * centres[1:].std(ddof=1)
                centre = replace(centre, low=float(centres[0] - reach), high=float(centres[0] + reach))
            results += [*weights, centre]
        return results

    def headline(self, rows: Sequence[Row]) -> Headline:
        layers = [layer for layer in ProbedLayer.defined(rows) if layer.selectivity is not None]
        best = max(layers, key=lambda layer: defined(layer.selectivity))
        return Headline(
            (
                f"Among {len(layers)} results (by property, layer and kind of probe), the {best.probe} probe for "
                f"{best.property} in layer {best.layer} has the largest selectivity: its accuracy is {best.value:.2f}, "
                f"compared with {best.control:.2f} on the control task."
            ),
            best.n,
            "words",
            percent(best.low, best.high, "{:.2f}", 1),
            f"On the control task, the probe has an accuracy of {best.control:.2f}.",
        )


STUDY = ProbeStudy()


def answers(question: "WordProperty", source: str, *, seed: int) -> list[Answered]:
    """Train probes for one property of words, and evaluate them on every test set and on a control task."""
    tests = [test for _, test in question.tests]
    controls = probing.layers.control_labels(question.train, tests, seed=seed)
    scale, classes = probing.layers.scale_of(question.train), len(question.classes)
    commonest = int(np.bincount(question.train.labels).argmax())
    answered = []
    for probe in PROBES:
        own = probing.layers.fit(question.train, classes, probe, seed=seed, scale=scale)
        other = probing.layers.fit(replace(question.train, labels=controls[0]), classes, probe, seed=seed, scale=scale)
        for (name, test), control in zip(question.tests, controls[1:], strict=True):
            parted = name != question.name
            answered.append(Answered(
                name, source, probe, by_sentence(own.predict(test) == test.labels, test.groups),
                by_sentence(other.predict(test) == control, test.groups), np.bincount(test.groups), classes,
                float((test.labels == commonest).mean()),
                float((probing.layers.word_alone(question.train, test) == test.labels).mean()),
                question.linear if parted else None,
            ))  # fmt: skip
    return answered


def by_sentence(right: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Count the correctly predicted words in each sentence. Takes [layer, word] and returns int32 [layer, sentence]."""
    counts = np.zeros((len(right), int(groups.max()) + 1), dtype=np.int32)
    for layer, row in enumerate(right):
        np.add.at(counts[layer], groups, row.astype(np.int32))
    return counts


def _probed(of: Answered, fresh: Answered | None, seed: int) -> list[ProbedLayer]:
    """Return one record per layer. Intervals are over sentences, and differences are paired by sentence."""
    results = []
    for layer in range(len(of.right)):
        share = share_of(of.right[layer], of.words, seed=seed)
        selective = share_difference(of.right[layer], of.control[layer], of.words, seed=seed)
        probed = ProbedLayer(
            property=of.property, probe=of.probe, layer=layer, name=f"{of.property}, layer {layer}", **share.fields(),
            control=float(of.control[layer].sum() / of.words.sum()), selectivity=selective.value,
            selectivity_low=selective.low, selectivity_high=selective.high,
            word_alone=of.alone, majority=of.majority, classes=of.classes, linear_rule=of.linear,
        )  # fmt: skip
        if fresh is not None:
            more = share_difference(of.right[layer], fresh.right[layer], of.words, seed=seed)
            probed = replace(
                probed,
                random_weights=float(fresh.right[layer].sum() / fresh.words.sum()),
                gain=more.value,
                gain_low=more.low,
                gain_high=more.high,
            )
        results.append(probed)
    return results


# ---------------------------------------------------------------- properties of words


@dataclass(frozen=True)
class WordProperty:
    """A property of words with training examples and test sets. The first test set resembles the training examples."""

    name: str
    classes: tuple[str, ...]
    train: "Examples"
    tests: "tuple[tuple[str, Examples], ...]"
    linear: float | None = None


def word_property(
    checkpoint: "models.checkpoint.Checkpoint", name: str, treebank: str | None, limit: int | None, *, seed: int = 0
) -> WordProperty:
    """Create the examples of a word property with word vectors. Raises InputError if there is only one class."""
    if name in DIAGNOSTIC:
        return _diagnostic(checkpoint, name, seed)
    parts = []
    for part in ("train", "test"):
        some = studies.probing.probe_features.readable(checkpoint, part, read_part(treebank, part, limit).sentences)
        parts.append((some, [_labels(name, sentence) for sentence in some.sentences]))
    return _asked(checkpoint, name, parts, (name,))


def _labels(name: str, sentence: GoldSentence) -> list[tuple[int, str]]:
    """Return (index, label) of every word that has a label."""
    if name == ORDER:
        return [(k, str(k + 1)) for k in range(min(PLACES, len(sentence.words)))]
    if name == RELATION:
        return [(k, plain_relation(word.dep)) for k, word in enumerate(sentence.words)]
    return [(k, word.pos) for k, word in enumerate(sentence.words)]


def _diagnostic(checkpoint: "models.checkpoint.Checkpoint", name: str, seed: int) -> WordProperty:
    parts, spelled = [], LABELS[name]
    for split in (TRAIN, AGREE, PART):
        every = diagnostics(name, split, seed=seed)
        some = studies.probing.probe_features.readable(checkpoint, f"{name} {split}", [case.sentence for case in every])
        if len(some.sentences) < len(every):
            raise InputError(
                f"Every word in the sentences of {name} must have tokens; {checkpoint.name} truncates sentences or "
                "drops words. Choose another checkpoint."
            )
        parts.append((some, [[(place, spelled[label]) for place, label in case.read] for case in every]))
    rule = [linear_rule(name, case.sentence, place) == label for case in every for place, label in case.read]
    return _asked(checkpoint, name, parts, (name, name + PARTED), linear=float(np.mean(rule)))


def _asked(
    checkpoint: "models.checkpoint.Checkpoint",
    name: str,
    parts: "Sequence[tuple[Readable, list[list[tuple[int, str]]]]]",
    names: tuple[str, ...],
    linear: float | None = None,
) -> WordProperty:
    seen = [{label for some in labels for _, label in some} for _, labels in parts]
    for (some, _), own in zip(parts, seen, strict=True):
        if len(own) < 2:
            raise InputError(
                f"A probe needs at least two classes; all words of {some.part} have the same {name}, "
                f"{next(iter(own), 'none')!r}. Use more or other sentences."
            )
    classes = tuple(sorted(seen[0], key=lambda label: (len(label), label) if name == ORDER else (0, label)))
    examples = [_examples(checkpoint, some, labels, classes) for some, labels in parts]
    return WordProperty(name, classes, examples[0], tuple(zip(names, examples[1:], strict=True)), linear)


def _examples(
    checkpoint: "models.checkpoint.Checkpoint",
    some: "Readable",
    labels: list[list[tuple[int, str]]],
    classes: tuple[str, ...],
) -> "Examples":
    stored, number = (
        studies.probing.probe_features.word_vectors_of(checkpoint, some),
        {label: k for k, label in enumerate(classes)},
    )
    layers, hidden = stored.shapes[0][1:]
    vectors = stored.data[: int(stored.starts[-1])].reshape(-1, layers, hidden)
    starts = np.concatenate([[0], np.cumsum([shape[0] for shape in stored.shapes])])
    told = [(k, place, label) for k, own in enumerate(labels) for place, label in own]
    return probing.layers.Examples(
        vectors,
        np.array([starts[k] + place for k, place, _ in told]),
        np.array([number.get(label, -1) for _, _, label in told]),
        np.array([k for k, _, _ in told]),
        tuple(some.sentences[k].words[place].text.lower() for k, place, _ in told),
    )
