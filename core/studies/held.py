"""Fine-tune with heads held at fixed patterns, beside the free model (Raganato et al. 2020, on encoders' heads).

By default all heads of each layer but the last are fixed at the current, previous, next and first token in turn (a
causal model cannot look at the next one). The patterns hold while learning and while measuring; the free run has the
same seed, rows and recipe. The summary is in the form of Table 1: a row a run, and means over seeds.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from core import config
from core.attention import Head
from core.studies import disabling, finetune
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
            found.append(Unit(f"{unit.key}-{kind}", unit.arguments | {"initialisation": kind}, unit.size))
    return found


def _shared(options: Options) -> Options:
    return {name: options[name] for name in ("checkpoint", "tasks", "seeds", "data", "preset", "settings", "folder")}


def run(options: Options, unit: Unit) -> list[Row]:
    """Train one model, free or held, and measure it on dev in the same state; save its checkpoint."""
    from core.capture.running import prepared
    from core.models.checkpoint import Checkpoint
    from core.models.opening import open_checkpoint
    from core.tasks.glue import TASKS, read_rows
    from core.tuning.batches import encode
    from core.tuning.model import initialised
    from core.tuning.recipe import Recipe
    from core.tuning.saving import save_tuned
    from core.tuning.training import Fit

    task, seed = TASKS[unit.arguments["task"]], unit.arguments["seed"]
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
    folder = Path(options["folder"] or config.DATA / "runs" / "finetuned").expanduser() / unit.key
    facts = unit.arguments | {
        "preset": options["preset"],
        "recipe": recipe.as_options(),
        "data": options["data"] or "bundled samples",
        "held": {one.operator: sorted(str(head) for head in one.heads) for one in fixed},
        "rows": {"train": len(train), "dev": len(dev)},
    }
    save_tuned(folder, outcome, base, facts)
    row = {
        "kind": "run", **unit.arguments, "metric": task.metric, **outcome.metrics, "constant": outcome.constant,
        "held_heads": sum(len(one.heads) for one in fixed), "train_rows": len(train), "dev_rows": len(dev),
        "folder": finetune.shown_folder(folder),
    }  # fmt: skip
    return [row, disabling.provenance(base, [one.id for one in dev])]


def summarize(options: Options, rows: list[Row]) -> list[Row]:
    """The runs, then free and held averaged over seeds and what holding costs, for each task."""
    if not rows:
        return []
    found = list(rows)
    for task in dict.fromkeys(row["task"] for row in rows):
        means = {}
        for kind in (FREE, HELD):
            mine = [row for row in rows if row["task"] == task and row["initialisation"] == kind]
            values = [row[row["metric"]] for row in mine if row[row["metric"]] is not None]
            means[kind] = sum(values) / len(values) if values else None
            metric = mine[0]["metric"] if mine else None
            score = {"metric": metric, "score": means[kind], "n": len(values)}
            found.append({"kind": "mean", "task": task, "initialisation": kind, **score})
        if None not in means.values():
            change = means[HELD] - means[FREE]
            found.append({"kind": "change", "task": task, "initialisation": "held less free", "score": change})
    return found


STUDY = Study("held", DEFAULTS, units, run, summarize)
