"""Record what every head does to every row's loss, exactly and to first order: what the benchmark `race` judges.

    python -m tests.benchmarks.recorded.record CHECKPOINT OUT.npz [OPERATOR] [DATA]

CHECKPOINT is a fine-tuned classifier of SST-2; the rows are the 872 of its official dev split. OUT holds numbers only,
no texts: exact and first_order [head, row] in float16, layer by layer; loss and right [row]; layers, heads, operator.
"""

import sys
import time
from pathlib import Path

import numpy as np
import torch

from core.capture.losses import LabelledRows, effects, first_order, slopes_of
from core.capture.sweeping import every_head
from core.models.opening import open_checkpoint
from core.tasks.glue import label_order, read_rows, task_of

SHARED = Path(__file__).resolve().parents[4] / "shared" / "data"
AT_ONCE = 109  # rows between two lines of progress


def main(name: str, out: str, operator: str = "disable", data: str | None = None) -> None:
    checkpoint, task = open_checkpoint(name, head="classifier", device="cpu"), task_of("sst2")
    rows = read_rows(task, "dev", folder=data or SHARED / "glue")
    order = list(label_order(task, checkpoint.labels))
    labels = [order.index(int(row.label)) for row in rows]
    encodings = [checkpoint.encode(row.text, row.pair) for row in rows]
    variants = every_head(checkpoint.layers, checkpoint.heads)
    kept: dict[str, list[np.ndarray]] = {"exact": [], "first_order": [], "loss": [], "right": []}
    started = time.monotonic()
    for start in range(0, len(rows), AT_ONCE):
        some, wanted = encodings[start : start + AT_ONCE], labels[start : start + AT_ONCE]
        exact = effects(checkpoint, LabelledRows(some, wanted), variants, operator)
        slopes = first_order(checkpoint, some, wanted, operator)
        kept["exact"].append(exact.exact.half().numpy())
        kept["first_order"].append(slopes_of(variants, slopes).half().numpy())
        kept["loss"].append(exact.plain.float().numpy())
        kept["right"].append((exact.logits.argmax(-1) == torch.tensor(wanted)).numpy())
        joined = {field: np.concatenate(parts, -1) for field, parts in kept.items()}
        np.savez_compressed(out, **joined, layers=checkpoint.layers, heads=checkpoint.heads, operator=operator)
        print(f"{start + len(some)} of {len(rows)} rows, {time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
