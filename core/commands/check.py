"""`python -m core check CHECKPOINT`: run the self-check of a checkpoint."""

import sys
from typing import Annotated

import typer

from .. import capture, models
from ..errors import CheckpointError
from ..studies.options import DTYPES
from .output import Checkpoint, Form, show_rows, tell
from .parameters import with_form


@with_form
def check(
    checkpoint: Checkpoint,
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
    """Check that attention maps of a checkpoint are captured correctly: their shapes, row sums, causality, agreement
    with eager attention, and the effect of disabling a head."""
    shown = sys.stderr.isatty()
    if shown:
        tell(f"Opening {checkpoint} and hashing its weights ...", err=True)
    opened = models.opening.open_checkpoint(
        checkpoint, revision=revision, dtype=DTYPES.get(dtype, dtype), on_progress=_tell if shown else None
    )
    for note in opened.notes:
        tell(note, err=True)
    findings: list[capture.selfcheck.Finding] = []
    for finding in capture.selfcheck.findings(opened):
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
