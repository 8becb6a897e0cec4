"""What studies of several heads together measure: the logit of a row's label less that of its strongest rival."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor

    from ...tasks.glue import TaskRow
    from ..ablation.disabling import Opened


def label_differences(
    opened: "Opened", rows: "list[TaskRow]", plain: "Tensor", changed: "Tensor"
) -> tuple[np.ndarray, np.ndarray]:
    """m of every row: the logit of its label less that of its strongest rival; of a score, the score itself.

    The rival is the one that is strongest untouched, the same under every variant, so that m is linear in the logits.

    Args:
        plain: logits of the untouched model. *Shape:* (row, label).
        changed: logits under every variant. *Shape:* (variant, row, label).

    Returns:
        m untouched, *Shape:* (row,), and under every variant, *Shape:* (variant, row); float64.
    """
    plain_logits, changed_logits = plain.double().numpy(), changed.double().numpy()
    if opened.task.is_score:
        return plain_logits[:, 0], changed_logits[..., 0]
    at, gold = np.arange(len(rows)), np.array(opened.outputs(rows), dtype=int)
    others = plain_logits.copy()
    others[at, gold] = -np.inf
    rival = others.argmax(1)
    return plain_logits[at, gold] - plain_logits[at, rival], changed_logits[..., at, gold] - changed_logits[
        ..., at, rival
    ]
