"""The scores of the bundled checkpoints that the Atlas page opens with: `python -m data.recipes.atlas_record`.

Runs the studies below on the bundled rows, also on the classifier tuned from the encoder, and writes
data/atlas/scores.parquet. To be run again when the bundled weights or a study change; with
`--only STUDY` the scores of other studies stay as they are, with `--of CHECKPOINT` those of other checkpoints.
"""

import argparse
from dataclasses import asdict
from datetime import UTC, datetime

import pandas as pd

from core import config
from core.atlas.scores import FILE, run_here, score_row, scores_of
from core.store.shipped_record import hash_of
from core.studies.lookup import find_study

LOOKING = (
    ("statistics", ("sst2", "mrpc")), ("budget", ("sst2", "mrpc")), ("features", ("sst2",)),
    ("roles", ("sst2", "mrpc")), ("norms", ("sst2",)), ("redundancy", ("sst2", "mrpc")), ("relations", ("sst2",)),
    ("effective", ("sst2",)),
)  # fmt: skip
TASK, ROWS, EFFECTIVE = "sst2", 300, 60
CLASSES = {config.ENCODER: "bert", config.DECODER: "gpt2", config.CLASSIFIER: "bert"}  # whose classifier of patterns
Rows = list[dict[str, object]]
RECORDED = [config.ENCODER, config.DECODER, config.CLASSIFIER]


def acting(checkpoint: str) -> list[tuple[str, dict[str, object]]]:
    """What sinks do and what heads write, on the rows that these studies take by default."""
    return [(name, {"checkpoint": checkpoint, "task": TASK}) for name in ("sinks", "writes")]


def looked(checkpoint: str) -> list[tuple[str, dict[str, object]]]:
    """What its heads attend to, on bundled rows; and frames: studies and what each is given."""
    asked = [
        (name, {"checkpoint": checkpoint, "tasks": list(tasks), "limit": EFFECTIVE if name == "effective" else ROWS})
        for name, tasks in LOOKING
    ]
    direction = "later_to_earlier" if checkpoint == config.DECODER else "element_to_target"
    frames = ("frame-heads", {"checkpoint": checkpoint, "direction": direction})
    return [*asked, *acting(checkpoint), frames, ("pattern-shares", _classes(checkpoint, CLASSES[checkpoint]))]


def tested(name: str) -> list[tuple[str, dict[str, object]]]:
    """What happens to a classifier without each head, and what tuning changed."""
    asked = {"checkpoint": name, "task": TASK, "limit": ROWS}
    looking = {"checkpoint": name, "tasks": [TASK], "limit": ROWS}
    return [
        ("disable", asked | {"operator": "disable"}),
        ("disable", asked | {"operator": "zero"}),
        ("importance", asked),
        ("change", {"before": config.ENCODER, "after": [name], "task": TASK, "limit": ROWS}),
        *(
            (study, looking)
            for study in ("statistics", "budget", "features", "relations", "roles", "norms", "redundancy")
        ),
        *acting(name),
        ("pattern-shares", _classes(name, CLASSES[name])),
    ]


def _classes(checkpoint: str, class_set: str) -> dict[str, object]:
    file = config.ANNOTATIONS / class_set / "classifier.safetensors"
    named = {"classifier": str(file), "name": f"bundled, {class_set}", "class_set": class_set}
    return named | {"checkpoints": [checkpoint], "task": TASK, "limit": ROWS}


def measured(asked: list[tuple[str, dict[str, object]]], called: str, only: list[str]) -> Rows:
    """Rows of these studies, or of those in `only`."""
    rows: Rows = []
    for name, given in asked:
        if not only or name in only:
            rows += _rows(name, find_study(name), given, called)
    return rows


def _rows(name: str, study: object, given: dict[str, object], called: str) -> Rows:
    source = f"shipped with the Atlas, {datetime.now(UTC):%Y-%m-%d}"
    weights = hash_of(config.BUNDLED_MODELS / called / "model.safetensors")
    about = {"checkpoint": called, "weights_file": weights, "code": config.code_version()}
    options = study.read(given)
    rows = [asdict(score_row(name, row, source)) | about for row in scores_of(run_here(study, options))]
    print(f"{called}: {name}, {len(rows)} rows")
    return rows


def asked_of(called: str, chosen: argparse.Namespace) -> Rows:
    """Rows of one checkpoint of the record."""
    return measured(tested(called) if called == config.CLASSIFIER else looked(called), called, chosen.only)


def main() -> None:
    """Measure and write."""
    given = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    given.add_argument("--only", action="append", default=[], help="measure this study alone, and keep the others")
    given.add_argument("--of", choices=RECORDED, help="measure this checkpoint alone, and keep the others")
    chosen = given.parse_args()
    names = [chosen.of] if chosen.of else RECORDED
    frame = pd.DataFrame([row for name in names for row in asked_of(name, chosen)])
    if chosen.only or chosen.of:
        known = pd.read_parquet(FILE)
        known = known[known["checkpoint"].isin(RECORDED)]
        mine = known["checkpoint"].isin(names)
        if chosen.only:
            mine &= known["score"].str.split("/").str[0].isin(chosen.only)
        frame = pd.concat([known[~mine], frame], ignore_index=True)
    FILE.parent.mkdir(exist_ok=True)
    frame["n"] = frame["n"].astype("Int64")
    for name in ("value", "low", "high", "baseline", "q"):
        frame[name] = frame[name].astype("float64")
    frame.to_parquet(FILE, compression="zstd", index=False)
    print(f"{len(frame)} rows in {FILE}")


if __name__ == "__main__":
    main()
