"""The one function that travels to a cluster by value, so that its scheduler needs nothing of this repository."""

import inspect
import sys
from collections.abc import Callable
from typing import Any

import cloudpickle


class ByValue:
    """A function that is pickled with its code, where pickle alone would send its name."""

    def __init__(self, function: Callable[..., Any]):
        self._function = function
        self.__name__ = function.__name__
        cloudpickle.register_pickle_by_value(sys.modules[function.__module__])
        self._pickled = cloudpickle.dumps(inspect.unwrap(function))  # a decorator's globals are not for sending

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[bytes]]:
        return cloudpickle.loads, (self._pickled,)


def perform_there(task: str, code: str, *arguments: Any) -> Any:
    """`worker.perform` on a machine that may lack this program, or have it in the other of its two layouts: a clone or
    an installation. The answer is an error if it is in neither."""
    import importlib  # by value: nothing of this module travels with it
    import socket

    missing = ""
    for layout in dict.fromkeys((__package__, "core.jobs", "attention_atlas.core.jobs")):
        try:
            worker = importlib.import_module(f"{layout}.worker")
        except ImportError as error:
            missing = missing or str(error.name)
            continue
        return worker.perform(task, code, *arguments)
    return {
        "error": f"Workers must find this program and its requirements, but {socket.gethostname()} lacks {missing}. "
        "Install attention-atlas on that machine, or start its workers in a clone with PYTHONPATH=. in front.",
        "seconds": 0.0,
        "worker": socket.gethostname(),
    }
