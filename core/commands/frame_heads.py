"""`python -m core study frame-heads CHECKPOINT [--sentences FILE]`: which heads carry frame relations."""

from typing import Annotated

import typer

from core.commands.output import Cluster, Csv, Json, Latex, Workers, form_of, ran, show_rows

SHOWN = (
    "name",
    "value",
    "low",
    "high",
    "n",
    "baseline",
    "exchanged",
    "excess",
    "q",
    "survives",
    "q_places",
    "beats_places",
)


def frame_heads(
    checkpoint: Annotated[str, typer.Argument(help="bundled name, local folder or hub id")],
    sentences: Annotated[
        str | None, typer.Option(help="JSONL of ours, or the papers' JSON lists; default: the bundled 137")
    ] = None,
    direction: Annotated[str, typer.Option(help="element_to_target, target_to_element or later_to_earlier")] = (
        "element_to_target"
    ),
    pairing: Annotated[str, typer.Option(help="product of pieces, or the paper's zip")] = "product",
    average: Annotated[str, typer.Option(help="over sentences, or over links as the replication does")] = "sentences",
    core: Annotated[str, typer.Option(help="core_sets (the paper's code), core_type, or any")] = "core_sets",
    longest_sentence: Annotated[int, typer.Option(help="most tokens of a sentence (paper: 12)")] = 12,
    longest_element: Annotated[int, typer.Option(help="most tokens of an element (paper: 3)")] = 3,
    nearest: Annotated[int, typer.Option(help="least distance of target and element (paper's code: 3)")] = 3,
    distance: Annotated[str, typer.Option(help="strings (the paper's code) or places")] = "strings",
    filtered: Annotated[bool, typer.Option("--filter/--no-filter", help="the paper's selection")] = True,
    without_first: Annotated[bool, typer.Option("--without-first", help="leave out the first position")] = False,
    draws: Annotated[int | None, typer.Option(help="of each permutation null; default: enough for the heads")] = None,
    seed: Annotated[int, typer.Option(help="of the nulls and the intervals")] = 0,
    as_json: Json = False,
    csv: Csv = False,
    latex: Latex = False,
    cluster: Cluster = None,
    workers: Workers = None,
) -> None:
    """Score every head on frame-semantic links and say which survive four permutation nulls (section 4.2, Fig 3)."""
    form = form_of(as_json, csv, latex)
    options = {
        "checkpoint": checkpoint, "sentences": sentences, "direction": direction, "pairing": pairing,
        "average": average, "core": core, "longest_sentence": longest_sentence, "longest_element": longest_element,
        "nearest": nearest, "distance": distance, "filter": filtered, "without_first": without_first, "draws": draws,
        "seed": seed,
    }  # fmt: skip
    known, rows = ran("frame-heads", options, title=f"Frame heads of {checkpoint}", cluster=cluster, workers=workers)
    about = {name: value for name, value in known.items() if name != "row_ids"}
    if form == "json":
        show_rows("frame-heads", about, rows, form)
        return
    show_rows(
        "frame-heads", about, [{name: row[name] for name in SHOWN} for row in rows if row["kind"] == "head"], form
    )
    if form == "table":
        summary = rows[0]
        kept = ", ".join(summary["survivors"]) or "no head"
        weaker = ", ".join(summary["beat_places"]) or "no head"
        typer.echo(f"{summary['n']} {summary['average']} scored; survive all four nulls: {kept}.")
        typer.echo(f"Beat the two place nulls alone (any word may look there): {weaker}.")
