"""Seed variance: what the head's first weights, the sample of rows and the order of batches each do to a run."""

from streamlit.delta_generator import DeltaGenerator

from pages.parts.tuning.seeds_apart import show_seeds


def show(tools: DeltaGenerator) -> None:
    """The stored runs of several seeds, and a form for more."""
    show_seeds()
