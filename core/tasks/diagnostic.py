"""Template sentences for which a linear and a hierarchical rule agree, and others for which they disagree.

Following Lin et al. 2019 ("Open Sesame"), a probe trained where both rules agree is tested where they disagree, which
shows which rule its vectors encode. Words and templates are this project's own.

- subject number: is the subject singular or plural, given a verb that does not show it (past tense)? "The nearest noun
  before the verb" agrees with "the subject" unless a noun of the other number stands between them.
- main auxiliary: does this auxiliary belong to the main clause? "The first auxiliary" does unless the subject has a
  relative clause.
"""

import random
from dataclasses import dataclass

from .conllu import GoldSentence
from .language import TaggedWord

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
    """A sentence with the words to classify. read: (word index, label as an index into LABELS) of each."""

    sentence: GoldSentence
    read: tuple[tuple[int, int], ...]


def diagnostics(task: str, split: str, *, seed: int = 0) -> list[Diagnostic]:
    """Return SIZES[split] different sentences of a task, reproducible by seed; no sentence is in two splits."""
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
    raise ValueError(f"split must be one of {', '.join(SIZES)}; got {split!r}")


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
    """Return the answer of the linear rule: the number of the nearest noun, or "the first auxiliary is the
    main one".
    """
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
