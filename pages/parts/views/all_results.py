"""All results: every stored run of every study, one's own and those that ship."""

from pages.parts.reports.result_list import show_results as show

__all__ = ["show"]
