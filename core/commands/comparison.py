"""`python -m core study match A B` and `study development SNAPSHOT ...`: heads across checkpoints and over training."""

from core.commands.study_commands import Ran, command, short_in
from core.studies.comparison import development as head_development
from core.studies.comparison import match as head_matching
from core.studies.comparison.records import Counterpart, RoleBeginnings


@short_in("table")
def _show_match(ran: Ran) -> None:
    """Every row, or in a table the heads by name."""
    ran.show(
        [
            {"head": head.name, "match": head.match, "similarity": head.similarity, "margin": head.margin, "p": head.p}
            | {"agrees": head.agrees, "matched": head.matched}
            for head in Counterpart.among(ran.rows)
        ]
    )


@short_in("table")
def _show_development(ran: Ran) -> None:
    """Every row, or in a table when each role began."""
    ran.show([order.as_row() for order in RoleBeginnings.among(ran.rows)])


match = command(head_matching.STUDY, show=_show_match)
development = command(head_development.STUDY, show=_show_development)
COMPARING = (match, development)
