"""Why heads look where they look: scores taken apart into what earlier components wrote.

Modules load when they are used: `from core import studies`, `studies.explanation.module.name` (docs/decisions/026).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
