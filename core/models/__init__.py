"""Modules that load on first use: `from core import models`, then `models.module.name` (docs/decisions/026)."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
