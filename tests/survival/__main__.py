"""Run what the app must survive: `python -m tests.survival [NAME] [--count N] [--json]`; without NAME, all of it.

kills     SIGKILLs at random moments while labels are written (--count kills, 100)
sessions  8 browsers label at once, 2 labels a second each (--count labels each, 100)
states    the file held, newer, older, truncated, with a damaged log; a full disk; read-only
load      20 viewers go from page to page while jobs run (--count viewers, 20)
soak      one viewer for minutes, memory watched (--count minutes, 10)
"""

import argparse
import json
import sys
from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from tests.survival import kills, load, sessions, states

CHECKS: dict[str, Callable[[int | None], dict[str, object]]] = {
    "kills": lambda count: kills.main(count or 100),
    "sessions": lambda count: sessions.main(each=count or 100),
    "states": lambda count: states.main(),
    "load": lambda count: load.main(count or 20),
    "soak": lambda count: load.soak(count or 10),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?", choices=CHECKS)
    parser.add_argument("--count", type=int)
    parser.add_argument("--json", action="store_true", help="print one JSON object a check")
    options = parser.parse_args()
    passed = True
    for name in [options.name] if options.name else CHECKS:
        found = CHECKS[name](options.count)
        passed &= bool(found["passed"])
        show(name, found, as_json=options.json)
    sys.exit(0 if passed else 1)


def show(name: str, found: dict[str, object], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"survival": name, **found}))
        return
    table = Table("what", "seen", title=name)
    for key, value in found.items():
        table.add_row(key, f"{value:.4g}" if isinstance(value, float) else str(value))
    Console().print(table)


if __name__ == "__main__":
    main()
