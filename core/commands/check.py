"""`python -m core check CHECKPOINT`: run the self-check and print what was seen."""

import sys
from typing import Annotated

import typer

from .. import capture, models
from ..errors import CheckpointError
from ..studies.options import DTYPES
from .output import Checkpoint, Form, show_rows, tell
from .study_commands import with_form


@with_form
def check(
    checkpoint: Checkpoint,
    revision: Annotated[str | None, typer.Option(help="revision of a hub id")] = None,
    dtype: Annotated[str, typer.Option(help="float32, bf16, fp16, int8, or stored: as the file has it")] = "float32",
    *,
    form: Form,
) -> None:
    """Open a checkpoint and check shapes, rows, equality with eager, causality and that disabling bites."""
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
            f"Every check must pass before numbers from {checkpoint} mean anything; failed: "
            f"{', '.join(failed)}: choose another checkpoint or report its family."
        )


def _tell(_: float, doing: str) -> None:
    tell(doing, err=True)
