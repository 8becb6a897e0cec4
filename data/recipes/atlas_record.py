"""The scores of the bundled checkpoints that the Atlas page opens with: `python -m data.recipes.atlas_record`.

Runs the studies below on the bundled rows, and on a classifier that it fine-tunes from the encoder on SST-2 and does
not ship, and writes data/atlas/scores.parquet. To be run again when the bundled weights or a study change.
"""

import argparse
import tempfile
from dataclasses import asdict
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

import pandas as pd

from core import config
from core.atlas.measured import run_here, score_row, scores_of
from core.atlas.shipped import FILE, file_hash

LOOKING = (
    ("statistics", ("sst2", "mrpc")), ("features", ("sst2",)), ("roles", ("sst2", "mrpc")), ("norms", ("sst2",)),
    ("redundancy", ("sst2", "mrpc")), ("relations", ("sst2",)), ("effective", ("sst2",)),
)  # fmt: skip
TASK, ROWS, EFFECTIVE = "sst2", 300, 60
TUNED = f"{config.ENCODER} on SST-2"  # how the record calls the classifier


def looked(checkpoint: str) -> list[dict[str, object]]:
    """What its heads attend to, on bundled rows; and frames."""
    rows = []
    for name, tasks in LOOKING:
        study = import_module(f"core.studies.{name}").STUDY
        limit = EFFECTIVE if name == "effective" else ROWS
        rows += _rows(name, study, {"checkpoint": checkpoint, "tasks": list(tasks), "limit": limit}, checkpoint)
    study = import_module("core.studies.frame_heads").STUDY
    direction = "later_to_earlier" if checkpoint == config.DECODER else "element_to_target"
    return rows + _rows("frame-heads", study, {"checkpoint": checkpoint, "direction": direction}, checkpoint)


def tested(folder: Path) -> list[dict[str, object]]:
    """What happens to the classifier in `folder` without each head, and what tuning changed."""
    rows = []
    asked = {"checkpoint": str(folder), "task": TASK, "limit": ROWS}
    for name, more in (("disable", {"operator": "disable"}), ("disable", {"operator": "zero"}), ("importance", {})):
        rows += _rows(name, import_module(f"core.studies.{name}").STUDY, asked | more, TUNED)
    changed = {"before": config.ENCODER, "after": [str(folder)], "task": TASK, "limit": ROWS}
    rows += _rows("change", import_module("core.studies.change").STUDY, changed, TUNED)
    for name in ("statistics", "roles", "norms"):
        given = {"checkpoint": str(folder), "tasks": [TASK], "limit": ROWS}
        rows += _rows(name, import_module(f"core.studies.{name}").STUDY, given, TUNED)
    return rows


def _rows(name: str, study: object, given: dict[str, object], called: str) -> list[dict[str, object]]:
    source = f"shipped record, {datetime.now(UTC):%Y-%m-%d}"
    base = config.DECODER if called == config.DECODER else config.ENCODER
    weights = file_hash(config.BUNDLED_MODELS / base / "model.safetensors")
    about = {"checkpoint": called, "base": base, "weights_file": weights, "code": config.code_version()}
    options = study.read(given)
    rows = [asdict(score_row(name, row, source)) | about for row in scores_of(run_here(study, options))]
    print(f"{called}: {name}, {len(rows)} rows")
    return rows


def tuned(folder: Path) -> Path:
    """A classifier of SST-2's bundled rows, fine-tuned from the encoder."""
    study = import_module("core.studies.finetune").STUDY
    options = study.read({"checkpoint": config.ENCODER, "tasks": [TASK], "seeds": 1, "preset": "small",
                          "out": str(folder)})  # fmt: skip
    run_here(study, options)
    return next(file.parent for file in folder.rglob("model.safetensors"))


def main() -> None:
    """Measure and write."""
    given = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    given.add_argument("--tuned", type=Path, help="a classifier of SST-2 tuned from the encoder; default: make one")
    chosen = given.parse_args()
    rows = [row for checkpoint in (config.ENCODER, config.DECODER) for row in looked(checkpoint)]
    with tempfile.TemporaryDirectory() as folder:
        rows += tested(chosen.tuned or tuned(Path(folder)))
    FILE.parent.mkdir(exist_ok=True)
    frame = pd.DataFrame(rows)
    frame["n"] = frame["n"].astype("Int64")
    for name in ("value", "low", "high", "baseline", "q"):
        frame[name] = frame[name].astype("float64")
    frame.to_parquet(FILE, compression="zstd", index=False)
    print(f"{len(frame)} rows in {FILE}")


if __name__ == "__main__":
    main()
