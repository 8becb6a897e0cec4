"""`python -m core heads CHECKPOINT --sentence S --target WORD --element WORDS`: the heads between two places."""

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from core import capture, models
from core.commands.output import Checkpoint, Csv, Form, Json, Latex, form_of, show_rows
from core.errors import InputError
from core.frames.records import AnnotatedSentence, Element
from core.frames.words import place
from core.measuring.distance_null import distance_null
from core.measuring.frame_lookup import Reading, links_for, picture


def heads(
    checkpoint: Checkpoint,
    sentence: Annotated[str, typer.Option(help="the sentence")],
    target: Annotated[str, typer.Option(help='the frame-evoking word; "walk#2" is its second occurrence')],
    element: Annotated[list[str], typer.Option(help="words of a frame element; give it again for another element")],
    direction: Annotated[str, typer.Option(help="element_to_target, target_to_element or later_to_earlier")] = (
        "element_to_target"
    ),
    pairing: Annotated[str, typer.Option(help="product of pieces, or the paper's zip")] = "product",
    without_first: Annotated[bool, typer.Option("--without-first", help="leave out the first position")] = False,
    raw: Annotated[bool, typer.Option("--raw", help="rank by the weight alone")] = False,
    revision: Annotated[str | None, typer.Option(help="revision of a hub id")] = None,
    top: Annotated[int, typer.Option(help="heads of a table; the other forms have every head")] = 10,
    as_json: Json = False,
    csv: Csv = False,
    latex: Latex = False,
) -> None:
    """Rank the heads by how much more they attend between a target and a frame element of one sentence (Fig 3) than
    between places at the same distance."""
    form = form_of(as_json, csv, latex)
    spans = tuple(Element(f"element {k}", (place(sentence, one, "element"),)) for k, one in enumerate(element, 1))
    marked = AnnotatedSentence("typed", sentence, (place(sentence, target, "target"),), elements=spans)
    opened = models.opening.open_checkpoint(checkpoint, revision=revision)
    encoding = opened.encode(sentence)
    links = links_for(encoding, marked)
    found = picture(
        capture.running.capture(opened, encoding), encoding, links,
        Reading(direction, pairing, without_first), null=lambda: distance_null(opened),
    )  # fmt: skip
    if not found.visible:
        raise InputError(
            "In a decoder a query sees no later key, and here every key would lie after its query: use "
            "--direction later_to_earlier."
        )
    provenance = {
        "checkpoint": opened.name,
        "weights_hash": opened.weights_hash,
        "dtype": opened.dtype,
        "sentence": sentence,
        "tokens": list(encoding.tokens),
        "direction": direction,
        "pairing": pairing,
        "without_first": without_first,
        "n": 1,
        "places": found.places,
        "beside": f"{found.borrowed} pairs of the bundled sentences" if found.borrowed else "other places here",
    }
    _print(found.rows("score" if raw else "difference"), provenance, top, form)


def _print(rows: list[dict[str, object]], provenance: dict[str, object], top: int, form: Form) -> None:
    if form != "table":
        show_rows("heads", provenance, rows, form)
        return
    table = Table(
        "rank",
        "head",
        "score",
        "same distance",
        "difference",
        "place",
        title=f"{provenance['checkpoint']}, {provenance['direction']}",
        caption=f"same distance: {provenance['beside']}",
    )
    for row in rows[:top]:
        table.add_row(
            str(row["rank"]),
            str(row["name"]),
            f"{row['score']:.3f}",
            *("–" if row[name] != row[name] else f"{row[name]:.3f}" for name in ("same_distance", "difference")),
            f"{row['place_rank']:.0f} of {row['places']}",
        )
    Console().print(table)
