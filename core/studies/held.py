"""Fine-tune with heads held at fixed patterns, beside the free model (Raganato et al. 2020, on encoders' heads).

By default all heads of each layer but the last are fixed at the current, previous, next and first token in turn (a
causal model cannot look at the next one). The patterns hold while learning and while measuring; the free run has the
same seed, rows and recipe. The summary is in the form of Table 1: a row a run, means over seeds, the constant
predictor, the papers' cells; then what holding costs, with a paired bootstrap interval over the dev rows.
"""

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from core import config
from core.attention import Head
from core.measuring import disabling
from core.measuring.outcomes import metrics_of
from core.measuring.provenance import provenance
from core.scoring import effects
from core.studies import finetune
from core.studies.study import Options, Row, Study, Unit

if TYPE_CHECKING:
    from core.capture.interventions import Intervention
    from core.models.checkpoint import Checkpoint

TURNS = ("current", "previous", "next", "first")
FREE, HELD = "free", "held"
DEFAULTS: Options = {
    "checkpoint": config.ENCODER,
    "tasks": ["sst2"],
    "seeds": [0],
    "data": None,
    "preset": "paper",
    "settings": {},
    "heads": "",  # "L1H1,L1H2": these heads under `operator` instead of the default patterns
    "operator": "previous",
    "folder": None,
}


def patterns(layers: int, heads: int, *, causal: bool) -> "list[Intervention]":
    """All heads but the last of each layer at the patterns in turn."""
    from core.capture.interventions import Intervention

    turns = [name for name in TURNS if not (causal and name == "next")]
    found: dict[str, set[Head]] = {}
    for head in range(heads - 1):
        found.setdefault(turns[head % len(turns)], set()).update(Head(layer, head) for layer in range(layers))
    return [Intervention(name, frozenset(some)) for name, some in found.items()]  # type: ignore[arg-type]


def held_heads(options: Options, checkpoint: "Checkpoint") -> "list[Intervention]":
    """What the options hold fixed. Raises InputError, InterventionError."""
    from core.capture.interventions import Intervention, operator_of

    if not options["heads"]:
        return patterns(checkpoint.layers, checkpoint.heads, causal=checkpoint.causal)
    operator = operator_of(options["operator"], causal=checkpoint.causal)
    named = {head for group in disabling.groups_of(options["heads"]) for head in group}
    return [Intervention(operator, frozenset(head.within(checkpoint.layers, checkpoint.heads) for head in named))]


def units(options: Options) -> list[Unit]:
    """One unit a run: free and held, of every task and seed."""
    from core.capture.interventions import operator_of

    if options["heads"]:
        disabling.groups_of(options["heads"])
        operator_of(options["operator"], causal=False)
    plain = finetune.DEFAULTS | _shared(options) | {"initialisations": ["pretrained"]}
    found = []
    for unit in finetune.units(plain):
        for kind in (FREE, HELD):
            key = f"{unit.key}-{_mark(options) if kind == HELD else FREE}"
            found.append(Unit(key, unit.arguments | {"initialisation": kind}, unit.size))
    return found


def _mark(options: Options) -> str:
    """Other heads or another operator make another checkpoint."""
    if not options["heads"]:
        return HELD
    asked = f"{options['heads']} {options['operator']}"
    return f"{HELD}-{hashlib.sha256(asked.encode()).hexdigest()[:6]}"


def _shared(options: Options) -> Options:
    return {name: options[name] for name in ("checkpoint", "tasks", "seeds", "data", "preset", "settings", "folder")}


