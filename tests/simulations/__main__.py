"""`python -m tests.simulations`: docs/few-inputs.md on standard output (about a minute)."""

import argparse
import sys

from tests.simulations import few_inputs

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--studies", type=int, default=200)
parser.add_argument("--heads", type=int, nargs="+", default=[24, 144])
parser.add_argument("--seed", type=int, default=0)
wanted = parser.parse_args()
sys.stdout.write(few_inputs.page(studies=wanted.studies, heads=tuple(wanted.heads), seed=wanted.seed))
