"""Train a pattern classifier on labelled maps and say how good it is on inputs it never saw.

Kovaleva et al. section 4.1 report F1 0.86 on their annotated maps; how those were split is not said. Here the
headline is macro F1 on checkpoints the classifier never saw, one left out at a time; with labels of one checkpoint
only, over grouped cross-validation: no input is in both parts, because the maps of one input are alike. Only maps
drawn at random and labelled without a suggestion are scored; all are trained on.
"""

import base64
import json
from collections.abc import Callable, Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from core.errors import InputError
from core.studies.label_snapshot import Snapshot, read
from core.studies.study import Options, Row, Study, Unit

RECIPE = ("kind", "epochs", "batch", "rate", "class_weights", "falling", "size", "folds", "seed")
QUICK = "trees"  # fitted in seconds, so every training leaves checkpoints out
ON = {"checkpoints": "unseen checkpoints", "fold": "unseen inputs", "heads": "unseen heads"}  # the headline first
CURVE = (0.25, 0.5, 0.75)  # shares of the training inputs of a fold
CURVE_FOLDS = 2
DEFAULTS: Options = {
    "snapshot": "",
    "log": "",
    "kind": "trees",
    "epochs": 200,
    "batch": 64,
    "rate": 1e-3,
    "class_weights": False,
    "falling": 0.25,
    "size": None,
    "folds": 5,
    "seed": 0,
    "curve": True,
    "beside": True,
}


def recipe_of(options: Options) -> Any:
    """The options that say how a classifier is fitted."""
    from core.patterns.training import Recipe

    return Recipe(**{one.name: options[one.name] for one in fields(Recipe)})


def units(options: Options) -> list[Unit]:
    """The folds first, for early results; then the classifier that is kept, then what stands beside the headline."""
    from core.patterns.training import check_labels

    kept, recipe = read(options["snapshot"]), recipe_of(options)
    check_labels(kept.column("class"), kept.classes, kept.column("group"), folds=recipe.folds)
    if not any(kept.column("headline")):
        raise InputError(
            "Scores need maps drawn at random and labelled without a suggestion; none of the "
            f"{len(kept.maps)} labelled maps is such: label some with suggestions off, in random order."
        )
    maps = len(kept.maps)
    found = [Unit(f"fold {k}", {"part": "fold", "split": "group", "fold": k}, maps) for k in range(recipe.folds)]
    found.append(Unit("final", {"part": "final"}, maps))
    if options["beside"] or options["kind"] == QUICK:
        found += _unseen_checkpoints(kept)
    if options["beside"]:
        found += _unseen_heads(kept, recipe.folds)
    if options["curve"]:
        found += [
            Unit(
                f"{share:.0%} of the labels, fold {k}",
                {"part": "curve", "split": "group", "fold": k, "share": share},
                int(maps * share) or 1,
            )
            for k in range(min(CURVE_FOLDS, recipe.folds))
            for share in CURVE
        ]
    return found


def _unseen_heads(kept: Snapshot, folds: int) -> list[Unit]:
    heads = len(set(zip(kept.column("layer"), kept.column("head"), strict=True)))
    return [
        Unit(f"unseen heads {k}", {"part": "heads", "split": "heads", "fold": k}, len(kept.maps))
        for k in range(folds if heads >= folds else 0)
    ]


def _unseen_checkpoints(kept: Snapshot) -> list[Unit]:
    """One unit a checkpoint to leave out, where there are several."""
    checkpoints = sorted(set(kept.column("checkpoint")))
    return [
        Unit(f"unseen checkpoint {k + 1}", {"part": "checkpoints", "split": "checkpoint", "fold": k}, len(kept.maps))
        for k in range(len(checkpoints) if len(checkpoints) > 1 else 0)
    ]


def run(options: Options, unit: Unit) -> list[Row]:
    """Fit one classifier; rows are held-out predictions, or the weights that are kept."""
    from core.patterns.training import fit

    kept, recipe = read(options["snapshot"]), recipe_of(options)
    train, test = _split(kept, options, unit.arguments)
    labels = kept.column("class")
    log, state = _files(options, unit)
    classifier = fit(
        [kept.maps[k] for k in train],
        [labels[k] for k in train],
        kept.classes,
        recipe,
        origins=[kept.facts[k]["checkpoint"] for k in train],
        on_epoch=_told(log, unit.key),
        state=state,
    )
    if state:
        state.unlink(missing_ok=True)
    if unit.arguments["part"] == "final":
        return [
            {
                "part": "final",
                "weights": base64.b64encode(classifier.as_bytes()).decode(),
                "size": classifier.size,
                "cropped": classifier.cropped,
            }
        ]
    return _predictions(kept, classifier, unit.arguments, train, test)


