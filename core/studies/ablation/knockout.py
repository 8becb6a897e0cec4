"""Attention knockout on a task: selected attention edges are cut in one layer at a time and in all layers.

If edges are cut before the softmax, the other keys get their weight; with `--keep-weights`, weights are set to 0 after
the softmax. The prediction for an example without such edges does not change. Edges such as "noun-adjective" link
words; each kind has equally many links at the same distances, and a last row compares how much they change the logits.
"""

import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np
import pydantic.dataclasses
import scipy  # its parts load when they are used

from ... import capture, studies
from ...errors import check_choice
from ...store.rows import Row
from ...tasks.glue import TaskRow, task_of
from ..contract import ExampleUnit, Flag, Unit
from ..headline import Headline
from ..merging import PerExample, Positions
from ..outcomes import metrics_before, prediction_changes
from ..records import Result
from . import setup
from .records import EdgeCut, LinkContrast, Unmodified, cut_headline
from .setup import ExampleOptions

if TYPE_CHECKING:
    from torch import Tensor

    from ...models.encoding import Encoding
    from ...tasks.features import TaggedSentence


SORTS = {
    "noun": ("NOUN", "PROPN"), "adjective": ("ADJ",), "preposition": ("ADP",), "verb": ("VERB",), "adverb": ("ADV",),
    "pronoun": ("PRON",), "determiner": ("DET",),
}  # fmt: skip
WORD_LINKS = {
    "noun-adjective": "between nouns and adjectives",
    "noun-preposition": "between nouns and prepositions",
}  # offered by the page; the terminal accepts any two sorts
Link = tuple[int, int]


@pydantic.dataclasses.dataclass(frozen=True)
class KnockoutOptions(ExampleOptions):
    """Options for an attention knockout: which attention edges are cut, in which checkpoint, and on which examples."""

    edges: Annotated[
        tuple[str, ...],
        Flag(
            "attention edges to cut: edges to one kind of token (separators, first, current, previous or next), edges "
            "between two sentences (across), or edges between two word classes (such as noun-adjective); repeat the "
            "option for several kinds"
        ),
    ] = (
        "separators",
        "first",
        "current",
        "previous",
    )
    renormalise: Annotated[
        bool,
        Flag(
            "cut edges before the softmax, so that rows of attention weights still sum to 1 (default), or after "
            "the softmax",
            name="--renormalise/--keep-weights",
        ),
    ] = True


@dataclass(frozen=True)
class Knocked:
    """Predictions with all attention edges, and without each kind of edge in each layer and in all layers.

    Attributes:
        changed: *Shape:* (cut, example).
        having: whether the example has edges of the kind. *Shape:* (edge kind, example), bool.
        moved: absolute change of `leads` if word links are cut in all layers. *Shape:* (link kind, example).
        links: number of word links. *Shape:* (link kind, example), int.
    """

    rows: Positions
    layers: int
    gold: PerExample
    plain: PerExample
    changed: PerExample
    having: PerExample
    moved: PerExample | None = None
    links: PerExample | None = None
    attending: tuple[int, ...] = ()


class KnockoutStudy(setup.ExampleStudy[KnockoutOptions, Knocked]):
    """Remove attention edges, for example those to separators, layer by layer. Count how many predictions change."""

    name, options, partial = "knockout", KnockoutOptions, Knocked
    kinds = (Unmodified, EdgeCut, LinkContrast)
    called = "Knockout of {edges} in {checkpoint}"
    question = "What happens if attention between some tokens is removed?"

    def units(self, options: KnockoutOptions) -> list[Unit]:
        for kind in options.edges:
            if not is_of_words(kind):
                capture.knockout.edges_of(kind, causal=False)
        return super().units(options)

    def on_examples(
        self, options: KnockoutOptions, opened: setup.Opened, rows: Sequence[TaskRow], unit: ExampleUnit
    ) -> tuple[Knocked, str | None]:
        checkpoint = opened.checkpoint
        encodings, changed, having, moved = opened.encoded(rows), [], [], {}
        untouched = capture.running.predict(checkpoint, encodings)
        words: dict[str, list[list[Link]]] = {}  # by kind of word pairs the links to cut in each input
        if kinds := _of_words(options):
            pipeline, matches = studies.worker_cache.pipeline(None), []
            for encoding in encodings:
                texts = [text for text in (encoding.text, encoding.pair) if text]
                tagged = studies.tagging.tag(texts, pipeline)
                of_kinds = [links_of(encoding, tagged, kind) for kind in kinds]
                matches.append(matched(of_kinds, seed=options.seed, text=" ".join(texts)))
            words = {kind: [match[k] for match in matches] for k, kind in enumerate(kinds)}
        for kind in options.edges:
            edges = (
                capture.knockout.LinkEdges(dict(zip(encodings, words[kind], strict=True)), causal=checkpoint.causal)
                if kind in words
                else capture.knockout.edges_of(kind, causal=checkpoint.causal)
            )
            having.append([bool(edges(encoding).any()) for encoding in encodings])
            for layers in layers_of(checkpoint.layers, checkpoint.attending):
                cut = capture.interventions.Knockout(edges, frozenset(layers), options.renormalise)
                logits = capture.running.predict(checkpoint, encodings, interventions=[cut])
                changed.append(opened.predicted(logits))
            if kind in words:  # the last cut was in all layers
                moved[kind] = np.abs(leads(logits, untouched) - leads(untouched, untouched))
        partial = Knocked(
            np.array(unit.positions),
            checkpoint.layers,
            np.array([row.label for row in rows]),
            opened.predicted(untouched),
            np.array(changed),
            np.array(having),
            np.array(list(moved.values())) if words else None,
            np.array([[len(some) for some in words[kind]] for kind in words]) if words else None,
            checkpoint.attending,
        )
        return partial, None

    def results(self, options: KnockoutOptions, merged: Knocked) -> list[Result]:
        task = task_of(options.task)
        how = f"knockout, {'renormalised' if options.renormalise else 'weights set to 0'}"
        cuts = [
            (number, kind, layers)
            for number, kind in enumerate(options.edges)
            for layers in layers_of(merged.layers, merged.attending)
        ]
        changes = prediction_changes(task, merged.gold, merged.plain, merged.changed, seed=options.seed)
        before = metrics_before(task, merged.gold, merged.plain)
        words = _of_words(options)
        return [
            Unmodified(operator=how, task=task.key, n=len(merged.gold), metrics=before),
            *(
                EdgeCut(
                    name=f"{kind} in {'all layers' if len(layers) > 1 else f'L{layers[0] + 1}'}", edges=kind,
                    layer=layers[0] if len(layers) == 1 else None, with_edges=int(merged.having[number].sum()),
                    operator=how, task=task.key, **change,
                )
                for (number, kind, layers), change in zip(cuts, changes, strict=True)
            ),
            *(contrasts(task.key, dict(zip(words, merged.moved, strict=True)),
                        dict(zip(words, merged.links, strict=True)))
              if merged.moved is not None and merged.links is not None else []),
        ]  # fmt: skip

    def headline(self, rows: Sequence[Row]) -> Headline:
        return cut_headline(rows, [(f"attention edges ({cut.name})", cut) for cut in EdgeCut.among(rows)])


