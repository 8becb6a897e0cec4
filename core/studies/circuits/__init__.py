"""How heads work together: gates, pairs of heads, Shapley values, and circuits of edges between components.

Modules load when they are used: `from core import studies`, `studies.circuits.module.name` (docs/decisions/026).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
