"""The report in short, as Markdown for a repository or a mail, and its pictures as SVG."""

from collections import Counter
from collections.abc import Sequence

from core.drawing import conversion, theme
from core.report.claims.outcomes import UNTESTED, OutcomeWord
from core.report.claims.registry import claim
from core.report.discoveries import together
from core.report.exhibits import exhibits
from core.report.records import ClaimRecord, Records
from core.report.rendering.charts import chart_of
from core.report.rendering.words import About, command_of, numbers_of, short
from core.tasks.glue import task_name


def pictures(records: Records) -> dict[str, str]:
    """SVG text by exhibit, in the light theme's colours."""
    charts = {exhibit.id: chart_of(exhibit, records.about(exhibit.id)) for exhibit in exhibits()}
    drawn = {
        id: chart.to_dict() | {"config": theme.of_saved_charts()} for id, chart in charts.items() if chart is not None
    }
    return dict(zip(drawn, conversion.svgs_of(list(drawn.values())), strict=True))


def markdown(about: About, records: Records) -> str:
    """What was compared, every claim with its outcomes, and the numbers behind them."""
    verdicts = Counter(value.verdict for value in records.values if value.verdict)
    measured_steps = sum(not step.error for step in records.steps)
    counted = ", ".join(f"{count} {word}" for word, count in verdicts.items()) or "none"
    parts = [
        f"{about.day}; {measured_steps} of {len(records.steps)} steps, {records.seconds / 60:.0f} minutes "
        f"in workers. Printed numbers beside ours: {counted}.",
        f"    {command_of(about.options)}",
        _claims(records),
        together(records.claims),
        _numbers(records.claims),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _claims(records: Records) -> str:
    checkpoints = list(dict.fromkeys(outcome.checkpoint for outcome in records.claims))
    lines = [
        "| claim | " + " | ".join(map(short, checkpoints)) + " |",
        "|---" * (len(checkpoints) + 1) + "|",
    ]
    for id, outcomes in records.by_claim().items():
        registered, first = claim(id), outcomes[0]
        error = f" *({first.known_error})*" if first.known_error else ""
        source = f"{registered.source} {registered.section}".strip() if registered else first.source
        cells = [cell([outcome for outcome in outcomes if outcome.checkpoint == name]) for name in checkpoints]
        lines.append(f"| {_plain(first.sentence)} ({source}){error} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def cell(claims: Sequence[ClaimRecord]) -> str:
    """ "holds: RTE, MRPC; undecided: SST-2" of one claim and checkpoint."""
    parts = []
    for outcome in OutcomeWord:
        outcome_claims = [result for result in claims if result.outcome == outcome]
        if outcome_claims:
            tasks = ", ".join(task_name(result.task) for result in outcome_claims if result.task)
            parts.append(f"{outcome}" + (f": {tasks}" if tasks else ""))
    return "; ".join(parts) or "not about it"


def _numbers(claims: Sequence[ClaimRecord]) -> str:
    lines = ["| claim | checkpoint | task | outcome | numbers | n |", "|---|---|---|---|---|---|"]
    for outcome in claims:
        if outcome.outcome != UNTESTED:
            cells = (
                outcome.claim,
                short(outcome.checkpoint),
                task_name(outcome.task),
                outcome.outcome,
                numbers_of(outcome),
                outcome.n or "",
            )
            lines.append("| " + " | ".join(_plain(text) for text in cells) + " |")
    return "\n".join(lines)


def _plain(text: object) -> str:
    """Text inside a cell: nothing in it ends the cell or starts a link."""
    return str(text).replace("|", "\\|").replace("[", "\\[").replace("\n", " ")
