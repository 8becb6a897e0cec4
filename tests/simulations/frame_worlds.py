"""Worlds of attention for studies with inputs of their own: frame links, gold trees, norms. Cases for `registry`.

What may be claimed is that of `attention_worlds`: none of uniform attention, noise, distance alone and kind of word
alone is a frame link or a dependency; norms add where the value vectors are long.
"""

from collections.abc import Callable
from functools import cache, lru_cache, partial

from core.capture.running import run
from core.frames.records import AnnotatedSentence
from core.scoring.links import links_in_pieces
from core.store.rows import Row
from core.studies.attention import dependencies, features, norms
from core.studies.attention.inputs import SourceText
from core.studies.attention.measures import RelationMeasure, linked_words
from core.studies.attention.norms import NormMeasure
from core.studies.attention.partials import InputOffset, Pieces, RelationSums
from core.studies.frames import frame_heads
from core.studies.frames.frame_heads import score_sentences
from core.tasks.conllu import GoldSentence
from tests.simulations import planted_attention as planting
from tests.simulations.attention_worlds import FEW, INPUTS, NATS, TYPES, claimed, rows_of
from tests.simulations.planted_draws import AT, of_world, worlds_with
from tests.simulations.registry import Case, Planted, known

SURE = 0.05
DRAWS = 1999  # of each null of frame links
FRAMES = frame_heads.FrameHeadsOptions(draws=DRAWS, filter=False)


@cache
def _sentences() -> tuple[AnnotatedSentence, ...]:
    """Those bundled with frames, one of each text, that are short enough."""
    read = {sentence.text: sentence for sentence in frame_heads.chosen(FRAMES)[0].kept}
    return tuple(one for one in read.values() if len(planting.encoded(one.text)) <= planting.LONGEST)


def frame_claims(world: str, inputs: int, causal: bool, seed: int) -> float:
    """Whether any head survives all nulls."""
    summary = _frame_rows(world, inputs, causal, seed)[0]
    return float(bool(summary["survivors"]))


def frames_found(inputs: int, causal: bool, strength: float) -> Callable[[int], float]:
    """The share of planted heads that survive all nulls, by seed."""
    world = f"links at {strength:g}"
    return lambda seed: len(_frame_rows(world, inputs, causal, seed)[0]["survivors"]) / planting.ALL_HEADS


@lru_cache(maxsize=1)
def _frame_rows(world: str, inputs: int, causal: bool, seed: int) -> list[Row]:
    order = planting.permuted(len(_sentences()), seed)[:inputs]
    chosen = [_sentences()[k] for k in order]
    encodings = [planting.encoded(sentence.text, causal) for sentence in chosen]
    links = {
        encoding.ids: links_in_pieces(encoding, sentence) for encoding, sentence in zip(encodings, chosen, strict=True)
    }
    texts = [sentence.text for sentence in chosen]
    checkpoint = planting.planted(
        planting.world_of(world), texts, seed, causal=causal, frames=links if world.startswith("links") else {}
    )
    direction = "later_to_earlier" if causal else "element_to_target"
    options = frame_heads.FrameHeadsOptions(draws=DRAWS, filter=False, seed=seed, direction=direction)
    return frame_heads.STUDY.rows(options, score_sentences(checkpoint, chosen, options))


def dependency_claims(world: str, inputs: int, seed: int) -> float:
    """Whether any head is said to look along a dependency."""
    return float(any((row.get("q") or 1) < SURE for row in dependency_rows(world, inputs, seed)))


def dependency_rows(world: str, inputs: int, seed: int) -> list[Row]:
    """Of `study dependencies`, chosen on so many sentences and reported on as many others."""
    worlds = worlds_with(world)
    both = tuple(of_world(sums, world, worlds) for sums in _dependency_sums(worlds, inputs, seed))
    return dependencies.STUDY.rows(dependencies.DependenciesOptions(), Pieces(both))


