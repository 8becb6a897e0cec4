"""Fine-tuning: seconds for 3,000 rows and 3 epochs, and rows a second of bucketed batches against padding to 128.

On GLUE's MRPC where ../shared/data is beside the checkout, otherwise on MRPC-like rows of the samples' grammar.
"""

import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import torch

from core import config
from core.models.opening import open_checkpoint
from core.tasks.glue import TASKS, TaskRow, read_rows
from core.tuning.batches import Example, batches, collate, encode
from core.tuning.model import initialised, loss_of, uses_segments
from core.tuning.recipe import Recipe
from core.tuning.training import Fit
from data.recipes.samples import SAMPLES, draw

ROWS, WIDTH, ROUNDS, STEPS = 3000, 128, 5, 8
SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "glue"
TASK = TASKS["mrpc"]


def rows() -> tuple[str, list[TaskRow]]:
    if SHARED.is_dir():
        return "GLUE MRPC", read_rows(TASK, "train", folder=SHARED, limit=ROWS)
    sample = next(one for one in SAMPLES if one.folder == TASK.name)
    drawn = draw(sample, ROWS, "benchmark", set())
    return "MRPC-like rows of the grammar", [TaskRow(f"train-{k}", *row) for k, row in enumerate(drawn)]


def steps(examples: list[Example], recipe: Recipe) -> Iterator[list[int]]:
    epoch = 0
    while True:
        yield from batches([len(one) for one in examples], recipe.batch, seed=0, epoch=epoch, bucketed=recipe.bucketed)
        epoch += 1


def rows_a_second(fit: Fit, chosen: Iterator[list[int]]) -> float:
    """Over STEPS training steps: forward, backward, update."""
    began, seen = time.perf_counter(), 0
    for _, batch in zip(range(STEPS), chosen, strict=False):
        fit._step(batch)
        seen += len(batch)
    return seen / (time.perf_counter() - began)


def ready(base, examples: list[Example], recipe: Recipe) -> Fit:
    """A run whose steps can be taken one by one."""
    from core.tuning.training import Log, optimizer_of

    model = initialised(base, TASK, "pretrained", recipe, 0)
    fit = Fit(base, TASK, model, examples, examples[:1], recipe, 0)
    fit.log, fit.optimizer, fit.device = Log(steps=10_000), optimizer_of(model, recipe), torch.device("cpu")
    return fit


def loss_difference(base, examples: list[Example]) -> float:
    """Largest difference of a batch's loss between padding to its longest row and to 128, without dropout."""
    model = initialised(base, TASK, "pretrained", Recipe(dropout=0.0), 0).eval()
    found = []
    with torch.no_grad():
        for start in range(0, 320, 32):
            losses = []
            for width in (0, WIDTH):
                inputs, labels = collate(
                    examples[start : start + 32], padding=0, segments=uses_segments(base), pad_to=width
                )
                losses.append(float(loss_of(TASK, model(**inputs).logits, labels)))
            found.append(abs(losses[0] - losses[1]))
    return max(found)


def main() -> dict[str, object]:
    base = open_checkpoint(config.ENCODER, device="cpu")
    source, some = rows()
    examples = encode(base, some, WIDTH)
    bucketed, padded = Recipe(), Recipe(bucketed=False, pad_to=WIDTH)
    fits = {"bucketed": ready(base, examples, bucketed), "padded": ready(base, examples, padded)}
    chosen = {"bucketed": steps(examples, bucketed), "padded": steps(examples, padded)}
    paces: dict[str, list[float]] = {name: [] for name in fits}
    for _ in range(ROUNDS):  # interleaved, so that what else runs slows both
        for name, fit in fits.items():
            paces[name].append(rows_a_second(fit, chosen[name]))
    began = time.perf_counter()
    model = initialised(base, TASK, "pretrained", bucketed, 0)
    Fit(base, TASK, model, examples, examples[:300], bucketed, 0).run()
    whole = time.perf_counter() - began
    pace = {name: statistics.median(values) for name, values in paces.items()}
    return {
        "rows": f"{len(examples)} of {source}",
        "mean pieces": statistics.fmean(len(one) for one in examples),
        "threads": torch.get_num_threads(),
        "seconds for 3 epochs (aim 180)": whole,
        "rows/s bucketed": pace["bucketed"],
        "rows/s padded to 128": pace["padded"],
        "bucketed / padded (aim 1.8)": pace["bucketed"] / pace["padded"],
        "largest loss difference": loss_difference(base, examples),
    }
