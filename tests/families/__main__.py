"""Check a tiny random checkpoint of every family: `python -m tests.families [FAMILY ...]`.

A line a family: "passed", or what broke, in the words of the self-check. The exit status is the number of families that
broke. `.ci/newest` runs it against the newest transformers.
"""

import sys

import transformers

from core.capture.selfcheck import run_checks
from core.models.family import FAMILIES
from tests.families.tiny import tiny_of_record


def broken(family: str) -> list[str]:
    """What does not hold of a family: the self-check's lines, or why it could not be made."""
    try:
        found = list(run_checks(tiny_of_record(family)))
    except Exception as error:  # anything that a new version does differently is what this is for
        return [f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"]
    return [f"{finding.name}: {finding.seen}" for finding in found if not finding.passed]


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
