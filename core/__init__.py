"""Attention Atlas: what attention heads do, and whether it matters. Nothing below this package knows Streamlit."""

__version__ = "0.1.0"