STUDY = KnockoutStudy()


def _of_words(options: KnockoutOptions) -> list[str]:
    return [kind for kind in dict.fromkeys(options.edges) if is_of_words(kind)]


def layers_of(layers: int, attending: Sequence[int] = ()) -> list[list[int]]:
    """List the sets of layers from which attention edges are removed: each layer alone, and all layers together."""
    own = list(attending or range(layers))
    return [*([layer] for layer in own), *([own] if len(own) > 1 else [])]


# ---------------------------------------------------------------- links between two sorts of words


def is_of_words(kind: str) -> bool:
    """Return True if edges of this kind connect two word classes. Raises InputError for an unknown word class."""
    first, dash, other = kind.partition("-")
    if not dash:
        return False
    check_choice("A word class", (first, other), SORTS)
    return True


def links_of(encoding: "Encoding", tagged: Sequence["TaggedSentence"], kind: str) -> list[Link]:
    """Find the pairs of token positions (earlier, later) that link words of two classes, such as "noun-adjective".
    Words with several tokens are skipped."""
    first, other = (SORTS[name] for name in kind.split("-"))
    found = set()
    for number, sentence in enumerate(tagged):
        places = [(word.pos, encoding.pieces(word.start, word.end, number)) for word in sentence.words]
        known = [(pos, pieces[0]) for pos, pieces in places if len(pieces) == 1]
        found |= {
            (min(place, beside), max(place, beside))
            for pos, place in known
            for own, beside in known
            if pos in first and own in other and place != beside
        }
    return sorted(found)


def matched(kinds: Sequence[Sequence[Link]], *, seed: int, text: str) -> list[list[Link]]:
    """Sample word links of each kind so that every kind has the same number of links at each distance."""
    chance = np.random.default_rng([seed, zlib.crc32(text.encode())])
    counts = [Counter(later - earlier for earlier, later in links) for links in kinds]
    chosen: list[list[Link]] = []
    for links in kinds:
        own: list[Link] = []
        for distance in sorted(counts[0]):
            there = [link for link in links if link[1] - link[0] == distance]
            most = min(count[distance] for count in counts)
            own += [there[k] for k in sorted(chance.choice(len(there), most, replace=False))] if most else []
        chosen.append(own)
    return chosen


def leads(logits: "Tensor", plain: "Tensor") -> np.ndarray:
    """For each example, compute the gap between the largest and the second largest logit.

    `logits` [example, label] are computed with edges cut and `plain` without; `plain` determines both labels.
    """
    if plain.shape[-1] == 1:
        return logits[:, 0].double().numpy()
    best = plain.topk(2, dim=-1).indices
    both = logits.double().gather(-1, best)
    return (both[:, 0] - both[:, 1]).numpy()


def contrasts(task: str, moved: Mapping[str, np.ndarray], links: Mapping[str, np.ndarray]) -> list[LinkContrast]:
    """Compare the effects of cutting the first kind of word link and every other kind, with 95 % paired t intervals."""
    names = list(moved)
    found = []
    for name in names[1:]:
        rows = links[name] > 0
        first, other, n = moved[names[0]][rows], moved[name][rows], int(rows.sum())
        value, half = float((first - other).mean()) if n else None, None
        if n > 1:
            half = float(scipy.stats.t.ppf(0.975, n - 1) * scipy.stats.sem(first - other))
        ends = (None, None) if value is None or half is None else (value - half, value + half)
        found.append(
            LinkContrast(
                task=task, first=names[0], other=name, value=value, low=ends[0], high=ends[1],
                first_moves=float(first.mean()) if n else None, other_moves=float(other.mean()) if n else None,
                links=int(links[name].sum()), n=n,
            )
        )  # fmt: skip
    return found
