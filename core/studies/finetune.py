"""Fine-tune a checkpoint on tasks from several initialisations and seeds: Table 1 of Kovaleva et al. 2019.

One unit is one run (task, initialisation, seed). Each leaves a checkpoint folder; its name says what it is, so a run
that was killed finds its own state again. The summary has a row a run, then per task and initialisation the mean and
standard deviation over seeds, and the constant predictors.
"""

import hashlib
import json
import statistics
from functools import lru_cache
from pathlib import Path
from typing import Any

from core import config
from core.errors import InputError
from core.studies.study import Options, Row, Study, Unit
from core.tasks.own import is_own

DEFAULTS: Options = {
    "checkpoint": config.ENCODER,
    "revision": None,
    "tasks": ["sst2"],
    "initialisations": ["pretrained"],
    "seeds": [0, 1, 2],
    "data": None,
    "preset": "paper",
    "settings": {},
    "folder": None,
}
PIECES_A_WORD = 1.5  # for the time left only
METRICS = ("accuracy", "f1", "pearson", "spearman", "mse")


def runs_folder(options: Options) -> Path:
    """Where checkpoints of this study go."""
    return Path(options["folder"] or config.settings().runs / "finetuned").expanduser()


def run_name(options: Options, task: str, initialisation: str, seed: int) -> str:
    """Readable, and different wherever anything that decides the result differs."""
    decides = {name: options[name] for name in ("checkpoint", "revision", "data", "preset", "settings")}
    decides |= {"task": task} if is_own(task) else {}
    digest = hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()[:6]
    base = Path(options["checkpoint"]).name[:40]
    return f"{base}-{Path(task).stem[:40]}-{initialisation}-s{seed}-{digest}"


def shown_folder(folder: Path) -> str:
    """A folder as checkpoint pickers name it: relative to the project where it lies inside."""
    return str(folder.relative_to(config.PROJECT)) if folder.is_relative_to(config.PROJECT) else str(folder)


def units(options: Options) -> list[Unit]:
    """One unit a run; everything a user may have got wrong is looked at before any of them starts."""
    from core.tasks.glue import read_rows, task_of
    from core.tuning.recipe import INITIALISATIONS, Recipe

    recipe = Recipe.of(options["preset"], options["settings"])
    for name in ("tasks", "initialisations", "seeds"):
        if not options[name]:
            raise InputError(f"A fine-tuning job needs at least one of its {name}; none was chosen: choose one.")
    if unknown := [one for one in options["initialisations"] if one not in INITIALISATIONS]:
        raise InputError(f"An initialisation is one of {', '.join(INITIALISATIONS)}; {unknown[0]!r} is none of them.")
    found = []
    for key in dict.fromkeys(task_of(one).key for one in options["tasks"]):
        rows = {
            split: read_rows(key, split, folder=options["data"], limit=limit)
            for split, limit in (("train", recipe.train_limit), ("dev", recipe.dev_limit))
        }
        words = {k: sum(len(f"{row.text} {row.pair or ''}".split()) for row in v) for k, v in rows.items()}
        for initialisation in options["initialisations"]:
            for seed in dict.fromkeys(int(one) for one in options["seeds"]):
                passes = 0 if initialisation == "untrained" else recipe.epochs
                size = int(PIECES_A_WORD * (3 * passes * words["train"] + (passes + 2) * words["dev"]))
                arguments = {"task": key, "initialisation": initialisation, "seed": seed}
                found.append(Unit(run_name(options, key, initialisation, seed), arguments, size))
    return found


@lru_cache(maxsize=1)
def _base(name: str, revision: str | None) -> Any:
    from core.models.opening import open_checkpoint

    return open_checkpoint(name, revision=revision, device=config.settings().device)


def run(options: Options, unit: Unit) -> list[Row]:
    """One run: train, measure on dev, save. Returns its row and its provenance."""
    from core.tasks.glue import TASKS, read_rows
    from core.tuning.batches import encode
    from core.tuning.live import Live
    from core.tuning.model import initialised
    from core.tuning.recipe import Recipe
    from core.tuning.saving import save_tuned
    from core.tuning.training import Fit

    task, seed = TASKS[unit.arguments["task"]], unit.arguments["seed"]
    recipe = Recipe.of(options["preset"], options["settings"])
    base = _base(options["checkpoint"], options["revision"])
    train = read_rows(task, "train", folder=options["data"], limit=recipe.train_limit, seed=seed)
    dev = read_rows(task, "dev", folder=options["data"], limit=recipe.dev_limit)  # the same rows for every seed
    examples = {
        name: encode(base, rows, min(recipe.max_length, base.max_length))
        for name, rows in (("train", train), ("dev", dev))
    }
    folder = runs_folder(options) / unit.key
    state = folder.with_name(folder.name + ".state")
    live = Live(live_file(options, unit.key))
    model = initialised(base, task, unit.arguments["initialisation"], recipe, seed).to(base.device)
    outcome = Fit(
        base, task, model, examples["train"], examples["dev"], recipe, seed,
        state=state,
        identity=f"{unit.key} {base.weights_hash} {_fingerprint(train)} {_fingerprint(dev)}",
        on_step=lambda log: live.write(live_picture(log), now=log.epochs[-1]["step"] == log.step),
    ).run()  # fmt: skip
    facts = unit.arguments | {
        "preset": options["preset"],
        "recipe": recipe.as_options(),
        "data": options["data"] or "bundled samples",
        "rows": {"train": len(train), "dev": len(dev), "cut": sum(one.encoding.cut > 0 for one in examples["train"])},
        "train_rows_hash": _fingerprint(train),
        "dev_rows_hash": _fingerprint(dev),
    }
    save_tuned(folder, outcome, base, facts)
    state.unlink(missing_ok=True)
    live.place.unlink(missing_ok=True)
    row = _row(options, unit, outcome, facts, [one.label for one in train], [one.label for one in dev])
    return [row, {"provenance": _provenance(base, [one.id for one in dev])}]


