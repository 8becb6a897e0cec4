"""`python -m core check CHECKPOINT`: run the self-check and print what was seen."""

import json
from typing import Annotated

import typer

from core.errors import CheckpointError


def check(
    checkpoint: Annotated[str, typer.Argument(help="bundled name, local folder or hub id")],
    revision: Annotated[str | None, typer.Option(help="revision of a hub id")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
) -> None:
    """Open a checkpoint and check shapes, rows, equality with eager, causality and that disabling bites."""
    from core.capture.selfcheck import self_check
    from core.models.opening import open_checkpoint

    opened = open_checkpoint(checkpoint, revision=revision)
    findings = self_check(opened)
    if as_json:
        rows = [{"check": one.name, "passed": one.passed, "seen": one.seen} for one in findings]
        provenance = {"checkpoint": opened.name, "weights_hash": opened.weights_hash, "dtype": opened.dtype}
        typer.echo(json.dumps({"study": "check", "provenance": provenance, "rows": rows}))
    else:
        for one in findings:
            typer.echo(f"{'passed' if one.passed else 'FAILED'}  {one.name}: {one.seen}")
    failed = [one.name for one in findings if not one.passed]
    if failed:
        raise CheckpointError(
            f"Every check must pass before numbers from {checkpoint} mean anything; failed: "
            f"{', '.join(failed)}: choose another checkpoint or report its family."
        )
