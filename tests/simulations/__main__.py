"""`python -m tests.simulations`: what studies claim in worlds that are known (`--json`), docs/results/calibration.md
(`--calibration`), or docs/results/few-inputs.md (without either, about a minute), on standard output."""

import argparse
import itertools
import json
import pathlib
import sys

from core import config
from tests.simulations import calibration_page, claim_worlds, claims_page, drawing, few_inputs, planted_draws, registry

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("what", nargs="?", choices=["claims"], help="results/claims.md: what the report's claims decide")
parser.add_argument(
    "--claim", action="append", default=[], help="claims: draw this one, the others as they stand there"
)
parser.add_argument("--json", action="store_true", help="{study: {world: {rate, draws, limit}}}")
parser.add_argument("--calibration", action="store_true", help="docs/results/calibration.md")
parser.add_argument("--quick", action="store_true", help="the draws that every test run has")
parser.add_argument("--draws", type=int, default=None, help="of each case, instead of its own number")
parser.add_argument("--inputs", type=int, action="append", default=[], help="cases of so many inputs alone")
parser.add_argument("--study", action="append", default=[], help="this study alone; several times")
parser.add_argument("--world", action="append", default=[], help="worlds that begin so; several times")
parser.add_argument(
    "--values",
    type=pathlib.Path,
    action="append",
    default=[],
    help="a file of drawn values: those in it are not drawn again, others are added to it; more files are read alone",
)
parser.add_argument("--drawn", action="store_true", help="of each case the draws that --values has, and no others")
parser.add_argument("--studies", type=int, default=200)
parser.add_argument("--heads", type=int, nargs="+", default=[24, 144])
parser.add_argument("--seed", type=int, default=0)
wanted = parser.parse_args()


def _draws(case: registry.Case) -> int:
    """How many are asked for; of what is drawn already, where --drawn, so many as there are."""
    if wanted.drawn:
        return next(seed for seed in itertools.count() if seed not in VALUES[case.name])
    return case.quick if wanted.quick else wanted.draws or case.draws


def _outcomes() -> list[registry.Outcome]:
    chosen = [
        case
        for case in registry.cases()
        if (not wanted.inputs or case.inputs in wanted.inputs)
        and (not wanted.study or case.study in wanted.study)
        and case.world.startswith(tuple(wanted.world) or "")
        and _draws(case)
    ]
    with planted_draws.together():
        outcomes = drawing.drawn(chosen, _draws, VALUES, wanted.values[0] if wanted.values else None)
    for outcome in outcomes:
        sys.stderr.write(f"{outcome.case.name}: {outcome.rate:.3f} (limit {outcome.limit:.3f})\n")
    return outcomes


VALUES = drawing.read(wanted.values)
if wanted.what == "claims":
    before = claims_page.rates_now((config.PROJECT / "docs" / "results" / "claims.md").read_text(encoding="utf-8"))
    rates = claim_worlds.as_json(wanted.draws or claim_worlds.DRAWS, only=wanted.claim, before=before)
    sys.stdout.write(json.dumps(rates, indent=1) + "\n" if wanted.json else claims_page.page(rates))
elif wanted.json:
    sys.stdout.write(json.dumps(registry.as_json(_outcomes()), indent=1) + "\n")
elif wanted.calibration:
    before = (config.PROJECT / "docs" / "results" / "calibration.md").read_text(encoding="utf-8")
    made = calibration_page.page(_outcomes(), registry.cases(), before)
    sys.stdout.write(made)
else:
    sys.stdout.write(few_inputs.page(studies=wanted.studies, heads=tuple(wanted.heads), seed=wanted.seed))
