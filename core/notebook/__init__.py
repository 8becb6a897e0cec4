"""Notebook interface: attention maps as a widget, and head scores as data frames.

show(model, tokenizer, "The cat sat."), or show("atlas-encoder", "The cat sat.")
heads(model, tokenizer, texts)
atlas("atlas-encoder", task="sst2")
why(model, tokenizer, "The cat sat.", "L2H5"), and why_maps with the same arguments as a widget
counterparts("atlas-encoder", "FOLDER")
hypothesis("atlas-encoder", "L1H1", "offset", {"offset": "first"})
circuit_graph("circuit.json") as a NetworkX graph, and circuit_edges("circuit.json") as a frame
"""

from .showing import (
    atlas,
    circuit_edges,
    circuit_graph,
    counterparts,
    heads,
    hypothesis,
    show,
    why,
    why_maps,
)

__all__ = ["atlas", "circuit_edges", "circuit_graph", "counterparts", "heads", "hypothesis", "show", "why", "why_maps"]