@lru_cache(maxsize=1)
def _dependency_sums(worlds: tuple[str, ...], inputs: int, seed: int) -> list[RelationSums]:
    texts = [text if isinstance(text, str) else text[0] for text in planting.drawn("mrpc", 2 * inputs, seed)]
    relation = "verb-subject" if worlds[0].startswith("links") else None
    checkpoint = planting.planted([planting.world_of(world) for world in worlds], texts, seed, relation=relation)
    parts = []
    for number, part in enumerate(dependencies.SPLITS):
        trees = [_tree(text) for text in texts[number * inputs : (number + 1) * inputs]]
        measure = RelationMeasure(checkpoint, dependencies._relations())
        encodings, linked = [planting.encoded(tree.text) for tree in trees], []
        for encoding, tree in zip(encodings, trees, strict=True):
            pairs = [
                [((0, a), (0, b)) for a, b in dependencies.tree_links(label, tree.words)]
                for label in dependencies.RELATIONS
            ]
            linked.append(linked_words(encoding, [[(word.start, word.end) for word in tree.words]], pairs))
        run(checkpoint, encodings, [measure.attention.take(linked, range(inputs))])
        parts.append(measure.sums(InputOffset(part, "", 0)))
    return parts


@cache
def _tree(text: str) -> GoldSentence:
    (tagged,) = planting.tag([text], planting.pipeline())
    return GoldSentence(text, tuple(tagged.words))


def norm_claims(values: str, allowed: frozenset[str], inputs: int, seed: int) -> float:
    """Whether a feature is claimed that the lengths of value vectors do not make, where all weights are equal."""
    texts = planting.drawn("sst2", inputs, seed)
    checkpoint = planting.planted(planting.WORLDS["uniform"], texts, seed, values=values)
    measure = NormMeasure(checkpoint, features.FEATURES, seed=0)
    measure.observe(planting.pipeline(), [SourceText(k, str(k), str(text), None) for k, text in enumerate(texts)])
    return float(bool(claimed(rows_of(norms.STUDY, measure.sums(AT))) - allowed))


def _cases() -> list[Case]:
    cases = []
    for world in ("uniform", "distance", "kind of word", "noise"):
        for inputs in (FEW, INPUTS):
            quick = int(inputs == INPUTS and world == "kind of word")
            cases.append(
                Case(
                    "frame-heads",
                    f"{world}, n = {inputs}",
                    "nothing",
                    partial(frame_claims, world, inputs, False),
                    inputs,
                    quick=quick,
                )
            )
            cases.append(
                Case(
                    "dependencies",
                    f"{world}, n = {inputs}",
                    "nothing",
                    partial(dependency_claims, world, inputs),
                    inputs,
                    quick=quick,
                    world_of=f"dependencies {inputs}",
                )
            )
        cases.append(
            Case(
                "frame-heads",
                f"{world}, decoder, n = {INPUTS}",
                "nothing",
                partial(frame_claims, world, INPUTS, True),
                INPUTS,
            )
        )
    for values, allowed in (("noise", frozenset()), ("kind", TYPES)):
        for inputs in (FEW, INPUTS):
            cases.append(
                Case(
                    "norms",
                    f"lengths of values by {values}, n = {inputs}",
                    "nothing",
                    partial(norm_claims, values, frozenset(allowed), inputs),
                    inputs,
                    quick=int(inputs == INPUTS and values == "kind"),
                )
            )
    return cases + _planted()


def _planted() -> list[Case]:
    """Asked for: how strongly heads look along links so that half of them (dependencies: half of the draws) are
    claimed, by draws."""
    heads = [
        known(
            "frame-heads",
            f"planted links{whose}, n = {INPUTS}",
            Planted(asked, NATS, partial(frames_found, INPUTS, causal)),
            INPUTS,
            draws=60,
            quick=int(not causal),
        )
        for whose, causal, asked in (("", False, 0.55), (", decoder", True, 1.6))
    ]

    def dependencies_at(strength: float) -> Callable[[int], float]:
        return partial(dependency_claims, f"links at {strength:g}", INPUTS)

    subject = Planted(0.33, NATS, dependencies_at)
    return [*heads, known("dependencies", f"planted verb-subject, n = {INPUTS}", subject, INPUTS, draws=60, quick=1)]


CASES: tuple[Case, ...] = tuple(_cases())
