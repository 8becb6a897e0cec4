import numpy as np
import pandas as pd
import pytest
from scipy.special import digamma

from core.errors import InputError
from core.patterns.truth import ROUNDS, posteriors, truth, votes
from tests.simulations.many_people import CLASSES, RANDOM, drawn, simulate

NAMES = ("x", "y", "z")


def frame(rows):
    """Rows (map, annotator, class[, pass, order]) as the store gives them."""
    full = [(*row, *(1, "random")[len(row) - 3 :]) for row in rows]
    return pd.DataFrame(full, columns=["map_id", "annotator", "class", "pass", "queue_order"])


@pytest.fixture(scope="module")
def crowd():
    """Six people on 40 maps, three a map; zoe answers at random. People and classes come in no sorted order."""
    rng = np.random.default_rng(5)
    true = rng.integers(0, 3, 40)
    rows = []
    for k, right in enumerate(true):
        for who in rng.permutation(["zoe", "eve", "ada", "dan", "bob", "cal"])[:3]:
            good = rng.random() < (1 / 3 if who == "zoe" else 0.85)
            rows.append((f"m{k:02d}", str(who), "zxy"[right if good else rng.integers(0, 3)]))
    labels = frame(rows)
    first = votes(labels, NAMES)["label"].drop_duplicates().tolist()
    assert first != sorted(first), "the classes must not come in sorted order: crowd-kit's MACE mixes them up then"
    return labels


def test_majority_names_its_ties_and_gives_shares_of_votes():
    judged = truth(
        frame([("m1", "a", "x"), ("m1", "b", "x"), ("m1", "c", "y"), ("m2", "a", "z"), ("m2", "b", "y")]),
        NAMES,
        "majority",
    )
    assert judged.probabilities.loc["m1"].tolist() == pytest.approx([2 / 3, 1 / 3, 0])
    assert judged.ties == {"m2": ("y", "z")}
    assert judged.labels["m1"] == "x"
    assert pd.isna(judged.labels["m2"])


@pytest.mark.thorough
@pytest.mark.parametrize("method", ["majority", "dawid-skene", "mace"])
def test_a_decision_stands_above_every_truth_and_is_nobodys_vote(method):
    """Eight maps disputed one against one; two of them, and one that nobody voted on, were decided as z."""
    labels = [(f"m{k}", who, cls) for k in range(8) for who, cls in (("a", "x"), ("b", "y"))]
    labels += [
        ("m0", "a", "y", 100, "adjudication"),
        ("m0", "lead", "z", 100, "adjudication"),
        ("m1", "lead", "z", 100, "adjudication"),
        ("alone", "lead", "z", 100, "adjudication"),
    ]
    judged, votes_alone = truth(frame(labels), NAMES, method), truth(frame(labels[:16]), NAMES, method)
    assert judged.labels.loc[["m0", "m1", "alone"]].tolist() == ["z", "z", "z"]
    assert judged.soft.loc["m0"].tolist() == [0, 0, 1]
    assert judged.adjudicated[judged.adjudicated].index.tolist() == ["alone", "m0", "m1"]
    assert not {"m0", "m1"} & judged.ties.keys()
    assert judged.soft.sum(axis=1).tolist() == pytest.approx([1.0] * 9)
    assert [(person.name, person.maps, person.skill) for person in judged.people] == [
        (person.name, person.maps, person.skill) for person in votes_alone.people
    ]


def test_a_person_has_one_vote_a_map():
    rows = [("m1", "a", "x"), ("m1", "a", "y"), ("m1", "a", "z", 2, "random"), ("m1", "b", "z", 1, "adjudication")]
    assert votes(frame(rows), NAMES).to_dict("records") == [{"task": "m1", "worker": "a", "label": "y"}]


