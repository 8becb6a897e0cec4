"""Of many cases that prove one thing, some by default and the rest with the slow tests (`make check` has all)."""

from collections.abc import Iterable
from typing import Any

import pytest


def one_in(every: int, cases: Iterable[Any]) -> list[Any]:
    """The cases, of which the first, and then one in `every`, is no slow test."""
    return [case if not k % every else pytest.param(case, marks=pytest.mark.slow) for k, case in enumerate(cases)]
