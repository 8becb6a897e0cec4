"""The curves that ship with a bundled checkpoint: scores of its heads over its own pre-training."""

import pandas as pd

from core import config
from core.models.bundled import bundled_names
from core.studies.comparison.records import CurvePoint

FILE = "curve.csv"  # beside the weights (`data.recipes.curve`): share, score, layer, head, value


def bundled_curve(name: str) -> list[CurvePoint]:
    """A record a snapshot, score and head, without intervals; none where the checkpoint ships no curve."""
    file = config.BUNDLED_MODELS / name / FILE
    if name not in bundled_names() or not file.is_file():
        return []
    table = pd.read_csv(file)
    orders = {share: order for order, share in enumerate(sorted(table["share"].unique()))}
    return [
        CurvePoint(
            snapshot=f"{100 * row.share:.3g} %", order=orders[row.share], score=str(row.score), layer=int(row.layer),
            head=int(row.head), value=float(row.value), at_layer=int(row.layer), at_head=int(row.head), n=0,
        )
        for row in table.itertuples()
    ]  # fmt: skip
