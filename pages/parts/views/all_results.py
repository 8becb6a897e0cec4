"""All results: every stored run of every study, one's own and those that ship."""

from streamlit.delta_generator import DeltaGenerator

from pages.parts.reports.result_list import show_results


def show(tools: DeltaGenerator) -> None:
    """The list, searched and filtered."""
    show_results(tools)
