"""Which docstrings of core a tool cannot read: what is given and returned stands in prose, or nowhere.

    python -m tests.docstrings                 # how many, by room
    python -m tests.docstrings core/scoring    # where, and what is missing

The rule (docs/decisions/031): a public function that takes or returns an array, and one of two arguments or more that
needs more than three lines, has Google's sections; what a Protocol of core declares is told there. Args names every
argument on a line of its own, Returns says what comes back, Raises which error where the function raises one itself.
The shape of an array stands in its annotation, where jaxtyping checks it in every test, or as `*Shape:*` in its line.
A public record with an array has Attributes.
"""

import argparse
import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.sources import PROJECT, files_of, nodes_of, tree_of

SHAPED = re.compile(r"\b(Float|Int|UInt|Integer|Bool|Real|Num|Shaped)\d*\[")
PLAIN = re.compile(r"\b(ndarray|Tensor|NDArray)\b")
LINES = 3  # that a docstring of two arguments or more may take in prose
Function = ast.FunctionDef | ast.AsyncFunctionDef


def public(body: list[ast.stmt], inside: str = "") -> Iterator[tuple[str, ast.stmt]]:
    """Functions and classes that do not begin with an underscore, and the methods of these classes."""
    for node in body:
        if isinstance(node, Function | ast.ClassDef) and not node.name.startswith("_"):
            yield inside + node.name, node
            if isinstance(node, ast.ClassDef):
                yield from public(node.body, f"{node.name}.")


def arguments(function: Function) -> list[ast.arg]:
    """What a caller gives: without self and cls."""
    given = function.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, [given.vararg, given.kwarg])]
    return [argument for argument in every if argument.arg not in ("self", "cls")]


def section(docstring: str, name: str) -> str | None:
    """The lines under `Args:`, or None where there is no such section."""
    match = re.search(rf"(?m)^{name}:\n((?:(?:[ ]{{4}}.*)?\n?)*)", docstring)
    return match[1] if match else None


def entry(lines: str, argument: str) -> str | None:
    """What a section says of one argument, with the lines that go on."""
    match = re.search(
        rf"(?m)^    (?:\*{{0,2}}\w+, )*\*{{0,2}}{argument}(?:, \*{{0,2}}\w+)*: (.*(?:\n {{8}}.*)*)", lines
    )
    return match[1] if match else None


def has_array(annotation: ast.expr | None) -> bool:
    text = ast.unparse(annotation) if annotation else ""
    return bool(SHAPED.search(text) or PLAIN.search(text))


def shape_is_missing(annotation: ast.expr | None, told: str) -> bool:
    """Whether an array is annotated without its shape, and the docstring does not say it either."""
    text = ast.unparse(annotation) if annotation else ""
    return bool(PLAIN.search(SHAPED.sub("", re.sub(SHAPED.pattern + r"[^]]*\]", "", text)))) and "*Shape:*" not in told


@cache
def declared() -> frozenset[tuple[str, ...]]:
    """Methods of the Protocols of core whose docstring has Args: name, then the names of the arguments."""
    classes = [node for file in files_of("core") for node in nodes_of(file) if isinstance(node, ast.ClassDef)]
    methods = [
        node
        for protocol in classes
        if any("Protocol" in ast.unparse(base) for base in protocol.bases)
        for node in protocol.body
        if isinstance(node, ast.FunctionDef) and section(ast.get_docstring(node) or "", "Args")
    ]
    return frozenset(signature(method) for method in methods)


def signature(function: Function) -> tuple[str, ...]:
    """A method's name and those of its arguments."""
    return (function.name, *(argument.arg for argument in arguments(function)))


def raises_itself(function: Function) -> bool:
    return any(isinstance(node, ast.Raise) and node.exc is not None for node in ast.walk(function))


def missing_of_function(function: Function) -> list[str]:
    """What its docstring should have and has not."""
    text, given = ast.get_docstring(function), arguments(function)
    if text is None or not given or (section(text, "Args") is None and signature(function) in declared()):
        return []
    arrays = has_array(function.returns) or any(has_array(argument.annotation) for argument in given)
    is_long = len(given) > 1 and len(text.splitlines()) > LINES
    if not arrays and not is_long:
        return []
    lines = section(text, "Args") or ""
    told = {argument.arg: entry(lines, argument.arg) for argument in given}
    missing = [f"Args: {name}" for name, line in told.items() if line is None]
    missing += [
        f"*Shape:* of {argument.arg}"
        for argument in given
        if (line := told[argument.arg]) is not None and shape_is_missing(argument.annotation, line)
    ]
    returns = section(text, "Returns") or section(text, "Yields")
    if function.returns is not None and ast.unparse(function.returns) not in ("None", "Never", "NoReturn"):
        missing += ["Returns"] if returns is None else []
        missing += ["*Shape:* of what is returned"] if returns and shape_is_missing(function.returns, returns) else []
    return missing + (["Raises"] if raises_itself(function) and section(text, "Raises") is None else [])


def missing_of_class(record: ast.ClassDef) -> list[str]:
    """Of a dataclass or named tuple with arrays among its public fields: which of them Attributes does not name."""
    named = [ast.unparse(base) for base in [*record.decorator_list, *record.bases]]
    fields = [node for node in record.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)]
    fields = [field for field in fields if not field.target.id.startswith("_")]  # type: ignore[union-attr]
    if not any(re.search("dataclass|NamedTuple", name) for name in named):
        return []
    if not any(has_array(field.annotation) for field in fields):
        return []
    lines = section(ast.get_docstring(record) or "", "Attributes") or ""
    told = {field: entry(lines, field.target.id) for field in fields}  # type: ignore[union-attr]
    missing = [f"Attributes: {field.target.id}" for field, line in told.items() if line is None]  # type: ignore[union-attr]
    return missing + [
        f"*Shape:* of {field.target.id}"  # type: ignore[union-attr]
        for field, line in told.items()
        if line is not None and shape_is_missing(field.annotation, line)
    ]


def unreadable(file: Path) -> dict[str, list[str]]:
    """By `file:line name` what the docstrings of a file lack."""
    found = {}
    for name, node in public(tree_of(file).body):
        missing = missing_of_class(node) if isinstance(node, ast.ClassDef) else missing_of_function(node)  # type: ignore[arg-type]
        if missing:
            found[f"{file.relative_to(PROJECT)}:{node.lineno} {name}"] = missing
    return found


def main(folders: list[str]) -> int:
    """The exit status: 1 where something is missing."""
    files = [
        file for file in files_of("core") if not folders or str(file.relative_to(PROJECT)).startswith(tuple(folders))
    ]
    lacking = {where: missing for file in files for where, missing in unreadable(file).items()}
    if folders:
        print("\n".join(f"{where}: {', '.join(missing)}" for where, missing in lacking.items()))
    rooms = Counter("/".join(where.split(":")[0].split("/")[:2]) for where in lacking)
    print("\n".join(f"{room} {count}" for room, count in sorted(rooms.items())), f"\n{len(lacking)} in all")
    return int(bool(lacking))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="*", help="of core; default: all, counted by room")
    sys.exit(main(parser.parse_args().folders))
