"""Attention Atlas: what attention heads do, and whether it matters. This package is independent of Streamlit."""

__version__ = "0.1.0"
