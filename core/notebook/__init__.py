"""For a notebook: the maps of a model as a widget, and numbers of its heads as pandas frames.

show(model, tokenizer, "The cat sat."), or show("atlas-encoder", "The cat sat."); heads(model, tokenizer, texts);
atlas("atlas-encoder", task="sst2"); why(model, tokenizer, "The cat sat.", "L2H5");
and why_maps of the same, as a widget; counterparts("atlas-encoder", "FOLDER");
hypothesis("atlas-encoder", "L1H1", "offset", {"offset": "first"}).
circuit_graph("circuit.json") and circuit_edges of the same: what `study circuit --json` printed, as a graph of NetworkX
and as a frame.
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
