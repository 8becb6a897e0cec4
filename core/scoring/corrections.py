"""p of many heads at once, corrected for their number."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float


def q_values(p: Float[np.ndarray, "layer head"]) -> Float[np.ndarray, "layer head"]:
    """Benjamini-Hochberg over the heads that have a p; NaN where there is none."""
    from statsmodels.stats.multitest import multipletests  # 1 s of start-up

    q, is_tested = np.full_like(p, np.nan), ~np.isnan(p)
    if is_tested.any():
        q[is_tested] = multipletests(p[is_tested], method="fdr_bh")[1]
    return q


def q_of_all(p: Sequence[Float[np.ndarray, "layer head"]]) -> list[Float[np.ndarray, "layer head"]]:
    """Likewise over several tests of the same heads together, so that a study of many names claims no more by luck."""
    if not p:
        return []
    together = q_values(np.concatenate(p, 1))
    return np.split(together, len(p), axis=1)
