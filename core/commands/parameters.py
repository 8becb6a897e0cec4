"""Parameters of terminal commands, derived from declared options, and those of output format and placement."""

import functools
import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING
from typing import Annotated, Any, Union, get_args, get_origin

import typer

from ..config import settings
from ..errors import InputError
from ..jobs.executors import JobPlacement
from ..store.rows import Row
from ..studies.contract import Declared, declared, read_options
from .output import Cluster, Csv, Form, Json, Latex, Workers

FORMS: dict[str, Any] = {"as_json": Json, "csv": Csv, "latex": Latex}
PLACES: dict[str, Any] = {"cluster": Cluster, "workers": Workers}
DEFAULTS: dict[str, Any] = dict.fromkeys(FORMS, False) | dict.fromkeys(PLACES)


def of_record(kind: type, *, beside: Mapping[str, Any] = FORMS) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that turns a function into a command. The fields of the dataclass `kind` become options.

    `beside` are options of output format and placement. With placement, the function is called as do(options, form,
    where), otherwise as do(options, form).
    """
    options = declared(kind)

    def decorate(do: Callable[..., None]) -> Callable[..., None]:
        def run(**typed: Any) -> None:
            places = [placement_typed(typed)] if beside.keys() >= PLACES.keys() else []
            form = form_typed(typed)
            do(read_options(kind, do.__name__, given(options, typed)), form, *places)

        run.__name__, run.__doc__ = do.__name__, do.__doc__
        return signed_by(run, tuple(options.values()), beside)

    return decorate


def with_form(do: Callable[..., None]) -> Callable[..., None]:
    """Turn a function into a command with options for the output format. If the function has a parameter `where`, the
    command also has options for where the job runs."""
    parameters = dict(inspect.signature(do).parameters)
    beside = PLACES | FORMS if parameters.pop("where", None) else FORMS
    del parameters["form"]

    @functools.wraps(do)
    def run(**typed: Any) -> None:
        own_values = {"form": form_typed(typed)} | ({"where": placement_typed(typed)} if beside is not FORMS else {})
        do(**{name: typed[name] for name in parameters}, **own_values)

    return _signed(run, [*parameters.values(), *_beside(beside)])


def signed_by(run: Callable[..., None], options: Sequence[Declared], beside: Mapping[str, Any]) -> Callable[..., None]:
    """Give a function the signature from which typer reads the options of a command. `beside` adds options for output
    format and placement of jobs."""
    return _signed(run, [*(_parameter(option) for option in options if option.flag), *_beside(beside)])


def _signed(run: Callable[..., None], parameters: list[inspect.Parameter]) -> Callable[..., None]:
    parameters.sort(key=lambda parameter: parameter.default is not inspect.Parameter.empty)
    parameters = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def form_typed(typed: Mapping[str, Any]) -> Form:
    """Return the output format requested on the command line. Raises InputError if several are requested."""
    chosen: list[Form] = [name.removeprefix("as_") for name in FORMS if typed.get(name)]  # type: ignore[misc]
    if len(chosen) > 1:
        raise InputError(f"Only one output format can be given; got --{' and --'.join(chosen)}. Remove all but one.")
    return chosen[0] if chosen else "table"


def placement_typed(typed: Mapping[str, Any]) -> JobPlacement:
    """Return where jobs run: on local workers or on a cluster. Command-line options override settings."""
    chosen = settings()
    return JobPlacement(max(1, typed.get("workers") or chosen.workers), typed.get("cluster") or chosen.cluster)


def given(options: dict[str, Declared], typed: dict[str, Any]) -> Row:
    """Return the values of the options from the command line, including defaults. None and [] are left out."""
    values = {name: typed.get(name) for name, option in options.items() if option.flag}
    return {name: value for name, value in values.items() if value is not None and value != []}


def _parameter(option: Declared) -> inspect.Parameter:
    flag, hint = option.flag, _typed(option)
    assert flag is not None  # noqa: S101 - asked for by the caller
    bounds = {name: bound for name, bound in (("min", flag.least), ("max", flag.most)) if bound is not None}
    names = flag.name.split() if flag.name else [] if flag.argument else [f"--{option.name.replace('_', '-')}"]
    told: Any = typer.Argument if flag.argument else typer.Option
    must = option.required or flag.required or (flag.argument and option.default is not None)
    default = inspect.Parameter.empty if must else _shown_default(option, hint)
    annotation = Annotated[hint, told(*names, help=flag.help, **bounds)]  # type: ignore[valid-type]  # made from a declaration
    return inspect.Parameter(option.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _beside(hints: Mapping[str, Any]) -> list[inspect.Parameter]:
    """Return the parameters of output format and placement."""
    kind = inspect.Parameter.KEYWORD_ONLY
    return [inspect.Parameter(name, kind, default=DEFAULTS[name], annotation=hint) for name, hint in hints.items()]


def _typed(option: Declared) -> Any:
    """Return the type that typer reads: lists for tuples."""
    flag = option.flag
    if flag is not None and flag.typed is not None:
        return flag.typed if option.required else flag.typed | None
    hint = option.hint
    while get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    arms = [arm for arm in get_args(hint) if arm is not type(None)]
    if get_origin(hint) in (Union, types.UnionType) and len(arms) == 1:
        return arms[0] | None
    if get_origin(hint) is tuple:
        return list[arms[0]]  # type: ignore[valid-type]
    return hint


def _shown_default(option: Declared, hint: Any) -> Any:
    """Return the default shown in help; None if it cannot be shown."""
    if option.flag is not None and option.flag.typed is not None:
        return None
    if option.default is MISSING:
        return inspect.Parameter.empty
    return list(option.default) if isinstance(option.default, tuple) else option.default
