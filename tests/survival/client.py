"""A scripted person who labels until killed: `python -m tests.survival.client FILE START`.

Prints each event's number once the store has acknowledged it; run by `kills`.
"""

import sys

from core.store import labels
from core.store.database import Database
from tests.store.labelling import a_map, event


def main() -> None:
    db = Database(sys.argv[1])
    start = int(sys.argv[2])
    labels.store_maps(db, [a_map(f"m{k}") for k in range(8)])
    print("ready", flush=True)
    for number in range(start, start + 100_000):
        saved = labels.record_events(db, [event(number, f"m{number % 8}", ("vertical", "block")[number % 2])])
        print(saved.acknowledged, flush=True)


if __name__ == "__main__":
    main()
