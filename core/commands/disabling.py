"""`python -m core study disable|importance|prune CHECKPOINT --task T`: does a head matter?"""

from typing import Annotated, Any

import typer

from core.commands.output import Cluster, Csv, Json, Latex, Workers, form_of, run_study, show_rows
from core.commands.patterns import database, job_rows

Name = Annotated[str, typer.Argument(help="a fine-tuned classifier: local folder or hub id")]
TaskName = Annotated[str, typer.Option(help="mrpc, stsb, sst2, qqp, rte, qnli or mnli")]
Data = Annotated[str | None, typer.Option(help="folder in GLUE's TSV form; default: the bundled samples")]
Limit = Annotated[int | None, typer.Option(min=0, help="rows; 0 for all")]
Dtype = Annotated[str, typer.Option(help="float32, bfloat16 or float16")]
Seed = Annotated[int, typer.Option(help="of drawn rows, intervals and permutations")]
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
    checkpoint: Name,
    task: TaskName = "sst2",
    data: Data = None,
    what: Annotated[str, typer.Option(help="heads, layers, or all-but-one")] = "heads",
    heads: Annotated[str, typer.Option(help='groups disabled together, like "L1H2,L7H6; L4H1"')] = "",
    operator: Annotated[str, typer.Option(help="disable, zero, previous, current, next or first")] = "disable",
    split: Annotated[str, typer.Option(help="dev or train")] = "dev",
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
        "operator": operator,
        "split": split,
    }
    if form == "json":
        run_study("disable", options, form=form, title=f"Disable {options['what']}", cluster=cluster, workers=workers)
        return
    with database(beside=True) as db:
        known, rows = job_rows(db, "disable", options, f"Disable {options['what']} of {checkpoint}", cluster, workers)
    show_rows("disable", _about(known), [_short(row) for row in rows if row["kind"] != "split half"], form)
    if form == "table":
        typer.echo(said_of(rows))


def _about(known: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in known.items() if name not in ("study", "row_ids")}


def _short(row: dict[str, Any]) -> dict[str, Any]:
    metrics = [name for name in ("accuracy", "f1", "pearson") if name in row]
    found = {"name": row["name"], **{name: row[name] for name in metrics}}  # type: ignore[misc]
    for name in (f"{metrics[0]}_{end}" for end in ("change", "low", "high")):
        found[name] = row.get(name)
    return found | {"flipped": row.get("flipped"), "mcnemar": row.get("mcnemar"), "p corrected": row.get("p")}


def said_of(rows: list[dict[str, Any]]) -> str:
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
    checkpoint: Name,
    task: TaskName = "sst2",
    data: Data = None,
    reading: Annotated[str, typer.Option(help="per example (the paper's formula) or per token (its code)")] = "example",
    normalize: Annotated[bool, typer.Option("--normalize/--raw", help="l2 within each layer")] = True,
    sweep: Annotated[bool, typer.Option("--sweep/--no-sweep", help="compare with zeroing every head")] = True,
    split: Annotated[str, typer.Option(help="train or dev")] = "train",
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
    checkpoint: Name,
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
    checkpoint: Annotated[str, typer.Argument(help="bundled name, local folder or hub id")],
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


def save_from(rows: list[dict[str, Any]], checkpoint: str, folder: str, share: float) -> str:
    """Save the checkpoint without that share of its heads, in the first order of the rows; says what was done."""
    from core.attention import parse_heads
    from core.capture.pruning import save_pruned
    from core.models.opening import open_checkpoint

    steps = [row for row in rows if row["kind"] == "step" and row["order"] == rows[0]["order"]]
    nearest = min(steps, key=lambda row: (abs(row["share"] - share), row["share"]))
    found = save_pruned(open_checkpoint(checkpoint, head="classifier"), parse_heads(nearest["heads"]), folder)
    return f"Saved {found} without {nearest['removed']} heads, in the order of {nearest['order']}."
