"""Record the exact effect of every edge on every pair that decides: what worlds of stable edges are drawn from.

    python -m tests.benchmarks.recorded.circuit OUT.npz

Of the classifier that ships on the bundled rows of SST-2. OUT holds numbers only: exact [edge, pair] in float16.
"""

import sys

import numpy as np

from core.studies.circuits.circuit import PAIRS_A_UNIT, STUDY, CircuitState
from core.studies.contract import ExampleUnit, Unit


def main(out: str) -> None:
    options = STUDY.read({"checkpoint": "atlas-encoder-sst2", "task": "sst2", "limit": 300})
    partials = [STUDY.run(options, unit).partial for unit in STUDY.units(options)]
    state = CircuitState(options, STUDY.merge(options, partials))
    deciding, edges = state.division.deciding.tolist(), tuple(range(len(state.edges)))
    deciding.sort(key=lambda k: int(state.pairs.lengths[k]))
    for start in range(0, len(deciding), PAIRS_A_UNIT):
        some = tuple(deciding[start : start + PAIRS_A_UNIT])
        unit = Unit(f"exact-{start}", ExampleUnit(some, "exact", edges), len(some))
        partials.append(STUDY.run(options, unit).partial)
        print(f"{start + len(some)} of {len(deciding)} pairs", flush=True)
    exact = CircuitState(options, STUDY.merge(options, partials)).exact
    np.savez_compressed(out, exact=exact.astype(np.float16))


if __name__ == "__main__":
    main(*sys.argv[1:])
