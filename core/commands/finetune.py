"""`python -m core finetune CHECKPOINT --task T` and `python -m core study change BEFORE AFTER`."""

from typing import Annotated

import typer

from core.commands.output import Checkpoint, Cluster, Csv, Data, Json, Latex, Workers, form_of, run_study
from core.errors import InputError

_NUMBERS = {"batch", "epochs", "max_length", "train_last", "reset_last", "train_limit", "dev_limit", "pad_to"}
_WORDS = {"decay", "pooling", "keep", "precision"}
_SWITCHES = {"true": True, "false": False}


def settings_of(given: list[str]) -> dict[str, int | float | str | bool]:
    """Read "epochs=1" and its like; InputError where one is not written so."""
    found: dict[str, int | float | str | bool] = {}
    for one in given:
        name, equals, value = one.partition("=")
        try:
            if not equals:
                raise ValueError
            found[name] = (
                value if name in _WORDS else _SWITCHES[value] if name == "bucketed" else
                int(value) if name in _NUMBERS else float(value)
            )  # fmt: skip
        except (ValueError, KeyError) as error:
            raise InputError(f"A setting is written like epochs=1 or learning_rate=0.0005; {one!r} is not.") from error
    return found


def finetune(
    checkpoint: Checkpoint,
    task: Annotated[list[str], typer.Option(help="mrpc stsb sst2 qqp rte qnli mnli; may be given several times")],
    init: Annotated[
        list[str] | None, typer.Option(help="pretrained, random, frozen or untrained; several times")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="how many, from 0")] = 1,
    data: Data = None,
    preset: Annotated[str, typer.Option(help="paper, replication, small or long")] = "paper",
    setting: Annotated[list[str] | None, typer.Option("--set", help="one of the recipe's, like epochs=1")] = None,
    folder: Annotated[str | None, typer.Option(help="where checkpoints go; default: beside the database")] = None,
    revision: Annotated[str | None, typer.Option(help="revision of a hub id")] = None,
    as_json: Json = False,
    csv: Csv = False,
    latex: Latex = False,
    cluster: Cluster = None,
    workers: Workers = None,
) -> None:
    """Fine-tune on tasks from initialisations and seeds: checkpoints, and the rows of Table 1."""
    options = {
        "checkpoint": checkpoint, "revision": revision, "tasks": task, "initialisations": init or ["pretrained"],
        "seeds": list(range(seeds)), "data": data, "preset": preset, "settings": settings_of(setting or []),
        "folder": folder,
    }  # fmt: skip
    form = form_of(as_json, csv, latex)
    title = f"Fine-tune {checkpoint} on {', '.join(task)}"
    run_study("finetune", options, form=form, title=title, cluster=cluster, workers=workers)


def change(
    before: Annotated[str, typer.Argument(help="the checkpoint before fine-tuning")],
    after: Annotated[list[str], typer.Argument(help="one or more fine-tuned from it")],
    task: Annotated[str | None, typer.Option(help="default: what the fine-tuned checkpoint says")] = None,
    data: Data = None,
    limit: Annotated[int, typer.Option(min=1, help="most dev rows")] = 1000,
    seed: Annotated[int, typer.Option(help="of the rows drawn and of the intervals")] = 0,
    as_json: Json = False,
    csv: Csv = False,
    latex: Latex = False,
    cluster: Cluster = None,
    workers: Workers = None,
) -> None:
    """How each head's maps change with fine-tuning: cosine and Jensen-Shannon divergence (Fig 5)."""
    options = {"before": before, "after": after, "task": task, "data": data, "limit": limit, "seed": seed}
    form = form_of(as_json, csv, latex)
    run_study("change", options, form=form, title=f"Change of {before}", cluster=cluster, workers=workers)