def oracle_dawid_skene(labels, rounds):
    """The paper's equations in loops: [map][class] posteriors from shares of votes."""
    given = {(m, w): NAMES.index(c) for m, w, c in labels[["map_id", "annotator", "class"]].itertuples(index=False)}
    maps, people = sorted({m for m, _ in given}), sorted({w for _, w in given})
    q = {m: [np.mean([c == k for (n, _), c in given.items() if n == m]) for k in range(3)] for m in maps}
    for _ in range(rounds):
        prior = [np.mean([q[m][k] for m in maps]) for k in range(3)]
        error = {}
        for w in people:
            own = [(m, c) for (m, v), c in given.items() if v == w]
            for k in range(3):
                total = sum(q[m][k] for m, _ in own)
                for c in range(3):
                    error[w, k, c] = sum(q[m][k] for m, d in own if d == c) / total
        for m in maps:
            joint = [prior[k] * np.prod([error[w, k, c] for (n, w), c in given.items() if n == m]) for k in range(3)]
            q[m] = [value / sum(joint) for value in joint]
    return pd.DataFrame(q, index=list(NAMES)).T


def test_dawid_skene_is_the_papers(crowd, monkeypatch):
    monkeypatch.setitem(ROUNDS, "dawid-skene", 6)
    judged = truth(crowd, NAMES, "dawid-skene").probabilities
    np.testing.assert_allclose(judged, oracle_dawid_skene(crowd, 6), atol=1e-6)
    assert abs(judged - truth(crowd, NAMES, "majority").probabilities).to_numpy().max() > 0.1


def oracle_mace(labels, rounds):
    """Variational MACE in loops from an even start: posteriors, and who does not guess. Priors: Beta(.5, .5), 10s."""
    given = [(m, w, NAMES.index(c)) for m, w, c in labels[["map_id", "annotator", "class"]].itertuples(index=False)]
    maps, people = sorted({m for m, _, _ in given}), sorted({w for _, w, _ in given})
    knows, guess, style = (dict.fromkeys(people, value) for value in (0.5, 0.5, [1 / 3] * 3))
    for _ in range(rounds + 1):
        q, knowing = {}, dict.fromkeys(people, 0.0)
        guessed = {w: [0.0] * 3 for w in people}
        for m in maps:
            own = [(w, c) for n, w, c in given if n == m]
            joint = [np.prod([guess[w] * style[w][c] + knows[w] * (c == k) for w, c in own]) for k in range(3)]
            q[m] = [value / sum(joint) for value in joint]
            for w, c in own:
                known = q[m][c] * knows[w] / (guess[w] * style[w][c] + knows[w])
                knowing[w] += known
                guessed[w][c] += 1 - known
        last = {w: float(knows[w]) for w in people}
        for w in people:
            total = np.exp(digamma(sum(guessed[w]) + knowing[w] + 1))
            guess[w] = np.exp(digamma(sum(guessed[w]) + 0.5)) / total
            knows[w] = np.exp(digamma(knowing[w] + 0.5)) / total
            every = np.exp(digamma(sum(guessed[w]) + 30))
            style[w] = [np.exp(digamma(value + 10)) / every for value in guessed[w]]
    return pd.DataFrame(q, index=list(NAMES)).T, last


@pytest.mark.thorough
def test_mace_is_the_papers_whatever_the_order_of_names(crowd):
    judged, (expected, knows) = truth(crowd, NAMES, "mace"), oracle_mace(crowd, 50)
    np.testing.assert_allclose(judged.probabilities, expected, atol=0.02)
    assert {person.name: person.skill for person in judged.people} == pytest.approx(knows, abs=0.02)
    assert judged.people[0].name == "zoe"


@pytest.mark.thorough
@pytest.mark.parametrize("method", ["majority", "dawid-skene", "mace"])
def test_soft_labels_and_confusions_add_up(crowd, method):
    before = crowd.copy()
    judged = truth(crowd, (*NAMES, "unused"), method)
    np.testing.assert_allclose(judged.probabilities.sum(axis=1), 1)
    assert (judged.probabilities["unused"] == 0).all()
    for person in judged.people:
        own = crowd[crowd["annotator"] == person.name]
        assert person.maps == len(own)
        for given in NAMES:  # what was given is known; only the true classes are expected
            assert person.expected[given].sum() == pytest.approx((own["class"] == given).sum())
            mine = own[own["class"] == given]["map_id"]
            assert person.expected.loc["x", given] == pytest.approx(judged.probabilities.loc[mine, "x"].sum())
        np.testing.assert_allclose(person.confusion.loc[list(NAMES)].sum(axis=1), 1)
        assert person.confusion.loc["unused"].isna().all()
    pd.testing.assert_frame_equal(crowd, before)


