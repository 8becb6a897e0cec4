"""Worlds of the dossier: hypotheses about untrained heads, repeated rows, batches of hypotheses, heads with small
effects. Cases for `registry`.

Untrained checkpoints are small encoders of random weights, whose queries and keys are scaled, on bundled rows. What is
said of each head is its strongest feature on other rows, as *Heads > One head* proposes it.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from core.attention import Head
from core.models.checkpoint import Checkpoint
from core.models.classifier import random_copy
from core.scoring.corrections import batch_level, holm
from core.studies.attention.inputs import SourceText
from core.studies.attention.measures import FeatureMeasure, features_again, observe
from core.studies.attention.partials import InputOffset
from core.studies.hypotheses.hypothesis import Batch, criteria_of, input_marks
from core.studies.hypotheses.predicates import LEAST_WEIGHT, Hypothesis, checked
from core.studies.hypotheses.readings import beyond, effect_estimate
from core.tasks.glue import TaskRow
from tests.simulations import counterpart_worlds
from tests.simulations import planted_attention as planting
from tests.simulations.registry import Case, Planted, known

FEATURES = ("noun", "verb", "pronoun", "punctuation")
INPUTS = 60  # that judge, and as many that hypotheses are thought of on
LEAST = float(LEAST_WEIGHT)
STUDY, JUDGED, THOUGHT = "features", "judged on", "thought of on"


def _measured(checkpoint: Checkpoint, texts: Sequence[str], seed: int) -> Any:
    """What the study of features leaves."""
    measure = FeatureMeasure(checkpoint, FEATURES, seed=seed, word_types=True)
    sources = [SourceText(number, f"row-{number}", text, None) for number, text in enumerate(texts)]
    observe(checkpoint, planting.pipeline(), sources, [measure])
    return SimpleNamespace(pieces=(measure.sums(InputOffset(checkpoint.name, "t", 0)),))


@cache
def _texts() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Rows that hypotheses are thought of on, and rows that judge."""
    texts = [text for text in planting.pool("sst2") if isinstance(text, str)]
    return tuple(texts[:INPUTS]), tuple(texts[INPUTS : 2 * INPUTS])


def _held_out(hypotheses: Sequence[Hypothesis], partials: dict[tuple[str, str, str], Any]) -> list[bool]:
    """Whether each is held out, in one batch, the first on its rows."""
    rows = criteria_of(hypotheses, Batch("c", batch_level(1), len(hypotheses)), [], partials)
    return [row.state == "met" for row in rows if row.criterion == "held out"]


def _strongest(thought: Any) -> list[Hypothesis]:
    """Of each head its strongest feature."""
    (sums,) = thought.pieces
    observer = features_again(sums)
    effects = {name: observer.result()["max", name][1].value[..., 0] for name in FEATURES}
    made = []
    for layer, head in np.ndindex(*effects["noun"].shape):
        name = max(FEATURES, key=lambda feature: np.nan_to_num(effects[feature][layer, head], nan=-1.0))
        parameters = checked("looks-at", {"feature": name})
        made.append(Hypothesis(f"{Head(layer, head)}", layer, head, "looks-at", parameters))
    return made


def claims_of_untrained(scale: float, seed: int) -> float:
    """Whether any hypothesis about untrained heads is held out."""
    checkpoint = counterpart_worlds.scaled(random_copy(counterpart_worlds.small(), seed=1000 + seed), scale)
    thought, judged = _texts()
    own = _measured(checkpoint, thought, seed)
    partials = {(STUDY, "c", THOUGHT): own, (STUDY, "c", JUDGED): _measured(checkpoint, judged, seed)}
    return float(any(_held_out(_strongest(own), partials)))


# ---------------------------------------------------------------- inputs that come again

VARIANTS: tuple[Callable[[str], str], ...] = (
    str.upper,
    str.title,
    lambda text: text.replace(" ", "  "),
    lambda text: f" {text}",
    lambda text: f"{text} !",
    lambda text: text.replace("e", "é"),
    lambda text: text.replace(",", " ,").replace("'", "’"),
)


