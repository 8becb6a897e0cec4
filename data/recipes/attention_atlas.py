"""Attention Atlas in notebooks and scripts: `import attention_atlas as atlas`, then `atlas.open("atlas-encoder")`.

In a wheel this file is `attention_atlas/__init__.py`, and attention_atlas.pyi has its types. The names are those of
`core.notebook`; they load when they are used, so that commands start without torch.
"""

from importlib import import_module
from typing import Any

from .core import __version__ as __version__


def __getattr__(name: str) -> Any:
    if name.startswith("_") and name != "__all__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    notebook = import_module(".core.notebook", __name__)
    return ["__version__", *notebook.__all__] if name == "__all__" else getattr(notebook, name)


def __dir__() -> list[str]:
    return sorted(__getattr__("__all__"))
