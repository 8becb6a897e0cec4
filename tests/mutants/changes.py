"""Mutants of a module (mutmut's operators), and a function made into one of its mutants."""

import ast
import importlib
import inspect
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType

import libcst as cst
import libcst.matchers as m
from libcst.metadata import MetadataWrapper, ParentNodeProvider, PositionProvider, WhitespaceInclusivePositionProvider
from mutmut.mutation.file_mutation import Mutation, create_mutations

Span = tuple[int, int]
STRINGS = (cst.SimpleString, cst.FormattedString, cst.ConcatenatedString)
WORD = re.compile(r"\b[A-Za-z]{2,}\b")
SQL = re.compile(r"\b(SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|WHERE|FROM|JOIN|SET|VALUES|ORDER BY|GROUP BY|AND)\b")
ERROR, LOG, PROSE = "text of an error message", "text of the log", "literal prose of a sentence"


@dataclass(frozen=True)
class Mutant:
    """A module with one change.

    Args:
        module: its file, such as core/scoring/heads.py.
        function: its qualified name, such as `HeadStatistics.update`.
        change: the lines that differ, `- before + after`; a number follows where the function has the change twice.
        lines: the first and last line that the changed expression has.
        function_lines: the first and last line of the function's body.
        text: the changed module.
        wording: why no test should look at the change; empty for others.
    """

    module: str
    function: str
    change: str
    lines: Span
    function_lines: Span
    text: str
    wording: str = ""

    @property
    def key(self) -> str:
        """What names the mutant after the module was edited elsewhere."""
        return f"{self.module} {self.function}: {self.change}"


def mutants_of(module: str, known: Mapping[int, str] | None = None) -> list[Mutant]:
    """All mutants of a file, in its order, or those `known` by place and key, which is sooner done."""
    text = Path(module).read_text(encoding="utf-8")
    tree, mutations, _, _ = create_mutations(module, text)
    wrapper = MetadataWrapper(tree, unsafe_skip_copy=True)
    wide, narrow = wrapper.resolve(WhitespaceInclusivePositionProvider), wrapper.resolve(PositionProvider)
    parents = wrapper.resolve(ParentNodeProvider)
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    seen: Counter[tuple[str, str]] = Counter()
    mutants = []
    in_functions = [each for each in mutations if isinstance(each.contained_by_top_level_function, cst.FunctionDef)]
    for place, mutation in enumerate(in_functions):
        if known is not None and place not in known:
            continue
        function = mutation.contained_by_top_level_function
        changed = _changed(tree, text, mutation, wide[mutation.original_node], starts)
        name = ".".join(_names(function, parents))
        if known is None:
            change = _difference(text, changed)
            seen[name, change] += 1
            change += f" ({seen[name, change]})" if seen[name, change] > 1 else ""
        else:
            change = known[place].removeprefix(f"{module} {name}: ")
        where, body = narrow[mutation.original_node], narrow[function.body]
        lines, span = (where.start.line, where.end.line), (body.start.line, body.end.line)
        mutants.append(Mutant(module, name, change, lines, span, changed, wording_of(mutation, parents)))
    return mutants


def wording_of(mutation: Mutation, parents) -> str:
    """Why the mutant differs in words for people alone, which a test could only repeat; empty for all others.

    These are literals in a `raise` or in what is logged, an error whose message becomes None, and prose: a literal of
    at least three words that belongs to no SQL statement.
    """
    node, strings, calls = mutation.original_node, [], []
    above: cst.CSTNode = node
    while not isinstance(above, cst.FunctionDef | cst.Module):
        if isinstance(above, STRINGS):
            strings.append(above)
        if isinstance(above, cst.Call):
            calls.append(above)
        if isinstance(above, cst.Raise):
            is_error = node is above.exc and isinstance(node, cst.Call)
            is_message = is_error and all(isinstance(arg.value, STRINGS) for arg in node.args)
            return ERROR if is_message or isinstance(node, cst.SimpleString) else ""
        above = parents[above]
    if any(m.matches(call.func, m.Attribute(value=m.Name("log"))) for call in calls):
        return LOG
    if isinstance(node, cst.SimpleString):
        text = cst.Module([]).code_for_node(strings[-1])
        own = cst.Module([]).code_for_node(node)
        return PROSE if len(WORD.findall(own)) >= 3 and not SQL.search(text) else ""
    return ""


def _names(function: cst.FunctionDef, parents) -> list[str]:
    """The function's name, its class's before it."""
    names, node = [function.name.value], parents[function]
    while not isinstance(node, cst.Module):
        names[:0] = [node.name.value] if isinstance(node, cst.ClassDef) else []
        node = parents[node]
    return names


def _changed(tree: cst.Module, text: str, mutation: Mutation, place, starts: list[int]) -> str:
    """The module's text with the mutated node: in its place where that reproduces the original, else rendered anew."""
    first = starts[place.start.line - 1] + place.start.column
    last = starts[place.end.line - 1] + place.end.column
    if text[first:last] == tree.code_for_node(mutation.original_node):
        return text[:first] + tree.code_for_node(mutation.mutated_node) + text[last:]
    return tree.deep_replace(mutation.original_node, mutation.mutated_node).code


def _difference(before: str, after: str) -> str:
    old, new = before.splitlines(), after.splitlines()
    shorter = min(len(old), len(new))
    first = next((k for k in range(shorter) if old[k] != new[k]), shorter)
    left = next((k for k in range(shorter - first) if old[-1 - k] != new[-1 - k]), shorter - first)
    old, new = old[first : len(old) - left], new[first : len(new) - left]
    return " ".join(f"{mark} {' '.join(line.strip() for line in lines)}" for mark, lines in (("-", old), ("+", new)))


def turn_into(mutant: Mutant) -> None:
    """Make the loaded function the mutant, in this process: its code and its defaults."""
    name = mutant.module.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    module = importlib.import_module(name)
    function = function_of(module, mutant.function)
    code = next(
        code
        for code in codes(compile(mutant.text, str(module.__file__), "exec", dont_inherit=True))
        if code.co_qualname == mutant.function
    )
    function.__code__ = code
    definition = _definition(ast.parse(mutant.text), mutant.function.split("."))
    values = [eval(ast.unparse(node), vars(module)) for node in definition.args.defaults]  # noqa: S307 - our own text
    function.__defaults__ = tuple(values) or None
    named = zip(definition.args.kwonlyargs, definition.args.kw_defaults, strict=True)
    if function.__kwdefaults__:
        function.__kwdefaults__ = {
            argument.arg: eval(ast.unparse(node), vars(module))  # noqa: S307 - our own text
            for argument, node in named
            if node is not None
        }


def function_of(module, qualified: str) -> FunctionType:
    """The function of that name as its caller runs it: of a property, a method of the class or one that is cached."""
    *classes, name = qualified.split(".")
    owner = module
    for part in classes:
        owner = getattr(owner, part)
    function = inspect.getattr_static(owner, name)
    for inner in ("__func__", "fget", "func", "__wrapped__"):
        function = getattr(function, inner, function)
    return function


def codes(code: CodeType) -> Iterator[CodeType]:
    """Of all that is defined in it."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from codes(constant)


def _definition(tree: ast.AST, names: list[str]) -> ast.FunctionDef:
    for node in ast.iter_child_nodes(tree):
        if getattr(node, "name", None) == names[0]:
            if len(names) > 1:
                return _definition(node, names[1:])
            if isinstance(node, ast.FunctionDef):
                return node
    raise LookupError(names[0])
