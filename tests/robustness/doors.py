"""How a bad input is tried, and what must come of it: one sentence, no traceback, nothing changed."""

import contextlib
import io
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from core.errors import AtlasError
from core.store import exchange
from core.store.database import Database

LONGEST = 700  # characters of a sentence
_MACHINERY = re.compile(r"Traceback|File \"|<class |object at 0x|Errno\b.*Errno|\bdefect\b")


def one_sentence(text: str) -> None:
    """A sentence for people: one line that ends, of bearable length, without the machinery's own words."""
    assert "\n" not in text.strip(), text
    assert text.strip().endswith((".", ". ")), text
    assert 10 < len(text) <= LONGEST, (len(text), text[:200])
    assert not _MACHINERY.search(text), text
    assert not any(ord(letter) < 32 or ord(letter) == 127 for letter in text.strip()), repr(text)


def refused(call: Callable[[], Any]) -> str:
    """The sentence with which `call` refuses."""
    with pytest.raises(AtlasError) as error:
        call()
    one_sentence(str(error.value))
    return str(error.value)


def refused_or_fine(call: Callable[[], Any]) -> None:
    try:
        call()
    except AtlasError as error:
        one_sentence(str(error))


def terminal(*words: str) -> tuple[int, str, str]:
    """`python -m core WORDS` in this process: exit status, standard output, standard error."""
    from core import __main__ as program

    out, err = io.StringIO(), io.StringIO()
    before = sys.argv
    sys.argv = ["core", *words]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                program.main()
                status = 0
            except SystemExit as ended:
                status = int(ended.code or 0)
    finally:
        sys.argv = before
    return status, out.getvalue(), err.getvalue()


def refused_at_the_terminal(*words: str) -> str:
    """The sentence a command prints; a wrong option is told by the option parser in its own box."""
    status, _, said = terminal(*words)
    assert status == 2, (status, said)
    assert "Traceback" not in said
    if "Usage:" not in said:
        one_sentence(said)
    return said


@contextlib.contextmanager
def unchanged(db: Database) -> Iterator[None]:
    """Fails when anything stored is different afterwards."""
    before = contents(db)
    yield
    assert contents(db) == before


def contents(db: Database) -> dict[str, list]:
    return {
        name: sorted(map(repr, db.cursor().execute(f'SELECT * FROM "{name}"').fetchall()))  # noqa: S608 - ours
        for name in exchange.tables(db)
    }
