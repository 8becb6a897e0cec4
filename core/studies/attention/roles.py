"""Roles of heads: previous, next, first, separator, duplicate, induction, rare word, dependency, copying.

Measured on the examples of a task; duplicates and induction also on repeated sequences of random words. Each row has a
head and a role: the weight (for the rare word: the fraction of largest weights) with its 95 % interval over n inputs,
baseline, and effect (weight minus baseline). Rows "<role> without sink" leave out the first token. `has` states whether
the weight exceeds `times` the baseline, with q corrected over all heads and roles; a head may have several roles or
none. "copying" depends only on the model weights and has no interval.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pydantic.dataclasses

from ... import capture
from ...capture.words import groups_of
from ...errors import InputError
from ...map_sums import MapSums, Needs
from ...models.encoding import Encoding
from ...scoring.intervals import EVERY_LAYER
from ...scoring.registry import CLARK, HeadScore, Need
from ...scoring.roles import (
    ON_CONTROL,
    TIMES,
    RepeatedTokens,
    RoleBlocks,
    RoleMeans,
    RolePositions,
    columns_of,
    repeated_tokens,
    role_q,
)
from ...store.rows import Row
from ..contract import Flag
from ..headline import SIGNIFICANT, Fact, Headline, HeadScores, each, number
from ..options import Pipeline
from ..records import picked
from .attending import Attending, at_head, beside_null, score_of
from .inputs import AttendingOptions
from .partials import InputOffset, Pieces, RoleSums
from .records import RoleScore

if TYPE_CHECKING:
    from ...capture.running import Observer
    from ...models.checkpoint import Checkpoint
    from .measures import Prepared


OLSSON = "Olsson et al. 2022"


def _role(
    name: str, label: str, formula: str, source: str, needs: tuple[Need, ...] = ("weights", "tokens"), **fields: Any
) -> list[HeadScore]:
    """Return the definition of a role's score, and the same score without the sink."""
    role_score = HeadScore(name, f"role: {label}", formula, needs, 0.0, 1.0, source, **fields)
    without_sink = HeadScore(f"{name} without sink", f"role: {label}, no sink",
                             f"{formula}; the first token taken out, rows scaled to sum to 1", needs, 0.0, 1.0, source,
                             **fields)  # fmt: skip
    return [role_score, without_sink]


ROLE_SCORES = (
    *_role("previous", "previous token", "mean weight on the token before", CLARK),
    *_role("next", "next token", "mean weight on the token after", CLARK, causal=False),
    *_role("first", "first token (sink)", "mean weight on the first token", CLARK)[:1],
    *_role("separator", "separator", "mean weight on all separators together", CLARK),
    *_role("duplicate", "duplicate token", "on random tokens that come twice: from the second to the first", OLSSON),
    *_role("prefix", "induction", "on random tokens that come twice: from the second to the one after the first",
           OLSSON),
    *_role("rare", "rare word", "share of queries whose largest weight is on the least frequent word",
           "Voita et al. 2019"),
    *_role("dependency", "dependency", "mean weight from a word to its governor or dependents", "Voita et al. 2019",
           ("weights", "tags", "links")),
    HeadScore("copying", "OV copying", "sum of the eigenvalues of W_E W_V W_O W_U over the sum of their sizes",
              ("values",), -1.0, 1.0, "Elhage et al. 2021"),
)  # fmt: skip
OWN_LABELS = {score.name: score.label.removeprefix("role: ") for score in ROLE_SCORES}


@pydantic.dataclasses.dataclass(frozen=True)
class RolesOptions(AttendingOptions):
    """Options for the study of attention head roles."""

    pipeline: Pipeline = None
    sequences: Annotated[
        int, Flag("number of test sequences, each of which repeats its random words once", least=2)
    ] = 50
    period: Annotated[int, Flag("number of random words in a test sequence before the words repeat", least=2)] = 20
    times: Annotated[
        float,
        Flag(
            "smallest ratio of attention weight to baseline for a head to have a role (such as attending to the "
            "previous token)",
            least=1,
        ),
    ] = TIMES


