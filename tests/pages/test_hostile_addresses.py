"""Addresses that no link has: every parameter of every view, with values that no page expects, says one sentence."""

import ast
import random
import re
from functools import cache
from pathlib import Path

import pytest

from core.attention import Head
from core.capture.components import parse_components
from core.errors import InputError
from pages.parts.shell import resources, url
from pages.parts.shell.context import FIELDS
from pages.parts.shell.shell import _NAME, _PAYLOADS
from tests.pages.opening import VIEWS, opened

PAGES_CODE = Path(__file__).resolve().parents[2] / "pages"
DIGITS = "9" * 10_000
VALUES = (
    "x" * 10_000, DIGITS, "1e999", "-1e999", "nan", "-1", "0.5", "٣", "²", "L99H99", f"L{DIGITS}H1", "L0H0", ",", "5-3",
    ",".join(["1-2"] * 50), "![c](https://evil.example/c.png)<b>", "a\x00b", "[1]", "__class__", f"{DIGITS}-1", "²-²",
)  # fmt: skip
INTERNAL = (
    "history_asked",
    "history_turns",
    "page_shown",
    "context_now",
    "context_chosen",
    "bound_keys",
    "bound_usual",
)


@cache
def parameters() -> tuple[str, ...]:
    """Names that some page reads from its address or its session, as the code has them."""
    names = {*FIELDS, *INTERNAL}
    for file in PAGES_CODE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            match node:
                case (
                    ast.keyword(arg="key", value=ast.Constant(str(name)))
                    | ast.Call(
                        func=ast.Attribute(value=ast.Attribute(attr="query_params")), args=[ast.Constant(str(name)), *_]
                    )
                    | ast.Subscript(
                        value=ast.Attribute(attr="query_params" | "session_state"), slice=ast.Constant(str(name))
                    )
                ):
                    names.add(name)
    return tuple(sorted(name for name in names if re.fullmatch(r"[A-Za-z_]+", name)))


@pytest.fixture(autouse=True)
def own_database(tmp_path, monkeypatch):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    resources.database.clear()
    yield
    resources.database.clear()


def faults(view, **query):
    """What a page says that it should not, opened at this address."""
    app = opened(view, **query)
    return [one.value for one in app.error if "An error in Attention Atlas" in one.value] + [
        one.value for one in app.exception
    ]


def drawn_value(drawn):
    """A value, or two of a parameter that comes twice."""
    return drawn.choice(VALUES) if drawn.random() < 0.75 else [drawn.choice(VALUES), drawn.choice(VALUES)]


@pytest.mark.slow  # 6 s a view
@pytest.mark.parametrize("turn", range(3))
@pytest.mark.parametrize("view", VIEWS)
def test_a_view_with_any_parameters_says_no_defect(view, turn):
    drawn = random.Random(f"{turn} {view}")  # noqa: S311 - no secret
    query = {name: drawn_value(drawn) for name in parameters() if name not in ("view", "embed")}
    if turn:  # the page gets as far as usual
        query = {name: value for name, value in query.items() if name not in FIELDS and name != "mode"}
    assert faults(view, **query) == []


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("view", "query"),
    [
        ("maps/why", {"cell": "²-²"}),
        *(
            ("reproduction/report", {name: text for name in parameters() if name not in (*FIELDS, "view", "embed")})
            for text in ("1e999", "-inf")
        ),
        ("maps/why", {"cell": f"{DIGITS}-1"}),
        ("interventions/ablation", {"heads": f"L{DIGITS}H1", "mode": "One sentence"}),
        ("linguistics/frames", {"target": f"{DIGITS},²,٣", "element": DIGITS}),
        *(("start/start", {name: "1"}) for name in INTERNAL),
    ],
)
def test_an_address_that_met_a_defect_meets_none(view, query):
    assert faults(view, **query) == []


@pytest.mark.parametrize("name", INTERNAL)
def test_no_address_drops_what_the_shell_remembers_when_somebody_goes_back(name, monkeypatch):
    monkeypatch.setattr(url, "went_back", lambda: True)
    assert faults("start/start", **{name: "1"}) == []


IN_ADDRESSES = {  # names of the session that an address may set too, or that each view forgets when it is opened
    *FIELDS, *_PAYLOADS, "annotator", "head", "heads", "mode", "of", "queue", "start_text", "brushed",
}  # fmt: skip


def test_what_a_page_remembers_for_itself_has_a_name_that_no_address_can_have():
    """A parameter of an address makes the session forget what it has under that name (shell.arrive)."""
    held, drawn = {}, set()
    for file in PAGES_CODE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            match node:
                case (
                    ast.Subscript(value=ast.Attribute(attr="session_state"), slice=ast.Constant(str(name)))
                    | ast.Call(func=ast.Attribute(value=ast.Attribute(attr="session_state")),
                               args=[ast.Constant(str(name)), *_])
                    | ast.Attribute(value=ast.Attribute(attr="session_state"), attr=str(name))
                ):  # fmt: skip
                    held.setdefault(name, file.name)
                case ast.keyword(arg="key", value=ast.Constant(str(name))):
                    drawn.add(name)  # a field: its link says what it holds
    methods = {"get", "pop", "setdefault", "update"}
    own = {name: file for name, file in held.items() if name not in drawn | IN_ADDRESSES | methods}
    assert own, "the scan finds what pages remember"
    assert {name: file for name, file in own.items() if _NAME.fullmatch(name)} == {}


@pytest.mark.parametrize("text", [DIGITS, "²", "٣", "-1", "1e999", "nan", "", "1.0", " 1"])
def test_a_number_in_an_address_is_digits_of_a_bounded_length(text):
    assert url.number_of(text) is None
    assert url.number_of("0") == 0
    assert url.number_of("123456789") == 123_456_789


@pytest.mark.parametrize("name", [f"L{DIGITS}H1", f"L1H{DIGITS}", f"L{DIGITS}-attention", f"L1 H{'1' * 5000}"])
def test_a_head_of_many_digits_is_refused_in_a_sentence(name):
    with pytest.raises(InputError):
        parse_components(name)
    with pytest.raises(InputError):
        Head.parse(name)
