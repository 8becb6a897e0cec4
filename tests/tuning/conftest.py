"""Rows whose label is one word, and tiny checkpoints to learn it."""

import pytest

from core.tasks.glue import TaskRow
from tests.capture.conftest import tiny

WORDS = ["old engine", "village", "small dog", "heavy bag", "night", "man", "strange"]


def rows(count: int) -> list[TaskRow]:
    """Positive rows say "heard", negative ones "saw"; lengths vary."""
    return [
        TaskRow(
            f"train-{k}",
            f"the {WORDS[k % 7]} {'heard' if k % 2 else 'saw'} {'a ' * (k % 5)}{WORDS[k % 3]} .",
            f"did the {WORDS[k % 4]} stop ?" if k % 3 else None,
            k % 2,
        )
        for k in range(count)
    ]


@pytest.fixture(params=["bert", "gpt2"])
def base(request):
    return tiny(request.param)
