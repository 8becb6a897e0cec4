"""Syntax in attention: probes of all heads, trees of single heads, and branching baselines.

Clark et al. 2019, section 5 (attention-only probe, with and without input embeddings), and Htut et al. 2019 (maximum
spanning trees of single heads). Probes are trained on train; epochs and the best head are chosen on dev; scores are on
test, without punctuation. The same probes on random weights and on shuffled distances show what a probe learns by
itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import numpy as np
import pydantic.dataclasses
from pydantic import BeforeValidator

from ... import config, probing, scoring, studies
from ...attention import Head
from ...scoring.intervals import share_difference, share_of
from ...store.rows import Row
from ...tasks.conllu import LeftOut, plain_relation, read_part
from ..contract import Done, Flag, NamedUnit, Study, Unit, provenance
from ..headline import Headline, defined, percent
from ..options import Checkpoint, Seed
from ..records import Result, picked
from .records import (
    BestHeadTree,
    DrawnTree,
    HeadTree,
    LeftOutSentences,
    ParsedScore,
    TreeDifference,
)

if TYPE_CHECKING:
    from ...models.checkpoint import Checkpoint as Opened
    from ...probing.attention import Sentences
    from .probe_features import Readable


TRAINED, RANDOM = "trained", "random"
ATTENTION, WITH_WORDS = "attention", "attention and embeddings"
SHUFFLED, FRESH = "attention, distances shuffled", ", random weights"
TREES = 24  # sentences of test that are kept with their trees
Treebank = Annotated[
    str | None,
    Flag(
        "folder of a Universal Dependencies treebank with *-train, *-dev and *-test.conllu files (default: the "
        "bundled treebank, annotated automatically)"
    ),
]
TreeLimit = Annotated[
    int | None,
    BeforeValidator(lambda value: None if value == 0 else value),
    Flag("largest number of sentences per split, counted from the start of the split; 0 uses all", least=0),
]
QUIET = ("tree", "head")  # kinds of rows for pictures, which a table leaves out
BASELINES = ("right-branching", "left-branching", "one fixed offset", "fixed offset per relation")


@pydantic.dataclasses.dataclass(frozen=True)
class SyntaxOptions:
    """Options for predicting syntax from attention."""

    checkpoint: Checkpoint = config.ENCODER
    treebank: Treebank = None
    limit: TreeLimit = 2000
    seed: Seed = 0


@dataclass(frozen=True)
class SingleHeads:
    """The agreement of each head's spanning trees with the gold trees, for each sentence.

    Attributes:
        dev_joined, joined: number of words that are joined with their gold governor, on dev and test.
        dev_governed, governed: number of words that have a governor.
        whole: 1 if the whole tree is correct.
        rooted: number of words with their gold governor in the best head's directed tree from the gold root.
    """

    dev_joined: np.ndarray
    dev_governed: np.ndarray
    joined: np.ndarray
    governed: np.ndarray
    whole: np.ndarray
    best: tuple[int, int]
    rooted: np.ndarray
    layers: tuple[int, ...] = ()

    def head_of(self, layer: int, head: int) -> Head:
        return Head(self.layers[layer] if self.layers else layer, head)


@dataclass(frozen=True)
class TreeExample:
    """A test sentence with its gold tree, its predicted tree, and the probability of each predicted governor."""

    words: tuple[str, ...]
    relations: tuple[str, ...]
    gold: tuple[int, ...]
    drawn: tuple[int, ...]
    probability: tuple[float, ...]


@dataclass(frozen=True)
class Parsed:
    """The agreement of the trees that a probe or baseline predicts with the gold trees, for each sentence.

    Attributes:
        kind: "probe" or "baseline".
        right: words with their gold governor, out of `words`.
        joined: words joined with their gold governor in either direction, out of `governed`.
        whole: 1 if the undirected tree is correct.
    """

    kind: str
    name: str
    right: np.ndarray
    words: np.ndarray
    joined: np.ndarray
    governed: np.ndarray
    whole: np.ndarray
    note: str = ""


@dataclass(frozen=True)
class Syntax:
    """All measurements of syntax in attention, with the number of sentences in the train, dev and test splits."""

    parsed: tuple[Parsed, ...]
    heads: tuple[SingleHeads, ...]
    drawn: tuple[TreeExample, ...]
    left_out: tuple[LeftOut, ...]
    sentences: tuple[int, int, int]


class SyntaxStudy(Study[SyntaxOptions, Syntax]):
    """Predict dependency trees from attention, using all heads, single heads, and baselines."""

    name, options, partial, arguments = "syntax", SyntaxOptions, Syntax, NamedUnit
    question = "How much syntax can be read from attention?"
    kinds = (ParsedScore, HeadTree, BestHeadTree, TreeDifference, LeftOutSentences, DrawnTree)
    short_in = ("table", "latex")
    called = "Syntax in the attention of {checkpoint}"
    counts = "words"

    def units(self, options: SyntaxOptions) -> list[Unit]:
        parts = [read_part(options.treebank, part, options.limit) for part in ("train", "dev", "test")]
        words = sum(len(sentence.words) for part in parts for sentence in part.sentences)
        sizes = {TRAINED: 3 * words, RANDOM: 2 * words}
        return [Unit(source, NamedUnit(source), size) for source, size in sizes.items()]

    def run(self, options: SyntaxOptions, unit: Unit) -> Done[Syntax]:
        random = unit.arguments.name == RANDOM
        checkpoint = studies.probing.probe_features.open_source(options.checkpoint, random=random, seed=options.seed)
        parts, left_out = [], []
        for part in ("train", "dev", "test"):
            gold = read_part(options.treebank, part, options.limit)
            parts.append(studies.probing.probe_features.readable(checkpoint, part, gold.sentences))
            left_out += [*gold.left_out, *parts[-1].left_out]
        with_words = [sentences_of(checkpoint, part, words=True) for part in parts]
        parsed, drawn = probes(with_words, parts[2], random=random, seed=options.seed)
        heads: tuple[SingleHeads, ...] = ()
        if not random:
            parsed = [*baselines(parts[0], parts[2]), *parsed]
            heads = (single_heads(with_words[1], with_words[2], checkpoint.all_heads),)
        train, dev, test = (len(part.sentences) for part in parts)
        ids = [f"test-{k}" for k in range(test)]
        out = () if random else tuple(left_out)
        return Done(
            Syntax(tuple(parsed), heads, drawn, out, (train, dev, test)), provenance(checkpoint, ids, split="test")
        )

    def results(self, options: SyntaxOptions, merged: Syntax) -> list[Result]:
        about = dict(zip(("train", "dev", "test"), merged.sentences, strict=True))
        results: list[Result] = [_parsed(parsed, options.seed, **about) for parsed in merged.parsed]
        for heads in merged.heads:
            together = next(parsed for parsed in merged.parsed if parsed.name == ATTENTION)
            results += [*_best_head(heads, together, options.seed), *_head_trees(heads, options.seed)]
        results += [
            LeftOutSentences(name=f"{out.part}: {out.reason}", n=out.n, note="; ".join(out.names))
            for out in merged.left_out
        ]
        return results + [
            DrawnTree(
                name=f"sentence {number}",
                n=len(drawn.words),
                **{name: list(values) for name, values in vars(drawn).items()},
            )
            for number, drawn in enumerate(merged.drawn, start=1)
        ]

    def headline(self, rows: Sequence[Row]) -> Headline:
        scores = ParsedScore.defined(rows)
        probes = {score.name: score for score in picked(scores, kind="probe")}
        probe = probes.get(ATTENTION) or max(probes.values(), key=lambda score: defined(score.value))
        simple = max(picked(scores, kind="baseline"), key=lambda score: defined(score.value))
        as_many_as = "about as many as"
        if probe.low is not None and probe.low > defined(simple.value):
            as_many_as = "more than"
        elif probe.high is not None and probe.high < defined(simple.value):
            as_many_as = "fewer than"
        interval, more = percent(probe.low, probe.high, "{:.0f}"), ""
        if (both := probes.get(WITH_WORDS)) is not None and both != probe:
            more = (
                f" A probe on {both.name} predicts the syntactic head of {defined(both.value):.0%} of words correctly."
            )
            with_words = percent(both.low, both.high, "{:.0f}")
            if interval and with_words:
                interval = f"{interval} for the probe on {probe.name}, {with_words} for the probe on {both.name}"
        return Headline(
            f"A probe on {probe.name} alone predicts the syntactic head of {defined(probe.value):.0%} of words "
            f"correctly, {as_many_as} the best simple baseline ({simple.name}: {defined(simple.value):.0%}).{more}",
            probe.n, "words", interval,
            "".join(
                "On a model with random weights, the same probe is correct for "
                f"{defined(probes[name].value):.0%} of words."
                for name in (f"{probe.name}, random weights",) if name in probes
            ),
        )  # fmt: skip

    def shown(self, rows: Sequence[Row]) -> list[list[Row] | str]:
        return [[row for row in rows if row.get(Result.BY) not in QUIET]]


STUDY = SyntaxStudy()


# ---------------------------------------------------------------- parsed trees and baselines


def heads_of(sentence: object) -> np.ndarray:
    """Return the index, counted from 0, of the gold governor of each word. The root is its own governor."""
    return np.array([word.head for word in sentence.words])  # type: ignore[attr-defined]


def scored_of(sentence: object) -> np.ndarray:
    """Return a mask of the words that are scored: all words except punctuation."""
    return np.array([plain_relation(word.dep) != "punct" for word in sentence.words])  # type: ignore[attr-defined]


def parsed_of(
    kind: str, name: str, sentences: Sequence[object], predicted: Sequence[np.ndarray], note: str = ""
) -> Parsed:
    """Count the correct attachments in each sentence, directed and undirected, for the trees of a probe or baseline."""
    counts = []
    for sentence, heads in zip(sentences, predicted, strict=True):
        gold, scored = heads_of(sentence), scored_of(sentence)
        joined = int(scoring.trees.joined(gold, scoring.trees.neighbours(heads)[None], scored)[0])
        governed = scoring.trees.governed(gold, scored)
        right = scoring.trees.attached(gold, heads, scored)
        counts.append((right, int(scored.sum()), joined, governed, joined == governed))
    columns = [np.array(column, dtype=np.int32) for column in zip(*counts, strict=True)]
    right_of, words_of, joined_of, governed_of, whole_of = columns
    return Parsed(kind, name, right_of, words_of, joined_of, governed_of, whole_of, note)


def baselines(train: "Readable", test: "Readable") -> list[Parsed]:
    """Evaluate baselines that attach words to a neighbour or at a constant distance. Distances are chosen on train."""
    known = [
        (heads_of(sentence), scored_of(sentence), [plain_relation(word.dep) for word in sentence.words])
        for sentence in train.sentences
    ]
    offset = scoring.trees.best_offset((heads, scored) for heads, scored, _ in known)
    by_relation = scoring.trees.best_offsets(known)
    lengths = [len(sentence.words) for sentence in test.sentences]
    relations = [[plain_relation(word.dep) for word in sentence.words] for sentence in test.sentences]
    predicted = {
        BASELINES[0]: ([scoring.trees.right_branching(n) for n in lengths], "head(i) = i + 1"),
        BASELINES[1]: ([scoring.trees.left_branching(n) for n in lengths], "head(i) = i - 1"),
        BASELINES[2]: (
            [scoring.trees.at_offsets([offset] * n) for n in lengths],
            f"head(i) = i {offset:+d}, chosen on train",
        ),
        BASELINES[3]: (
            [
                scoring.trees.at_offsets(
                    [0 if relation == "root" else by_relation.get(relation, offset) for relation in of_input]
                )
                for of_input in relations
            ],
            "the word's gold relation is told; chosen on train",
        ),
    }
    return [parsed_of("baseline", name, test.sentences, heads, note) for name, (heads, note) in predicted.items()]


# ---------------------------------------------------------------- probes


def sentences_of(checkpoint: "Opened", part: "Readable", *, words: bool) -> "Sentences":
    """Collect the attention between words, the gold trees and, if `words` is True, the word embeddings of one split."""
    return probing.attention.Sentences(
        studies.probing.probe_features.word_maps_of(checkpoint, part),
        [heads_of(sentence) for sentence in part.sentences],
        [scored_of(sentence) for sentence in part.sentences],
        studies.probing.probe_features.word_embeddings_of(checkpoint, part) if words else None,
    )


def probes(
    parts: "Sequence[Sentences]", test: "Readable", *, random: bool, seed: int
) -> tuple[list[Parsed], tuple[TreeExample, ...]]:
    """Train probes that predict trees from attention. Return their test results and example trees."""
    suffix = FRESH if random else ""
    alone = [replace(part, words=None) for part in parts]
    wanted = [(ATTENTION + suffix, alone), (WITH_WORDS + suffix, list(parts))]
    if not random:
        moved = [replace(part, heads=probing.attention.shuffled(part.heads, seed=seed)) for part in alone[:2]]
        wanted.append((SHUFFLED, [*moved, alone[2]]))
    parsed: list[Parsed] = []
    drawn: tuple[TreeExample, ...] = ()
    for name, (train, dev, on) in wanted:
        probe = probing.attention.train(train, dev, seed=seed)
        scores = probing.attention.predict(probe, on)
        parsed.append(parsed_of("probe", name, test.sentences, [probing.attention.greedy(arcs) for arcs in scores]))
        if name == ATTENTION:
            shown = (pair for pair in zip(test.sentences, scores, strict=True) if 4 <= len(pair[0].words) <= 24)
            drawn = tuple(tree_example(sentence, of_words) for sentence, of_words in islice(shown, TREES))
    return parsed, drawn


def tree_example(sentence: object, scores: np.ndarray) -> TreeExample:
    """Find the most likely tree of a sentence from log probabilities [word, candidate]. Candidate 0 is the root."""
    words = sentence.words  # type: ignore[attr-defined]
    heads = scoring.trees.likeliest_tree(scores)
    places = np.where(heads == np.arange(len(heads)), 0, heads + 1)
    chances = np.exp(scores[np.arange(len(heads)), places])
    return TreeExample(
        tuple(word.text for word in words), tuple(word.dep for word in words), tuple(word.head for word in words),
        tuple(int(head) for head in heads), tuple(round(float(chance), 4) for chance in chances),
    )  # fmt: skip


# ---------------------------------------------------------------- single heads


def single_heads(dev: "Sentences", test: "Sentences", heads: Sequence[Head]) -> SingleHeads:
    """Evaluate undirected trees from every head on dev and test, and rooted trees from the best dev head on test."""
    dev_joined, dev_governed, _ = _spanned(dev)
    joined, governed, whole = _spanned(test)
    best = int(dev_joined.sum(1).argmax())
    rooted = []
    for number, gold in enumerate(test.heads):
        weights = test.maps.get(number)[best, 1:-1, 1:-1].astype(np.float64)
        root = int(np.flatnonzero(gold == np.arange(len(gold)))[0])
        counted = test.scored[number] & (gold != np.arange(len(gold)))
        rooted.append(scoring.trees.attached(gold, scoring.trees.rooted_tree(weights, root), counted))
    layers = tuple(dict.fromkeys(head.layer for head in heads))
    shape = (len(layers), len(heads) // len(layers), -1)
    return SingleHeads(
        dev_joined.reshape(shape), dev_governed, joined.reshape(shape), governed, whole.reshape(shape),
        divmod(best, shape[1]), np.array(rooted, dtype=np.int32), layers,
    )  # fmt: skip


def _spanned(sentences: "Sentences") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Count joined words and complete trees [head, sentence], and words with a governor [sentence]."""
    heads = sentences.maps.shapes[0][0]
    together = np.zeros((heads, len(sentences)), dtype=np.int32)
    governed = np.zeros(len(sentences), dtype=np.int32)
    for number, (gold, scored) in enumerate(zip(sentences.heads, sentences.scored, strict=True)):
        governed[number] = scoring.trees.governed(gold, scored)
        spanned = scoring.trees.spanning_trees(sentences.maps.get(number)[:, 1:-1, 1:-1].astype(np.float64))
        together[:, number] = scoring.trees.joined(gold, spanned, scored)
    return together, governed, (together == governed).astype(np.int8)


