"""How easily a stranger finds the way, in figures: `python -m tests.house` prints the table of docs/architecture.md."""

import ast
from collections import Counter

from tests import dead_code
from tests.sources import PROJECT, files_of, nodes_of
from tests.studies.test_names import HOMONYMS, singles, tables
from tests.test_bound_names import GENERIC, bound_names
from tests.test_floors import laid_out_by_hand


def kinds_by_hand() -> int:
    """Dicts of studies that say a row's kind in a literal."""
    return sum(
        isinstance(key, ast.Constant) and key.value == "kind" and isinstance(value, ast.Constant)
        for file in files_of("core/studies")
        for node in nodes_of(file)
        if isinstance(node, ast.Dict)
        for key, value in zip(node.keys, node.values, strict=True)
    )


def repeated_classes() -> dict[str, int]:
    """Class names of core and pages that stand more than twice."""
    names = Counter(
        node.name for file in files_of("core", "pages") for node in nodes_of(file) if isinstance(node, ast.ClassDef)
    )
    return {name: count for name, count in names.items() if count > 2}


def lines() -> dict[str, int]:
    """Lines of Python by folder."""
    return {
        folder: sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files_of(folder))
        for folder in ("core", "pages", "tests")
    }


def main() -> None:
    """Print the figures as rows of a table."""
    names = bound_names()
    generic = sum(name.strip("_") in GENERIC for name in names)
    rows = {
        "row kinds written by hand in studies": str(kinds_by_hand()),
        "tables of studies by name in core outside them": str(len(tables("core"))),
        "files of core that name a study otherwise, each with a reason": str(len(singles("core") - set(HOMONYMS))),
        "names that say nothing": f"{100 * generic / len(names):.1f} % of {len(names):,}",
        "class names that stand more than twice": ", ".join(f"{name} ({n})" for name, n in repeated_classes().items()),
        "functions that only tests call (vulture)": f"{len(dead_code.FOR_TESTS)}, and {len(dead_code.unused())} unused",
        "`# fmt: skip`": str(sum(laid_out_by_hand().values())),
        "lines of Python": ", ".join(f"{folder} {count:,}" for folder, count in lines().items()),
    }
    print(f"Of {PROJECT.name}:")
    for what, figure in rows.items():
        print(f"| {what} | {figure} |")


if __name__ == "__main__":
    main()
