"""`python -m core study match A B`: which head of one checkpoint is which of another, in a table each head's match."""

import typer

from core.commands.declared import Ran, command
from core.studies.comparison import match as head_matching
from core.studies.comparison.records import Counterpart


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


match = command(head_matching.STUDY, show=_show_match)
COMPARING = (match,)
