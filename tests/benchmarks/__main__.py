"""Run one benchmark: `python -m tests.benchmarks NAME [--json]`.

Each module of this package has `main() -> dict[str, object]`, whose figures are printed as a table or as one
JSON object. Ratios are measured in one run, interleaved; absolute times are for this machine only.
"""

import argparse
import importlib
import json
import pkgutil

from rich.console import Console
from rich.table import Table

import tests.benchmarks as package


def names() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(package.__path__) if module.name != "__main__")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=names())
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    figures = importlib.import_module(f"tests.benchmarks.{options.name}").main()
    if options.json:
        print(json.dumps({"benchmark": options.name, **figures}))
        return
    table = Table("figure", "value", title=options.name)
    for name, value in figures.items():
        table.add_row(name, f"{value:.4g}" if isinstance(value, float) else str(value))
    Console().print(table)


if __name__ == "__main__":
    main()
