"""The curves that ship with a bundled checkpoint: scores of its heads over its own pre-training, and over runs of its
recipe from other seeds whose weights do not ship."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd

from ... import config
from ...models.bundled_checkpoints import bundled_names
from ...scoring.definitions import CLASS_SHARE
from .records import CurvePoint, RoleBeginnings

OWN = "its own weights"
OF_ITS_WEIGHTS, OF_SEEDS = "curve.csv", "development.parquet"  # beside the weights (`data.recipes.curve`)


def bundled_curves(name: str) -> dict[str, list[CurvePoint]]:
    """The curves of a bundled checkpoint: a record a snapshot, score and head.

    Returns:
        By run, "its own weights" or "seed 0": its records; those of its own weights have no intervals. Empty where the
        checkpoint ships no curve.
    """
    folder = config.BUNDLED_MODELS / name
    if name not in bundled_names():
        return {}
    curves = {run: list(_points(table)) for run, table in _seeds(folder / OF_SEEDS)}
    if (folder / OF_ITS_WEIGHTS).is_file():
        table = pd.read_csv(folder / OF_ITS_WEIGHTS)
        curves = {OWN: list(_points(table.assign(low=float("nan"), high=float("nan"), n=0)))} | curves
    return curves


def _seeds(file: Path) -> Iterator[tuple[str, pd.DataFrame]]:
    if file.is_file():
        for seed, table in pd.read_parquet(file).groupby("seed"):
            yield f"seed {seed}", table


def _points(table: pd.DataFrame) -> Iterator[CurvePoint]:
    orders = {share: order for order, share in enumerate(sorted(table["share"].unique()))}
    for row in table.itertuples():
        value, low, high = (None if end != end else float(end) for end in (row.value, row.low, row.high))
        yield CurvePoint(
            snapshot=f"{100 * row.share:.3g} %", order=orders[row.share], score=str(row.score), layer=int(row.layer),
            head=int(row.head), value=value, low=low, high=high, at_layer=int(row.layer), at_head=int(row.head),
            n=int(row.n),
        )  # fmt: skip


def spread_sentence(orders: Mapping[str, Sequence[RoleBeginnings]]) -> str:
    """Whether runs from different seeds have the same roles in the same order.

    Returns:
        One sentence: the order of the roles that every run has, or that the runs differ in it; then how far apart the
        runs are in when a role begins.
    """
    medians = [{order.score: order.place for order in run if order.place is not None} for run in orders.values()]
    common = [score for score in medians[0] if all(score in run for run in medians)]
    if len(orders) < 2 or not common:
        return "The runs have no role in common." if len(orders) > 1 else ""
    ranked = {tuple(sorted(common, key=lambda score, run=run: run[score])) for run in medians}  # type: ignore[misc]
    steps = max(max(run[score] for run in medians) - min(run[score] for run in medians) for score in common)
    listed = ", ".join(score.removeprefix(CLASS_SHARE) for score in next(iter(ranked)))
    same = f"begin in the same order: {listed}" if len(ranked) == 1 else "do not begin in the same order"
    return (
        f"In {len(orders)} runs from other seeds the medians of the {len(common)} roles that all have {same}; a role's "
        f"median differs by at most {steps:g} snapshots between runs."
    )
