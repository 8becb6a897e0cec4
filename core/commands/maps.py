"""`python -m core maps CHECKPOINT --text A [--pair B] --out maps.npz`: the weights of every head, to a file.

A file that ends in .html is a page to explore, with no server: the same drawing as the app's.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from core import capture, models
from core.attention import AttentionMaps
from core.capture.words import places_of, word_maps
from core.commands.output import Checkpoint, Csv, Json, Latex, form_of, show_rows
from core.drawing.maps_page import Source, maps_page
from core.drawing.panes import scored_pane, telling_head
from core.errors import InputError
from core.studies.options import DTYPES
from core.tasks.glue import read_rows
from core.writing import replacing, write_whole

if TYPE_CHECKING:
    from core.models.encoding import Encoding


def maps(
    checkpoint: Checkpoint,
    out: Annotated[Path, typer.Option(help="file to write: .html a page to explore, else NPZ (weights, tokens)")],
    text: Annotated[str | None, typer.Option(help="the sentence")] = None,
    pair: Annotated[str | None, typer.Option(help="the second sentence of a pair")] = None,
    task: Annotated[str | None, typer.Option(help="instead of --text a dev row of this task, or of a CSV file")] = None,
    row: Annotated[int, typer.Option(min=1, help="which row of --task, from 1")] = 1,
    revision: Annotated[str | None, typer.Option(help="revision of a hub id")] = None,
    dtype: Annotated[str, typer.Option(help="float32, bf16, fp16, int8, or stored: as the file has it")] = "float32",
    part: Annotated[str, typer.Option(help="of an encoder-decoder: encoder, decoder or cross")] = "",
    words: Annotated[bool, typer.Option("--words", help="between words instead of pieces")] = False,
    megabytes: Annotated[float, typer.Option(min=0.1, max=500, help="most of an .html; what is left out is said")] = 2,
    as_json: Json = False,
    csv: Csv = False,
    latex: Latex = False,
) -> None:
    """Capture the attention maps of a sentence or pair and write them as NPZ, or as a page to explore.

    Of an encoder-decoder --pair is what its decoder reads; without one, its own translation."""
    form = form_of(as_json, csv, latex)
    if not out.parent.is_dir() or out.is_dir() or not os.access(out if out.exists() else out.parent, os.W_OK):
        raise InputError(
            f"--out names a file that can be written in a folder that exists; {out} is none: name another."
        )
    first, second = _input(text, pair, task, row)
    head: models.opening.HeadKind = "language" if part else "none"
    opened = models.opening.open_checkpoint(checkpoint, revision=revision, head=head, dtype=DTYPES.get(dtype, dtype))
    if part and opened.head_set(part).part and second is None:
        second = capture.generating.translated(opened, first)  # what its decoder reads
    encoding = opened.encode(first, second)
    if encoding.unknown > 0.5:
        typer.echo(
            f"{encoding.unknown:.0%} of the pieces are unknown to this tokenizer: its maps say little here.", err=True
        )
    found = capture.running.capture(opened, encoding, part=part)
    found = word_maps(found, encoding) if words else found
    if out.suffix.lower() in (".html", ".htm"):
        source = Source(checkpoint, first, second, opened.weights_hash, words, part, revision).with_command(out.name)
        _write_page(out, found, encoding, source, int(megabytes * 1e6))
    else:
        _write_weights(out, found, opened.weights_hash)
    cut = f"; {encoding.cut} pieces were cut to fit {opened.max_length}" if encoding.cut else ""
    provenance = {
        "checkpoint": opened.name,
        "weights_hash": opened.weights_hash,
        "dtype": opened.dtype,
        "tokens": len(found),
        "cut": encoding.cut,
    }
    if form != "table":
        show_rows("maps", provenance, [{"file": str(out), "layers": found.layers, "heads": found.heads}], form)
    else:
        tokens = f"{len(found)} x {len(found.keys)} tokens"
        typer.echo(f"{found.layers} layers x {found.heads} heads x {tokens} in {out}{cut}")


def _write_weights(out: Path, maps: AttentionMaps, weights_hash: str) -> None:
    with replacing(out) as part, part.open("wb") as stream:
        np.savez_compressed(
            stream,
            weights=maps.weights,
            tokens=np.array(maps.tokens, dtype=np.str_),
            segments=np.array(maps.segments),
            key_tokens=np.array(maps.keys, dtype=np.str_),
            weights_hash=np.array(weights_hash),
        )


def _write_page(out: Path, maps: AttentionMaps, encoding: "Encoding", source: Source, most: int) -> None:
    own = encoding.target if maps.part == "decoder" and encoding.target is not None else encoding
    first, separators = places_of(own, words=source.words)
    pane = scored_pane(source.checkpoint, maps, first=first, separators=separators)
    write_whole(out, maps_page([pane], source, head=telling_head(pane.scores or {}, maps.part), most=most))


def _input(text: str | None, pair: str | None, task: str | None, row: int) -> tuple[str, str | None]:
    if (text is None) == (task is None):
        raise InputError("Maps are of one sentence or row: give either --text or --task.")
    if text is not None:
        return text, pair
    rows = read_rows(str(task), "dev")
    if row > len(rows):
        raise InputError(f"--row is from 1 to {len(rows)} for {task}; {row} was given.")
    return rows[row - 1].text, rows[row - 1].pair
