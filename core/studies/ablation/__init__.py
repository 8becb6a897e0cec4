"""Ablation: heads, edges and sublayers removed, fixed, patched or changed. Modules load when they are used (decision
026)."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
