"""A classifier on every layer's output, nothing below it learning: at the classifying token, or on the mean."""

from collections.abc import Sequence

import numpy as np

from ...capture.states import layer_outputs
from ...models.checkpoint import Checkpoint
from ...models.encoding import Encoding
from ...probing.layers import LINEAR, Examples, fit
from ...probing.ragged import Ragged
from ..attention.measures import classifying
from .probe_features import kept_features
from .trials import Bench

FIRST, MEAN = "first", "mean"


def layer_predictions(on: Bench) -> dict[str, np.ndarray]:
    """What a classifier on each layer's output says of the dev rows; ridge regression for scores.

    Returns:
        By what is read, FIRST (the classifying token) or MEAN (over the text's tokens); layer 0 is the embeddings'
        output. *Shape:* (layer, dev row) each.
    """
    parts = [_pooled(on.base, [example.encoding for example in some]) for some in (on.train, on.dev)]
    labels = [np.array([row.label for row in rows]) for rows in (on.train_rows, on.dev_rows)]
    predictions = {}
    for place, reading in enumerate((FIRST, MEAN)):
        train, dev = (vectors[:, place] for vectors in parts)
        if on.task.is_score:
            predictions[reading] = _ridge(train, labels[0], dev)
            continue
        examples = [
            Examples(vectors, np.arange(len(own)), own, np.arange(len(own)), ("",) * len(own))
            for vectors, own in zip((train, dev), labels, strict=True)
        ]
        predictions[reading] = fit(examples[0], len(on.task.labels), LINEAR).predict(examples[1])
    return predictions


def _pooled(checkpoint: Checkpoint, encodings: Sequence[Encoding]) -> np.ndarray:
    """Vectors [row, reading, layer, hidden], on disk."""
    hidden = int(checkpoint.model.config.hidden_size)
    shapes = [(2, checkpoint.layers + 1, hidden)] * len(encodings)

    def compute(folder: object) -> None:
        stored = Ragged.create(folder, "pooled", shapes)  # type: ignore[arg-type]
        for chosen, states in layer_outputs(checkpoint, encodings):
            for row, number in enumerate(chosen):
                own, encoding = states[:, row].numpy(), encodings[number]
                at = classifying(encoding, causal=checkpoint.causal)
                both = np.stack([own[:, at], own[:, list(encoding.ordinary)].mean(1)])
                stored.put(number, np.clip(both, -65000, 65000).astype(np.float16))
        stored.data.flush()

    texts = [f"{encoding.text}\t{encoding.pair}\t{len(encoding)}" for encoding in encodings]
    stored = Ragged.open(kept_features("pooled", checkpoint, texts, compute), "pooled")
    return stored.data[: int(stored.starts[-1])].reshape(len(encodings), *shapes[0])


def _ridge(train: np.ndarray, scores: np.ndarray, dev: np.ndarray) -> np.ndarray:
    """Ridge regression of every layer, standardised."""
    from sklearn.linear_model import RidgeCV  # 1 s of start-up
    from sklearn.pipeline import make_pipeline  # 1 s of start-up
    from sklearn.preprocessing import StandardScaler  # 1 s of start-up

    predictions = []
    for layer in range(train.shape[1]):
        model = make_pipeline(StandardScaler(), RidgeCV(np.logspace(0, 4, 9)))
        model.fit(train[:, layer].astype(np.float64), scores)
        predictions.append(model.predict(dev[:, layer].astype(np.float64)))
    return np.stack(predictions)
