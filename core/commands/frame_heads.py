"""`python -m core study frame-heads CHECKPOINT [--sentences FILE]`: which heads carry frame relations."""

from dataclasses import replace

from core.commands.output import tell
from core.commands.study_commands import Ran, command
from core.scoring.few_inputs import FEWEST
from core.studies.frames.frame_heads import STUDY
from core.studies.frames.records import FrameHead, FrameSummary, SkippedLine

SAID = 20  # skipped lines that are named
SHOWN = (
    "name", "value", "low", "high", "n", "baseline", "exchanged", "excess", "q", "survives", "q_places", "beats_places",
)  # fmt: skip


def _show(ran: Ran) -> None:
    about = replace(ran, known={name: value for name, value in ran.known.items() if name != "row_ids"})
    if ran.form == "json":
        about.show()
        return
    about.show([{name: getattr(head, name) for name in SHOWN} for head in FrameHead.among(ran.rows)])
    if ran.form == "table":
        summary = FrameSummary.of(ran.rows[0])
        survivors = ", ".join(summary.survivors) or "no head"
        weaker = ", ".join(summary.beat_places or ()) or "no head"
        for line in map(SkippedLine.of, summary.skipped_lines[:SAID]):
            tell(f"skipped {line.where}: {line.why}", err=True)
        tell(f"{summary.read} sentences read, {summary.kept} pass the filter; lines skipped: {summary.skipped}.")
        if summary.n < FEWEST:
            tell(f"{summary.n} {summary.average} scored: too few to test heads on, which takes {FEWEST}.")
            return
        tell(f"{summary.n} {summary.average} scored; survive all four nulls: {survivors}.")
        tell(f"Beat the two place nulls alone (any word may look there): {weaker}.")


frame_heads = command(STUDY, show=_show)
