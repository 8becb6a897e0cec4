"""A life of a database on a disk that fails: `python -m tests.survival.failing FILE`, one JSON line a step.

Each line has the step, what it acknowledged, and what was raised: the kind of error and its sentence.
"""

import json
import sys

from core.store import database, labels
from core.store.database import Database
from tests.store.labelling import event


def main(path: str) -> None:
    say("started", 0)
    database.CONFIG["threads"] = 1  # strace counts calls a thread; which one makes a call would be chance
    try:
        db = Database(path)
    except Exception as error:
        say("open", 0, error)
        return
    for step in ("label", "label", "fold", "label", "read", "label", "close"):
        try:
            say(step, STEPS[step](db))
        except Exception as error:
            say(step, 0, error)


def say(step: str, acknowledged: int, error: Exception | None = None) -> None:
    kind, sentence = ("", "") if error is None else (type(error).__name__, str(error))
    print(json.dumps({"step": step, "acknowledged": acknowledged, "kind": kind, "sentence": sentence}), flush=True)


def label(db: Database) -> int:
    label.number += 1  # type: ignore[attr-defined]
    return labels.record_events(db, [event(label.number, batch="failing")]).acknowledged  # type: ignore[attr-defined]


label.number = 0  # type: ignore[attr-defined]


def fold(db: Database) -> int:
    db.fold()
    return 0


def read(db: Database) -> int:
    labels.all_events(db)
    return 0


def close(db: Database) -> int:
    db.close()
    return 0


STEPS = {"label": label, "fold": fold, "read": read, "close": close}


if __name__ == "__main__":
    main(sys.argv[1])
