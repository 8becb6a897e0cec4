"""`python -m core study disable|importance|prune CHECKPOINT --task T`: does a head matter?"""

from typing import Annotated

import typer

from core.commands.output import (
    Checkpoint,
    Cluster,
    Csv,
    Data,
    Json,
    Latex,
    Limit,
    Seed,
    Split,
    Workers,
    form_of,
    run_study,
)
from core.commands.patterns import database
from core.errors import InputError
from core.store import runs
from core.store.rows import Row

Classifier = Annotated[str, typer.Argument(help="a fine-tuned classifier: local folder or hub id")]
TaskName = Annotated[str, typer.Option(help="mrpc, stsb, sst2, qqp, rte, qnli, mnli, or a CSV of your own")]
Dtype = Annotated[str, typer.Option(help="float32, bfloat16 or float16")]
DTYPES = {"bf16": "bfloat16", "fp32": "float32", "fp16": "float16"}


def options_of(checkpoint: str, task: str, data: str | None, limit: int | None, dtype: str, seed: int) -> dict:
    """The options that the three studies share."""
    return {
        "checkpoint": checkpoint,
        "task": task,
        "data": data,
        "limit": limit or None,
        "dtype": DTYPES.get(dtype, dtype),
        "seed": seed,
    }


def disable(
    checkpoint: Classifier,
    task: TaskName = "sst2",
    data: Data = None,
    what: Annotated[str, typer.Option(help="heads, layers, all-but-one, groups, or duplicates")] = "heads",
    heads: Annotated[str, typer.Option(help='groups disabled together, like "L1H2,L7H6; L4H1"')] = "",
    within: Annotated[float, typer.Option(help="duplicates: nearer than this share of the mean distance")] = 0.5,
    operator: Annotated[str, typer.Option(help="disable, zero, previous, current, next or first")] = "disable",
    beside: Annotated[str | None, typer.Option(help="an earlier sweep's run, for the correlation of the two")] = None,
    split: Split = "dev",
    limit: Limit = 500,
    dtype: Dtype = "float32",
    seed: Seed = 0,
    as_json: Json = False,
    csv: Csv = False,
    latex: Latex = False,
    cluster: Cluster = None,
    workers: Workers = None,
) -> None:
    """Disable every head (layer, lone head, or group) in turn: the change of the metric, and whether it is luck."""
    form = form_of(as_json, csv, latex)
    options = options_of(checkpoint, task, data, limit, dtype, seed) | {
        "what": "groups" if heads else what,
        "heads": heads,
        "within": within,
        "operator": operator,
        "split": split,
    }
    other = earlier_sweep(beside) if beside else None

    def shown(rows: list[Row]) -> list[Row]:
        every = rows if other is None else [*rows, correlation(rows, other)]
        return every if form in ("json", "csv") else [_short(row) for row in rows if row["kind"] != "split half"]

    title = f"Disable {options['what']} of {checkpoint}"
    rows = run_study("disable", options, form=form, title=title, cluster=cluster, workers=workers, shown=shown)
    if form == "table":
        typer.echo(said_of(rows))
        if other is not None:
            typer.echo(
                "Beside the other sweep: Spearman {spearman}, n = {n} ({name}).".format(**correlation(rows, other))
            )


def earlier_sweep(run: str) -> list[Row]:
    """The rows of a stored sweep. Raises InputError where it is none, naming those there are."""
    with database(beside=False) as db:
        known = runs.runs(db, "disable")
        if run in set(known["run"]):
            return runs.run_rows(db, run)
    there = "; ".join(f"{row.run} ({row.title})" for row in known.head(5).itertuples()) or "none"
    raise InputError(f"--beside takes the run of an earlier sweep; {run!r} is none. Stored: {there}.")


def correlation(rows: list[Row], other: list[Row]) -> Row:
    """One row: how the ranks of two sweeps' changes agree."""
    from core.studies.disable import shared

    pairs, agreement = shared(rows, other)
    both = sorted(pairs, key=lambda row: max(row["this"] or 0.0, row["other"] or 0.0))[:3]
    name = "most harm in both: " + ", ".join(row["name"] for row in both)
    fields = {one: getattr(agreement, one) for one in ("spearman", "kendall", "p", "n")}
    return {"kind": "correlation", "name": name, **fields}


def _short(row: Row) -> Row:
    metrics = [name for name in ("accuracy", "f1", "pearson") if name in row]
    found: Row = {"name": row["name"], **{name: row[name] for name in metrics}}
    for name in (f"{metrics[0]}_{end}" for end in ("change", "low", "high")):
        found[name] = row.get(name)
    found |= {"flipped": row.get("flipped"), "mcnemar": row.get("mcnemar"), "p corrected": row.get("p")}
    if row["what"] == "duplicates":
        ends = ("apart", "control", "beyond_apart", "beyond_apart_low", "beyond_apart_high")
        found |= {"heads": row.get("heads"), "distance": row.get("distance")}
        found |= {f"{metrics[0]}_{end}": row.get(f"{metrics[0]}_{end}") for end in ends}
    return found