class RolesStudy(Attending[RolesOptions, RoleSums]):
    """Test heads for roles such as attending to the previous token, with and without the first token (Pande et al.
    2021)."""

    name, options, partial = "roles", RolesOptions, Pieces[RoleSums]
    kinds = (RoleScore,)
    head_scores = ROLE_SCORES
    section = "where it looks"
    said_at = 2
    gives = "head roles compared with baselines"

    def measure(self, options: RolesOptions, checkpoint: Any) -> "RoleMeasure":
        return RoleMeasure(checkpoint)

    def after(self, options: RolesOptions, measure: Any, start: int) -> None:
        if start == 0:
            measure.repeats(sequences=options.sequences, period=options.period, seed=options.seed)

    def scores(self, options: RolesOptions, sums: RoleSums) -> list[RoleScore]:
        roles = RoleMeans(sums.layers, sums.heads)
        roles.means = sums.means
        q, scores = role_q(roles, times=options.times), []
        for role, whole in roles.result().items():
            for name, value, effect in (
                (role, whole.weight, whole.effect),
                (f"{role} without sink", whole.without_sink, whole.effect_without_sink),
            ):
                about = replace(score_of(RoleScore, sums, name), role=role)
                if not value.n[0]:
                    note = "not without the sink" if whole.weight.n[0] else "no input has such tokens"
                    scores.append(replace(about, n=0, note=note))
                    continue
                for head in sums.names:
                    score = beside_null(at_head(about, value, *head), effect, *head)
                    scores.append(replace(score, q=float(q[role][head]), has=bool(q[role][head] < SIGNIFICANT)))
        copying = score_of(RoleScore, sums, "copying")
        return scores + [
            replace(copying, layer=head.layer, head=head.head, value=float(sums.copying[head]))
            for head in (sums.names if sums.copying.size else ())
        ]

    def facts(self, scores: HeadScores) -> list[Fact]:
        roles = scores.own[~scores.own["score"].str.endswith("without sink") & scores.own["q"].notna()]
        told = []
        for row in each(roles[roles["q"] < SIGNIFICANT].sort_values("value", ascending=False)):
            label = OWN_LABELS[row["score"]]
            told.append(
                Fact(
                    self.name,
                    f"The role of this head is {label}: {number(row)} (baseline {row['baseline']:.2f}).",
                    row["source"],
                )
            )
        none = (
            f"This head has no role: among its {len(roles)} role scores, none is significantly above the required "
            f"multiple of the baseline (by default {TIMES:g})."
        )
        return told or [Fact(self.name, none, source) for source in roles["source"].head(1)]

    def headline(self, rows: Sequence[Row]) -> Headline:
        every = RoleScore.of_heads(rows)
        of_first = picked(every, checkpoint=every[0].checkpoint)
        scores = [score for score in of_first if score.has and score.statistic == score.role]
        named = {role: {s.name for s in scores if s.role == role} for role in dict.fromkeys(s.role for s in scores)}
        counts = {role: len(names) for role, names in named.items()}  # a head has one row for each task
        heads, n = len({score.name for score in scores}), max(int(score.n or 0) for score in of_first)
        counted = ", ".join(f"{role} ({count} head{'s' * (count != 1)})" for role, count in counts.items())
        heads_have = "1 head has" if heads == 1 else f"{heads} heads have"
        counted = f" The role{' is' if len(counts) == 1 else 's are'} {counted}." if counted else ""
        return Headline(
            f"{heads_have} a role, such as attending to the previous token.{counted}",
            n,
            "inputs",
        )


STUDY = RolesStudy()


# ---------------------------------------------------------------- measuring roles


