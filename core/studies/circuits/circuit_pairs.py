"""The pairs that a circuit is found on: a row and what stands against it, with the logit difference that is traced."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ... import capture, studies
from ...errors import InputError
from ...tasks.glue import TaskRow
from ..ablation import disabling
from ..ablation.perturb import DEFAULT, made_of
from . import foils

if TYPE_CHECKING:
    from ...capture.edges import AlignedPairs
    from ...models.encoding import Encoding
    from .circuit import CircuitOptions

OTHER_ROW = "row"  # B is another row of as many tokens
KINDS = (OTHER_ROW, *DEFAULT)
ANSWERS = ("different", "same", "any")
FLOOR = 0.1  # logits: pairs whose m differ less have nothing to trace
Texts = tuple[str, str | None]


@dataclass(frozen=True)
class PairSet:
    """Every pair that could be made and whose two inputs differ enough.

    Attributes:
        firsts: place of A's row in the task, or its line in a file of pairs. *Shape:* (pair,), int.
        seconds: place of B's row; -1 where B was made of A or both stand in a file. *Shape:* (pair,), int.
        first_m: the logit difference of A. *Shape:* (pair,).
        second_m: that of B. *Shape:* (pair,).
        answer: the output whose logit counts; of a language model the word's number. *Shape:* (pair,), int.
        rival: the output whose logit is taken off; -1 of a score. *Shape:* (pair,), int.
        same: whether A and B have the same answer. *Shape:* (pair,), bool.
        lengths: A's tokens. *Shape:* (pair,), int.
        under_floor: how many were left out because their m differ by less than FLOOR.
    """

    layers: int
    heads: int
    firsts: np.ndarray
    seconds: np.ndarray
    first_m: np.ndarray
    second_m: np.ndarray
    answer: np.ndarray
    rival: np.ndarray
    same: np.ndarray
    lengths: np.ndarray
    not_made: int
    under_floor: int


@dataclass(frozen=True)
class Division:
    """What each pair is for, by its number; no pair is in two sets.

    Attributes:
        deciding: pairs that decide about edges. *Shape:* (pair,), int.
        judging: pairs that judge circuits. *Shape:* (pair,), int.
        control: pairs of the same answer. *Shape:* (pair,), int.
    """

    deciding: np.ndarray
    judging: np.ndarray
    control: np.ndarray


def check(options: "CircuitOptions") -> None:
    """Raises InputError for options that no pair can have."""
    if options.kind not in KINDS:
        raise InputError(f'A pair is made by one of {", ".join(KINDS)}; "{options.kind}" is none of them: choose one.')
    if options.answers not in ANSWERS:
        raise InputError(f'Answers are {", ".join(ANSWERS)}; "{options.answers}" is none of them: choose one.')
    if options.pairs < 12:
        raise InputError(f"Edges are decided on at least 12 pairs; {options.pairs} were asked for: raise --pairs.")
    if options.judging < 4:
        raise InputError(
            f"Circuits are judged on at least 4 other pairs; {options.judging} were asked for: raise them."
        )


def texts_of(options: "CircuitOptions") -> list[tuple[Texts, Texts | None]]:
    """A's texts and, from a file of pairs, B's: one pair a line, a tab between the two sentences."""
    if options.pairs_file is None:
        return [((row.text, row.pair), None) for row in disabling.rows_of(options)]
    return [((parts[0], None), (parts[1], None)) for parts in foils.columns_of(options.pairs_file)]


def made_pairs(options: "CircuitOptions", opened: disabling.Opened) -> PairSet:
    """Every pair of the options with what the checkpoint says of it.

    Raises InputError where none can be made.
    """
    every = texts_of(options)
    if foils.fills_words(options):
        return _with_foils(options, opened, every)
    encodings = [opened.checkpoint.encode(*first) for first, _ in every]
    logits = capture.running.predict(opened.checkpoint, encodings).double().numpy()
    if options.pairs_file is None and options.kind == OTHER_ROW:
        firsts, seconds = _other_rows(encodings, _answers(logits), options.seed)
        others = logits[seconds]
        not_made = 0
    else:
        texts = [other_text(options, opened, text, number) for number, text in enumerate(every)]
        firsts = np.array([k for k, text in enumerate(texts) if text is not None], dtype=int)
        seconds, not_made = np.full(len(firsts), -1), len(every) - len(firsts)
        made = [opened.checkpoint.encode(*text) for text in texts if text is not None]
        others = capture.running.predict(opened.checkpoint, made).double().numpy() if made else logits[:0]
    if not len(firsts):
        raise InputError(
            f'No pair could be made of the {len(every)} rows by "{options.kind}": choose another kind, or more rows.'
        )
    return _measured(opened, (firsts, seconds), (logits[firsts], others), encodings, not_made)


def _with_foils(
    options: "CircuitOptions", opened: disabling.Opened, every: list[tuple[Texts, Texts | None]]
) -> PairSet:
    """Pairs of a language model; B has another answer where it prefers the foil and A does not, or the other way."""
    words = [(parts[2], parts[3]) for parts in foils.columns_of(options.pairs_file or "")]
    sides = [
        [foils.encoded(opened.checkpoint, texts) for texts in side if texts is not None]
        for side in zip(*every, strict=True)
    ]
    first, second, answer, rival = foils.measured(opened.checkpoint, sides, words)
    columns = (np.arange(len(every)), np.full(len(every), -1), first, second, answer, rival,
               np.sign(first) == np.sign(second), np.array([len(encoding) for encoding in sides[0]]))  # fmt: skip
    return _far(opened, columns, 0)


def _far(opened: disabling.Opened, columns: tuple[np.ndarray, ...], not_made: int) -> PairSet:
    """The pairs whose m differ enough."""
    far = np.abs(columns[2] - columns[3]) >= FLOOR
    return PairSet(
        opened.checkpoint.layers,
        opened.checkpoint.heads,
        *(column[far] for column in columns),
        not_made=not_made,  # type: ignore[misc]
        under_floor=int((~far).sum()),
    )


def _answers(logits: np.ndarray) -> np.ndarray:
    """What is answered: a class, or whether a score lies above the median."""
    return logits.argmax(1) if logits.shape[1] > 1 else (logits[:, 0] > np.median(logits[:, 0])).astype(int)


def other_text(
    options: "CircuitOptions", opened: disabling.Opened, text: tuple[Texts, Texts | None], number: int
) -> Texts | None:
    """B's texts; None where it cannot be made."""
    if text[1] is not None:
        return text[1]
    row = TaskRow(str(number), text[0][0], text[0][1], 0)
    return made_of(options.kind, row, options.seed + number, opened.checkpoint.tokenizer.mask_token)


