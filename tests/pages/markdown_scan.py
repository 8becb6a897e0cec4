"""Which texts reach a function of Streamlit that renders Markdown without `plain`: read from the code, not run.

A text is safe if it is written in the code, is a number, or went through `plain` (or a function that counts). A
parameter of a function makes that function one that renders Markdown; a function's result is safe if all that it
returns is. Everything else is named.
"""

import ast
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
LABELLED = (
    "button", "form_submit_button", "download_button", "checkbox", "toggle", "radio", "selectbox", "multiselect",
    "segmented_control", "pills", "slider", "select_slider", "number_input", "text_input", "text_area", "date_input",
    "file_uploader", "expander", "popover", "metric", "link_button", "page_link",
)  # fmt: skip
RENDERING = {  # positions and names of the arguments that are Markdown, by the function of Streamlit
    **dict.fromkeys(LABELLED, ((0,), ("label", "help"))),
    **dict.fromkeys(
        ("markdown", "write", "caption", "error", "warning", "info", "success", "title", "header", "subheader", "toast",
         "badge", "spinner"),
        ((0,), ("body", "text", "help")),
    ),
    "metric": ((0, 1, 2), ("label", "value", "delta", "help")),
    "page_link": ((), ("label", "help")),
    "progress": ((1,), ("text",)),
    "status": ((), ("label",)),
    "tabs": ((0,), ("tabs",)),
    "radio": ((0,), ("label", "options", "help", "captions")),
    "segmented_control": ((0,), ("label", "options", "help")),
    "pills": ((0,), ("label", "options", "help")),
    "dialog": ((0,), ("title",)),
    "image": ((1,), ("caption",)),
}  # fmt: skip
ESCAPING = {"plain", "as_code", "counted", "len", "int", "round", "float", "sum", "abs"}
KEEPING = {
    "join", "format", "replace", "strip", "rstrip", "lstrip", "removesuffix", "removeprefix", "capitalize", "upper",
    "lower", "title",
}  # fmt: skip
NUMERIC = {"int", "float", "bool", "Head", "date", "datetime", "None", "Path", "NoneType", "Part"}
NUMBERS = {
    "head",
    "heads",
    "count",
    "number",
    "n",
    "k",
    "layer",
    "layers",
    "share",
    "total",
}  # names of numbers and heads


@dataclass
class _Function:
    name: str
    file: Path
    node: ast.AST
    owner: str = ""
    parameters: list[str] = field(default_factory=list)
    annotations: dict[str, str] = field(default_factory=dict)
    assigned: dict[str, list[ast.expr]] = field(default_factory=lambda: defaultdict(list))
    returned: list[ast.expr] = field(default_factory=list)
    calls: list[ast.Call] = field(default_factory=list)