@pytest.mark.thorough
def test_one_class_only_is_certain():
    rows = frame([("m1", "a", "x"), ("m1", "b", "x"), ("m2", "a", "x")])
    for method in ("majority", "dawid-skene", "mace"):
        assert truth(rows, NAMES, method).labels.tolist() == ["x", "x"]


def test_bad_input_says_what_to_do(crowd):
    with pytest.raises(InputError, match="Label some maps"):
        truth(crowd.iloc[:0], NAMES, "mace")
    with pytest.raises(InputError, match="must be one of x, y; got z"):
        truth(crowd, ("x", "y"), "majority")


def test_the_simulation_plants_what_it_says():
    labels, true = drawn(0.85, "even", 0)
    assert (labels.groupby("map_id")["annotator"].nunique() == 3).all()
    hits = labels["class"].to_numpy() == true[labels["map_id"]].to_numpy()
    at_random = labels["annotator"].isin([f"person{k:02d}" for k in range(RANDOM)]).to_numpy()
    assert hits[~at_random].mean() == pytest.approx(0.85, abs=0.04)
    assert hits[at_random].mean() == pytest.approx(1 / len(CLASSES), abs=0.1)


@pytest.mark.thorough
def test_four_at_random_are_found_and_their_votes_count_less():
    """`python -m tests.simulations.many_people` has 40 seeds, another accuracy and other errors."""
    outcomes = [outcome for seed in (0, 1) for outcome in simulate(0.85, "even", seed)]
    assert all(outcome.last for outcome in outcomes)
    for method in ("dawid-skene", "mace"):
        assert np.mean([one.right - one.majority for one in outcomes if one.method == method]) > 0


def test_a_majority_is_no_judge_of_who_made_it(crowd):
    """The skill of an annotator is the share of the others on the same map who agree; alone on a map, nobody judges."""
    alone = frame([("m99", "zoe", "x")])
    judged = truth(pd.concat([crowd, alone]), NAMES, "majority")
    given = {(m, w): c for m, w, c in crowd[["map_id", "annotator", "class"]].itertuples(index=False)}
    for person in judged.people:
        shares = []
        for (name, who), cls in given.items():
            others = [c for (other, w), c in given.items() if other == name and w != who]
            if who == person.name and others:
                shares.append(np.mean([c == cls for c in others]))
        assert person.skill == pytest.approx(np.mean(shares))
        assert person.compared == len(shares)
        assert person.maps == len(shares) + (person.name == "zoe")
    only = truth(frame([("m1", "a", "x"), ("m2", "b", "y")]), NAMES, "majority").people
    assert [(person.compared, np.isnan(person.skill)) for person in only] == [(0, True), (0, True)]


def test_a_rater_model_of_perfect_agreement_is_nearly_sure_and_of_confused_classes_is_not():
    names = ("a", "b", "c")
    rows = []
    for k in range(90):
        true = names[k % 3]
        rows.append((f"m{k:02d}", "one", true))
        # The second rater confuses b and c at random, on the first two thirds of the maps.
        if k < 60:
            rows.append((f"m{k:02d}", "two", true if true == "a" else names[1 + (k // 3) % 2]))
    labels = pd.DataFrame(rows, columns=["map_id", "annotator", "class"])
    labels = labels.assign(**{"pass": 1, "queue_order": "random", "checkpoint": "x"})
    found = posteriors(labels, names)
    assert np.allclose(found.sum(axis=1), 1)
    assert (found.idxmax(axis=1) == [names[k % 3] for k in range(90)]).mean() > 0.9
    sure = found.max(axis=1)
    alone = found.index[60:]
    assert sure[alone][found.loc[alone].idxmax(axis=1) == "a"].min() > sure[alone].mean(), "a is never confused"


def test_a_rater_model_does_not_depend_on_the_order_of_labels():
    rng = np.random.default_rng(0)
    labels = pd.DataFrame(
        [
            {"map_id": f"m{k}", "annotator": rater, "class": str(rng.integers(3)), "pass": 1, "queue_order": "random",
             "checkpoint": f"c{k % 2}"}
            for k in range(20)
            for rater in "xy"
        ]
    )  # fmt: skip
    found = posteriors(labels, ("0", "1", "2"))
    again = posteriors(labels.sample(frac=1, random_state=1), ("0", "1", "2"))
    pd.testing.assert_frame_equal(found, again)
