"""Sequential test: which heads matter, asked of as few rows as it takes."""

from streamlit.delta_generator import DeltaGenerator

from pages.parts.disable.races import show_races


def show(tools: DeltaGenerator) -> None:
    """The stored tests, and a form for another."""
    show_races()
