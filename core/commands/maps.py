"""`python -m core maps CHECKPOINT --text A [--pair B] --out maps.npz`: save the attention maps of all heads, as a
self-contained interactive page if the file ends in .html. `python -m core check CHECKPOINT`: run its self-check.
"""

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from .. import capture, models
from ..capture.words import special_positions_of, word_maps
from ..errors import CheckpointError, InputError
from ..studies.contract import Flag
from ..studies.options import DTYPES, Checkpoint
from ..tasks.glue import read_rows
from ..tasks.own import is_own, read_own
from ..writing import replacing, write_whole
from .output import Checkpoint as CheckpointArgument
from .output import Form, show_rows, tell
from .parameters import of_record, with_form

if TYPE_CHECKING:
    from ..models.checkpoint import Checkpoint as OpenedCheckpoint


@dataclass(frozen=True)
class MapsOptions:
    """Options for saving attention maps: the input, the checkpoint and the output file."""

    checkpoint: Checkpoint
    out: Annotated[
        Path,
        Flag(
            "file to write: an interactive page if its name ends in .html, otherwise an NPZ file with "
            "weights and tokens"
        ),
    ]
    text: Annotated[str | None, Flag("input sentence")] = None
    pair: Annotated[str | None, Flag("second sentence of the input, if the input is a sentence pair")] = None
    task: Annotated[
        str | None, Flag("task (its dev split) or CSV file from which the input is taken, instead of --text")
    ] = None
    row: Annotated[int, Flag("number of the example in --task, counted from 1", least=1)] = 1
    revision: Annotated[
        str | None, Flag("revision of the checkpoint on the Hugging Face hub: branch, tag or commit (default: main)")
    ] = None
    dtype: Annotated[
        str, Flag("number format of the weights: float32, bf16, fp16, int8, or stored (the format in the file)")
    ] = "float32"
    part: Annotated[str, Flag("attention to export from an encoder-decoder: encoder, decoder or cross")] = ""
    words: Annotated[
        bool, Flag("average attention weights over the tokens of each word, to get maps between words", name="--words")
    ] = False
    megabytes: Annotated[
        float,
        Flag(
            "largest size of the maps in an .html file in MB; if they do not fit, their weights are rounded or shown "
            "in blocks",
            least=0.1,
            most=500,
        ),
    ] = 2

    def open(self) -> "OpenedCheckpoint":
        head: models.opening.HeadKind = "language" if self.part else "none"
        dtype = DTYPES.get(self.dtype, self.dtype)
        return models.opening.open_checkpoint(self.checkpoint, revision=self.revision, head=head, dtype=dtype)


@of_record(MapsOptions)
def maps(asked: MapsOptions, form: Form) -> None:
    """Save the attention maps of a sentence or pair as NPZ, or as an interactive page.

    For an encoder-decoder, --pair is the input of the decoder; without it, the model's own translation is used.
    """
    out = asked.out
    if not out.parent.is_dir() or out.is_dir() or not os.access(out if out.exists() else out.parent, os.W_OK):
        raise InputError(f"--out must name a writable file in an existing folder; got {out}. Choose another file.")
    first, second = _input(asked)
    opened = asked.open()
    if asked.part and opened.head_set(asked.part).part and second is None:
        second = capture.generating.translated(opened, first)  # input of the decoder
    for note in opened.notes:
        tell(note, err=True)
    encoding = opened.encode(first, second)
    if encoding.unknown > 0.5:
        tell(
            f"{encoding.unknown:.0%} of the tokens are unknown to this tokenizer, so these maps mean little.", err=True
        )
    captured = capture.running.capture(opened, encoding, part=asked.part)
    captured = word_maps(captured, encoding) if asked.words else captured
    if out.suffix.lower() in (".html", ".htm"):
        from ..drawing.page import MapsSource, maps_page  # with Jinja and vl-convert
        from ..drawing.panes import scored_pane, telling_head  # 0.3 s, only for HTML

        about = (first, second, opened.weights_hash, asked.words, asked.part, asked.revision)
        source = MapsSource(asked.checkpoint, *about).with_command(out.name)
        own = encoding.target if captured.part == "decoder" and encoding.target is not None else encoding
        start, separators = special_positions_of(own, words=source.words)
        pane = scored_pane(source.checkpoint, captured, first=start, separators=separators)
        told = telling_head(pane.scores or {}, captured.part)
        write_whole(out, maps_page([pane], source, head=told, most=int(asked.megabytes * 1e6)))
    else:
        with replacing(out) as part, part.open("wb") as stream:
            np.savez_compressed(
                stream,
                weights=captured.weights,
                tokens=np.array(captured.tokens, dtype=np.str_),
                segments=np.array(captured.segments),
                key_tokens=np.array(captured.keys, dtype=np.str_),
                weights_hash=np.array(opened.weights_hash),
            )
    if form != "table":
        provenance = {"checkpoint": opened.name, "weights_hash": opened.weights_hash, "dtype": opened.dtype}
        written = {"file": str(out), "layers": captured.layers, "heads": captured.heads}
        show_rows("maps", provenance | {"tokens": len(captured), "cut": encoding.cut}, [written], form)
        return
    cut = f"; {encoding.cut} tokens were truncated to fit {opened.max_length}" if encoding.cut else ""
    tokens = f"{len(captured)} x {len(captured.keys)} tokens"
    tell(f"{captured.layers} layers x {captured.heads} heads x {tokens} written to {out}{cut}")