def claims_of_variants(seed: int) -> float:
    """Whether any of 20 rows counts as another input after one to three changes of case, spaces, marks or accents."""
    rng = np.random.default_rng(seed)
    checkpoint = planting.bundled()
    texts = [text for text in planting.pool("sst2") if isinstance(text, str)]
    for text in (texts[k] for k in rng.choice(len(texts), 20, replace=False)):
        other = text
        for k in rng.choice(len(VARIANTS), rng.integers(1, 4), replace=False):
            other = VARIANTS[k](other)
        first, second = (set(input_marks(TaskRow("r", one, None, 0), checkpoint)) for one in (text, other))
        if not first & second:
            return 1.0
    return 0.0


# ---------------------------------------------------------------- batches

BATCHES, ROWS = 20, 60


def claims_of_batches(shared: bool, seed: int) -> float:
    """Whether any of 20 batches of one false hypothesis has it held out; the true effect is the least one.

    shared: all are judged on rows that the others have too, and are numbered; otherwise each is a first one.
    """
    rng = np.random.default_rng(seed)
    for number in range(1, BATCHES + 1):
        effect = effect_estimate(rng.normal(LEAST, 0.05, ROWS))
        p = beyond("weight", effect, LEAST, Head(0, 0)).p
        (adjusted,) = holm([p], registered=1)
        if adjusted <= batch_level(number if shared else 1):
            return 1.0
    return 0.0


# ---------------------------------------------------------------- power

STRENGTHS = {0.02: 0.27}  # by weight beyond chance: how much more nouns have before the softmax, for that mean
POWER_INPUTS = 600


@cache
def _judging() -> tuple[str, ...]:
    texts = [
        text if isinstance(text, str) else text[0] for task in ("sst2", "mrpc", "qnli") for text in planting.pool(task)
    ]
    return tuple(dict.fromkeys(texts))[:POWER_INPUTS]


def finds_of_nouns(size: float, seed: int) -> float:
    """The share of heads with a weight on nouns so much beyond chance that are held out, each in a batch of its own."""
    world = planting.world_of(f"nouns at {STRENGTHS[size]:g}")
    judged = _measured(planting.planted(world, _judging(), seed), _judging(), seed)
    parameters = checked("looks-at", {"feature": "noun"})
    heads = np.ndindex(planting.LAYERS, planting.HEADS)
    made = [Hypothesis(f"{Head(*place)}", *place, "looks-at", parameters) for place in heads]
    return float(np.mean([_held_out([one], {(STUDY, "c", JUDGED): judged})[0] for one in made]))


def _cases() -> Iterator[Case]:
    for scale in counterpart_worlds.SCALES:
        world = f"untrained weights, queries and keys times {scale}"
        yield Case("hypothesis", world, "nothing", partial(claims_of_untrained, scale), INPUTS, draws=40)
    world = "rows with other case, spaces, marks or accents taken for other inputs"
    yield Case("hypothesis", world, "nothing", claims_of_variants, 20, draws=100, quick=4)
    together, apart = (partial(claims_of_batches, shared) for shared in (True, False))
    yield Case("hypothesis", f"{BATCHES} batches that share inputs", "nothing", together, ROWS, quick=40)
    # what docs/explanation/hypotheses.md says of batches that share none
    disjoint = f"{BATCHES} batches that share no input, held to 46 %"
    yield Case("hypothesis", disjoint, "nothing", apart, ROWS, quick=40, bound=0.46)
    nouns = Planted(LEAST, "of weight beyond chance", partial(partial, finds_of_nouns), is_margin=True)
    world = f"nouns at twice the least effect, n = {POWER_INPUTS}"
    yield known("hypothesis", world, nouns, POWER_INPUTS, draws=40, bound=0.8)


CASES: tuple[Case, ...] = tuple(_cases())