class RoleMeasure:
    """Accumulates the scores of all attention head roles over the inputs of one checkpoint."""

    tags = True

    def __init__(self, checkpoint: "Checkpoint"):
        self.checkpoint = checkpoint
        self.roles = RoleMeans(checkpoint.layers, checkpoint.heads)
        self.copying = np.zeros((0, 0))
        self._places: list[RolePositions] = []
        self._numbers: list[int] = []
        self._blocks: dict[int, RoleBlocks] = {}

    def take(self, inputs: "Sequence[Prepared]") -> "list[Observer]":
        self._places = [role_positions_of(ready, causal=self.checkpoint.causal) for ready in inputs]
        self._numbers = [ready.number for ready in inputs]
        return [self]

    def update(self, layer: int | slice, weights: Any, inputs: list[int]) -> None:
        maps = weights.double().cpu().numpy()
        groups: dict[RolePositions, list[int]] = {}
        for row, k in enumerate(inputs):
            groups.setdefault(self._places[k], []).append(row)
        for places, rows in groups.items():
            self.roles.update_layer(layer, maps[rows], places, [self._numbers[inputs[row]] for row in rows])

    def update_layers(self, weights: Any, inputs: list[int]) -> None:
        self.update(EVERY_LAYER, weights, inputs)

    def needs(self, inputs: list[int], queries: int, keys: int) -> list[Needs] | None:
        if queries != keys:
            return None
        self._begin(inputs)
        return [Needs(blocks=partial(self._take, number)) for number in inputs]

    def update_sums(self, layer: int, sums: Sequence[MapSums], inputs: list[int]) -> None:
        blocks = np.stack([columns_of(self._blocks[number].scores()) for number in inputs])
        self.roles.add(layer, blocks, [self._numbers[number] for number in inputs])
        self._begin(inputs)

    def _begin(self, inputs: Sequence[int]) -> None:
        self._blocks = {number: RoleBlocks((self.checkpoint.heads,), self._places[number]) for number in inputs}

    def _take(self, number: int, head: int, start: int, weights: Any) -> None:
        self._blocks[number].take(head, start, weights)

    def repeats(self, *, sequences: int, period: int, seed: int) -> None:
        """Measure head roles on repeated random tokens and on control sequences, and compute copying scores."""
        checkpoint = self.checkpoint
        plain = checkpoint.encode("word")
        ordinary = plain.ordinary
        words, ends = whole_words(checkpoint), (plain.ids[: ordinary[0]], plain.ids[ordinary[-1] + 1 :])
        drawn = [
            repeated_tokens(
                words, period, seed=seed * 1_000_003 + k, before=ends[0], after=ends[1], causal=checkpoint.causal
            )
            for k in range(sequences)
        ]
        most = max(1, capture.running.BATCH_TOKENS // (2 * drawn[0].places.length))
        for start in range(0, sequences, most):
            part = drawn[start : start + most]
            encodings = [
                _encoding(ids, sequence, checkpoint) for sequence in part for ids in (sequence.ids, sequence.control)
            ]
            capture.running.run(checkpoint, encodings, [_Pairs(self.roles, part[0].places, start)])
        values = capture.projections.copying(checkpoint)
        self.copying = np.zeros((0, 0)) if values is None else values

    def sums(self, at: InputOffset) -> RoleSums:
        shape = (self.checkpoint.layers, self.checkpoint.heads)
        made = (self.roles.means, self.copying)
        return RoleSums(at, *shape, self.checkpoint.causal, *made, attending=self.checkpoint.attending)


class _Pairs:
    """Observes repeated random sequences and their controls, which alternate in each batch."""

    def __init__(self, roles: RoleMeans, places: RolePositions, first: int):
        self.roles, self.places, self.first = roles, places, first

    def update(self, layer: int | slice, weights: Any, inputs: list[int]) -> None:
        maps = weights.double().cpu().numpy()[np.argsort(inputs)]
        pairs = len(maps) // 2
        self.roles.update_layer(
            layer, maps[::2], self.places, range(self.first, self.first + pairs), control=maps[1::2], only=ON_CONTROL
        )

    def update_layers(self, weights: Any, inputs: list[int]) -> None:
        self.update(EVERY_LAYER, weights, inputs)


def role_positions_of(ready: "Prepared", *, causal: bool) -> RolePositions:
    """Find the positions of separators, the rarest word and syntactic dependencies in an input."""
    encoding, links = ready.encoding, []
    for sentence, tagged in enumerate(ready.tagged):
        for word, (start, end) in zip(tagged.words, tagged.spans, strict=True):
            governor = tagged.spans[word.head]
            if governor != (start, end) and word.dep != "punct":
                links += [
                    (a, b)
                    for a in encoding.pieces(start, end, sentence)
                    for b in encoding.pieces(*governor, sentence)
                    if a != b
                ]
    return RolePositions(
        len(encoding),
        encoding.first or 0,
        tuple(encoding.separators),
        causal=causal,
        rare=_rare(encoding),
        links=tuple(dict.fromkeys(links)),
    )


def _rare(encoding: Encoding) -> tuple[int, ...]:
    """Return the tokens of the least frequent word; empty for a single word.

    That word has most tokens, then the highest token ID, because subword vocabularies list frequent sequences first.
    """
    words = [word for word in groups_of(encoding) if encoding.offsets[word[0]] is not None]
    lettered = [word for word in words if any(encoding.tokens[k].strip("Ġ▁# ").isalnum() for k in word)]
    if len(lettered) < 2:
        return ()
    rarity = [(len(word), max(encoding.ids[k] for k in word)) for word in lettered]
    return tuple(lettered[rarity.index(max(rarity))])


def whole_words(checkpoint: "Checkpoint") -> list[int]:
    """Return the IDs of vocabulary tokens that are whole words."""
    marked = ("Ġ", "▁")
    vocabulary: dict[str, int] = checkpoint.tokenizer.get_vocab()
    starts = any(piece.startswith(marked) for piece in vocabulary)
    words = [
        number
        for piece, number in vocabulary.items()
        if (piece.startswith(marked) if starts else not piece.startswith("##"))
        and len(word := piece.lstrip("Ġ▁")) > 2
        and word.isascii()
        and word.isalpha()
    ]
    if not words:
        raise InputError(
            "Sequences of repeated tokens must consist of whole words with at least three ASCII letters; the "
            f"vocabulary of {checkpoint.name} has none. Choose another checkpoint."
        )
    return sorted(words)


def _encoding(ids: tuple[int, ...], tokens: RepeatedTokens, checkpoint: "Checkpoint") -> Encoding:
    nothing, length = (None,) * len(ids), len(ids)
    first = tokens.places.first if checkpoint.encode("word").first is not None else None
    return Encoding("", None, ids, (0,) * length, ("",) * length, nothing, nothing, first, tokens.places.separators)
