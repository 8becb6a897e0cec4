"""Studies of what heads attend to: features, relations, statistics, roles and norms."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
