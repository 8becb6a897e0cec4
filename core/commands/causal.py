"""`python -m core study operators|knockout|perturb|patch|separators`: what stands in, what is cut, what is swapped."""

from core.commands.output import tell
from core.commands.study_commands import Ran, command, short_in
from core.store.rows import Row
from core.studies.ablation import knockout as knockouts
from core.studies.ablation import operators as standing
from core.studies.ablation import patch as patches
from core.studies.ablation import perturb as perturbations
from core.studies.ablation import separators as separating
from core.studies.ablation.records import OperatorAgreement, OperatorEffect, Patched, Perturbation


@short_in("table", "latex")
def _show_operators(ran: Ran) -> None:
    ran.show([row for row in ran.rows if row.get(OperatorAgreement.BY) in OperatorAgreement.KINDS])
    ran.say(said_of_operators(ran.rows))


def said_of_operators(rows: list[Row]) -> str:
    """Which heads matter under every operator, and which only under some."""
    effects = OperatorEffect.among(rows)
    operators = list(dict.fromkeys(effect.operator for effect in effects))
    under: dict[str, list[str]] = {}
    for effect in effects:
        if effect.p < 0.05 and effect.value > 0:
            under.setdefault(effect.name, []).append(effect.operator)
    under_all = [name for name, rising_under in under.items() if len(rising_under) == len(operators)]
    under_some = [name for name in under if name not in under_all]
    return (
        f"The loss rises beyond luck (p < 0.05, corrected over heads and operators) under every one of "
        f"{len(operators)} operators for {', '.join(under_all) or 'no head'}; under some of them only for "
        f"{', '.join(under_some) or 'no head'}."
    )


@short_in("table", "latex")
def _show_patches(ran: Ran) -> None:
    ran.show(
        [_short_patch(patched) for patched in sorted(Patched.among(ran.rows), key=lambda patched: -patched.recovered)]
    )


def _short_patch(patched: Patched) -> Row:
    names = ("name", "recovered", "low", "high", "p", "n", "under_floor", "not_made")
    return {name: getattr(patched, name) for name in names}


def _show_perturbations(ran: Ran) -> None:
    ran.show()
    for perturbation in Perturbation.among(ran.rows):
        if perturbation.note:
            tell(
                f"{perturbation.kind} {perturbation.name}: {perturbation.note} "
                f"({perturbation.n} of {perturbation.of_rows}).",
                err=True,
            )


operators = command(standing.STUDY, show=_show_operators)
knockout = command(knockouts.STUDY)
perturb = command(perturbations.STUDY, show=_show_perturbations)
patch = command(patches.STUDY, show=_show_patches)
separators = command(separating.STUDY)
CAUSAL = (operators, knockout, perturb, patch, separators)
