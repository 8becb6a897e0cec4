"""What studies of several heads together measure: the logit of a row's label less that of its strongest rival."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor

    from core.studies.ablation.disabling import Opened
    from core.tasks.glue import TaskRow


def label_differences(
    opened: "Opened", rows: "list[TaskRow]", plain: "Tensor", changed: "Tensor"
) -> tuple[np.ndarray, np.ndarray]:
    """m of every row, untouched [row] and under every variant [variant, row].

    m is the logit of the row's label less that of the rival that is strongest untouched, the same rival under every
    variant, so that m is linear in the logits. Of a score it is the score itself.
    """
    own, every = plain.double().numpy(), changed.double().numpy()
    if opened.task.is_score:
        return own[:, 0], every[..., 0]
    at, gold = np.arange(len(rows)), np.array(opened.outputs(rows), dtype=int)
    others = own.copy()
    others[at, gold] = -np.inf
    rival = others.argmax(1)
    return own[at, gold] - own[at, rival], every[..., at, gold] - every[..., at, rival]
