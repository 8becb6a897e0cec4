"""Names, titles and paths steer no terminal and are no markup, in every form of output."""

import ast
import io
import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from core.commands import output

COMMANDS = Path(output.__file__).parent
STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
HOSTILE = {
    "erases the line": "x\x1b[2K\rpassed",
    "moves up and erases": "\x1b[1A\x1b[2K",
    "a title of the window": "\x1b]0;owned\x07",
    "a link": "\x1b]8;;https://evil.example\x1b\\click\x1b]8;;\x1b\\",
    "one-character CSI": "\x9b2K\x9b1A",
    "backspaces": "rm\x08\x08ls",
    "a bare return": "failed\rpassed",
    "deletes": "a\x7fb",
    "nothing": "a\x00b",
    "the other direction": "abc\u202etxt.exe",
    "markup that ends": "[/red]",
    "markup that begins": "[red on red]a[link=https://evil.example]b",
    "markup of a path": "/data/[/]/x",
}


@pytest.mark.parametrize("form", ["table", "json", "csv", "latex"])
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_rows_in_every_form_steer_no_terminal(capsys, form, text):
    provenance = {"checkpoint": text, "task": text, "created": None}
    output.show_rows(text, provenance, [{"id": text, text: 1.5}, {"id": "b", text: None}], form)
    told = capsys.readouterr().out
    assert told.strip()
    assert not STEERING.search(told)
    assert "\u202e" not in told or form == "csv"
    if form == "json":
        assert json.loads(told)["rows"][0]["id"] == text
    if text.isprintable() and form == "table":
        assert text in told  # markup is text


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_sentences_steer_no_terminal(capsys, text):
    output.tell(f"skipped {text}", err=True)
    output.tell(text)
    told = capsys.readouterr()
    assert not STEERING.search(told.out + told.err)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_the_bar_of_a_job_shows_any_title(monkeypatch, text):
    shown = io.StringIO()
    states = [True, True, False]

    def state(*_):
        active = states.pop(0)
        return SimpleNamespace(
            title=text, active=active, rate=None, size=2, size_done=1, done=1, units=2, run="r1", error=""
        )

    monkeypatch.setattr(output, "Console", lambda **_: Console(file=shown, force_terminal=True, width=200))
    monkeypatch.setattr(output.api, "status", state)
    monkeypatch.setattr(output.api, "wait", state)
    assert output.follow(None, "job") == "r1"
    plain = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", shown.getvalue())  # what rich itself writes
    for sequence in ("\x1b]", "\x9b", "\x07", "\x08", "\x00", "\u202e"):
        assert sequence not in plain
    if text.isprintable():
        assert text in plain


# Printed before any command is imported, with no text of anybody else
OWN_TEXTS = {"print(f'attention-atlas {__version__}')", "print(STOPPED, file=sys.stderr)"}


def test_commands_print_by_one_function():
    for file in [*COMMANDS.glob("*.py"), COMMANDS.parent / "__main__.py"]:
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and file.name != "output.py":
                called = ast.unparse(node.func)
                if called == "Table":
                    texts = [word.value for word in node.keywords if word.arg in ("title", "caption")]
                    assert all(ast.unparse(text).startswith("cell(") for text in texts), file
                if file.name == "__main__.py" and ast.unparse(node) in OWN_TEXTS:
                    continue
                assert called not in ("print", "typer.echo", "typer.secho", "click.echo", "Console"), file
                assert not called.startswith(("sys.stdout.write", "sys.stderr.write")), file
