"""`python -m core study why CHECKPOINT`: score shares of every head; a table shows the largest of each."""

from core.commands.output import tell
from core.commands.study_commands import Ran, command, short_in
from core.store.rows import Row
from core.studies.explanation import why as score_parts
from core.studies.explanation.records import RemovalAgreement, ScoreShare

LARGEST = 2  # pairs of each head that a table shows
COMPARED = "held to recomputed"
SHOWN = ("task", "query_part", "key_part", "share", "low", "high", "null", "n")


@short_in("table")
def _show(ran: Ran) -> None:
    """Every row, or in a table each head's largest pairs and the median of removal."""
    pairs = [share for share in ScoreShare.among(ran.rows) if share.level == "pair" and share.weighting == "even"]
    heads = dict.fromkeys((share.checkpoint, share.task, share.layer, share.head) for share in pairs)
    rows: list[Row] = []
    for head in heads:
        head_shares = [share for share in pairs if (share.checkpoint, share.task, share.layer, share.head) == head]
        rows += [_named(share) for share in sorted(head_shares, key=lambda share: -share.share)[:LARGEST]]
    ran.show(rows)
    for record in RemovalAgreement.among(ran.rows):
        if record.kind == "removal, median" and record.low is not None:
            condition = (
                "with LayerNorms held as computed anew" if record.scale == COMPARED else "as their terms foretell"
            )
            tell(
                f"Taking contributions away changes maps {condition}: rank agreement {record.agreement:.2f}"
                f" ({record.low:.2f} to {record.high:.2f}), median of {record.heads} heads, scale {record.scale}."
            )


def _named(share: ScoreShare) -> Row:
    return {"head": f"L{share.layer + 1}H{share.head + 1}"} | {name: getattr(share, name) for name in SHOWN}


why = command(score_parts.STUDY, show=_show)
EXPLAINING = (why,)
