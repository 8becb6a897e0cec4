"""A folder as a kill left it, opened by plain DuckDB and by the app: what the first can read, the second must hold."""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import duckdb

from core.errors import StoreError
from core.store.database import Database
from tests.survival.episodes import DATABASE
from tests.survival.file_calls import FileCall, Folder

END_OF_TRANSACTION = bytes.fromhex("640064ffff")
COUNT = "SELECT sequence FROM label_event ORDER BY ordinal"


@dataclass(frozen=True)
class CrashState:
    """What a kill left.

    Attributes:
        after: the call after which (or inside which) the program was killed.
        torn: whether it was killed inside that call.
        folder: the files.
        acknowledged: numbers of the labels that the store had acknowledged.
    """

    after: str
    torn: bool
    folder: Folder
    acknowledged: frozenset[int]

    @property
    def log_is_whole(self) -> bool:
        """Whether the log ends with the end of a transaction: then nobody is told that any of it is lost."""
        log = self.folder.files.get(f"{DATABASE}.wal", b"")
        return not log or log.endswith(END_OF_TRANSACTION)


def crash_states(before: Folder, calls: list[FileCall]) -> list[CrashState]:
    """Every state that a kill can leave of a program that made `calls` on the folder `before`."""
    now, acknowledged, states = (
        Folder(dict(before.files), set(before.folders), set(before.linked)),
        frozenset[int](),
        [],
    )
    states.append(
        CrashState("the start", False, Folder(dict(now.files), set(now.folders), set(now.linked)), acknowledged)
    )
    for number, call in enumerate(calls):
        if call.name == "print":
            acknowledged |= {int(number) for number in re.findall(rb"acknowledged (\d+)", call.content)}
            continue
        whole = Folder(dict(now.files), set(now.folders), set(now.linked))
        whole.apply(call)
        for half in call.halves:
            here = Folder(dict(now.files), set(now.folders), set(now.linked))
            here.apply(half)
            name = f"call {number}, {call.name} of {call.path} at {call.offset}"
            states.append(CrashState(name, half is not call, here, acknowledged))
        now = whole
    return states


def plain_labels(path: Path) -> list[int] | None:
    """The labels that plain DuckDB reads of a copy of the file and its logs; None where it cannot."""
    copy = path.parent.with_name(f"{path.parent.name}-plain")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(path.parent, copy)
    try:
        with duckdb.connect(str(copy / path.name)) as connection:
            made = connection.execute("SELECT 1 FROM duckdb_tables() WHERE table_name = 'label_event'").fetchall()
            return [number for (number,) in connection.execute(COUNT).fetchall()] if made else []
    except duckdb.Error:
        return None
    finally:
        shutil.rmtree(copy)


def faults(state: CrashState, folder: Path) -> list[str]:
    """What the app does wrong with what the kill left; the files are put into `folder`."""
    path = state.folder.write(folder) / DATABASE
    plain, wrong = plain_labels(path) if path.exists() else [], []
    if plain is None and state.torn:
        return _faults_of_a_torn_block(state, path)
    for start in ("the first start", "the second start"):
        try:
            with Database(path) as db:
                labels, notice = [number for (number,) in db.cursor().execute(COUNT).fetchall()], db.notice
        except StoreError as error:
            wrong.append(f"{start} is refused: {error}")
            continue
        if plain is not None and labels != plain:
            wrong.append(f"{start} reads {labels}, plain DuckDB {plain}")
        if state.acknowledged - set(labels):
            wrong.append(f"{start} lost {sorted(state.acknowledged - set(labels))}")
        if notice and state.log_is_whole:
            wrong.append(f"{start} says: {notice}")
    if len(list(folder.glob("backups/*.unread"))) > (not state.log_is_whole):
        wrong.append(f"copies of a log are left: {sorted(each.name for each in folder.glob('backups/*.unread'))}")
    return [f"{state.after}{' (torn)' if state.torn else ''}: {text}" for text in wrong]


def _faults_of_a_torn_block(state: CrashState, path: Path) -> list[str]:
    """DuckDB writes a block of its catalogue in place, and reads none whose second half is missing: no program opens
    that, so all that can be asked is a sentence, and files that stay as they are."""
    before = path.read_bytes()
    try:
        Database(path).close()
    except StoreError as error:
        changed = path.read_bytes() != before
        return [f"{state.after} (torn): files changed though this was said: {error}"] if changed else []
    return [f"{state.after} (torn): opened, though plain DuckDB cannot"]
