"""How sure a classifier of patterns may be on an unseen source: rules for its temperature, and other models' say.

    python -m data.recipes.pattern_temperature
    python -m data.recipes.pattern_temperature --set gpt2

For each source that is left out every form is fitted on the *other* sources alone, each of them left out in turn (with
one other source, thirds of its heads): the temperature, the shares of the models, and what the temperature depends on.
"Loss there" is of each part by what the remaining parts say, so no form is judged by what it was fitted to. The source
left out is then judged once.
"""

import argparse
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

from core.codebook.registry import SHIPPED
from core.patterns.evaluation import CONFIDENT, calibration, enough_maps, macro_f1, sure_errors
from core.patterns.forest import (
    FLOOR,
    KERNEL,
    Growth,
    _distances,
    _grown,
    _of_forest,
    _spread,
    _statistics,
    boosted_probabilities,
    kernel_probabilities,
    parts,
    planted,
)
from core.patterns.shapes import shapes
from data.recipes.pattern_boosting import inner_parts
from data.recipes.pattern_figures import Labelled, labelled

CLIPPED = 4.0  # deviations, beyond which a statistic of an unseen source says no more
RIDGE, NETWORKS, UNITS, DECAY, EPOCHS = 0.1, 5, 48, 3.0, 40  # fixed on the other sources alone
HOTTEST, STEP, ALLOWED = 5.0, 0.01, 0.02
STEADY = 1e-3  # of the squares of what is fitted, added to the loss
FOREST, LINEAR, NETWORK, SECOND = "forest", "linear", "networks", "second model"


@dataclass(frozen=True, eq=False)
class Said:
    """What models that did not see them say of the maps at `places`. by_model: probabilities [map, class]; distance:
    logarithm of that from the training maps, in units of the one that few exceed; shares: of labels [map, class];
    heads: of each map."""

    by_model: dict[str, np.ndarray]
    distance: np.ndarray
    shares: np.ndarray
    places: np.ndarray
    heads: np.ndarray

    @property
    def apart(self) -> np.ndarray:
        """One less the mass that both give the same classes."""
        return 1 - np.minimum(self.by_model[FOREST], self.by_model[LINEAR]).sum(1)


@dataclass(frozen=True)
class Form:
    """models: whose mean, in fitted shares, is taken. worst: the temperature is of the part that it is worst on. by:
    what its logarithm depends on. allowed: it rises until no larger share is wrong with p > SURE. logits: the models'
    logits are averaged, each weighing alike, in place of probabilities. borrows: and those of the other maps of a head,
    whose say is fitted, so that a map alone cannot be judged."""

    said: str
    models: tuple[str, ...] = (FOREST,)
    worst: bool = False
    by: tuple[str, ...] = ()
    allowed: float | None = None
    logits: bool = False
    borrows: bool = False

    @property
    def rest(self) -> int:
        """How many shares of models are fitted."""
        return 0 if self.logits else len(self.models) - 1

    def probabilities(self, found: Said, fitted: np.ndarray) -> np.ndarray:
        """Class probabilities [map, class]. fitted: logits of the shares after the first, logarithm of the temperature,
        its slopes, and the logit of what a map borrows."""
        rest = self.rest
        mixed = self._mixed(found, fitted)
        if self.borrows:
            share = 1 / (1 + np.exp(-fitted[-1]))
            mixed = np.exp((1 - share) * np.log(mixed) + share * _of_other_maps(np.log(mixed), found.heads))
            mixed /= mixed.sum(1, keepdims=True)
        slopes = zip(self.by, fitted[rest + 1 : rest + 1 + len(self.by)], strict=True)
        heat = fitted[rest] + sum((slope * getattr(found, what) for what, slope in slopes), np.zeros(len(mixed)))
        powered = mixed ** (1 / np.clip(np.exp(heat), 1 / HOTTEST, HOTTEST))[:, None]
        return powered / powered.sum(1, keepdims=True)

    def _mixed(self, found: Said, fitted: np.ndarray) -> np.ndarray:
        """The models' mean, none of it 0."""
        said_by = np.stack([found.by_model[name] for name in self.models])
        if self.logits:
            mixed = np.exp(np.log(said_by + FLOOR).mean(0))
            return mixed / mixed.sum(1, keepdims=True)
        powers = np.exp(np.concatenate([[0.0], fitted[: self.rest]]))
        return np.tensordot(powers / powers.sum(), said_by, axes=1) + FLOOR

    def losses(self, seen: Sequence[Said], fitted: np.ndarray) -> np.ndarray:
        """Mean loss (nats) on each part."""
        return np.array([-(one.shares * np.log(self.probabilities(one, fitted))).sum(1).mean() for one in seen])

    def fitted(self, data: Labelled, seen: Sequence[Said]) -> np.ndarray:
        """What has the least loss on the parts."""
        over: Callable[[np.ndarray], float] = np.max if self.worst else np.mean
        start = np.zeros(self.rest + 1 + len(self.by) + self.borrows)
        best = minimize(lambda at: over(self.losses(seen, at)) + STEADY * (at**2).sum(), start, method="Nelder-Mead").x
        place = self.rest
        while self.allowed is not None and best[place] < np.log(HOTTEST):
            wrong = [sure_errors(*_clear(data, one, self.probabilities(one, best))) for one in seen]
            if np.mean(wrong) <= self.allowed:
                break
            best[place] += STEP
        return best


