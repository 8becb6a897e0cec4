"""`python -m core study syntax|probe|representation|transfer|subnetworks`: what layers and heads know, and what is
left when weights go."""

from core.commands.declared import Ran, command
from core.results.reading import Result
from core.studies import probe as layered
from core.studies import representation as alike
from core.studies import subnetworks as parts
from core.studies import syntax as parsing
from core.studies import transfer as transferring

QUIET = ("tree", "head", "component")  # kinds of rows that only --json and --csv print


def _show_short(ran: Ran) -> None:
    """A table without the rows that are for pictures."""
    if ran.form in ("json", "csv"):
        ran.show()
        return
    ran.show([row for row in ran.rows if row.get(Result.BY) not in QUIET])


syntax = command(parsing.STUDY, show=_show_short)
probe = command(layered.STUDY)
representation = command(alike.STUDY)
transfer = command(transferring.STUDY)
subnetworks = command(parts.STUDY, show=_show_short)
PROBING = (syntax, probe, representation, transfer, subnetworks)