def said_of(rows: list[Row]) -> str:
    """What holds after the correction, and what the best one does on rows that did not choose it."""
    variants = [row for row in rows if row["kind"] == "variant"]
    kept = [row["name"] for row in variants if row["p"] < 0.05]
    sentence = (
        f"{len(kept)} of {len(variants)} change the outcome beyond luck (p < 0.05, corrected over all): "
        f"{', '.join(kept) or 'none'}."
    )
    for row in rows:
        if row["kind"] == "split half":
            sentence += (
                f" Best of one half of the rows: {100 * row['chosen']:+.1f} there, {100 * row['held_out']:+.1f} on the "
                f"other half (most often {row['name']}, in {row['same']:.0%} of the splits)."
            )
    return sentence


def importance(
    checkpoint: Classifier,
    task: TaskName = "sst2",
    data: Data = None,
    reading: Annotated[str, typer.Option(help="per example (the paper's formula) or per token (its code)")] = "example",
    normalize: Annotated[bool, typer.Option("--normalize/--raw", help="l2 within each layer")] = True,
    sweep: Annotated[bool, typer.Option("--sweep/--no-sweep", help="compare with zeroing every head")] = True,
    split: Split = "train",
    limit: Limit = 500,
    dtype: Dtype = "float32",
    seed: Seed = 0,
    as_json: Json = False,
    csv: Csv = False,
    latex: Latex = False,
    cluster: Cluster = None,
    workers: Workers = None,
) -> None:
    """Weigh every head by the gradient of the loss with respect to its gate, in one backward pass (Michel et al.)."""
    options = options_of(checkpoint, task, data, limit, dtype, seed) | {
        "reading": reading,
        "normalize": normalize,
        "split": split,
        "sweep": "zero" if sweep else None,
    }
    form = form_of(as_json, csv, latex)
    run_study("importance", options, form=form, title="Importance of heads", cluster=cluster, workers=workers)


def prune(
    checkpoint: Classifier,
    task: TaskName = "sst2",
    data: Data = None,
    order: Annotated[
        list[str] | None, typer.Option("--order", help="importance, recomputed, sweep, random; give several")
    ] = None,
    steps: Annotated[int, typer.Option(min=1, help="of the curve; 10 removes 10% at a time")] = 10,
    order_rows: Annotated[int, typer.Option(min=2, help="train rows that find the order")] = 500,
    limit: Limit = 500,
    save: Annotated[str | None, typer.Option(help="folder for the checkpoint without --share of its heads")] = None,
    share: Annotated[float, typer.Option(min=0.0, max=1.0, help="of the heads to remove when saving")] = 0.5,
    dtype: Dtype = "float32",
    seed: Seed = 0,
    as_json: Json = False,
    csv: Csv = False,
    latex: Latex = False,
    cluster: Cluster = None,
    workers: Workers = None,
) -> None:
    """Remove heads for good, least important first: order from train rows, curve on dev rows, random as the control."""
    options = options_of(checkpoint, task, data, limit, dtype, seed) | {"steps": steps, "order_rows": order_rows}
    if order:
        options["orders"] = list(order)
    form = form_of(as_json, csv, latex)
    rows = run_study("prune", options, form=form, title="Pruning curve", cluster=cluster, workers=workers)
    if save:
        typer.echo(save_from(rows, checkpoint, save, share), err=True)


def held(
    checkpoint: Checkpoint,
    task: Annotated[list[str], typer.Option(help="several times for several tasks")],
    seeds: Annotated[int, typer.Option(min=1, help="how many, from 0")] = 1,
    data: Data = None,
    heads: Annotated[str, typer.Option(help="held at --operator; default: all but one a layer, patterns in turn")] = "",
    operator: Annotated[str, typer.Option(help="disable, zero, previous, current, next or first")] = "previous",
    preset: Annotated[str, typer.Option(help="paper, replication or small")] = "paper",
    setting: Annotated[list[str] | None, typer.Option("--set", help="one of the recipe's, like epochs=1")] = None,
    as_json: Json = False,
    csv: Csv = False,
    latex: Latex = False,
    cluster: Cluster = None,
    workers: Workers = None,
) -> None:
    """Fine-tune with heads held at fixed patterns, beside the free model (Raganato et al.)."""
    from core.commands.finetune import settings_of

    options = {
        "checkpoint": checkpoint, "tasks": task, "seeds": list(range(seeds)), "data": data, "heads": heads,
        "operator": operator, "preset": preset, "settings": settings_of(setting or []),
    }  # fmt: skip
    form = form_of(as_json, csv, latex)
    run_study("held", options, form=form, title="Fixed patterns", cluster=cluster, workers=workers)


def save_from(rows: list[Row], checkpoint: str, folder: str, share: float) -> str:
    """Save the checkpoint without that share of its heads, in the first order of the rows; says what was done."""
    from core.attention import parse_heads
    from core.capture.pruning import save_pruned
    from core.models.opening import open_checkpoint

    steps = [row for row in rows if row["kind"] == "step" and row["order"] == rows[0]["order"]]
    nearest = min(steps, key=lambda row: (abs(row["share"] - share), row["share"]))
    found = save_pruned(open_checkpoint(checkpoint, head="classifier"), parse_heads(nearest["heads"]), folder)
    return f"Saved {found} without {nearest['removed']} heads, in the order of {nearest['order']}."
