"""`python -m core study syntax|probe|representation|transfer|subnetworks`: what layers and heads know, and what is
left when weights go."""

from core.commands.study_commands import Ran, command, short_in
from core.studies.probing import probe as layered
from core.studies.probing import representation as alike
from core.studies.probing import subnetworks as parts
from core.studies.probing import syntax as parsing
from core.studies.probing import transfer as transferring
from core.studies.records import Result

QUIET = ("tree", "head", "component")  # kinds of rows that only --json and --csv print


@short_in("table", "latex")
def _show_short(ran: Ran) -> None:
    """A table without the rows that are for pictures."""
    ran.show([row for row in ran.rows if row.get(Result.BY) not in QUIET])


syntax = command(parsing.STUDY, show=_show_short)
probe = command(layered.STUDY)
representation = command(alike.STUDY)
transfer = command(transferring.STUDY)
subnetworks = command(parts.STUDY, show=_show_short)
PROBING = (syntax, probe, representation, transfer, subnetworks)