def _input(options: MapsOptions) -> tuple[str, str | None]:
    if (options.text is None) == (options.task is None):
        given = "neither" if options.text is None else "both"
        raise InputError(f"Either --text or --task must be given; got {given}. Give one of them.")
    if options.text is not None:
        return options.text, options.pair
    task = str(options.task)
    # All rows of a file, numbered as in the file
    rows = read_own(task).rows if is_own(task) else read_rows(task, "dev")
    if options.row > len(rows):
        raise InputError(
            f"--row must be from 1 to {len(rows)} for {task}; got {options.row}. Choose a number in this range."
        )
    return rows[options.row - 1].text, rows[options.row - 1].pair


# ---------------------------------------------------------------- check


@with_form
def check(
    checkpoint: CheckpointArgument,
    revision: Annotated[
        str | None,
        typer.Option(help="revision of the checkpoint on the Hugging Face hub: branch, tag or commit (default: main)"),
    ] = None,
    dtype: Annotated[
        str,
        typer.Option(
            help="number format of the weights: float32, bf16, fp16, int8, or stored (the format in the file)"
        ),
    ] = "float32",
    *,
    form: Form,
) -> None:
    """Check that the attention maps of a checkpoint are captured correctly.

    The checks cover shapes, row sums, causality, agreement with eager attention, and the effect of disabling a head.
    """
    shown = sys.stderr.isatty()
    if shown:
        tell(f"Opening {checkpoint} and hashing its weights ...", err=True)
    opened = models.opening.open_checkpoint(
        checkpoint, revision=revision, dtype=DTYPES.get(dtype, dtype), on_progress=_tell if shown else None
    )
    for note in opened.notes:
        tell(note, err=True)
    findings: list[capture.selfcheck.Check] = []
    for finding in capture.selfcheck.run_checks(opened):
        findings.append(finding)
        if form == "table":
            tell(f"{'passed' if finding.passed else 'FAILED'}  {finding.name}: {finding.seen}")
    if form != "table":
        rows = [{"check": finding.name, "passed": finding.passed, "seen": finding.seen} for finding in findings]
        provenance = {"checkpoint": opened.name, "weights_hash": opened.weights_hash, "dtype": opened.dtype}
        show_rows("check", provenance, rows, form)
    failed = [finding.name for finding in findings if not finding.passed]
    if failed:
        raise CheckpointError(
            f"All checks must pass before results on {checkpoint} can be trusted; these checks failed: "
            f"{', '.join(failed)}. Choose another checkpoint, or report the model family to the "
            "developers of Attention Atlas."
        )


def _tell(_: float, doing: str) -> None:
    tell(doing, err=True)
