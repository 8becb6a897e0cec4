"""When do heads find the previous token, the separator, the sink? What heads look at, over pre-training.

    python -m data.recipes.curve atlas-encoder --snapshots WORK/snapshots

`WORK` is the `--work` folder of `data.recipes.pretrain`, whose snapshots are the weights after 0.3 %, 1 %, 3 %,
10 % and more of the run. Each is opened with the tokenizer of the bundled checkpoint, and every head's mean weight on
the previous and the next token, the start token and the separators, and its mean row maximum (1/L for a uniform head,
1 for a sure one), are measured on the bundled MRPC-like dev pairs. Written to the checkpoint's folder as curve.csv: a
row for each snapshot, head and score.
"""

import argparse
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from core import config
from core.capture.running import capture
from core.models.checkpoint import Checkpoint
from core.models.opening import open_checkpoint
from core.scoring.registry import head_scores
from core.tasks.glue import read_rows

COLUMNS = ("share", "score", "layer", "head", "value")
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


def measured(checkpoint: Checkpoint, rows: int) -> dict[str, np.ndarray]:
    """Mean over pairs of each score, [layer, head]; "row maximum" beside the places."""
    scores: dict[str, list[np.ndarray]] = {}
    for row in read_rows("mrpc", "dev")[:rows]:
        encoding = checkpoint.encode(row.text, row.pair)
        maps = capture(checkpoint, encoding).weights
        places = head_scores(maps, first=encoding.first, separators=encoding.separators, causal=checkpoint.causal)
        for place in PLACES:
            scores.setdefault(place, []).append(np.asarray(places[place]))
        scores.setdefault("row maximum", []).append(np.asarray(maps).max(-1).mean(-1))
    return {name: np.nanmean(values, axis=0) for name, values in scores.items()}


def curve(name: str, folder: Path, rows: int) -> Iterator[tuple[float, str, int, int, float]]:
    """Rows of COLUMNS for every snapshot."""
    for share, weights in snapshots(folder):
        with tempfile.TemporaryDirectory() as place:
            scores = measured(opened(name, weights, Path(place)), rows)
        for score, values in scores.items():
            for (layer, head), value in np.ndenumerate(values):
                yield share, score, layer, head, round(float(value), 4)


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
    parser.add_argument("--snapshots", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=80)
    parser.add_argument("--out", type=Path, help="default: curve.csv beside the checkpoint's weights")
    chosen = parser.parse_args()
    table = pd.DataFrame(curve(chosen.name, chosen.snapshots, chosen.rows), columns=list(COLUMNS))
    table.to_csv(chosen.out or config.BUNDLED_MODELS / chosen.name / "curve.csv", index=False)
    print(said(table))


if __name__ == "__main__":
    main()
