"""Maps and events for the tests of labels."""

import numpy as np

SET = "bert"


def a_map(name="m1", *, length=6, layer=0, head=0, row_id="dev-1", seed=0, **other):
    weights = np.random.default_rng([seed or 0, *name.encode()]).random((length, length))
    weights = (weights / weights.sum(-1, keepdims=True)).astype("<f2")
    return {
        "map_id": name,
        "checkpoint": "atlas-encoder",
        "weights_hash": "abc",
        "task": "mrpc",
        "split": "dev",
        "row_id": row_id,
        "layer": layer,
        "head": head,
        "length": length,
        "tokens": ["[CLS]"] * length,
        "separators": [length - 1],
        "causal": False,
        "maximum": float(weights.max()),
        "seed": seed,
        "weights": weights.tobytes(),
    } | other


def event(sequence, name="m1", cls="vertical", *, batch="tab", kind="label", annotator="ada", **other):
    found = {
        "batch": batch,
        "sequence": sequence,
        "kind": kind,
        "class_set": SET,
        "map_id": name,
        "annotator": annotator,
        "seconds": 1.5,
        "scale": "absolute",
        "way": "sheet",
        "queue_order": "random",
    }
    return found | ({"class": cls} if kind == "label" else {}) | other
