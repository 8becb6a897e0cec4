"""Circuit: which component feeds which, and how sure that is."""

from streamlit.delta_generator import DeltaGenerator

from pages.parts.disable.circuits import show_circuits


def show(tools: DeltaGenerator) -> None:
    """The stored circuits, and a form for another."""
    show_circuits()
