"""Fine-tuning, and what it changes. Modules load on first use (decision 026)."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
