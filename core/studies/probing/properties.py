"""What layer probes are asked about words, with examples: tags and places in a treebank, diagnostic sentences."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...errors import InputError
from ...models.checkpoint import Checkpoint
from ...probing.layers import Examples
from ...tasks import diagnostic
from ...tasks.conllu import GoldSentence
from ...tasks.treebank import plain_relation, read_part
from .probe_features import Readable, readable, word_vectors_of

TAG, RELATION, ORDER = "part of speech", "dependency relation", "word order"
PARTED = ", rules part"
TREEBANK = (TAG, RELATION, ORDER)
DIAGNOSTIC = (diagnostic.NUMBER, diagnostic.AUXILIARY)
PROPERTIES = (*TREEBANK, *DIAGNOSTIC)
PLACES = 10  # words after the tenth have no place to be named


@dataclass(frozen=True)
class WordProperty:
    """A property with its examples. tests: name of what is tested and examples of it, the first by the same rule as
    train; linear: what the linear rule scores on the last, None where there is none."""

    name: str
    classes: tuple[str, ...]
    train: Examples
    tests: tuple[tuple[str, Examples], ...]
    linear: float | None = None


def word_property(
    checkpoint: Checkpoint, name: str, treebank: str | None, limit: int | None, *, seed: int = 0
) -> WordProperty:
    """The examples of a property, their vectors computed unless they lie on disk. Raises InputError for one class."""
    if name in DIAGNOSTIC:
        return _diagnostic(checkpoint, name, seed)
    parts = []
    for part in ("train", "test"):
        some = readable(checkpoint, part, read_part(treebank, part, limit).sentences)
        parts.append((some, [_labels(name, sentence) for sentence in some.sentences]))
    return _asked(checkpoint, name, parts, (name,))


def _labels(name: str, sentence: GoldSentence) -> list[tuple[int, str]]:
    """(place, label) of every word that has one."""
    if name == ORDER:
        return [(k, str(k + 1)) for k in range(min(PLACES, len(sentence.words)))]
    if name == RELATION:
        return [(k, plain_relation(word.dep)) for k, word in enumerate(sentence.words)]
    return [(k, word.pos) for k, word in enumerate(sentence.words)]


def _diagnostic(checkpoint: Checkpoint, name: str, seed: int) -> WordProperty:
    parts, spelled = [], diagnostic.LABELS[name]
    for split in (diagnostic.TRAIN, diagnostic.AGREE, diagnostic.PART):
        every = diagnostic.diagnostics(name, split, seed=seed)
        some = readable(checkpoint, f"{name} {split}", [case.sentence for case in every])
        if len(some.sentences) < len(every):
            raise InputError(f"The sentences of {name} are short, but {checkpoint.name} cannot read them all whole.")
        parts.append((some, [[(place, spelled[label]) for place, label in case.read] for case in every]))
    rule = [diagnostic.linear_rule(name, case.sentence, place) == label for case in every for place, label in case.read]
    return _asked(checkpoint, name, parts, (name, name + PARTED), linear=float(np.mean(rule)))


def _asked(
    checkpoint: Checkpoint,
    name: str,
    parts: Sequence[tuple[Readable, list[list[tuple[int, str]]]]],
    names: tuple[str, ...],
    linear: float | None = None,
) -> WordProperty:
    seen = [{label for some in labels for _, label in some} for _, labels in parts]
    for (some, _), own in zip(parts, seen, strict=True):
        if len(own) < 2:
            raise InputError(
                f"A probe tells at least two classes apart; all words of {some.part} have the {name} "
                f"{next(iter(own), 'none')!r}: raise the limit or give other sentences."
            )
    classes = tuple(sorted(seen[0], key=lambda label: (len(label), label) if name == ORDER else (0, label)))
    examples = [_examples(checkpoint, some, labels, classes) for some, labels in parts]
    return WordProperty(name, classes, examples[0], tuple(zip(names, examples[1:], strict=True)), linear)


def _examples(
    checkpoint: Checkpoint, some: Readable, labels: list[list[tuple[int, str]]], classes: tuple[str, ...]
) -> Examples:
    stored, number = word_vectors_of(checkpoint, some), {label: k for k, label in enumerate(classes)}
    layers, hidden = stored.shapes[0][1:]
    vectors = stored.data[: int(stored.starts[-1])].reshape(-1, layers, hidden)
    starts = np.concatenate([[0], np.cumsum([shape[0] for shape in stored.shapes])])
    told = [(k, place, label) for k, own in enumerate(labels) for place, label in own]
    return Examples(
        vectors,
        np.array([starts[k] + place for k, place, _ in told]),
        np.array([number.get(label, -1) for _, _, label in told]),
        np.array([k for k, _, _ in told]),
        tuple(some.sentences[k].words[place].text.lower() for k, place, _ in told),
    )
