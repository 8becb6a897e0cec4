"""Shapes of arrays, checked in calls of the tests: jaxtyping reads them from annotations, beartype looks.

Only in modules that state shapes, which mypy cannot check; each function only once it is called, and then its first,
second, fourth, eighth ... call: to prepare all 3,400 functions of `core` takes 20 CPU seconds in every process, and to
look at ten calls and every fiftieth made a fifth of what tests of tiny models took. `make check` prepares all of core
and looks at every call (`--jaxtyping-packages`).
"""

from collections.abc import Callable
from functools import partial, wraps
from inspect import isclass
from pathlib import Path
from types import CodeType
from typing import Any

import jaxtyping
from beartype import beartype

PROJECT = Path(__file__).resolve().parents[1]
real = jaxtyping.jaxtyped


class Looking:
    """Which calls are looked at; `closely`: all."""

    def __init__(self) -> None:
        self.closely, self.calls = False, dict[CodeType, list[int]]()

    def counter(self, code: CodeType) -> list[int]:
        """How often a function was called; inner functions made anew are one function. To find it takes up to 2 us."""
        return self.calls.setdefault(code, [0])


looking = Looking()


def modules_with_shapes() -> list[str]:
    files = [file for file in (PROJECT / "core").rglob("*.py") if "jaxtyping" in file.read_text(encoding="utf-8")]
    return [".".join(file.relative_to(PROJECT).with_suffix("").parts) for file in sorted(files)]


def jaxtyped(function: Any = None, *, typechecker: Callable) -> Any:
    """Stands for `jaxtyping.jaxtyped`: what checks a function is made by the first call that is looked at."""
    if function is None:
        return partial(jaxtyped, typechecker=typechecker)
    if isclass(function) or not hasattr(function, "__code__"):
        return real(function, typechecker=typechecker)
    checked: list[Callable] = []
    calls = looking.counter(function.__code__)

    @wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        calls[0] = number = calls[0] + 1
        if number & (number - 1) and not looking.closely:  # no power of two
            return function(*arguments, **options)
        if not checked:
            checked.append(real(function, typechecker=beartype))
        return checked[0](*arguments, **options)

    return call


def install() -> None:
    jaxtyping.jaxtyped = jaxtyped
    jaxtyping.install_import_hook(modules_with_shapes(), "beartype.beartype")
