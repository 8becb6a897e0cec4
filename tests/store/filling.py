"""Two rows in every table, whatever tables there are: tests that must hold for all of them need no list."""

import json
from datetime import datetime

from core.store import exchange
from core.store.exchange import NAMES
from tests.store.labelling import a_map

VALUES = {
    "VARCHAR": "naïve\n'; DROP TABLE run; -- \U0001f600",
    "JSON": '{"a": [1, null, 0.30000000000000004]}',
    "BLOB": bytes(range(256)),
    "INTEGER": 7,
    "BIGINT": 2**40,
    "DOUBLE": 0.1 + 0.2,
    "BOOLEAN": True,
    "TIMESTAMP": datetime(2026, 1, 31, 12, 0, 0, 123456),
    "VARCHAR[]": ["a", None, "'"],
}

# What the store itself writes where not every value of the kind would do, in the first row and in the second.
_MAP = a_map("m1"), a_map("m2", length=3)
CHOSEN = (
    {
        ("part_score", "part"): ("encoder", "cross"),
        ("label_event", "event"): ("tab:7", "tab:8"),
        ("label_event", "sequence"): (7, 8),
        ("label_event", "batch"): ("tab", "tab"),
        ("label_event", "kind"): ("label", "skip"),
        ("label_event", "scale"): ("own", "absolute"),
        ("label_event", "queue_order"): ("random", "uncertain"),
        ("label_event", "class"): ("vertical", None),
        ("label_event", "undoes"): (None, None),
        ("class_event", "kind"): ("add", "rename"),
        ("class_event", "title"): ("Wavy", "Wavier"),
        ("class_event", "colour"): ("#123456", None),
        ("class_event", "key"): ("6", None),
        ("claim", "map_id"): ("m1", "m2"),
        ("project_label", "event"): ("tab:7", "tab:8"),
        ("project_map", "map_id"): ("m1", "m2"),
        ("label_event", "map_id"): ("m1", "m2"),
        ("run", "row_ids"): ("[1, 2]", None),
        ("project_event", "body"): ('["m1"]', None),
        ("classifier", "classes"): ('["a"]', "[]"),
        ("classifier", "snapshot"): ("[]", "[]"),
        ("finding", "numbers"): ("[]", "[]"),
        ("finding", "pictures"): ("[]", "[]"),
        ("finding", "maps"): ("eJwDAAAAAAE=", "eJwDAAAAAAE="),
        ("frame_release", "skipped"): ("[]", "[]"),
        ("hypothesis", "parameters"): ('[["feature", "nsubj"]]', "[]"),
        ("hypothesis_batch", "runs"): ("[]", None),
        ("hypothesis_batch", "thought_rows"): ('[["1", "ab"]]', "[]"),
        ("hypothesis_batch", "judged_rows"): ("[]", "[]"),
        ("hypothesis_event", "criteria"): ("[]", None),
        ("job", "asked"): ("{}", "{}"),
    }
    | {(table, "class_set"): ("bert", "bert") for table in ("label_event", "class_event")}
    | {
        ("attention_map", name): tuple(
            json.dumps(one[name]) if isinstance(one[name], list) else one[name] for one in _MAP
        )
        for name in _MAP[0]
    }
)


def fill_every_table(db) -> list[str]:
    """Add a row with every column, and one with only those that must have a value; returns the tables' names."""
    names = exchange.tables(db)
    with db.write() as cursor:
        for table in names:
            columns = cursor.execute(
                "SELECT column_name, data_type, is_nullable, column_default FROM duckdb_columns() "
                "WHERE table_name = ? ORDER BY column_index",
                [table],
            ).fetchall()
            rows = [columns, [column for column in columns if not column[2] and column[3] is None]]
            for number, wanted in enumerate(rows):
                given = {name: unlike(_value(name, kind), number) for name, kind, *_ in wanted}
                given |= {name: CHOSEN[table, name][number] for name in given if (table, name) in CHOSEN}
                marks = ", ".join("?" * len(given))
                cursor.execute(
                    f"INSERT INTO {table} ({', '.join(given)}) VALUES ({marks})",  # noqa: S608 - the file's own names
                    list(given.values()),
                )
    return names


def _value(column, kind):
    return VALUES[kind].replace("\n", " ") if column in NAMES else VALUES[kind]


def unlike(value, number):
    """The same for the first row, another for the second: keys are unique."""
    return f"{value}{number}" if number and isinstance(value, str) and value[0] != "{" else value


def columns(db, tables) -> dict[str, list[str]]:
    """The columns of each table."""
    return {name: list(db.read(f'SELECT * FROM "{name}" LIMIT 0').columns) for name in tables}  # noqa: S608 - ours


def contents(db, tables, only=None) -> dict[str, list]:
    """Rows of each table, in one order. only: the columns of each that are looked at; all, unless given."""
    wanted = only or columns(db, tables)
    chosen = {name: ", ".join(f'"{column}"' for column in wanted[name]) for name in tables}
    return {
        name: sorted(map(repr, db.cursor().execute(f'SELECT {some} FROM "{name}"').fetchall()))  # noqa: S608 - ours
        for name, some in chosen.items()
    }
