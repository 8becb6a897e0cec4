"""The glossary of data/glossary.toml. `python -m core.glossary` writes docs/reference/glossary.md."""

import tomllib
from functools import cache

from . import config

FILE = config.DATA / "glossary.toml"
DOCS = config.PROJECT / "docs" / "reference" / "glossary.md"
HEADING = """# Glossary

Each term has the same meaning on pages, in the terminal, in the columns of results and in code.
"""


@cache
def _sections() -> dict[str, dict[str, str]]:
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def terms() -> dict[str, str]:
    """Return the terms of the glossary with their meanings, one sentence each."""
    sections = (section for name, section in _sections().items() if name != "columns")
    return {term: meaning for section in sections for term, meaning in section.items()}


def column_meaning(column: str) -> str | None:
    """Return the meaning of a column in a results table, for its tooltip; None if it is not in the glossary."""
    term = _sections()["columns"].get(column)
    return terms()[term] if term else None


def markdown() -> str:
    """Return the glossary as text for docs/reference/glossary.md."""
    parts = [HEADING]
    for name, section in _sections().items():
        if name != "columns":
            rows = "\n".join(f"| {term} | {meaning} |" for term, meaning in section.items())
            parts.append(f"\n## {name}\n\n| term | meaning |\n|---|---|\n{rows}\n")
    return "".join(parts)


if __name__ == "__main__":
    DOCS.write_text(markdown(), encoding="utf-8")
