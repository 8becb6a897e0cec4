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
    """`core.jobs.worker.perform` on a machine that may lack the repository; the answer says so then."""
    import socket  # by value: nothing of this module travels with it

    try:
        from .worker import perform  # the machine may lack it
    except ImportError as error:
        return {
            "error": f"Workers must find this repository and its requirements, but {socket.gethostname()} lacks "
            f"{error.name}; start them in its folder with PYTHONPATH=. in front.",
            "seconds": 0.0,
            "worker": socket.gethostname(),
        }
    return perform(task, code, *arguments)
