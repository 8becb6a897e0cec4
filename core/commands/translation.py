"""`python -m core study translation CHECKPOINT`: the three sets of heads of an encoder-decoder at work."""

from core.commands.study_commands import Ran, command, short_in
from core.store.rows import Row
from core.studies.ablation import translation as translating
from core.studies.ablation.translation_records import AlignedHead, PrunedColumn, UntouchedTranslation, ZeroedHead


@short_in("table", "latex")
def _show(ran: Ran) -> None:
    untouched = [
        {"column": None, "removed": None, "exact": model.exact, "low": None, "high": None, "n": model.n}
        for model in UntouchedTranslation.among(ran.rows)
    ]
    names = ("column", "removed", "exact", "low", "high", "n")
    ran.show([*untouched, *({name: getattr(step, name) for name in names} for step in PrunedColumn.among(ran.rows))])
    ran.say(said_of(ran.rows))


def said_of(rows: list[Row]) -> str:
    """Which heads matter alone, and how well cross attention aligns."""
    zeroed = ZeroedHead.among(rows)
    parts = []
    if zeroed:
        matter = [head.name for head in sorted(zeroed, key=lambda head: head.value) if head.p < 0.05]
        parts.append(
            f"Zeroed alone, {len(matter)} of {len(zeroed)} heads change how many sentences come out right beyond luck "
            f"(p < 0.05, corrected over heads): {', '.join(matter[:8]) or 'none'}{' ...' if len(matter) > 8 else ''}."
        )
    best = next((head for head in AlignedHead.among(rows) if head.best), None)
    if best is not None:
        parts.append(
            f"{best.name}, chosen on train rows, looks most at the word that it translates for {best.value:.0%} "
            f"of words (95 % {best.low:.0%} to {best.high:.0%}); positions alone find {best.baseline:.0%}, "
            f"{best.above:+.0%} ({best.above_low:+.0%} to {best.above_high:+.0%}; n = {best.n} sentences)."
        )
    return " ".join(parts)


translation = command(translating.STUDY, show=_show)
