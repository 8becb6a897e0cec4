"""Attention Atlas: what attention heads do, and whether it matters. This package is independent of Streamlit."""

__version__ = "1.0.0"