def _split(kept: Snapshot, options: Options, arguments: Options) -> tuple[list[int], list[int]]:
    from core.patterns.training import folds

    everything = list(range(len(kept.maps)))
    if arguments["part"] == "final":
        return everything, []
    if arguments["split"] == "checkpoint":
        out = sorted(set(kept.column("checkpoint")))[arguments["fold"]]
        test = [k for k in everything if kept.facts[k]["checkpoint"] == out]
        held_out = {kept.facts[k]["group"] for k in test}  # the same inputs through another checkpoint would leak
        train = [k for k in everything if kept.facts[k]["group"] not in held_out]
        # with every input in both checkpoints there is no clean split; then only the checkpoint is unseen
        return train or [k for k in everything if kept.facts[k]["checkpoint"] != out], test
    groups = (
        kept.column("group")
        if arguments["split"] == "group"
        else [f"{row['layer']}/{row['head']}" for row in kept.facts]
    )
    every_fold = folds(kept.column("class"), groups, count=options["folds"], seed=options["seed"])
    train, test = every_fold[arguments["fold"]]  # type: ignore[assignment]
    if "share" in arguments:
        train = _fewer([int(k) for k in train], groups, arguments["share"], options["seed"])
    return [int(k) for k in train], [int(k) for k in test]


def _fewer(train: list[int], groups: list[str], share: float, seed: int) -> list[int]:
    """The maps of a share of the training inputs."""
    inputs = sorted({groups[k] for k in train})
    count = max(2, round(share * len(inputs)))
    kept = set(np.random.default_rng(seed).choice(inputs, size=min(count, len(inputs)), replace=False))
    return [k for k in train if groups[k] in kept]


def _files(options: Options, unit: Unit) -> tuple[Path | None, Path | None]:
    """Where the loss is told and the fit is kept; none where the folder cannot be reached (a cluster)."""
    folder = Path(options["log"]) if options["log"] else None
    if folder is None or not folder.is_dir():
        return None, None
    name = unit.key.replace(" ", "-").replace("%", "")
    return folder / f"{name}.jsonl", folder / f"{name}.safetensors"


def _told(log: Path | None, key: str) -> Callable[[Any], bool] | None:
    if log is None:
        return None

    def tell(epoch: Any) -> bool:
        with log.open("a", encoding="utf-8") as out:
            out.write(
                json.dumps({"unit": key, "epoch": epoch.number, "of": epoch.of, "loss": epoch.loss, "f1": epoch.f1})
                + "\n"
            )
        return True

    return tell


def _predictions(kept: Snapshot, classifier: Any, arguments: Options, train: list[int], test: list[int]) -> list[Row]:
    from core.patterns.suggestions import judged

    scored = [k for k in test if kept.facts[k]["headline"]]
    found = judged(classifier, [kept.maps[k] for k in scored])
    return [
        {
            "part": arguments["part"],
            "fold": arguments["fold"],
            "trained_on": len(train),
            "cropped": found.cropped,
            "checkpoint": kept.facts[k]["checkpoint"],
            "outside": bool(outside),
            "share": arguments.get("share"),
            "map_id": kept.facts[k]["map_id"],
            "group": kept.facts[k]["group"],
            "truth": kept.classes.index(kept.facts[k]["class"]),
            "probabilities": [round(float(p), 5) for p in row],
        }
        for k, row, outside in zip(scored, found.probabilities, found.outside, strict=True)
    ]


def summarize(options: Options, rows: list[Row]) -> list[Row]:
    """Rows by `part`: scores (headline and beside it), checkpoint, curve; class, confusion, calibration and map of the
    headline.
    """
    kept = read(options["snapshot"])
    parts: dict[str, list[Row]] = {}
    for row in rows:
        parts.setdefault(row["part"], []).append(row)
    found: list[Row] = []
    measured = [part for part in ON if part in parts]
    for part in measured:
        found += _scored(part, parts[part], kept, options)
    found += _of_checkpoints(parts.get("checkpoints", []), kept)
    found += _details(parts[measured[0]], kept, options) if measured else []
    found += _curve(parts.get("curve", []), parts.get("fold", []), kept)
    return found + [{**row, "n_labels": len(kept.maps)} for row in parts.get("final", [])]


def _numbers(rows: list[Row]) -> tuple[np.ndarray, np.ndarray, list[str]]:
    probabilities = np.array([row["probabilities"] for row in rows])
    return np.array([row["truth"] for row in rows]), probabilities, [row["group"] for row in rows]


