"""Which lines of some modules a test runs: each statement of their functions says so; nothing else is slowed down."""

import ast
import importlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import CodeType, FunctionType

from tests.mutants.changes import Span, codes, function_of

SAYS = "__statement_runs__"  # the name, among a module's own, of what a statement calls first


class Statements:
    """The statements that ran since `taken` was last asked, of modules whose functions were made to say so.

    Args:
        modules: their files, such as core/scoring/heads.py; they are read here, and changed by `place` alone.
    """

    def __init__(self, modules: Sequence[str]):
        self.spans: list[tuple[str, Span]] = []
        self.ran: set[int] = set()
        self.modules = list(modules)
        self._codes = {module: self._speaking(module) for module in modules}

    def _speaking(self, module: str) -> CodeType:
        tree = ast.parse(Path(module).read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                node.body = self._said_first(module, node.body, is_function=True)
        return compile(ast.fix_missing_locations(tree), module, "exec", dont_inherit=True)

    def _said_first(self, module: str, body: list[ast.stmt], *, is_function: bool = False) -> list[ast.stmt]:
        statements: list[ast.stmt] = body[:1] if is_function and ast.get_docstring(_body(body)) is not None else []
        for statement in body[len(statements) :]:
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                statements.append(statement)  # a function's own body is walked by itself
                continue
            inside = list(_bodies(statement))
            last = min([part[0].lineno - 1 for _, part in inside], default=statement.end_lineno or statement.lineno)
            self.spans.append((module, (statement.lineno, max(last, statement.lineno))))
            call = ast.Call(ast.Name(SAYS, ast.Load()), [ast.Constant(len(self.spans) - 1)], [])
            for owner, part in inside:
                _replace(owner, part, self._said_first(module, part))
            statements += [ast.copy_location(ast.Expr(call), statement), statement]
        return statements

    def place(self) -> None:
        """Make the loaded functions say which of their statements run, in this process."""
        for module, code in self._codes.items():
            loaded = importlib.import_module(module.removesuffix(".py").replace("/", ".").removesuffix(".__init__"))
            setattr(loaded, SAYS, self.ran.add)
            for function_code in codes(code):
                with suppress(AttributeError, LookupError, TypeError, ValueError):  # made within a function
                    function = function_of(loaded, function_code.co_qualname)
                    if isinstance(function, FunctionType):  # and no class, whose attribute it would become
                        function.__code__ = function_code

    def taken(self) -> list[tuple[str, int]]:
        """The file and line of all that ran since this was last asked."""
        ran = [self.spans[number] for number in self.ran]
        self.ran.clear()
        return [(module, line) for module, (first, last) in ran for line in range(first, last + 1)]


def _body(statements: list[ast.stmt]) -> ast.Module:
    return ast.Module(statements, [])


def _bodies(statement: ast.stmt) -> Iterator[tuple[ast.AST, list[ast.stmt]]]:
    """The lists of statements in a statement, each with what it stands in."""
    owners = [statement, *getattr(statement, "handlers", ()), *getattr(statement, "cases", ())]
    for owner in owners:
        for name in ("body", "orelse", "finalbody"):
            if getattr(owner, name, None):
                yield owner, getattr(owner, name)


def _replace(owner: ast.AST, part: list[ast.stmt], by: list[ast.stmt]) -> None:
    name = next(name for name in ("body", "orelse", "finalbody") if getattr(owner, name, None) is part)
    setattr(owner, name, by)