def run(options: Options, unit: Unit) -> list[Row]:
    """Train one model, free or held, and measure it on dev in the same state; save its checkpoint."""
    from core.capture.running import prepared
    from core.models.checkpoint import Checkpoint
    from core.models.opening import open_checkpoint
    from core.tasks.glue import read_rows, task_of
    from core.tuning.batches import encode
    from core.tuning.model import initialised
    from core.tuning.recipe import Recipe
    from core.tuning.saving import save_tuned
    from core.tuning.training import Fit

    task, seed = task_of(unit.arguments["task"]), unit.arguments["seed"]
    recipe = Recipe.of(options["preset"], options["settings"])
    base = open_checkpoint(options["checkpoint"], device=config.settings().device)
    fixed = held_heads(options, base) if unit.arguments["initialisation"] == HELD else []
    train = read_rows(task, "train", folder=options["data"], limit=recipe.train_limit, seed=seed)
    dev = read_rows(task, "dev", folder=options["data"], limit=recipe.dev_limit)
    length = min(recipe.max_length, base.max_length)
    model: Any = initialised(base, task, "pretrained", recipe, seed).to(base.device)
    with prepared(Checkpoint(base.name, model, base.tokenizer), fixed):
        fit = Fit(base, task, model, encode(base, train, length), encode(base, dev, length), recipe, seed)
        outcome = fit.run()
    folder = finetune.runs_folder(options) / unit.key
    facts = unit.arguments | {
        "preset": options["preset"],
        "recipe": recipe.as_options(),
        "data": options["data"] or "bundled samples",
        "held": {one.operator: sorted(str(head) for head in one.heads) for one in fixed},
        "rows": {"train": len(train), "dev": len(dev)},
    }
    save_tuned(folder, outcome, base, facts)
    row = unit.arguments | {
        "folder": finetune.shown_folder(folder),
        "held_heads": sum(len(one.heads) for one in fixed),
        "gold": [one.label for one in dev],
        "predicted": [float(one) if task.is_score else int(one) for one in outcome.predicted],
    }
    return [
        _measured(task, row, outcome, [one.label for one in train]),
        {"provenance": provenance(base, [r.id for r in dev]).as_row()},
    ]


def _measured(task: Any, row: Row, outcome: Any, train: list) -> Row:
    """The row of a run, as Table 1 reads it."""
    from core.tasks.metrics import majority

    name, constant = majority(task, train, row["gold"])
    known = {"metric": task.metric, "constant": outcome.constant, "majority": name, "baseline": constant}
    return {"kind": "run", **row, **outcome.metrics, **known, "train_rows": len(train), "dev_rows": len(row["gold"])}


def summarize(options: Options, rows: list[Row]) -> list[Row]:
    """The rows of Table 1, free beside held, then what holding costs on each task, averaged over seeds."""
    told = [{name: value for name, value in row.items() if name not in ("gold", "predicted")} for row in rows]
    found = finetune.summarize(options, told)
    for task in dict.fromkeys(row["task"] for row in rows):
        mine = [row for row in rows if row["task"] == task]
        both = {row["seed"] for row in mine if row["initialisation"] == FREE}
        both &= {row["seed"] for row in mine if row["initialisation"] == HELD}
        if both:
            found.append(_cost(task, [row for row in mine if row["seed"] in both], options["seeds"][0]))
    return found


def _cost(task: str, rows: list[Row], seed: int) -> Row:
    """Held less free: the same dev rows under the same draws, so the difference is paired."""
    from core.tasks.glue import task_of

    metric, gold = metrics_of(task_of(task))[0], np.array(rows[0]["gold"])
    predicted = np.array([row["predicted"] for row in rows])
    weights = np.array([[(1.0 if row["initialisation"] == HELD else -1.0) * 2 / len(rows) for row in rows]])
    (change,) = effects.contrast_intervals(metric, gold, predicted[0], predicted, weights, seed=seed)
    about = {"kind": "change", "task": task, "initialisation": "held less free", "metric": metric, "n": len(gold)}
    heads = max(row["held_heads"] for row in rows)
    found = {"score": change.value, "low": change.low, "high": change.high}
    return about | found | {"seeds": len(rows) // 2, "held_heads": heads}


STUDY = Study("held", DEFAULTS, units, run, summarize)
