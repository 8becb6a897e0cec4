"""All results: every stored and bundled run of every study."""

from pages.parts.reports.result_list import show_results as show

__all__ = ["show"]
