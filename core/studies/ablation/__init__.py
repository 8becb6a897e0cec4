"""Ablation studies: heads, edges and sublayers are removed, fixed, patched or changed."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
