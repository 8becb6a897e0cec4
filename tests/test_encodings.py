"""Text files are UTF-8 whatever the locale says: every call that reads or writes one names its encoding."""

import ast

import pytest

from core.config import PROJECT

TEXT = {"read_text": 0, "write_text": 1, "open": None}  # method of a path -> positional arguments before its encoding


def unnamed(tree):
    """Lines of calls that read or write text in the locale's encoding."""
    for call in [node for node in ast.walk(tree) if isinstance(node, ast.Call)]:
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        is_path = isinstance(call.func, ast.Attribute)
        if any(keyword.arg == "encoding" for keyword in call.keywords):
            continue
        if name in ("read_text", "write_text") and is_path and len(call.args) <= TEXT[name]:
            yield call.lineno
        if name in ("open", "fdopen", "NamedTemporaryFile", "TemporaryFile"):
            given = [*call.args, *(keyword.value for keyword in call.keywords)]
            texts = [value.value for value in given if isinstance(value, ast.Constant) and isinstance(value.value, str)]
            modes = [text for text in texts if set(text) <= set("rwax+tb")]
            if (modes and "b" not in modes[0]) or (not modes and not is_path):
                yield call.lineno


@pytest.mark.thorough
def test_every_text_file_is_opened_as_utf_8():
    files = [PROJECT / "app.py", *(f for room in ("core", "pages", "data") for f in (PROJECT / room).rglob("*.py"))]
    found = [f"{file.relative_to(PROJECT)}:{line}" for file in files for line in unnamed(ast.parse(file.read_bytes()))]
    assert found == []


def test_a_call_without_an_encoding_is_found():
    code = 'a.read_text()\na.read_text("utf-8")\na.write_text(x)\na.open("w")\na.open("rb")\nopen(a)\na.open()\n'
    assert list(unnamed(ast.parse(code))) == [1, 3, 4, 6]
