"""Twenty people, four of them at random, three labels a map, 300 maps: whether a learned truth beats the majority.

Over ATLAS_CROWD_SEEDS seeds (40) at honest accuracies .85 and .75, errors going evenly to the other classes; about four
minutes on a free core. `tests.simulations.many_people` writes the same as a table, with other errors too.
"""

import os

import numpy as np

from core.labelling.crowd import advice
from tests.simulations.many_people import CLASSES, LEARNED, Outcome, drawn, simulate

ACCURACIES, SEEDS = (0.85, 0.75), 40


def said(accuracy: float, seed: int) -> bool:
    """Whether the Truth page says that a learned truth is worth it."""
    return advice(drawn(accuracy, "even", seed)[0], CLASSES).worth


def shares(outcomes: list[Outcome]) -> dict[str, float]:
    """Of one method over seeds: mean share of maps right, its gain on majority, wins, and the four ranked last."""
    gains = [one.right - one.majority for one in outcomes]
    return {
        "right": float(np.mean([one.right for one in outcomes])),
        "gain_on_majority": float(np.mean(gains)),
        "beats_majority_in": float(np.mean([gain > 0 for gain in gains])),
        "four_rank_last_in": float(np.mean([one.last for one in outcomes])),
    }


def main() -> dict[str, object]:
    seeds = range(int(os.environ.get("ATLAS_CROWD_SEEDS", SEEDS)))
    found: dict[str, object] = {"seeds": len(seeds)}
    for accuracy in ACCURACIES:
        outcomes = [outcome for seed in seeds for outcome in simulate(accuracy, "even", seed)]
        at = f"at_{accuracy:.2f}"
        for method in LEARNED:
            own = shares([one for one in outcomes if one.method == method])
            found |= {f"{method}_{name}_{at}": value for name, value in own.items()}
        found[f"page_says_worth_it_{at}"] = float(np.mean([said(accuracy, seed) for seed in seeds]))
    return found
