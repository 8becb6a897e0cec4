"""Random tokens that come twice, which show duplicate-token and induction heads, and a control without repeats."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import InputError
from .roles import RolePositions


@dataclass(frozen=True)
class RepeatedTokens:
    """Random tokens that come twice, and as many without any repeat."""

    ids: tuple[int, ...]
    control: tuple[int, ...]
    places: RolePositions


def repeated_tokens(
    words: Sequence[int],
    period: int,
    *,
    seed: int,
    before: tuple[int, ...] = (),
    after: tuple[int, ...] = (),
    causal: bool = False,
) -> RepeatedTokens:
    """Draw `period` different random words, to come twice, and a control of twice as many.

    Args:
        period: words before they come again, at least 2.
        before: ids that come before the words ([CLS]), where the model has them.
        after: ids that come after them ([SEP]); their positions are the separators.
        causal: whether the model is a decoder.

    Raises:
        InputError: there are fewer different words than twice the period, or the period is below 2.
    """
    different = sorted(set(words) - {*before, *after})
    if period < 2 or len(different) < 2 * period:
        raise InputError(
            f"Repeated tokens need a period of at least 2 and twice as many different words; seen a period of {period} "
            f"and {len(different)} words."
        )
    drawn = tuple(random.Random(seed).sample(different, 2 * period))  # noqa: S311 - no secret
    length = len(before) + 2 * period + len(after)
    separators = tuple(range(length - len(after), length))
    places = RolePositions(length, separators=separators, repeat=(len(before), period), causal=causal)
    half = drawn[:period]
    return RepeatedTokens((*before, *half, *half, *after), (*before, *drawn, *after), places)
