"""`python -m tests.simulations`: what studies claim in worlds that are known (`--json`), docs/calibration.md
(`--calibration`), or docs/few-inputs.md (without either, about a minute), on standard output."""

import argparse
import json
import sys

from tests.simulations import calibration_page, few_inputs, registry

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--json", action="store_true", help="{study: {world: {rate, draws, limit}}}")
parser.add_argument("--calibration", action="store_true", help="docs/calibration.md")
parser.add_argument("--quick", action="store_true", help="the draws that every test run has")
parser.add_argument("--draws", type=int, default=None, help="of each case, instead of its own number")
parser.add_argument("--inputs", type=int, action="append", default=[], help="cases of so many inputs alone")
parser.add_argument("--study", action="append", default=[], help="this study alone; several times")
parser.add_argument("--world", action="append", default=[], help="worlds that begin so; several times")
parser.add_argument("--studies", type=int, default=200)
parser.add_argument("--heads", type=int, nargs="+", default=[24, 144])
parser.add_argument("--seed", type=int, default=0)
wanted = parser.parse_args()


def _outcomes() -> list[registry.Outcome]:
    outcomes = []
    for case in registry.cases():
        draws = case.quick if wanted.quick else wanted.draws or case.draws
        if wanted.inputs and case.inputs not in wanted.inputs:
            continue
        of_study = not wanted.study or case.study in wanted.study
        if draws and of_study and case.world.startswith(tuple(wanted.world) or ""):
            outcomes.append(registry.simulate(case, draws))
            sys.stderr.write(f"{case.name}: {outcomes[-1].rate:.3f} (limit {outcomes[-1].limit:.3f})\n")
    return outcomes


if wanted.json:
    sys.stdout.write(json.dumps(registry.as_json(_outcomes()), indent=1) + "\n")
elif wanted.calibration:
    sys.stdout.write(calibration_page.page(_outcomes()))
else:
    sys.stdout.write(few_inputs.page(studies=wanted.studies, heads=tuple(wanted.heads), seed=wanted.seed))
