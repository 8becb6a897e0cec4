"""Hypotheses about single heads: registration before they are tested, and the criteria that each hypothesis meets."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
