"""Attention Atlas in notebooks and scripts.

    import attention_atlas as atlas      # in a clone: from core import notebook as atlas
    model = atlas.open("atlas-encoder")  # or atlas.open(model, tokenizer)
    model.show("The cat sat on the mat.")
    model.scores(["The cat sat.", "It purred."])
    atlas.study("ablation", "atlas-encoder-sst2", task="sst2", limit=100)

Numbers are returned as pandas data frames. Layers and heads in them are counted from 0; names like "L1H1" count from 1.
"""

from ..errors import AtlasError
from .labels import PatternClassifier, labels, train_classifier
from .model import Model, open
from .running import studies, study
from .showing import MapsWidget, circuit_edges, circuit_graph, show_maps

__all__ = [
    "AtlasError",
    "MapsWidget",
    "Model",
    "PatternClassifier",
    "circuit_edges",
    "circuit_graph",
    "labels",
    "open",
    "show_maps",
    "studies",
    "study",
    "train_classifier",
]
