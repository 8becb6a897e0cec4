"""`python -m core maps CHECKPOINT --text A [--pair B] --out maps.npz`: the weights of every head, to a file."""

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from core.errors import InputError


def maps(
    checkpoint: Annotated[str, typer.Argument(help="bundled name, local folder or hub id")],
    text: Annotated[str, typer.Option(help="the sentence")],
    out: Annotated[Path, typer.Option(help="file to write: weights [layer, head, query, key], tokens, segments")],
    pair: Annotated[str | None, typer.Option(help="the second sentence of a pair")] = None,
    revision: Annotated[str | None, typer.Option(help="revision of a hub id")] = None,
    words: Annotated[bool, typer.Option("--words", help="between words instead of pieces")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
) -> None:
    """Capture the attention maps of a sentence or pair and write them as NPZ."""
    import numpy as np

    from core.capture.running import capture
    from core.capture.words import word_maps
    from core.models.opening import open_checkpoint

    if not out.parent.is_dir() or out.is_dir() or not os.access(out if out.exists() else out.parent, os.W_OK):
        raise InputError(
            f"--out names a file that can be written in a folder that exists; {out} is none: name another."
        )
    opened = open_checkpoint(checkpoint, revision=revision)
    encoding = opened.encode(text, pair)
    found = capture(opened, encoding)
    found = word_maps(found, encoding) if words else found
    with out.open("wb") as stream:
        np.savez_compressed(
            stream,
            weights=found.weights,
            tokens=np.array(found.tokens, dtype=np.str_),
            segments=np.array(found.segments),
            weights_hash=np.array(opened.weights_hash),
        )
    cut = f"; {encoding.cut} pieces were cut to fit {opened.max_length}" if encoding.cut else ""
    provenance = {
        "checkpoint": opened.name,
        "weights_hash": opened.weights_hash,
        "dtype": opened.dtype,
        "tokens": len(found),
        "cut": encoding.cut,
    }
    if as_json:
        typer.echo(json.dumps({"study": "maps", "provenance": provenance, "rows": [{"file": str(out)}]}))
    else:
        typer.echo(f"{found.layers} layers x {found.heads} heads x {len(found)} x {len(found)} tokens in {out}{cut}")
