"""Studies of how heads work together: gates, pairs, Shapley values and circuits."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
