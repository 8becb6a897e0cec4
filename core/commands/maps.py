"""`python -m core maps CHECKPOINT --text A [--pair B] --out maps.npz`: the weights of every head, to a file.

A file that ends in .html is a page to explore, with no server: the same drawing as the app's.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np

from .. import capture, models
from ..attention import AttentionMaps
from ..capture.words import special_positions_of, word_maps
from ..drawing.page import MapsSource, maps_page
from ..drawing.panes import scored_pane, telling_head
from ..errors import InputError
from ..studies.contract import Flag
from ..studies.options import DTYPES, Checkpoint
from ..tasks.glue import read_rows
from ..tasks.own import is_own, read_own
from ..writing import replacing, write_whole
from .output import Form, show_rows, tell
from .study_commands import of_record

if TYPE_CHECKING:
    from ..models.checkpoint import Checkpoint as OpenedCheckpoint
    from ..models.encoding import Encoding


@dataclass(frozen=True)
class MapsOptions:
    """Of which input maps are captured, how, and to which file."""

    checkpoint: Checkpoint
    out: Annotated[Path, Flag("file to write: .html a page to explore, else NPZ (weights, tokens)")]
    text: Annotated[str | None, Flag("the sentence")] = None
    pair: Annotated[str | None, Flag("the second sentence of a pair")] = None
    task: Annotated[str | None, Flag("instead of --text a dev example of this task, or one of a CSV file")] = None
    row: Annotated[int, Flag("which example of --task, from 1", least=1)] = 1
    revision: Annotated[str | None, Flag("revision of a hub id")] = None
    dtype: Annotated[str, Flag("float32, bf16, fp16, int8, or stored: as the file has it")] = "float32"
    part: Annotated[str, Flag("of an encoder-decoder: encoder, decoder or cross")] = ""
    words: Annotated[bool, Flag("between words instead of the pieces of words", name="--words")] = False
    megabytes: Annotated[float, Flag("most of an .html; what is left out is said", least=0.1, most=500)] = 2

    def open(self) -> "OpenedCheckpoint":
        """The checkpoint, ready for the part asked for. Raises CheckpointError."""
        head: models.opening.HeadKind = "language" if self.part else "none"
        dtype = DTYPES.get(self.dtype, self.dtype)
        return models.opening.open_checkpoint(self.checkpoint, revision=self.revision, head=head, dtype=dtype)


@of_record(MapsOptions)
def maps(asked: MapsOptions, form: Form) -> None:
    """Capture the attention maps of a sentence or pair and write them as NPZ, or as a page to explore.

    Of an encoder-decoder --pair is what its decoder reads; without one, its own translation."""
    out = asked.out
    if not out.parent.is_dir() or out.is_dir() or not os.access(out if out.exists() else out.parent, os.W_OK):
        raise InputError(
            f"--out names a file that can be written in a folder that exists; {out} is none: name another."
        )
    first, second = _input(asked)
    opened = asked.open()
    if asked.part and opened.head_set(asked.part).part and second is None:
        second = capture.generating.translated(opened, first)  # what its decoder reads
    for note in opened.notes:
        tell(note, err=True)
    encoding = opened.encode(first, second)
    if encoding.unknown > 0.5:
        tell(f"{encoding.unknown:.0%} of the tokens are unknown to this tokenizer: its maps say little here.", err=True)
    captured = capture.running.capture(opened, encoding, part=asked.part)
    captured = word_maps(captured, encoding) if asked.words else captured
    if out.suffix.lower() in (".html", ".htm"):
        about = (first, second, opened.weights_hash, asked.words, asked.part, asked.revision)
        source = MapsSource(asked.checkpoint, *about).with_command(out.name)
        _write_page(out, captured, encoding, source, int(asked.megabytes * 1e6))
    else:
        _write_weights(out, captured, opened.weights_hash)
    if form != "table":
        provenance = {"checkpoint": opened.name, "weights_hash": opened.weights_hash, "dtype": opened.dtype}
        written = {"file": str(out), "layers": captured.layers, "heads": captured.heads}
        show_rows("maps", provenance | {"tokens": len(captured), "cut": encoding.cut}, [written], form)
        return
    cut = f"; {encoding.cut} tokens were cut to fit {opened.max_length}" if encoding.cut else ""
    tokens = f"{len(captured)} x {len(captured.keys)} tokens"
    tell(f"{captured.layers} layers x {captured.heads} heads x {tokens} in {out}{cut}")


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


def _write_page(out: Path, maps: AttentionMaps, encoding: "Encoding", source: MapsSource, most: int) -> None:
    part_encoding = encoding.target if maps.part == "decoder" and encoding.target is not None else encoding
    first, separators = special_positions_of(part_encoding, words=source.words)
    pane = scored_pane(source.checkpoint, maps, first=first, separators=separators)
    write_whole(out, maps_page([pane], source, head=telling_head(pane.scores or {}, maps.part), most=most))


def _input(options: MapsOptions) -> tuple[str, str | None]:
    if (options.text is None) == (options.task is None):
        raise InputError("Maps are of one sentence or row: give either --text or --task.")
    if options.text is not None:
        return options.text, options.pair
    task = str(options.task)
    rows = read_own(task).rows if is_own(task) else read_rows(task, "dev")  # of a file every row, as it counts them
    if options.row > len(rows):
        raise InputError(f"--row must be from 1 to {len(rows)} for {task}; got {options.row}.")
    return rows[options.row - 1].text, rows[options.row - 1].pair
