"""Check a tiny random checkpoint of every family: `python -m tests.families [FAMILY ...]`.

A line a family: "passed", or what broke, in the words of the self-check. The exit status is the number of families that
broke. `.ci/newest` runs it against the newest transformers.
"""

import sys
from collections.abc import Callable

import transformers

from core.capture.selfcheck import self_check
from core.models.checkpoint import Checkpoint
from core.models.family import FAMILIES
from tests.capture.conftest import (
    DECODERS,
    ENCODERS,
    NEW_DECODERS,
    NEW_ENCODERS,
    SINKS,
    TRANSLATORS,
    built,
    newer,
    tiny,
    translator,
)


def maker_of(family: str) -> Callable[[], Checkpoint] | None:
    """What makes a tiny checkpoint of a family; None where the tests have no config of it."""
    if family in TRANSLATORS:
        return lambda: translator(family)
    if family in NEW_ENCODERS or family in NEW_DECODERS:
        return lambda: newer(family)
    if family in ENCODERS or family in DECODERS:
        return lambda: tiny(family)
    return (lambda: built(family, SINKS, encodes=False)) if family == "gpt_oss" else None


def broken(family: str) -> list[str]:
    """What does not hold of a family: the self-check's lines, or why it could not be made."""
    make = maker_of(family)
    if make is None:
        return ["no tiny config in tests/capture/conftest.py"]
    try:
        findings = self_check(make())
    except Exception as error:  # anything that a new version does differently is what this is for
        return [f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"]
    return [f"{finding.name}: {finding.seen}" for finding in findings if not finding.passed]


def main() -> int:
    """Print a line a family; returns how many broke."""
    chosen = sys.argv[1:] or list(FAMILIES)
    print(f"transformers {transformers.__version__}, {len(chosen)} families")
    found = {family: broken(family) for family in chosen}
    for family, lines in found.items():
        print(f"{family:<16} {'; '.join(lines) or 'passed'}")
    bad = [family for family, lines in found.items() if lines]
    print(f"broke: {', '.join(bad) or 'none'}")
    return len(bad)


if __name__ == "__main__":
    sys.exit(main())
