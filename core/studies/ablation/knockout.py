"""Attention knockout on a task's rows: chosen edges cut in one layer at a time and in all, and what it does.

Edges are named (separators, across sentences, diagonals ...; core.capture.knockout). Cut before the softmax the other
keys take the weight; with `--keep-weights` weights are set to 0 after it. Rows that lack an edge kind (no second
sentence) are predicted as they were, so n with such edges is said. "noun-adjective" and "noun-preposition" are links
between words: as many of each at the same distances, and a last row says which of them moves the logits more.
"""

import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated

import numpy as np
import pydantic.dataclasses
import scipy  # its parts load when they are used

from ... import capture, studies
from ...errors import InputError
from ...store.rows import Row
from ...tasks.glue import task_of
from ..contract import Done, Flag, Need, Study, Unit
from ..headline import Headline
from ..outcomes import in_order
from ..prediction_changes import metrics_before, prediction_changes
from ..provenance import provenance
from ..records import Result
from . import disabling
from .disabling import RowOptions, units_of
from .records import EdgeCut, LinkContrast, Untouched, cut_headline

if TYPE_CHECKING:
    from torch import Tensor

    from ...models.encoding import Encoding
    from ...tasks.language import TaggedSentence


SORTS = {
    "noun": ("NOUN", "PROPN"), "adjective": ("ADJ",), "preposition": ("ADP",), "verb": ("VERB",), "adverb": ("ADV",),
    "pronoun": ("PRON",), "determiner": ("DET",),
}  # fmt: skip
WORD_LINKS = {
    "noun-adjective": "between nouns and adjectives",
    "noun-preposition": "between nouns and prepositions",
}  # that a page offers; a terminal takes any two sorts
Link = tuple[int, int]


@pydantic.dataclasses.dataclass(frozen=True)
class KnockoutOptions(RowOptions):
    """Which edges are cut, of which checkpoint, on which rows."""

    edges: Annotated[
        tuple[str, ...],
        Flag("separators, first, across, current, previous, next or words (noun-adjective); give several"),
    ] = (
        "separators",
        "first",
        "current",
        "previous",
    )
    renormalise: Annotated[bool, Flag("cut before the softmax, or after", name="--renormalise/--keep-weights")] = True


@dataclass(frozen=True)
class Knocked:
    """Predictions of some rows, plain and under every cut: for each kind of edges each layer alone, then all layers.

    Attributes:
        rows: their places in the task. *Shape:* (row,), int.
        gold: labels as the task numbers them, or scores. *Shape:* (row,).
        plain: predictions of the untouched model. *Shape:* (row,).
        changed: predictions under every cut. *Shape:* (variant, row).
        having: whether the row has such edges. *Shape:* (edge kind, row), bool.
        moved: how far cutting links of words in all layers moved the logits. *Shape:* (kind of words, row).
        links: how many links of words the row has. *Shape:* (kind of words, row), int.
    """

    rows: np.ndarray
    layers: int
    gold: np.ndarray
    plain: np.ndarray
    changed: np.ndarray
    having: np.ndarray
    moved: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    links: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), dtype=int))
    attending: tuple[int, ...] = ()


class KnockoutStudy(Study[KnockoutOptions, Knocked]):
    """Cut edges of attention (separators, diagonals, across sentences) layer by layer: what happens to predictions."""

    name, options, partial, arguments = "knockout", KnockoutOptions, Knocked, disabling.Slice
    kinds = (Untouched, EdgeCut, LinkContrast)
    called = "Knockout of {edges} in {checkpoint}"
    question = "What happens if attention between some tokens is removed?"
    needs = frozenset({Need.CLASSIFIER, Need.LABELS})

    def units(self, options: KnockoutOptions) -> list[Unit]:
        """Slices of the task's rows; edges that cannot be are refused here."""
        for kind in options.edges:
            if not is_of_words(kind):
                capture.knockout.edges_of(kind, causal=False)
        return units_of(options)

    def run(self, options: KnockoutOptions, unit: Unit) -> Done[Knocked]:
        """Predictions of these rows, plain and under every cut."""
        opened, all_rows = disabling.opened(options), disabling.rows_of(options)
        checkpoint, rows = opened.checkpoint, [all_rows[k] for k in unit.arguments.rows]
        encodings, changed, having, moved = opened.encoded(rows), [], [], {}
        untouched = capture.running.predict(checkpoint, encodings)
        words = _links(options, encodings)
        for kind in options.edges:
            edges = _edges(kind, words, encodings, causal=checkpoint.causal)
            having.append([bool(edges(encoding).any()) for encoding in encodings])
            for layers in layers_of(checkpoint.layers, checkpoint.attending):
                cut = capture.interventions.Knockout(edges, frozenset(layers), options.renormalise)
                logits = capture.running.predict(checkpoint, encodings, interventions=[cut])
                changed.append(opened.predicted(logits))
            if kind in words:  # the last cut was in all layers
                moved[kind] = np.abs(leads(logits, untouched) - leads(untouched, untouched))
        links = [[len(some) for some in words[kind]] for kind in words]
        partial = Knocked(
            np.array(unit.arguments.rows),
            checkpoint.layers,
            np.array([row.label for row in rows]),
            opened.predicted(untouched),
            np.array(changed),
            np.array(having),
            attending=checkpoint.attending,
        )
        if words:
            partial = replace(partial, moved=np.array(list(moved.values())), links=np.array(links))
        return Done(partial, provenance(checkpoint, [row.id for row in rows]))

    def merge(self, options: KnockoutOptions, partials: Sequence[Knocked]) -> Knocked:
        """All rows, in the task's order."""
        words = ("moved", "links") if _of_words(options) else ()
        whole = in_order(partials, ("rows", "gold", "plain", "changed", "having", *words))
        return Knocked(layers=partials[0].layers, attending=partials[0].attending, **whole)

    def results(self, options: KnockoutOptions, merged: Knocked) -> list[Result]:
        """The baseline, then a record per kind of edge and layer (layer None: all layers), then words beside words."""
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
            Untouched(operator=how, task=task.key, n=len(merged.gold), metrics=before),
            *(
                EdgeCut(
                    name=f"{kind} in {'all layers' if len(layers) > 1 else f'L{layers[0] + 1}'}", edges=kind,
                    layer=layers[0] if len(layers) == 1 else None, with_edges=int(merged.having[number].sum()),
                    operator=how, task=task.key, **change,
                )
                for (number, kind, layers), change in zip(cuts, changes, strict=True)
            ),
            *contrasts(task.key, dict(zip(words, merged.moved, strict=True)),
                       dict(zip(words, merged.links, strict=True))),
        ]  # fmt: skip

    def headline(self, rows: Sequence[Row]) -> Headline:
        return cut_headline(rows, [(f"{cut.edges} ({cut.name})", cut) for cut in EdgeCut.among(rows)])


