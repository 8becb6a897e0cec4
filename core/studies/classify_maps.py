"""Classify every head's map on rows of a task, and count: the shares of Fig 2 and each head's majority class.

Kovaleva et al. section 4.1 (up to 1000 dev rows a task, all heads); the GPT-2 replication used 200. Maps are
classified as they are computed and dropped; what is kept is a count by input, class, layer and head.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from core.errors import InputError
from core.studies.study import Options, Row, Study, Unit

ROWS_A_UNIT = 50
DEFAULTS: Options = {
    "checkpoints": ["atlas-encoder"],
    "task": "mrpc",
    "split": "dev",
    "folder": None,
    "limit": 1000,
    "seed": 0,
    "classifier": "",
    "name": "",
    "class_set": "",
    "confusions": [],
    "dtype": "bfloat16",
}


def units(options: Options) -> list[Unit]:
    """Rows of the task in pieces, for each checkpoint."""
    from core.tasks.glue import read_rows

    if not options["classifier"]:
        raise InputError("Shares need a trained classifier; none was given: train one on the Pattern classifier page.")
    count = len(
        read_rows(
            options["task"], options["split"], folder=options["folder"], limit=options["limit"], seed=options["seed"]
        )
    )
    return [
        Unit(
            f"{checkpoint} rows {start + 1}-{min(start + ROWS_A_UNIT, count)}",
            {"checkpoint": checkpoint, "start": start},
            min(ROWS_A_UNIT, count - start),
        )
        for checkpoint in options["checkpoints"]
        for start in range(0, count, ROWS_A_UNIT)
    ]


class ClassCounts:
    """An observer that classifies each map: class numbers [input, layer, head], and how many maps of each input are
    unsure, lie outside what the classifier was trained on, or were cropped.
    """

    def __init__(self, classifier: Any, inputs: int, layers: int, heads: int, dtype: str) -> None:
        self.classifier, self.dtype = classifier, dtype
        self.found = np.full((inputs, layers, heads), -1, dtype=np.int16)
        self.unsure = np.zeros(inputs, dtype=np.int64)
        self.outside = np.zeros(inputs, dtype=np.int64)
        self.cropped = 0

    def update(self, layer: int, weights: Any, inputs: list[int]) -> None:
        """Classify one layer's maps [batch, head, query, key] of one batch."""
        from core.patterns.suggestions import judged

        maps = weights.float().cpu().numpy()
        flat = maps.reshape(-1, *maps.shape[2:])
        found = judged(self.classifier, list(flat), dtype=self.dtype)
        self.found[inputs, layer] = found.probabilities.argmax(1).reshape(maps.shape[:2])
        self.unsure[inputs] += found.unsure.reshape(maps.shape[:2]).sum(1)
        self.outside[inputs] += found.outside.reshape(maps.shape[:2]).sum(1)
        self.cropped += found.cropped


