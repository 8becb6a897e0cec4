"""Labels that are probably wrong, found with a classifier: confident learning (Northcutt, Jiang and Chuang 2021)."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..errors import InputError


@dataclass(frozen=True)
class Suspect:
    """A map whose label is in doubt.

    Attributes:
        margin: its probability less that of the given class, over 0 up to 1.
    """

    map_id: str
    given: str
    suggested: str
    margin: float


def label_errors(labels: pd.Series, probabilities: pd.DataFrame) -> list[Suspect]:
    """Maps to adjudicate, the widest margin first.

    A class's threshold is its mean probability over the maps labelled so; a map is suspect when another class passes
    its own threshold and exceeds the given one. A class nobody was given has no threshold and is never suggested.

    Args:
        probabilities: of each class (columns) by map id, out of fold, so no map was trained on its own label.

    Returns:
        The suspects; none where no label is in doubt.

    Raises:
        InputError: a labelled map or class has no probability, a map has two labels, or rows do not sum to 1.
    """
    p = _checked(labels, probabilities)
    classes = probabilities.columns.to_numpy()
    chosen = probabilities.columns.get_indexer(labels)  # [map]
    thresholds = np.array([p[chosen == k, k].mean() if (chosen == k).any() else np.inf for k in range(len(classes))])
    own_probability = p[np.arange(len(p)), chosen]
    confident = np.where((p >= thresholds) & (p > own_probability[:, None]), p, -1.0)  # [map, class]
    best = confident.argmax(axis=1)
    suspects = [
        Suspect(
            str(labels.index[row]),
            str(labels.iloc[row]),
            str(classes[best[row]]),
            float(p[row, best[row]] - own_probability[row]),
        )
        for row in np.flatnonzero(confident.max(axis=1) >= 0)
    ]
    return sorted(suspects, key=lambda suspect: (-suspect.margin, suspect.map_id))


def _checked(labels: pd.Series, probabilities: pd.DataFrame) -> np.ndarray:
    """Probabilities [map, class] in the order of the labels."""
    unknown = sorted(set(labels) - set(probabilities.columns))
    missing = sorted(set(labels.index) - set(probabilities.index))
    if unknown or missing or labels.index.has_duplicates:
        clause = f"classes without one: {', '.join(unknown)}; " if unknown else ""
        raise InputError(
            "Label errors need one label a map and a probability of every labelled class for every labelled map; "
            f"{clause}{len(missing)} of {len(labels)} maps without one: classify these maps with these classes first."
        )
    p = probabilities.loc[labels.index].to_numpy(dtype=float)
    if not np.allclose(p.sum(axis=1), 1, atol=1e-3) or (p < 0).any():
        raise InputError(
            "Probabilities of a map must be 0 or more and sum to 1; calibrate the classifier that gave them."
        )
    return p