# ---------------------------------------------------------------- rows


def _parsed(parsed: Parsed, seed: int, **sentences: int) -> ParsedScore:
    """Return the attachment score (UAS) with its interval, directed and undirected."""
    undirected = share_of(parsed.joined, parsed.governed, seed=seed)
    return ParsedScore(
        kind=parsed.kind, name=parsed.name, undirected=undirected.value, undirected_low=undirected.low,
        undirected_high=undirected.high, whole_trees=float(parsed.whole.mean()), note=parsed.note, **sentences,
        **share_of(parsed.right, parsed.words, seed=seed).fields(),
    )  # fmt: skip


def _head_trees(heads: SingleHeads, seed: int) -> list[HeadTree]:
    """Return the undirected unlabelled attachment score (UAS) of every head, on test and on dev."""
    results = []
    dev = heads.dev_joined.sum(-1) / max(1, int(heads.dev_governed.sum()))
    for layer, head in np.ndindex(dev.shape):
        share, own = share_of(heads.joined[layer, head], heads.governed, seed=seed), heads.head_of(layer, head)
        tree = HeadTree(
            statistic="undirected UAS", name=str(own), layer=own.layer, head=own.head, **share.fields(),
            dev=float(dev[layer, head]), whole_trees=float(heads.whole[layer, head].mean()),
        )  # fmt: skip
        results.append(tree)
    return results


def _best_head(heads: SingleHeads, together: Parsed, seed: int) -> list[Result]:
    """Return the test scores of dev's best head, and how much better all heads are, by sentence."""
    layer, head = heads.best
    own = heads.joined[layer, head]
    rooted = share_of(heads.rooted, heads.governed, seed=seed)
    name = str(heads.head_of(layer, head))
    best = BestHeadTree(
        name=name, note="undirected UAS of its spanning tree; chosen on dev",
        **share_of(own, heads.governed, seed=seed).fields(), whole_trees=float(heads.whole[layer, head].mean()),
        rooted=rooted.value, rooted_low=rooted.low, rooted_high=rooted.high,
    )  # fmt: skip
    more = share_difference(together.joined, own, heads.governed, seed=seed)
    note = f"undirected UAS of all heads together less that of {name}"
    return [best, TreeDifference(name=f"all heads less {name}", note=note, **more.fields())]