def _scored(part: str, rows: list[Row], kept: Snapshot, options: Options) -> list[Row]:
    from core.patterns.evaluation import calibration, scores

    truth, probabilities, groups = _numbers(rows)
    held_out = scores(truth, probabilities.argmax(1), groups, kept.classes, seed=options["seed"])
    folds = {row["fold"] for row in rows}
    return [
        {
            "part": "scores",
            "on": ON[part],
            "kind": options["kind"],
            "macro_f1": held_out.macro_f1,
            "low": held_out.low,
            "high": held_out.high,
            "accuracy": held_out.accuracy,
            "maps": held_out.maps,
            "inputs": held_out.inputs,
            "n_labels": len(kept.maps),
            "folds": len(folds),
            "ece": calibration(probabilities, truth)[1],
            **_doubts(rows),
        }
    ]


def _doubts(rows: list[Row]) -> dict[str, float]:
    """Shares of maps the classifier was unsure of, and of those beyond what it was trained on."""
    from core.patterns.suggestions import UNSURE

    return {
        "unsure": float(np.mean([max(row["probabilities"]) < UNSURE for row in rows])),
        "outside": float(np.mean([row["outside"] for row in rows])),
    }


def _of_checkpoints(rows: list[Row], kept: Snapshot) -> list[Row]:
    """How good the classifier was on each checkpoint when it was the one left out."""
    from core.patterns.evaluation import calibration, scores

    found: list[Row] = []
    for name in sorted({row["checkpoint"] for row in rows}):
        mine = [row for row in rows if row["checkpoint"] == name]
        truth, probabilities, groups = _numbers(mine)
        one = scores(truth, probabilities.argmax(1), groups, kept.classes)
        about = {"part": "checkpoint", "checkpoint": name, "maps": one.maps, "accuracy": one.accuracy}
        about |= {"macro_f1": one.macro_f1, "low": one.low, "high": one.high}
        found.append(about | {"ece": calibration(probabilities, truth)[1], **_doubts(mine)})
    return found


def _details(rows: list[Row], kept: Snapshot, options: Options) -> list[Row]:
    """Classes, confusion, calibration and maps of the headline."""
    from core.patterns.evaluation import calibration, scores

    truth, probabilities, groups = _numbers(rows)
    held_out = scores(truth, probabilities.argmax(1), groups, kept.classes, seed=options["seed"])
    found: list[Row] = [{"part": "class", **row} for row in held_out.per_class]
    found += [
        {"part": "confusion", "truth": a, "predicted": b, "n": int(held_out.confusion[i, j])}
        for i, a in enumerate(kept.classes)
        for j, b in enumerate(kept.classes)
    ]
    reliability, error = calibration(probabilities, truth)
    found += [{"part": "calibration", **row, "error": error} for row in reliability]
    return found + [
        {
            "part": "map",
            "map_id": row["map_id"],
            "group": row["group"],
            "truth": kept.classes[row["truth"]],
            "predicted": kept.classes[int(p.argmax())],
            "probability": float(p.max()),
        }
        for row, p in zip(rows, probabilities, strict=True)
    ]


def _curve(rows: list[Row], whole: list[Row], kept: Snapshot) -> list[Row]:
    """Macro F1 of the same folds at each number of labels, the full number last."""
    from core.patterns.evaluation import scores

    folds = {row["fold"] for row in rows}
    found = []
    for share in sorted({row["share"] for row in rows}) + ([1.0] if folds else []):
        chosen = [
            row for row in (whole if share == 1 else rows) if row["fold"] in folds and row["share"] in (share, None)
        ]
        if not chosen:
            continue
        truth, probabilities, groups = _numbers(chosen)
        held_out = scores(truth, probabilities.argmax(1), groups, kept.classes)
        found.append(
            {
                "part": "curve",
                "labels": round(float(np.mean([row["trained_on"] for row in chosen]))),
                "macro_f1": held_out.macro_f1,
                "low": held_out.low,
                "high": held_out.high,
                "maps": held_out.maps,
            }
        )
    return found


def headline(rows: Iterable[Row]) -> Row:
    """The scores row on unseen checkpoints, else on unseen inputs; InputError when no fold is done."""
    found = {row["on"]: row for row in rows if row["part"] == "scores"}
    for name in ON.values():
        if name in found:
            return found[name]
    raise InputError("No fold of the cross-validation is done yet: wait for the first one.")


STUDY = Study("train-patterns", DEFAULTS, units, run, summarize)