def _row(options: Options, unit: Unit, outcome: Any, facts: dict, train: list, dev: list) -> Row:
    from core.tasks.glue import TASKS
    from core.tasks.metrics import majority

    task = TASKS[unit.arguments["task"]]
    name, constant = majority(task, train, dev)
    one_class = task.labels[int(outcome.predicted[0])] if outcome.constant and task.labels else None
    return {
        "kind": "run",
        **unit.arguments,
        "metric": task.metric,
        **outcome.metrics,
        "constant": outcome.constant,
        "note": f"constant predictions: {one_class or 'one score'}" if outcome.constant else "",
        "train_rows": facts["rows"]["train"],
        "dev_rows": facts["rows"]["dev"],
        "cut_rows": facts["rows"]["cut"],
        "seconds": round(outcome.log.seconds, 1),
        "last_loss": outcome.log.losses[-1] if outcome.log.losses else None,
        "folder": shown_folder(runs_folder(options) / unit.key),
        "majority": name,
        "baseline": constant,
        "epochs": outcome.log.epochs,
    }


def _provenance(base: Any, row_ids: list[str]) -> Row:
    return {
        "weights_hash": base.weights_hash,
        "dtype": base.dtype,
        "device": str(base.device),
        "split": "dev",
        "row_ids": row_ids,
    }


def _fingerprint(rows: list) -> str:
    """Of texts and labels, so that a state is not taken up on other data."""
    text = "\n".join(f"{one.id}\t{one.text}\t{one.pair}\t{one.label}" for one in rows)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


# ---------------------------------------------------------------- the live picture


def live_file(options: Options, key: str) -> Path:
    """Where a run under way writes what a page shows of it."""
    return runs_folder(options) / f"{key}.live.json"


def live_picture(log: Any) -> Row:
    """Loss so far (at most 200 means), dev metrics, steps and time left."""
    every = max(1, -(-len(log.losses) // 200))
    blocks = [log.losses[k : k + every] for k in range(0, len(log.losses), every)]
    return {
        "step": log.step,
        "steps": log.steps,
        "left": log.seconds_left,
        "losses": [{"step": (k + 1) * every, "loss": statistics.fmean(block)} for k, block in enumerate(blocks)],
        "epochs": log.epochs,
    }


def live_runs(options: Options, keys: list[str]) -> dict[str, Row]:
    """The runs of a job that are under way on this machine, by key."""
    from core.tuning.live import read_live

    found = {key: read_live(live_file(options, key)) for key in keys}
    return {key: picture for key, picture in found.items() if picture is not None}


# ---------------------------------------------------------------- Table 1


def summarize(options: Options, rows: list[Row]) -> list[Row]:
    """Rows of kind "run", then "mean" and "baseline" for each task."""
    found = list(rows)
    for task in dict.fromkeys(row["task"] for row in rows):
        mine = [row for row in rows if row["task"] == task]
        for initialisation in dict.fromkeys(row["initialisation"] for row in mine):
            found.append(_mean([row for row in mine if row["initialisation"] == initialisation]))
        first = mine[0]
        baseline = {"kind": "baseline", "task": task, "initialisation": f"always {first['majority']}"}
        found.append(baseline | {"metric": first["metric"], "n": 1, **first["baseline"]})
    return found


def _mean(rows: list[Row]) -> Row:
    """Mean and standard deviation over seeds; runs whose correlation is undefined are counted, not averaged."""
    first = rows[0]
    found: Row = {
        "kind": "mean",
        **{name: first[name] for name in ("task", "initialisation", "metric")},
        "n": len(rows),
    }
    for name in METRICS:
        values = [row[name] for row in rows if row.get(name) is not None]
        if any(name in row for row in rows):
            found[name] = statistics.fmean(values) if values else None
            found[f"{name}_sd"] = statistics.stdev(values) if len(values) > 1 else None
    constant = sum(row["constant"] for row in rows)
    found["constant"] = constant
    found["note"] = f"constant predictions in {constant} of {len(rows)} runs" if constant else ""
    return found


STUDY = Study("finetune", DEFAULTS, units, run, summarize)
