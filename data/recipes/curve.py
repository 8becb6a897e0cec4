"""When do heads find the previous token, the separator, the sink? What heads look at, over pre-training.

    python -m data.recipes.curve atlas-encoder --snapshots WORK0/snapshots --snapshots WORK1/snapshots

`WORK0` is the `--work` folder of `data.recipes.pretrain --snapshots 20`, whose snapshots are the weights after shares
of the run on a log scale; several folders are runs from several seeds, in this order. Each snapshot is opened with the
tokenizer of the bundled checkpoint, and of every head are measured: all registered map scores with their intervals
over inputs, the mean row maximum (1/L for a uniform head, 1 for a sure one), and the share of its maps of every pattern
class, on the bundled MRPC-like dev pairs. Written beside the checkpoint's weights as development.parquet: a row a run,
snapshot, head and score. The curve.csv there is of the shipped weights' own run, whose snapshots were not kept, and has
five scores.
"""

import argparse
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from core import config
from core.capture.running import run
from core.models.checkpoint import Checkpoint
from core.models.opening import open_checkpoint
from core.scoring.definitions import STATISTICS
from core.studies.attention.inputs import SourceText
from core.studies.comparison.development import Ends, class_shares, map_scores
from core.tasks.glue import read_rows

COLUMNS = ("seed", "share", "score", "layer", "head", "value", "low", "high", "n")
PLACES = ("previous", "next", "first", "separator")
CLOSE = 0.5  # a head is said to look at a place when more than this share of its weight is there


def snapshots(folder: Path) -> list[tuple[float, Path]]:
    """The kept weights with the share of the run that was done, in order."""
    files = sorted((float(file.stem), file) for file in folder.glob("*.safetensors"))
    if not files:
        raise SystemExit(f"curve: no snapshots in {folder}; `data.recipes.pretrain` keeps them in its --work folder")
    return files


def opened(name: str, weights: Path, folder: Path) -> Checkpoint:
    """The bundled checkpoint `name` with other weights, written to `folder` first."""
    for file in (config.BUNDLED_MODELS / name).iterdir():
        if file.suffix == ".json":
            shutil.copy(file, folder / file.name)
    shutil.copy(weights, folder / "model.safetensors")
    return open_checkpoint(str(folder))


class RowMaxima:
    """An observer of each map's mean row maximum, [input, layer, head]."""

    def __init__(self, inputs: int, layers: int, heads: int) -> None:
        self.values = np.zeros((inputs, layers, heads))

    def update(self, layer: int, weights, inputs: list[int]) -> None:
        """Look at one layer's maps [batch, head, query, key] of one batch."""
        self.values[inputs, layer] = weights.float().amax(-1).mean(-1).cpu().numpy()


def measured(checkpoint: Checkpoint, rows: int) -> tuple[dict[str, Ends], int]:
    """Of each score its mean over pairs and the ends of its interval, [layer, head]; and how many pairs."""
    inputs = [
        SourceText(number, row.id, row.text, row.pair) for number, row in enumerate(read_rows("mrpc", "dev")[:rows])
    ]
    scores, n = map_scores(checkpoint, inputs, tuple(STATISTICS), seed=0)
    maxima = RowMaxima(len(inputs), checkpoint.layers, checkpoint.heads)
    run(checkpoint, [checkpoint.encode(source.text, source.pair) for source in inputs], [maxima])
    nothing = np.full((checkpoint.layers, checkpoint.heads), np.nan)
    class_set = "gpt2" if checkpoint.causal else "bert"
    return scores | {"row maximum": (maxima.values.mean(0), nothing, nothing)} | class_shares(
        checkpoint, inputs, class_set
    ), n


def curve(name: str, folders: list[Path], rows: int) -> Iterator[tuple]:
    """Rows of COLUMNS for every snapshot of every run."""
    for seed, folder in enumerate(folders):
        for share, weights in snapshots(folder):
            with tempfile.TemporaryDirectory() as place:
                scores, n = measured(opened(name, weights, Path(place)), rows)
            for score, (value, low, high) in scores.items():
                for layer, head in np.ndindex(value.shape):
                    ends = (round(float(end[layer, head]), 4) for end in (value, low, high))
                    yield seed, share, score, layer, head, *ends, n


def said(table: pd.DataFrame) -> str:
    """For each snapshot: how many heads look at each place, and the median row maximum of each layer."""
    lines = [
        "| share of the run | previous | next | start | separator | median row maximum by layer |",
        "|" + "---|" * 6,
    ]
    for share, part in table.groupby("share"):
        counts = [int((part[part["score"] == place]["value"] > CLOSE).sum()) for place in PLACES]
        medians = part[part["score"] == "row maximum"].groupby("layer")["value"].median()
        sharp = " ".join(f"{value:.2f}" for value in medians)
        lines.append(f"| {share:.1%} | {' | '.join(map(str, counts))} | {sharp} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=[config.ENCODER, config.DECODER])
    parser.add_argument("--snapshots", type=Path, required=True, action="append")
    parser.add_argument("--rows", type=int, default=80)
    parser.add_argument("--out", type=Path, help="default: development.parquet beside the checkpoint's weights")
    chosen = parser.parse_args()
    table = pd.DataFrame(curve(chosen.name, chosen.snapshots, chosen.rows), columns=list(COLUMNS))
    narrow = table.astype({"seed": "int8", "layer": "int8", "head": "int8", "n": "int16"})
    narrow = narrow.astype(dict.fromkeys(("value", "low", "high"), "float32"))
    out = chosen.out or config.BUNDLED_MODELS / chosen.name / "development.parquet"
    narrow.to_parquet(out, index=False, compression="zstd")
    for seed, part in table.groupby("seed"):
        print(f"seed {seed}\n{said(part)}\n")


if __name__ == "__main__":
    main()