STUDY = KnockoutStudy()


def _of_words(options: KnockoutOptions) -> list[str]:
    return [kind for kind in dict.fromkeys(options.edges) if is_of_words(kind)]


def _links(options: KnockoutOptions, encodings: "Sequence[Encoding]") -> dict[str, list[list[Link]]]:
    """Of each kind of words the links of each input, as many as of the other kinds at every distance."""
    kinds = _of_words(options)
    if not kinds:
        return {}
    pipeline, found = studies.worker_cache.pipeline(None), []
    for encoding in encodings:
        texts = [text for text in (encoding.text, encoding.pair) if text]
        tagged = studies.tagging.tag(texts, pipeline)
        links = [links_of(encoding, tagged, kind) for kind in kinds]
        found.append(matched(links, seed=options.seed, text=" ".join(texts)))
    return {kind: [links[k] for links in found] for k, kind in enumerate(kinds)}


def _edges(
    kind: str, words: Mapping[str, list[list[Link]]], encodings: "Sequence[Encoding]", *, causal: bool
) -> "Callable[[Encoding], Tensor]":
    if kind not in words:
        return capture.knockout.edges_of(kind, causal=causal)
    return capture.knockout.LinkEdges(dict(zip(encodings, words[kind], strict=True)), causal=causal)


def layers_of(layers: int, attending: Sequence[int] = ()) -> list[list[int]]:
    """Each layer alone, then all together (if there is more than one). attending: as of `AttentionMaps`."""
    own = list(attending or range(layers))
    return [*([layer] for layer in own), *([own] if len(own) > 1 else [])]


# ---------------------------------------------------------------- links between two sorts of words


def is_of_words(kind: str) -> bool:
    """Whether a kind of edges is "SORT-SORT". Raises InputError for a sort that is none."""
    first, dash, other = kind.partition("-")
    if not dash:
        return False
    if unknown := [name for name in (first, other) if name not in SORTS]:
        raise InputError(f'Sorts of words are {", ".join(SORTS)}; "{unknown[0]}" is none of them.')
    return True


def links_of(encoding: "Encoding", tagged: Sequence["TaggedSentence"], kind: str) -> list[Link]:
    """Positions (earlier, later) of every two words of one piece that are of these sorts, by sentence."""
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
    """Of each kind as many links at every distance as all kinds have there, drawn by seed and text."""
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
    """By how much the label that is predicted untouched leads the next one; of a score, the score.

    Args:
        logits: of the model with links cut. *Shape:* (row, label).
        plain: of the untouched model, which say both labels. *Shape:* (row, label).

    Returns:
        Differences of `logits`, below 0 where the order of the two labels turned. *Shape:* (row,), float64.
    """
    if plain.shape[-1] == 1:
        return logits[:, 0].double().numpy()
    best = plain.topk(2, dim=-1).indices
    both = logits.double().gather(-1, best)
    return (both[:, 0] - both[:, 1]).numpy()


def contrasts(task: str, moved: Mapping[str, np.ndarray], links: Mapping[str, np.ndarray]) -> list[LinkContrast]:
    """The first kind beside each other one, on the rows that have links of both.

    Args:
        moved: of each kind how far cutting its links moved each row, whichever way. *Shape:* (row,).
        links: how many were cut of each row, as many of every kind. *Shape:* (row,).

    Returns:
        A record for each kind but the first: the mean difference with its 95 % interval (of t); None without two rows.
    """
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