ALL_THREE = (FOREST, SECOND, LINEAR)
FORMS = (
    Form("the forest, mean over parts (the rule that ships)"),
    Form("the forest, worst part", worst=True),
    Form(f"the forest, at most {ALLOWED:.0%} wrong with p > {CONFIDENT:g} there", allowed=ALLOWED),
    Form("the forest, by how far a linear model thinks otherwise", by=("apart",)),
    Form("the forest, by that and the distance", by=("apart", "distance")),
    Form("forest and linear model, mean over parts", (FOREST, LINEAR)),
    Form("forest and linear model, worst part", (FOREST, LINEAR), worst=True),
    Form("forest and small networks, mean over parts", (FOREST, NETWORK)),
    Form("forest and small networks, worst part", (FOREST, NETWORK), worst=True),
    Form("linear model, worst part", (LINEAR,), worst=True),
    Form("forest and second model, mean over parts", (FOREST, SECOND)),
    Form("forest and second model, worst part", (FOREST, SECOND), worst=True),
    Form("logits of linear model and second model, mean over parts", (LINEAR, SECOND), logits=True),
    Form("logits of linear model and second model, worst part", (LINEAR, SECOND), worst=True, logits=True),
    Form("logits of all three, mean over parts", ALL_THREE, logits=True),
    Form("logits of all three, worst part", ALL_THREE, worst=True, logits=True),
    Form("logits of all three, at most 2% wrong there", ALL_THREE, allowed=ALLOWED, logits=True),
    Form(
        "logits of all three and of a head's other maps, worst part", ALL_THREE, worst=True, logits=True, borrows=True
    ),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", choices=SHIPPED, default="bert")
    data = labelled(parser.parse_args().set)
    warnings.simplefilter("ignore", ConvergenceWarning)  # networks stop after EPOCHS, as fixed
    statistics = _statistics(data.maps, data.measured)
    seen: dict[str, list[Said]] = {}
    new: dict[str, Said] = {}
    for source in data.sources:
        others = np.flatnonzero(data.origins != source)
        seen[source] = [said(data, statistics, np.setdiff1d(others, part), part) for part in inner_parts(data, others)]
        new[source] = said(data, statistics, others, np.flatnonzero(data.origins == source))
    print("| form and temperature | loss there | accuracy | macro F1 | where raters agree | ECE | wrong, p > .8 |")
    print("|---|---|---|---|---|---|---|")
    for form in FORMS:
        print(row(data, form, seen, new))


def row(data: Labelled, form: Form, seen: dict[str, list[Said]], new: dict[str, Said]) -> str:
    """A form: its loss on the parts of the other sources, and its figures on the sources left out, together."""
    losses, likely, places = [], [], []
    for source in data.sources:
        for k, part in enumerate(seen[source]):
            others = [one for number, one in enumerate(seen[source]) if number != k]
            losses.append(form.losses([part], form.fitted(data, others))[0])
        likely.append(form.probabilities(new[source], form.fitted(data, seen[source])))
        places.append(new[source].places)
    probabilities, rows = np.concatenate(likely), np.concatenate(places)
    probabilities, rows = probabilities[data.clear[rows]], rows[data.clear[rows]]
    truth, predicted = data.truth[rows], probabilities.argmax(1)
    confusion = np.zeros((len(data.classes), len(data.classes)), dtype=int)
    np.add.at(confusion, (truth, predicted), 1)
    right, agreed = truth == predicted, data.agreed[rows]
    return (
        f"| {form.said} | {np.mean(losses):.3f} | {right.mean():.3f} "
        f"| {macro_f1(confusion[None], enough_maps(confusion))[0]:.3f} | {right[agreed].mean():.3f} "
        f"| {calibration(probabilities, truth)[1]:.3f} | {sure_errors(probabilities, truth):.1%} |"
    )


def _clear(data: Labelled, found: Said, likely: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities and classes of the maps that have one class."""
    one = data.clear[found.places]
    return likely[one], data.truth[found.places][one]


def said(data: Labelled, statistics: np.ndarray, train: np.ndarray, test: np.ndarray) -> Said:
    """What every model says of the maps `test`, fitted to the maps `train` and planted ones."""
    names, truth = data.classes.names, data.truth
    known = parts(truth, len(names), data.known.soft)
    shares, mine = known.shares(len(truth), len(names))[test], known.of(train)
    extra, made = planted([data.maps[k] for k in train], [names[truth[k]] for k in train], names)
    grown = _grown(statistics[train], mine, extra, made, names, Growth())
    of_second = (kernel_probabilities if KERNEL + "mean" in grown else boosted_probabilities)(grown, statistics[test])
    measured, asked = (statistics[rows][:, : len(grown["centre"])] for rows in (train, test))
    examples = np.concatenate([measured[mine.maps], shapes(extra)[:, : measured.shape[1]]])
    numbers = np.concatenate([mine.numbers, [names.index(name) for name in made]]).astype(int)
    weights = np.concatenate([np.ones(len(mine.maps)) if mine.weights is None else mine.weights, np.ones(len(made))])
    scaler = StandardScaler().fit(measured)
    examples, unseen = (np.clip(scaler.transform(values), -CLIPPED, CLIPPED) for values in (examples, asked))
    linear = LogisticRegression(C=RIDGE, max_iter=200, tol=1e-3).fit(examples, numbers, sample_weight=weights)
    by_model = {FOREST: _of_forest(grown, asked), SECOND: of_second}
    by_model[LINEAR] = np.zeros((len(test), len(names)))
    by_model[LINEAR][:, linear.classes_] = linear.predict_proba(unseen)
    by_model[NETWORK] = _of_networks(examples, numbers, weights / weights.sum(), unseen, len(names))
    spread = _spread(measured)
    distance = np.log(_distances(spread, asked) / float(spread["farthest"]) + 0.05)
    return Said(by_model, distance, shares, test, data.heads[test])


def _of_other_maps(logits: np.ndarray, heads: np.ndarray) -> np.ndarray:
    """Mean logits [map, class] of the other maps of each map's head; its own where there are none."""
    _, number, count = np.unique(heads, return_inverse=True, return_counts=True)
    sums = np.zeros((len(count), logits.shape[1]))
    np.add.at(sums, number, logits)
    others = (count - 1)[number][:, None]
    return np.where(others > 0, (sums[number] - logits) / np.maximum(others, 1), logits)


def _of_networks(
    examples: np.ndarray, numbers: np.ndarray, chances: np.ndarray, unseen: np.ndarray, classes: int
) -> np.ndarray:
    """Mean of small networks, each fitted to examples drawn with replacement."""
    rng, found = np.random.default_rng(0), np.zeros((len(unseen), classes))
    for seed in range(NETWORKS):
        drawn = rng.choice(len(numbers), len(numbers), p=chances)
        network = MLPClassifier((UNITS,), alpha=DECAY, max_iter=EPOCHS, random_state=seed, learning_rate_init=3e-3,
                                batch_size=128).fit(examples[drawn], numbers[drawn])  # fmt: skip
        found[:, network.classes_] += network.predict_proba(unseen) / NETWORKS
    return found


if __name__ == "__main__":
    main()
