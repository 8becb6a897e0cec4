"""Shapes of arrays, checked in every call of the tests: jaxtyping reads them from annotations, beartype looks.

Only in modules that state shapes, which mypy cannot check, and each function only once it is called: to prepare all
3,400 of `core` takes 20 CPU seconds in every process. `make check` prepares them all (`--jaxtyping-packages`).
"""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from beartype import beartype
from jaxtyping import install_import_hook

PROJECT = Path(__file__).resolve().parents[1]


def modules_with_shapes() -> list[str]:
    files = [file for file in (PROJECT / "core").rglob("*.py") if "jaxtyping" in file.read_text(encoding="utf-8")]
    return [".".join(file.relative_to(PROJECT).with_suffix("").parts) for file in sorted(files)]


def when_called(function: Callable) -> Callable:
    """beartype's check of a function, made by its first call."""
    checked: list[Callable] = []

    @wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        if not checked:
            checked.append(beartype(function))
        return checked[0](*arguments, **options)

    return call


def install() -> None:
    install_import_hook(modules_with_shapes(), "tests.shape_checks.when_called")
