"""p of many heads at once, corrected for their number."""

import numpy as np
from jaxtyping import Float


def q_values(p: Float[np.ndarray, "layer head"]) -> Float[np.ndarray, "layer head"]:
    """Benjamini-Hochberg over the heads that have a p; NaN where there is none."""
    from statsmodels.stats.multitest import multipletests  # 1 s of start-up

    q, known = np.full_like(p, np.nan), ~np.isnan(p)
    if known.any():
        q[known] = multipletests(p[known], method="fdr_bh")[1]
    return q