def _other_rows(encodings: "Sequence[Encoding]", answers: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of as many tokens, each in one pair at most: those of different answers first, then of the same."""
    generator = np.random.default_rng(seed)
    by_length: dict[int, list[int]] = {}
    for number in generator.permutation(len(encodings)).tolist():
        by_length.setdefault(len(encodings[number]), []).append(number)
    pairs: list[tuple[int, int]] = []
    for length in sorted(by_length):
        left = by_length[length]
        while len(left) > 1:
            first = left.pop()
            other = next((k for k in left if answers[k] != answers[first]), left[0])
            left.remove(other)
            pairs.append((first, other))
    columns = np.array(pairs, dtype=int).reshape(-1, 2)
    return columns[:, 0], columns[:, 1]


def _measured(
    opened: disabling.Opened,
    places: tuple[np.ndarray, np.ndarray],
    logits: tuple[np.ndarray, np.ndarray],
    encodings: "Sequence[Encoding]",
    not_made: int,
) -> PairSet:
    """The logit difference of every pair: A's answer less B's, or its strongest rival where they agree."""
    first, second = logits
    at, count = np.arange(len(first)), first.shape[1]
    if count == 1:
        answer, rival = np.zeros(len(first), dtype=int), np.full(len(first), -1)
        same = _answers(np.concatenate([first, second])).reshape(2, -1)
        alike, whole = same[0] == same[1], (first[:, 0], second[:, 0])
    else:
        answer, rival = first.argmax(1), second.argmax(1)
        alike, beaten = answer == rival, first.copy()
        beaten[at, answer] = -np.inf
        rival = np.where(alike, beaten.argmax(1), rival)
        whole = (first[at, answer] - first[at, rival], second[at, answer] - second[at, rival])
    columns = (*places, *whole, answer, rival, alike, np.array([len(encodings[k]) for k in places[0]]))
    return _far(opened, columns, not_made)


def division_of(options: "CircuitOptions", pairs: PairSet) -> Division:
    """The pairs by what they are for, drawn with the seed; two thirds decide where there are too few.

    Raises InputError where there are too few to decide anything.
    """
    same = pairs.same.astype(bool)
    wanted = np.ones(len(same), dtype=bool) if options.answers == "any" else same == (options.answers == "same")
    order = np.random.default_rng([options.seed, len(same)]).permutation(len(same))
    chosen = order[wanted[order]]
    if len(chosen) < 18:
        raise InputError(
            f"A circuit needs at least 18 pairs with {options.answers} answers; of {len(same)} pairs {len(chosen)} "
            f"have, {pairs.not_made} more could not be made, and {pairs.under_floor} differ by less than {FLOOR:g}: "
            "take more rows, another kind, or other answers."
        )
    deciding = options.pairs
    if len(chosen) < options.pairs + options.judging:
        deciding = min(options.pairs, max(12, len(chosen) * 2 // 3))
    control = order[same[order] & ~np.isin(order, chosen)][: options.control]
    return Division(chosen[:deciding], chosen[deciding : deciding + options.judging], control)


def run_inputs(
    options: "CircuitOptions", opened: disabling.Opened, pairs: PairSet, numbers: Sequence[int]
) -> "list[tuple[list[int], AlignedPairs]]":
    """The pairs of these numbers in batches of one length of A that are read at one place: their places among
    `numbers`, and the inputs."""
    every, checkpoint = texts_of(options), opened.checkpoint
    firsts, seconds = [every[int(pairs.firsts[k])][0] for k in numbers], []
    for k in numbers:
        first = int(pairs.firsts[k])
        other = int(pairs.seconds[k])
        made = every[other][0] if other >= 0 else other_text(options, opened, every[first], first)
        if made is None:
            raise InputError(f"A pair that could be made before cannot be made again (row {first + 1}): start anew.")
        seconds.append(made)
    batches: dict[tuple[int, int], list[int]] = {}
    if options.pairs_file is None and options.kind == OTHER_ROW:
        a, b = ([checkpoint.encode(*texts) for texts in side] for side in (firsts, seconds))
        alignments = [capture.patching.everywhere(x, y) for x, y in zip(a, b, strict=True)]
    else:
        a, b = ([foils.encoded(checkpoint, texts) for texts in side] for side in (firsts, seconds))
        alignments = [studies.ablation.input_pairs.positions(x, y) for x, y in zip(a, b, strict=True)]
    read = foils.fills_words(options)
    for place, encoding in enumerate(a):
        batches.setdefault((len(encoding), foils.place_of(checkpoint, encoding) if read else -1), []).append(place)
    return [
        (some, capture.edges.AlignedPairs([a[k] for k in some], [b[k] for k in some], [alignments[k] for k in some]))
        for _, some in sorted(batches.items())
    ]
