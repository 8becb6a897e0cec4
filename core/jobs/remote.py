"""The function that is sent to a cluster by value, so that the scheduler does not need the modules of this program."""

import inspect
import sys
from collections.abc import Callable
from typing import Any

import cloudpickle


class ByValue:
    """A wrapper that pickles a function with its code. Plain pickle would store only the function name."""

    def __init__(self, function: Callable[..., Any]):
        self._function = function
        self.__name__ = function.__name__
        cloudpickle.register_pickle_by_value(sys.modules[function.__module__])
        # Without the decorator, whose globals cannot be pickled
        self._pickled = cloudpickle.dumps(inspect.unwrap(function))

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[bytes]]:
        return cloudpickle.loads, (self._pickled,)


def perform_there(task: str, code: str, *arguments: Any) -> Any:
    """Run a task on a cluster machine and return its result. Return an error if that machine lacks this package."""
    import importlib  # imported here because the function is sent by value, without this module
    import socket  # as above

    missing = ""
    for layout in dict.fromkeys((__package__, "core.jobs", "attention_atlas.core.jobs")):
        try:
            worker = importlib.import_module(f"{layout}.worker")
        except ImportError as error:
            missing = missing or str(error.name)
            continue
        return worker.perform(task, code, *arguments)
    return {
        "error": f"Workers need this program and its requirements; {socket.gethostname()} lacks {missing}. "
        "Install attention-atlas on that machine, or start its workers in a clone with PYTHONPATH=. in "
        "front.",
        "seconds": 0.0,
        "worker": socket.gethostname(),
    }
