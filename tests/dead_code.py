"""What of core and pages nobody uses: `python -m tests.dead_code`, a part of `make lint`.

vulture looks for names that are bound and never read. Some it cannot see: columns of rows (fields of dataclasses and
members of enums), what typer, Streamlit, atexit or transformers calls by a decorator or a name, keys of caches. These
are let through here, each sort with its reason; so are at most five functions that only tests call, by name.
"""

import ast
import sys
from functools import cache
from pathlib import Path

from vulture import Vulture

from core.__main__ import COMMANDS

FOLDERS = ("core", "pages", "app.py")
DECORATED = ["@*command*", "@*.callback*", "@atexit.register"]  # called by typer, and at the end of the process
BY_NAME = {
    "__signature__": "typer reads a command's options there",
    "__annotations__": "the same",
    "list_commands": "typer calls it for the list of commands",
    "on_broken_pipe": "the terminal's own handler",
    "display": "tqdm calls it",
    "parse_url_param": "Streamlit's own, replaced by one that refuses infinite numbers",
    "label2id": "a model's config that transformers reads",
    "problem_type": "the same",
    "DOWNLOAD_CHUNK_SIZE": "of huggingface_hub, which reads it",
    "num_labels": "the same",
    "modified": "a key of a cache: a changed file is read anew",
    "database_id": "a key of a cache: another database is read anew",
    "_live_clicks": "state of a page that its widgets read by key",
    "_measured_mark": "the same",
    "changed_after": "the same",
    "changed_head": "the same",
    "job_dependencies": "the same",
    "ablate": "of the notebook API: a reader calls it",
    "why_maps": "the same",
    "attrs": "pandas keeps there what a data frame is about",
} | {place.partition(":")[2]: "a command, which `core.__main__` imports by name" for place, _ in COMMANDS.values()}
FOR_TESTS = {
    "labels_by_map": "what an assignment holds, for tests of the assignment",
    "study_modules": "all studies, for tests that go through them",
    "SELECTED": "what pages select in Streamlit's, for the test that tries each in a browser",
    "meanings": "verdicts in words, for the table of docs/results/claims.md that a command writes",
}


@cache
def fields_and_quoted(file: Path) -> tuple[frozenset[int], frozenset[str]]:
    """Lines of class bodies that state a field or a member; names within annotations that stand in quotes."""
    lines, quoted = set(), set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef):
            lines |= {part.lineno for part in node.body if isinstance(part, ast.AnnAssign | ast.Assign)}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            quoted |= set(node.value.replace("[", " ").replace("]", " ").replace("|", " ").split())
    return frozenset(lines), frozenset(quoted)


def unused() -> list[str]:
    """A line for each name that nothing reads, but those that are let through."""
    vulture = Vulture(ignore_names=[*BY_NAME, *FOR_TESTS], ignore_decorators=DECORATED)
    vulture.scavenge(FOLDERS)
    left = []
    for item in vulture.get_unused_code(min_confidence=60):
        lines, quoted = fields_and_quoted(item.filename)
        is_field = item.typ == "variable" and item.first_lineno in lines
        if not is_field and not (item.typ == "import" and item.name in quoted):
            left.append(item.get_report())
    return left


if __name__ == "__main__":
    found = unused()
    sys.exit("\n".join(found) if found else None)
