"""Squares one after another: each round is one number more, until there are as many as were asked for."""

from collections.abc import Sequence
from dataclasses import replace

from core.studies.contract import Unit
from tests.jobs.tiny import Number, Options, Squares, Tiny


class Rounds(Tiny):
    """Squares of numbers, each a round of its own."""

    name = "rounds"

    def units(self, options: Options) -> list[Unit]:
        return super().units(replace(options, count=1))

    def more(self, options: Options, partials: Sequence[Squares]) -> list[Unit]:
        numbers = sorted(int(k) for partial in partials for k in partial.k)
        assert numbers == list(range(len(numbers)))
        following = len(numbers)
        return [Unit(f"square-{following}", Number(following), size=10)] if following < options.count else []


STUDY = Rounds()
