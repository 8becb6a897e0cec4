from .core.notebook import *  # noqa: F403

__version__: str
