"""`python -m core study match A B` and `study development SNAPSHOT ...`: heads across checkpoints and over training."""

import typer

from core.commands.study_commands import Ran, command
from core.studies.comparison import development as head_development
from core.studies.comparison import match as head_matching
from core.studies.comparison.records import Counterpart, RoleBeginnings


def _show_match(ran: Ran) -> None:
    """Every row, or in a table the heads by name and what is said of all."""
    if ran.form != "table":
        ran.show(ran.rows)
        return
    ran.show(
        [
            {"head": head.name, "match": head.match, "similarity": head.similarity, "margin": head.margin, "p": head.p}
            | {"agrees": head.agrees, "matched": head.matched}
            for head in Counterpart.among(ran.rows)
        ]
    )
    headline = head_matching.STUDY.headline(ran.rows)
    if headline:
        typer.echo(headline.sentence)


def _show_development(ran: Ran) -> None:
    """Every row, or in a table when each role began, and which came first."""
    if ran.form != "table":
        ran.show(ran.rows)
        return
    ran.show([order.as_row() for order in RoleBeginnings.among(ran.rows)])
    headline = head_development.STUDY.headline(ran.rows)
    if headline:
        typer.echo(headline.sentence)


match = command(head_matching.STUDY, show=_show_match)
development = command(head_development.STUDY, show=_show_development)
COMPARING = (match, development)
