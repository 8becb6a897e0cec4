"""mypy reads core as `--strict` asks, but for what is listed here with its reason; `make types` runs it."""

import re
import tomllib

from mypy.main import define_options

from tests.sources import PROJECT, files_of

# 152 lines hand on what torch, numpy, DuckDB or json return, which is Any to mypy: a cast in each would check nothing.
NOT_STRICT = {"warn_return_any"}
IGNORED_LINES = 63  # `type: ignore[code]`: what a library's own types say wrongly, each with its code


def test_core_is_read_as_strict_asks_but_for_what_is_listed():
    settings = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]
    of_core = settings | next(one for one in settings["overrides"] if one["module"] == "core.*")
    strict = dict(define_options()[2])
    assert len(strict) >= 13
    assert {name for name, value in strict.items() if of_core.get(name) != value} == NOT_STRICT


def test_lines_that_mypy_leaves_out_are_few_and_say_what_of():
    texts = [file.read_text(encoding="utf-8") for file in files_of("core", "pages")]
    ignored = [line for text in texts for line in text.splitlines() if "type: ignore" in line]
    assert len(ignored) <= IGNORED_LINES, len(ignored)
    assert not [line for line in ignored if not re.search(r"type: ignore\[[a-z-]+", line)]
