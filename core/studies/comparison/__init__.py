"""Heads across checkpoints: which head of one is which of another, and how heads come about in training.

Modules load when they are used: `from core import studies`, `studies.comparison.module.name` (docs/decisions/026).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
