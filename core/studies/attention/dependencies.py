"""How well single heads predict the dependencies of gold trees (Clark et al. 2019, section 4.2, Table 1).

The head, its direction and the fixed distance of the baseline are chosen on the dev split of the treebank and evaluated
on test. Contrast and p are defined as in `core.studies.attention.relations`, because a head that attends to all verbs
is right for many subjects without following the relation. q is corrected over all relations and directions. "chosen"
marks the direction with more correct links on dev.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import numpy as np
import pydantic.dataclasses

from ... import capture, scoring, studies
from ...interval import or_nan
from ...scoring.corrections import q_values
from ...scoring.definitions import DIRECTIONS
from ...scoring.intervals import StatisticEstimate
from ...store.rows import Row
from ...tasks.conllu import GoldSentence, file_of, read_conllu
from ...tasks.features import is_dependency
from ...tasks.relations import Relation
from ..contract import ChunkUnit, Done, Flag, Study, Unit, provenance
from ..headline import SIGNIFICANT, Headline, defined, percent, plural
from ..options import Checkpoint, FirstRows, Seed
from .attending import at_head, contrasted
from .inputs import ROWS_A_UNIT
from .partials import InputOffset, Pieces, RelationSums
from .records import DependencyScore, outstanding
from .relations import visible

if TYPE_CHECKING:
    from ...tasks.features import TaggedWord

ALL = "all"
RELATIONS = (
    ALL, "nsubj", "obj", "iobj", "obl", "nmod", "amod", "advmod", "det", "case", "aux", "cop", "mark", "conj", "cc",
    "compound", "compound:prt", "nummod", "nmod:poss", "ccomp", "xcomp", "advcl", "acl", "acl:relcl", "expl", "flat",
)  # fmt: skip
SKIPPED = ("root", "punct")  # as in Clark et al.
SPLITS = ("dev", "test")


@pydantic.dataclasses.dataclass(frozen=True)
class DependenciesOptions:
    """Options for testing attention heads on gold dependencies."""

    checkpoint: Checkpoint = "atlas-encoder"
    treebank: Annotated[
        str | None,
        Flag("folder of a Universal Dependencies treebank with *-dev.conllu and *-test.conllu files", required=True),
    ] = None
    limit: FirstRows = None
    seed: Seed = 0
    dtype: str = "float32"


class DependenciesStudy(Study[DependenciesOptions, Pieces[RelationSums]]):
    """Measure how well heads that are chosen on dev predict gold dependencies on test (Clark et al.)."""

    name, options, partial, arguments = "dependencies", DependenciesOptions, Pieces[RelationSums], ChunkUnit
    question = "Which head predicts each dependency relation best?"
    kinds = (DependencyScore,)

    def units(self, options: DependenciesOptions) -> list[Unit]:
        all_units = []
        for part in SPLITS:
            all_sentences = sentences(options, part)
            for start in range(0, len(all_sentences), ROWS_A_UNIT):
                batch = all_sentences[start : start + ROWS_A_UNIT]
                size = sum(len(sentence.words) for sentence in batch)
                all_units.append(
                    Unit(f"{part}|{start}", ChunkUnit(options.checkpoint, part, start, start + len(batch)), size=size)
                )
        return all_units

    def run(self, options: DependenciesOptions, unit: Unit) -> Done[Pieces[RelationSums]]:
        at: ChunkUnit = unit.arguments
        checkpoint = studies.worker_cache.get_checkpoint(options.checkpoint, dtype=options.dtype)
        batch = sentences(options, at.inputs)[at.start : at.stop]
        measure, linked = studies.attention.measures.RelationMeasure(checkpoint, _relations()), []
        encodings = [checkpoint.encode(sentence.text) for sentence in batch]
        for encoding, sentence in zip(encodings, batch, strict=True):
            spans = [[(word.start, word.end) for word in sentence.words]]
            pairs = [[((0, a), (0, b)) for a, b in tree_links(label, sentence.words)] for label in RELATIONS]
            linked.append(studies.attention.measures.linked_words(encoding, spans, pairs))
        numbers = list(range(at.start, at.start + len(batch)))
        capture.running.run(checkpoint, encodings, [measure.attention.take(linked, numbers)])
        names = [f"{at.inputs}-{number}" for number in numbers]
        return Done(
            Pieces[RelationSums]((measure.sums(InputOffset(at.inputs, "", at.start)),)), provenance(checkpoint, names)
        )

    def results(self, options: DependenciesOptions, merged: Pieces[RelationSums]) -> list[DependencyScore]:
        parts = {sums.at.checkpoint: sums for sums in merged.pieces}
        if set(parts) != set(SPLITS):
            return []
        dev, test = (parts[part] for part in SPLITS)
        scores: list[DependencyScore] = []
        again = studies.attention.measures.relations_again
        results = zip(*(again(sums, _relations()).result() for sums in (dev, test)), strict=True)
        for number, label in enumerate(RELATIONS):
            ways = []
            for (_, direction, on_dev), (_, _, on_test) in islice(results, len(DIRECTIONS)):
                distances = [visible(sums.distances[number], direction, causal=sums.causal) for sums in (dev, test)]
                about = DependencyScore(checkpoint=options.checkpoint, statistic=direction, feature=label)
                best = best_of_dev(about, on_dev["accuracy"], on_test["accuracy"], *distances)
                ways.append(beyond_kinds(best, on_test))
            best = max(ways, key=lambda score: (score.dev or 0) * (score.dev_n or 0))
            scores += [replace(score, chosen=score is best) for score in ways]
        q = q_values(np.array([[or_nan(score.p) for score in scores]]))[0]
        return [
            score if np.isnan(value) else replace(score, q=float(value)) for score, value in zip(scores, q, strict=True)
        ]

    def headline(self, rows: Sequence[Row]) -> Headline:
        chosen = [score for score in DependencyScore.of_heads(rows) if score.chosen]
        sure = [score for score in chosen if score.q is not None and score.q < SIGNIFICANT]
        best = max(sure or chosen, key=lambda score: defined(score.value) - defined(score.baseline))
        judged = any(score.q is not None for score in chosen)
        relations = plural(len(sure), len(chosen), "relations")
        tested = (
            f"For {relations}, the best head attends to the related word significantly more than distance and word "
            "classes predict."
            if judged
            else "This result does not test whether heads attend along relations more than distance predicts."
        )
        return Headline(
            f"Head {best.name} predicts the syntactic relation {best.feature} with an accuracy of {best.value:.2f}. "
            f"{tested}",
            best.n,
            "links",
            percent(best.estimate.low, best.estimate.high, "{:.2f}", 1),
            f"A baseline that predicts the word at a fixed distance has an accuracy of {best.baseline:.2f}.",
        )

    def shown(self, rows: Sequence[Row]) -> list[list[Row] | str]:
        return outstanding(rows, "value")


STUDY = DependenciesStudy()


def _relations() -> list[Relation]:
    return [Relation(f"dep:{label}", label, "dependent", "governor", "") for label in RELATIONS]


def sentences(options: DependenciesOptions, part: str) -> list[GoldSentence]:
    """Load the first sentences of a treebank split, up to the limit in the options."""
    return read_conllu(file_of(options.treebank, part), options.limit)


def tree_links(label: str, words: "Sequence[TaggedWord]") -> list[tuple[int, int]]:
    """Return the index pairs (dependent, governor) of the dependencies with this label or a subtype of the label."""
    return [
        (k, word.head)
        for k, word in enumerate(words)
        if word.head != k
        and (word.dep.partition(":")[0] not in SKIPPED if label == ALL else is_dependency(word.dep, label))
    ]


def beyond_kinds(score: DependencyScore, on_test: dict[str, StatisticEstimate]) -> DependencyScore:
    """Add the p-value and the contrast to a copy of a score. The contrast is the part of the log attention weight that
    query, key and distance do not explain."""
    if score.layer is None or score.head is None:
        return score
    cell = score.layer, score.head
    p = np.maximum(on_test["excess"].p_above(), on_test["contrast"].p_above())[(*cell, 0)]
    return replace(contrasted(score, on_test["contrast"], *cell), p=float(p))


def best_of_dev(
    score: DependencyScore,
    on_dev: StatisticEstimate,
    on_test: StatisticEstimate,
    dev_distances: "Counter[int]",
    test_distances: "Counter[int]",
) -> DependencyScore:
    """Choose the best head and, as a baseline, the best constant distance on dev. Return their accuracies on test."""
    if not on_dev.n[0] or not on_test.n[0]:
        return replace(score, n=int(on_test.n[0]), note="too few links of this label")
    accuracies = on_dev.value[..., 0]
    layer, head = (int(k) for k in np.unravel_index(np.nanargmax(accuracies), accuracies.shape))
    distance, share = scoring.tokens.best_distance(dev_distances)
    return replace(
        at_head(score, on_test, layer, head, most=1.0),
        baseline=test_distances[distance] / sum(test_distances.values()),
        distance=distance,
        dev=float(accuracies[layer, head]),
        dev_n=int(on_dev.n[0]),
        dev_baseline=share,
    )
