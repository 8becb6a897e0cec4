"""Which heads look from verb to subject, pronoun to noun, word to the same word ... (Kovaleva et al. 2019, 4.5).

Rows, one a head, relation, direction, checkpoint and task: value, the mean weight over links with its 95% bootstrap
interval (inputs are drawn, not links), n links, baseline (the same head's weight at the same distance elsewhere; across
sentences, on the other words there), effect, p and q as in `core.studies.features`; accuracy, the share of links where
the head looks there most, beside the accuracy of the best fixed distance, and of the previous and next word.
"""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from core.studies import passes
from core.studies.features import estimate
from core.studies.study import Options, Row, Study, Unit

if TYPE_CHECKING:
    from core.capture.running import Observer
    from core.models.encoding import Encoding
    from core.scoring.tokens import LinkedWords
    from core.studies.passes import Prepared
    from core.tasks.relations import Relation

RELATIONS = ["verb-subject", "verb-object", "determiner-noun", "noun-pronoun", "same-word"]
DEFAULTS: Options = passes.DEFAULTS | {"relations": RELATIONS}


class RelationMeasure:
    """Attention along links on one checkpoint."""

    def __init__(self, layers: int, heads: int, relations: "Sequence[Relation]", *, causal: bool, seed: int):
        from core.scoring.tokens import RelationAttention

        self.shape, self.causal, self.seed, self.relations = (layers, heads), causal, seed, list(relations)
        self.attention = RelationAttention(
            layers,
            heads,
            [one.name for one in relations],
            across=[one.across for one in relations],
            causal=causal,
        )

    def take(self, inputs: "Sequence[Prepared]") -> "list[Observer]":
        from core.tasks.relations import links, links_across

        linked = []
        for one in inputs:
            words = [tagged.words for tagged in one.tagged]
            found = [
                [((0, a), (1, b)) for a, b in links_across(*words)]
                if relation.across and len(words) > 1
                else [((k, a), (k, b)) for k, some in enumerate(words) for a, b in links(relation, some)]
                for relation in self.relations
            ]
            linked.append(linked_words(one.encoding, [tagged.spans for tagged in one.tagged], found))
        return [self.attention.take(linked, [one.number for one in inputs])]

    def merge(self, other: "RelationMeasure") -> None:
        self.attention.merge(other.attention)

    def packed(self) -> Row:
        return {
            "shape": list(self.shape),
            "causal": self.causal,
            "seed": self.seed,
            "relations": [one.name for one in self.relations],
            "distances": [{str(d): n for d, n in one.items()} for one in self.attention.distances],
            "means": self.attention.means.packed(),
        }


def linked_words(
    encoding: "Encoding",
    spans: "Sequence[Sequence[tuple[int, int]]]",
    links: "Sequence[Sequence[tuple[tuple[int, int], tuple[int, int]]]]",
) -> "LinkedWords":
    """Bring links between tagged words, each (sentence, number of the word), to the words of an encoding.

    A piece that spans two words joins them; a link inside such a word, or to a word without pieces (cut off, or of
    characters that the tokenizer drops), is left out.
    """
    from core.capture.words import groups_of
    from core.scoring.tokens import LinkedWords

    words = groups_of(encoding, list(spans) + [[]] * (2 - len(spans)))
    owner = {position: number for number, word in enumerate(words) for position in word}
    place: dict[tuple[int, int], int] = {}
    for sentence, some in enumerate(spans):
        for number, (start, end) in enumerate(some):
            pieces = encoding.pieces(start, end, sentence)
            if pieces:
                place[sentence, number] = owner[pieces[0]]
    kept = [
        [(place[a], place[b]) for a, b in some if a in place and b in place and place[a] != place[b]] for some in links
    ]
    sentences = [encoding.sentence[word[0]] for word in words]
    return LinkedWords(
        [tuple(word) for word in words], [-1 if sentence is None else sentence for sentence in sentences], kept
    )


