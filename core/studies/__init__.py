"""The studies, in one package per subject, and the code that all studies share.

Modules are imported when they are first used: `from core import studies`, `studies.attention.measures.name`
(docs/decisions/026).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