class Scan:
    """All functions of the pages and of core, and what is known of their texts."""

    def __init__(self, root: Path = PROJECT):
        self.root = root
        self.functions: list[_Function] = []
        self.fields: dict[str, set[str]] = defaultdict(set)  # annotations by name of a field, over all classes
        self.constants: dict[str, set[str]] = defaultdict(set)
        for folder in ("pages", "core"):
            for file in sorted((root / folder).rglob("*.py")):
                self._read(file, ast.parse(file.read_text("utf-8")))
        self.by_name: dict[str, list[_Function]] = defaultdict(list)
        for function in self.functions:
            self.by_name[function.name].append(function)
        self.sinks: dict[tuple[str, str], tuple[set[int], set[str]]] = {}  # by module and function
        self._safe_results: dict[tuple[str, Path], bool] = {}

    # ------------------------------------------------------------ reading

    def _read(self, file: Path, tree: ast.Module) -> None:
        def visit(node: ast.AST, function: _Function, owner: str) -> None:
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.ClassDef):
                    for item in child.body:
                        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                            self.fields[item.target.id].add(ast.unparse(item.annotation))
                        if (
                            isinstance(item, ast.FunctionDef)
                            and item.returns is not None
                            and any("property" in ast.unparse(one) for one in item.decorator_list)
                        ):
                            self.fields[item.name].add(ast.unparse(item.returns))
                    visit(child, function, child.name)
                elif isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    inner = _Function(child.name, file, child, owner)
                    arguments = [*child.args.posonlyargs, *child.args.args, *child.args.kwonlyargs]
                    inner.parameters = [one.arg for one in arguments if one.arg not in ("self", "cls")]
                    inner.annotations = {one.arg: ast.unparse(one.annotation) for one in arguments if one.annotation}
                    inner.assigned = defaultdict(
                        list, {name: list(values) for name, values in function.assigned.items() if function.name}
                    )
                    self.functions.append(inner)
                    visit(child, inner, "")
                else:
                    self._note(child, function)
                    visit(child, function, owner)

        module = _Function("", file, tree)
        self.functions.append(module)
        visit(tree, module, "")

    @staticmethod
    def _note(node: ast.AST, function: _Function) -> None:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.NamedExpr(target=ast.Name(id=name), value=value)
            ):
                function.assigned[name].append(value)
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)) if len(names) == len(values):
                for name, value in zip(names, values, strict=True):
                    if isinstance(name, ast.Name):
                        function.assigned[name.id].append(value)
            case ast.AugAssign(target=ast.Name(id=name), value=value):
                function.assigned[name].append(value)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                function.assigned[name].append(value)
            case ast.For(target=ast.Name(id=name), iter=value):
                function.assigned[name].append(value)
            case ast.Return(value=ast.expr() as value):
                function.returned.append(value)
            case ast.Call():
                function.calls.append(node)

    # ------------------------------------------------------------ asking

    def unsafe(self) -> list[str]:
        """Texts that reach Markdown and are not known to be safe, as "file: function(expression)"."""
        found: dict[str, None] = {}
        changed = True
        while changed:
            changed = False
            found = {}
            for function in self.functions:
                if function.file.relative_to(self.root).parts[0] != "pages":
                    continue
                for call in function.calls:
                    for argument in self._rendered(call, function.file.stem):
                        reason = self._why(argument, function, frozenset())
                        if isinstance(reason, _Parameter):
                            changed |= self._sink(function, reason.name)
                        elif reason:
                            place = function.file.relative_to(self.root)
                            found[f"{place}:{argument.lineno} {ast.unparse(call.func)}: {reason}"] = None
        return list(found)

    def _sink(self, function: _Function, parameter: str) -> bool:
        positions, names = self.sinks.setdefault((function.file.stem, function.name), (set(), set()))
        if parameter in names:
            return False
        names.add(parameter)
        positions.add(function.parameters.index(parameter))
        return True

    def _sinks_of(self, call: ast.Call, name: str, here: str) -> tuple[set[int], set[str]]:
        """Of the function that is called: of the module that is named, or this one; else of all of that name."""
        modules = {function.file.stem for function in self.by_name[name]} if name in self.by_name else set()
        module = ast.unparse(call.func.value).rpartition(".")[2] if isinstance(call.func, ast.Attribute) else here
        found = [self.sinks.get((stem, name), (set(), set())) for stem in ({module} if module in modules else modules)]
        return set().union(*(places for places, _ in found)), set().union(*(names for _, names in found))

    def _rendered(self, call: ast.Call, here: str) -> list[ast.expr]:
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        positions, names = set(), set()
        if isinstance(call.func, ast.Attribute) and name in RENDERING:
            positions, names = map(set, RENDERING[name])
        else:
            positions, names = self._sinks_of(call, name, here)
        if name in ("title", "header", "write", "status", "table") and ast.unparse(call.func).split(".")[0] != "st":
            return []  # a method of ours
        widget = ast.unparse(call.args[0]).rpartition(".")[2] if call.args and name.startswith("pick") else name
        if widget in ("radio", "segmented_control", "pills"):  # others show their options as text
            formatted = any(word.arg == "format_func" for word in call.keywords)
            place = 1 if widget == name else 2
            positions = positions - {place} if formatted else positions | {place}
            names = (names - {"options"}) | {"format_func"} if formatted else names
        given = [argument for place, argument in enumerate(call.args) if place in positions]
        return [*given, *(word.value for word in call.keywords if word.arg in names)]

    def _why(self, node: ast.expr, function: _Function, seen: frozenset[str]):
        """Why an expression is not safe: its text; a parameter, if its callers decide; "" if it is safe."""

        def each(nodes):
            return next(filter(None, (self._why(one, function, seen) for one in nodes)), "")

        match node:
            case ast.Constant():
                return ""
            case ast.JoinedStr(values=values):
                return each(values)
            case ast.FormattedValue(value=value, format_spec=spec):
                if spec is not None and set(ast.unparse(spec)) & set("fgde%,"):
                    return ""
                return self._why(value, function, seen)
            case ast.BinOp(left=left, right=right, op=ast.Add() | ast.Mod()):
                return each([left, right])
            case ast.BinOp() | ast.Compare() | ast.UnaryOp():
                return ""  # numbers
            case ast.IfExp(body=body, orelse=other):
                return each([body, other])
            case ast.BoolOp(values=values):
                return each(values)
            case ast.List(elts=values) | ast.Tuple(elts=values):
                return each(values)
            case ast.Dict(values=values):
                return each(values)
            case ast.Starred(value=value) | ast.NamedExpr(value=value):
                return self._why(value, function, seen)
            case ast.Lambda(body=body):
                return self._why(body, function, seen | {one.arg for one in node.args.args} & NUMBERS)
            case ast.DictComp(value=value):
                return self._why(value, function, seen)
            case ast.ListComp(elt=elt) | ast.GeneratorExp(elt=elt):
                return self._why(elt, function, seen)
            case ast.Subscript(value=value):
                return "" if _is_constant(value) else self._why(value, function, seen)
            case ast.Attribute(attr=name):
                if _is_constant(node) or name in NUMBERS:
                    return ""
                kinds = self.fields.get(name)
                return "" if kinds and all(map(_is_numeric, kinds)) else ast.unparse(node)
            case ast.Name(id=name):
                if _is_constant(node) or name in NUMBERS or name in ESCAPING or name in seen:
                    return ""
                if name in function.assigned:
                    return next(
                        filter(None, (self._why(v, function, seen | {name}) for v in function.assigned[name])), ""
                    )
                if name in function.parameters:
                    if _is_numeric(function.annotations.get(name, "")):
                        return ""
                    return _Parameter(name)
                return name
            case ast.Call(func=called, args=arguments, keywords=words):
                short = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
                if short in ESCAPING:
                    return ""
                if isinstance(called, ast.Attribute) and short in KEEPING:
                    return each([called.value, *arguments, *(word.value for word in words)])
                if short in ("str", "list", "sorted", "tuple", "map", "filter"):
                    return each(arguments[-1:])
                if short in self.by_name and self._results_are_safe(short, function.file):
                    return ""
                return ast.unparse(node)
        return ast.unparse(node)

    def _results_are_safe(self, name: str, file: Path) -> bool:
        named = [one for one in self.by_name[name] if one.file == file] or self.by_name[name]
        key = (name, named[0].file)
        if key not in self._safe_results:
            self._safe_results[key] = True  # of a function that calls itself
            self._safe_results[key] = all(map(self._is_safe, named))
        return self._safe_results[key]

    def _is_safe(self, function: _Function) -> bool:
        kind = ast.unparse(function.node.returns) if function.node.returns else ""
        texts = (self._why(value, function, frozenset()) for value in function.returned)
        return _is_numeric(kind) or (bool(function.returned) and not any(texts))


@dataclass(frozen=True)
class _Parameter:
    """An expression whose safety the callers decide."""

    name: str


def _is_constant(node: ast.expr) -> bool:
    """Whether a name is that of a constant of a module."""
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return bool(name) and name.lstrip("_").isupper()


def _is_numeric(annotation: str) -> bool:
    parts = {
        part.strip()
        for part in annotation.replace("Sequence[", "")
        .replace("tuple[", "")
        .replace("list[", "")
        .replace("]", "")
        .replace(", ...", "")
        .replace(",", "|")
        .split("|")
    }
    return bool(annotation) and parts <= NUMERIC


if __name__ == "__main__":
    print("\n".join(Scan().unsafe()))