def make(checkpoint: Any, options: Options) -> RelationMeasure:
    """The measure of one checkpoint."""
    from core.tasks.relations import relation_of

    relations = [relation_of(name) for name in dict.fromkeys(options["relations"])]
    return RelationMeasure(
        checkpoint.layers, checkpoint.heads, relations, causal=checkpoint.causal, seed=options["seed"]
    )


def unpack(packed: Row) -> RelationMeasure:
    """What `RelationMeasure.packed` gave."""
    from core.scoring.intervals import Means
    from core.tasks.relations import relation_of

    relations = [relation_of(name) for name in packed["relations"]]
    layers, heads = packed["shape"]
    found = RelationMeasure(layers, heads, relations, causal=packed["causal"], seed=packed["seed"])
    found.attention.means = Means.unpacked(packed["means"])
    found.attention.distances = [Counter({int(d): n for d, n in one.items()}) for one in packed["distances"]]
    return found


def units(options: Options) -> list[Unit]:
    """Chunks of rows; wrong relations are refused before anything runs."""
    from core.errors import InputError
    from core.tasks.relations import relation_of

    if not options["relations"]:
        raise InputError("At least one relation must be looked for; none was given: name one, such as verb-subject.")
    for name in options["relations"]:
        relation_of(name)
    return passes.units(options)


def run(options: Options, unit: Unit) -> list[Row]:
    """The sums of one unit's inputs, which add up over units."""
    return passes.run_unit(options, unit, make)


def summarize(options: Options, rows: list[Row]) -> list[Row]:
    """Add the units up and turn them into rows: one a head and statistic, by checkpoint and task."""
    out = []
    for (checkpoint, task), measure in passes.merged(rows, unpack).items():
        out += rows_of(measure, {"checkpoint": checkpoint, "task": task})
    return out


def rows_of(measure: RelationMeasure, facts: Row) -> list[Row]:
    """One row a head, relation and direction; one row without a head where there is no link."""
    rows = []
    names = [one.name for one in measure.relations]
    for relation, direction, found in measure.attention.result():
        known = facts | {"statistic": direction, "feature": relation}
        if not found["weight"].n[0]:
            rows.append(known | {"n": 0, "note": "no input has this relation in this direction"})
            continue
        distances = visible(measure.attention.distances[names.index(relation)], direction, causal=measure.causal)
        across = measure.relations[names.index(relation)].across  # no distance means anything there
        fixed = {} if across else fixed_distances(distances)
        weight, excess, accuracy = (found[name] for name in ("weight", "excess", "accuracy"))
        p = excess.p_above()[..., 0]
        q = passes.q_values(p)
        for layer, head in np.ndindex(*p.shape):
            effect = estimate(excess, layer, head)
            right = estimate(accuracy, layer, head)
            rows.append(
                known
                | estimate(weight, layer, head)
                | {"effect": effect["value"], "effect_low": effect["low"], "effect_high": effect["high"]}
                | {"baseline": float(weight.value[layer, head, 0]) - effect["value"], "p": float(p[layer, head])}
                | {"q": float(q[layer, head]), "accuracy": right["value"]}
                | {"accuracy_low": right["low"], "accuracy_high": right["high"]}
                | fixed
            )
    return rows


def visible(distances: "Counter[int]", direction: str, *, causal: bool) -> "Counter[int]":
    """The distances of the links that count in a direction: in causal models those whose query sees its key."""
    if not causal:
        return distances
    return Counter({d: n for d, n in distances.items() if (d < 0) == (direction == "forward")})


def fixed_distances(distances: "Counter[int]") -> Row:
    """Accuracies of the best fixed distance, and of the previous and the next word."""
    from core.scoring.tokens import best_distance

    chosen, share = best_distance(distances)
    total = sum(distances.values())
    return {
        "best_distance": chosen,
        "best_distance_accuracy": share,
        "previous_accuracy": distances[-1] / total if total else None,
        "next_accuracy": distances[1] / total if total else None,
    }


STUDY = Study("relations", DEFAULTS, units, run, summarize)