def _bytes(file: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise InputError(
            f"A classifying job reads its classifier from {Path(file).name}, which is gone: start the job anew."
        ) from error


def run(options: Options, unit: Unit) -> list[Row]:
    """Class number of every layer and head for each of some rows of the task."""
    from core.capture.running import run as forward
    from core.models.opening import open_checkpoint
    from core.patterns.training import Classifier
    from core.tasks.glue import read_rows

    classifier = Classifier.from_bytes(_bytes(options["classifier"]))
    checkpoint = open_checkpoint(unit.arguments["checkpoint"])
    start = unit.arguments["start"]
    rows = read_rows(
        options["task"], options["split"], folder=options["folder"], limit=options["limit"], seed=options["seed"]
    )[start : start + ROWS_A_UNIT]
    encodings = [checkpoint.encode(row.text, row.pair) for row in rows]
    counts = ClassCounts(classifier, len(rows), checkpoint.layers, checkpoint.heads, options["dtype"])
    forward(checkpoint, encodings, [counts])
    provenance = {
        "checkpoint": checkpoint.name,
        "weights_hash": checkpoint.weights_hash,
        "task": options["task"],
        "split": options["split"],
        "row_ids": [row.id for row in rows],
        "seed": options["seed"],
        "dtype": checkpoint.dtype,
    }
    return [{"provenance": provenance}] + [
        {
            "checkpoint": checkpoint.name,
            "row_id": row.id,
            "classes": list(classifier.classes),
            "found": counts.found[k].tolist(),
            "unsure": int(counts.unsure[k]),
            "outside": int(counts.outside[k]),
            "cut": encodings[k].cut,
            "cropped": classifier.crops and len(encodings[k]) > classifier.size,
        }
        for k, row in enumerate(rows)
    ]


def summarize(options: Options, rows: list[Row]) -> list[Row]:
    """Rows by `part`: share and corrected (a class each), head (a class of each head), by checkpoint; moved (a class
    each): the change from the first checkpoint to the second, paired by input."""
    found: list[Row] = []
    for checkpoint in dict.fromkeys(row["checkpoint"] for row in rows):
        mine = [row for row in rows if row["checkpoint"] == checkpoint]
        names = mine[0]["classes"]
        numbers = np.array([row["found"] for row in mine])
        about = {
            "checkpoint": checkpoint,
            "task": options["task"],
            "classifier": options["name"],
            "class_set": options["class_set"],
            "inputs": len(mine),
        }
        found += [{**about, **row} for row in _share_rows(options, numbers, names)]
        found += [{**about, **row} for row in _head_rows(numbers, names)]
        found.append(
            {
                **about,
                "part": "note",
                "maps": int(numbers.size),
                **_doubts(mine, numbers.size),
                "cropped": sum(row["cropped"] for row in mine),
                "cut": sum(row["cut"] > 0 for row in mine),
            }
        )
    return found + _moved_rows(options, rows)


def _moved_rows(options: Options, rows: list[Row]) -> list[Row]:
    from core.patterns.evaluation import moved_shares

    names = list(dict.fromkeys(row["checkpoint"] for row in rows))
    by_input = [{row["row_id"]: row for row in rows if row["checkpoint"] == name} for name in names]
    if len(names) != 2 or by_input[0].keys() != by_input[1].keys():
        return []
    classes = next(iter(by_input[0].values()))["classes"]
    before, after = (
        np.stack([np.bincount(np.ravel(mine[row_id]["found"]), minlength=len(classes)) for row_id in by_input[0]])
        for mine in by_input
    )
    about = {"task": options["task"], "classifier": options["name"], "class_set": options["class_set"]}
    about |= {"part": "moved", "checkpoint": names[1], "before": names[0], "inputs": len(before)}
    return [
        about | {"class": one.name, "share": one.change, "low": one.low, "high": one.high}
        | {"low_all": one.low_all, "high_all": one.high_all}
        for one in moved_shares(before, after, classes, seed=options["seed"])
    ]  # fmt: skip


def _doubts(rows: list[Row], maps: int) -> dict[str, float]:
    """Shares of maps the classifier was unsure of, and of those unlike any it saw; none of rows without the counts."""
    if any("outside" not in row for row in rows):
        return {}
    return {name: sum(row[name] for row in rows) / maps for name in ("unsure", "outside")}


def _share_rows(options: Options, numbers: np.ndarray, names: Sequence[str]) -> list[Row]:
    from core.patterns.evaluation import corrected_shares, shares

    counts = np.stack([(numbers == k).sum((1, 2)) for k in range(len(names))], axis=1)
    parts = {"share": shares(counts, names, seed=options["seed"])}
    if len(options["confusions"]) and len(options["confusions"][0]) == len(names):
        parts["corrected"] = corrected_shares(counts, np.array(options["confusions"]), names, seed=options["seed"])
    return [
        {"part": part, "class": one.name, "share": one.share, "low": one.low, "high": one.high, "maps": one.count}
        for part, found in parts.items()
        for one in found
    ]


def _head_rows(numbers: np.ndarray, names: Sequence[str]) -> list[Row]:
    """Each head's majority class, how often it has it, and its count of every class."""
    counts = np.stack([(numbers == k).sum(0) for k in range(len(names))])
    return [
        {
            "part": "head",
            "layer": layer,
            "head": head,
            "class": names[int(counts[:, layer, head].argmax())],
            "share": float(counts[:, layer, head].max() / len(numbers)),
            "counts": {name: int(n) for name, n in zip(names, counts[:, layer, head], strict=True)},
        }
        for layer in range(counts.shape[1])
        for head in range(counts.shape[2])
    ]


STUDY = Study("classify-maps", DEFAULTS, units, run, summarize)
