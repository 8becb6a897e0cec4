"""How well single heads predict dependencies on gold trees (Clark et al. 2019, section 4.2, Table 1).

For each relation the head, its direction and the baseline's fixed distance are chosen on the treebank's dev part and
reported on its test part, so that the best of many heads is not flattered. Rows, one a relation and direction: the head
with its test accuracy, 95% bootstrap interval over sentences, n links, and the fixed distance's accuracy as baseline;
"chosen" says which of the two directions gets more links right on dev (a causal model sees some links in each).
"""

from collections import Counter
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from core.scoring.definitions import DIRECTIONS
from core.studies import passes
from core.studies.features import estimate
from core.studies.relations import RelationMeasure, linked_words, unpack, visible
from core.studies.study import Options, Row, Study, Unit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.tasks.conllu import GoldSentence
    from core.tasks.language import TaggedWord
    from core.tasks.relations import Relation

ALL = "all"
RELATIONS = (
    ALL, "nsubj", "obj", "iobj", "obl", "nmod", "amod", "advmod", "det", "case", "aux", "cop", "mark", "conj", "cc",
    "compound", "compound:prt", "nummod", "nmod:poss", "ccomp", "xcomp", "advcl", "acl", "acl:relcl", "expl", "flat",
)  # fmt: skip
SKIPPED = ("root", "punct")  # as in Clark et al.
PARTS = ("dev", "test")
DEFAULTS: Options = {
    "checkpoint": "atlas-encoder",
    "treebank": None,  # a folder with *-dev.conllu and *-test.conllu
    "limit": None,
    "seed": 0,
    "dtype": "float32",
}


def file_of(folder: str | None, part: str) -> Path:
    """The CoNLL-U file of a part. Raises InputError when there is not exactly one."""
    from core.config import inside
    from core.errors import InputError

    found = sorted(inside(folder).glob(f"*-{part}.conllu")) if folder else []
    if len(found) != 1:
        raise InputError(
            f"Gold trees are read from a treebank's folder with one *-{part}.conllu; {folder or 'no folder'} has "
            f"{len(found)}: give a Universal Dependencies folder."
        )
    return found[0]


def sentences(options: Options, part: str) -> "list[GoldSentence]":
    """The sentences of a part, at most `limit` from its beginning."""
    from core.tasks.conllu import read_conllu

    return read_conllu(file_of(options["treebank"], part))[: options["limit"]]


def units(options: Options) -> list[Unit]:
    """Chunks of gold sentences, of dev (where heads are chosen) and of test (where they are scored)."""
    found = []
    for part in PARTS:
        known = sentences(options, part)
        for start in range(0, len(known), passes.ROWS_A_UNIT):
            some = known[start : start + passes.ROWS_A_UNIT]
            arguments = {"part": part, "start": start, "stop": start + len(some)}
            found.append(Unit(f"{part}|{start}", arguments, size=sum(len(one.words) for one in some)))
    return found


class TreeMeasure(RelationMeasure):
    """Links of gold trees instead of tagged texts."""

    def take_trees(self, inputs: "Sequence[tuple[int, Any, GoldSentence]]") -> list[Any]:
        """inputs: (number, encoding, sentence)."""
        linked = []
        for _, encoding, gold in inputs:
            spans = [[(word.start, word.end) for word in gold.words]]
            found = [
                [((0, a), (0, b)) for a, b in tree_links(label_of(relation), gold.words)] for relation in self.relations
            ]
            linked.append(linked_words(encoding, spans, found))
        return [self.attention.take(linked, [number for number, *_ in inputs])]


def tree_links(label: str, words: "Sequence[TaggedWord]") -> list[tuple[int, int]]:
    """(dependent, governor) of every word with this label or a subtype of it; ALL: of every label but SKIPPED."""
    from core.tasks.features import is_dependency

    return [
        (k, word.head)
        for k, word in enumerate(words)
        if word.head != k
        and (word.dep.partition(":")[0] not in SKIPPED if label == ALL else is_dependency(word.dep, label))
    ]


def run(options: Options, unit: Unit) -> list[Row]:
    """The sums of one unit's inputs, which add up over units."""
    from core.capture.running import run as run_model
    from core.tasks.relations import Relation

    wanted = unit.arguments
    checkpoint = passes.opened(options["checkpoint"], options["dtype"])
    some = sentences(options, wanted["part"])[wanted["start"] : wanted["stop"]]
    relations = [Relation(f"dep:{label}", label, "dependent", "governor", "") for label in RELATIONS]
    measure = TreeMeasure(
        checkpoint.layers, checkpoint.heads, relations, causal=checkpoint.causal, seed=options["seed"]
    )
    inputs = [(wanted["start"] + k, checkpoint.encode(gold.text), gold) for k, gold in enumerate(some)]
    run_model(checkpoint, [encoding for _, encoding, _ in inputs], measure.take_trees(inputs))
    row = {"checkpoint": wanted["part"], "task": "", "start": wanted["start"], "packed": measure.packed()}
    return [row, passes.provenance(checkpoint, [f"{wanted['part']}-{number}" for number, *_ in inputs])]


def summarize(options: Options, rows: list[Row]) -> list[Row]:
    """Add the units up and turn them into rows: one a head and statistic, by checkpoint and task."""
    merged = passes.merged(rows, unpack)
    dev, test = (merged.get((part, "")) for part in PARTS)
    if dev is None or test is None:
        return []  # a summary of unfinished work
    out: list[Row] = []
    results = zip(dev.attention.result(), test.attention.result(), strict=True)
    for number, relation in enumerate(dev.relations):
        ways = []
        for (_, direction, on_dev), (_, _, on_test) in islice(results, len(DIRECTIONS)):
            distances = [visible(one.attention.distances[number], direction, causal=one.causal) for one in (dev, test)]
            known = {"checkpoint": options["checkpoint"], "statistic": direction, "feature": label_of(relation)}
            ways.append(known | best_of_dev(on_dev["accuracy"], on_test["accuracy"], *distances))
        best = max(ways, key=lambda row: row.get("dev", 0) * row.get("dev_n", 0))
        out += [row | {"chosen": row is best} for row in ways]
    return out


def label_of(relation: "Relation") -> str:
    """The dependency label of a relation by name."""
    return relation.name.removeprefix("dep:")


def best_of_dev(on_dev: Any, on_test: Any, dev_distances: "Counter[int]", test_distances: "Counter[int]") -> Row:
    """The best head of dev on test, beside the best distance of dev on test."""
    from core.scoring.tokens import best_distance

    if not on_dev.n[0] or not on_test.n[0]:
        return {"n": int(on_test.n[0]), "note": "too few links of this label"}
    accuracies = on_dev.value[..., 0]
    layer, head = (int(k) for k in np.unravel_index(np.nanargmax(accuracies), accuracies.shape))
    distance, share = best_distance(dev_distances)
    return estimate(on_test, layer, head) | {
        "baseline": test_distances[distance] / sum(test_distances.values()),
        "distance": distance,
        "dev": float(accuracies[layer, head]),
        "dev_n": int(on_dev.n[0]),
        "dev_baseline": share,
    }


STUDY = Study("dependencies", DEFAULTS, units, run, summarize)
