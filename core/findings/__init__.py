"""Findings: what was found, pinned with a note, and sent on with the numbers and the command behind it.

Modules load when they are used: `from core import findings`, `findings.module.name` (docs/decisions/026).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
