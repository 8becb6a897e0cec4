"""Hypotheses about single heads, registered before they are tested, and the criteria that each meets.

Modules load when they are used: `from core import studies`, `studies.hypotheses.module.name` (docs/decisions/026).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
