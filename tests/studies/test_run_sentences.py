"""What studies of training, classes, parsing and sequential tests say of records made by hand."""

from dataclasses import replace

import numpy as np
import pytest

from core.patterns.discovery import CLUSTERED
from core.studies.ablation import cross_fitted, cross_fitted_scores, disable
from core.studies.ablation.cross_fitting import TunedPart
from core.studies.ablation.disable import Ablations
from core.studies.ablation.records import AblatedTarget, CrossFittedPart, SequentialTestSummary
from core.studies.ablation.sequential_test import INTERVALS, verdict_sentence
from core.studies.explanation.why import STUDY as WHY
from core.studies.explanation.why import RemovalAgreement, ScoreShare, SortScore
from core.studies.patterns.discover import STUDY as DISCOVER
from core.studies.patterns.pattern_shares import STUDY as SHARES
from core.studies.patterns.records import ClassNote, ClassShare, DiscoveredPatterns, PatternCluster
from core.studies.probing.records import ParsedScore
from core.studies.probing.syntax import ATTENTION, WITH_WORDS
from core.studies.probing.syntax import STUDY as SYNTAX
from core.tasks.glue import task_of
from tests.studies.figures import figures


def rows_of(*results):
    return [result.as_row() for result in results]


# ---------------------------------------------------------------- sequential tests


def summary(**changed):
    usual = {
        "task": "sst2", "what": "heads", "operator": "zero", "n": 200, "loss": "nats", "margin": 0.02, "alpha": 0.05,
        "matters": 2, "does_not_matter": 30, "open": 4, "looks": "64", "intervals": INTERVALS, "over": True,
        "evaluations": 1500, "evaluations_full": 7200, "passes": 1000.0, "passes_full": 4000.0, "forward_ratio": 0.25,
        "gradient_spearman": 0.456, "gradient_wrong_signs": 1,
    }  # fmt: skip
    return SequentialTestSummary(**usual | changed)


def test_a_sequential_test_says_its_verdicts_what_it_took_and_what_it_could_not_see():
    said = verdict_sentence(summary())
    assert figures(said) == figures(
        "At a margin of 0.02 nats: 2 matter, 30 do not, 4 are undecided, with any verdict wrong in at most 5% of such "
        "tests (over all heads and interim analyses). It took 1,500 of 7,200 evaluations of an example, 4.0 times less "
        "computation than ablating every head on all examples (1,000 against 4,000 forward passes). On the examples of "
        "the first interim analysis, first-order effects rank the heads with a correlation of 0.46 with exact effects "
        "and have the wrong sign for 1 of the heads that matter."
    )
    full = verdict_sentence(summary(hopeless=3, clip=0.4, fewest=900, passes=6000.0, gradient_spearman=None))
    more = set(figures(full)) - set(figures(said))
    assert more == {"3", "0.4", "5.0", "900", "200", "1.5", "6,000"}  # stopped, clip, its share, rows it takes, passes
    assert "900" not in verdict_sentence(summary(clip=0.4, fewest=200))
    assert "earlier version" in verdict_sentence(summary(intervals="anytime"))


# ---------------------------------------------------------------- classes and clusters


def share(name, value, part="corrected", checkpoint="a/encoder", low=0.1, high=0.9):
    return ClassShare(
        part=part, checkpoint=checkpoint, task="sst2", name=name, share=value, low=low, high=high, inputs=50
    )


@pytest.mark.parametrize("outside", [0.0, 0.5])
def test_the_most_frequent_class_is_that_of_corrected_shares_of_the_first_checkpoint(outside):
    raw = [share("vertical", 0.9, "share"), share("diagonal", 0.1, "share")]
    corrected = [
        share("vertical", 0.3),
        share("diagonal", 0.7, low=0.6, high=0.8),
        share("vertical", 0.8, checkpoint="b"),
    ]
    note = ClassNote(checkpoint="a/encoder", task="sst2", maps=500, unsure=0.0, outside=outside, inputs=50)
    said = SHARES.headline(rows_of(*raw, *corrected, note))
    warning = (
        " This result is uncertain, because 50% of the maps of encoder are unlike the maps that the classifier was "
        "trained on."
    )
    assert figures(said.sentence) == figures(
        "Diagonal is the most frequent pattern on SST-2: 70% of the maps." + warning * (outside > 0)
    )
    assert figures(said.interval) == figures(
        "95 % CI 60 to 80 %. The share is corrected for confusions between classes by the classifier."
    )
    assert figures(said.baseline) == figures(
        "Each class would have 50% of the maps if all 2 classes were equally frequent."
    )
    assert (said.n, said.of) == (50, "inputs")
    unsure = SHARES.headline(rows_of(*raw, replace(note, outside=0.0, unsure=0.6))).sentence
    assert "because the classifier is unsure about 60% of the maps of encoder." in unsure
    plain = SHARES.headline(rows_of(*raw[1:], share("vertical", 0.9, "share", low=None, high=None)))
    assert "vertical" in plain.sentence.lower()
    assert figures(plain.interval) == figures(
        "The share is not corrected for confusions between classes by the classifier."
    )


def clusters(**changed):
    usual = {
        "checkpoint": "x", "task": "sst2", "class_set": "bert", "by": "classifier", "maps": 900, "n_heads": 36,
        "n_inputs": 25, "classified": 900, "clusters": 3, "smallest": 20, "clustered": 0.8, "low": 0.7, "high": 0.9,
        "heads": 0.6, "heads_low": 0.5, "heads_high": 0.7, "inputs": 0.9, "inputs_low": 0.8, "inputs_high": 0.95,
        "baseline": 0.123, "are_patterns": True,
    }  # fmt: skip
    return DiscoveredPatterns(**usual | changed)


def cluster(number, *, cuts=False, checkpoint="x"):
    return PatternCluster(checkpoint=checkpoint, cluster=number, maps=10, counts={}, cuts_across=cuts)


def test_clusters_are_named_where_they_mix_classes_and_judged_by_the_weaker_half():
    mixed = rows_of(
        clusters(), cluster(1), cluster(2, cuts=True), cluster(3, cuts=True), cluster(4, cuts=True, checkpoint="y")
    )
    said = DISCOVER.headline(mixed)
    assert figures(said.sentence) == figures(
        "The attention maps of x form 3 stable clusters. Clusters 2 and 3 mix several pattern classes."
    )
    assert (said.n, said.of) == (900, "maps")
    assert figures(said.interval) == figures(
        "80% of the maps are in a cluster (95 % CI 70 to 90). If the heads are divided at random and each half is "
        "clustered, the two clusterings of all maps agree with an adjusted Rand index of 0.60 (95 % of divisions: 0.50 "
        "to 0.70)"
    )
    assert figures(said.baseline) == figures("For random data without clusters, the index is at most 0.12.")
    assert [figures(DISCOVER.headline(mixed[:count]).sentence) for count in (3, 2)] == [["2", "3"], ["3", "no"]]
    unstable = DISCOVER.headline(rows_of(clusters(are_patterns=False, heads=0.95)))
    assert figures(unstable.sentence) == figures(
        "The attention maps of x form no clear clusters: the clusters are not stable."
    )
    assert {"0.90", "0.80", "0.95"} <= set(figures(unstable.interval))
    assert "inputs" in unstable.interval
    few = DISCOVER.headline(rows_of(clusters(are_patterns=False, clustered=CLUSTERED - 0.1)))
    assert figures(few.sentence) == figures(
        "The attention maps of x form no clear clusters: only 50% are in a cluster."
    )
    assert [len(table) for table in DISCOVER.shown(mixed)] == [1, 4]


# ---------------------------------------------------------------- parsing


def parsed(kind, name, value, low=None, high=None):
    return ParsedScore(kind=kind, name=name, value=value, low=low, high=high, n=700)


@pytest.mark.parametrize(
    ("low", "high", "compared"), [(0.55, 0.65, "more than"), (0.4, 0.48, "fewer than"), (0.4, 0.6, "about as many as")]
)
def test_a_probe_is_compared_with_the_best_simple_baseline(low, high, compared):
    scores = [
        parsed("baseline", "right-branching", 0.3),
        parsed("baseline", "previous word", 0.5),
        parsed("probe", ATTENTION, 0.61, low, high),
        parsed("probe", f"{ATTENTION}, random weights", 0.2),
        parsed("probe", WITH_WORDS, 0.8, 0.75, 0.85),
    ]
    said = SYNTAX.headline(rows_of(*scores))
    assert figures(said.sentence) == figures(
        "A probe on attention alone predicts the syntactic head of 61% of words correctly, "
        f"{compared} the best simple baseline (previous word: 50%). A probe on attention and embeddings is correct for "
        "80% of words."
    )
    assert figures(said.interval) == figures(
        f"95 % CI {100 * low:.0f} to {100 * high:.0f} for the probe on attention, 95 % CI 75 to 85 for the probe on "
        "attention and embeddings"
    )
    assert figures(said.baseline) == figures("With random weights, the same probe is correct for 20% of words.")
    assert (said.n, said.of) == (700, "words")
    alone = SYNTAX.headline(rows_of(scores[1], parsed("probe", "embeddings", 0.4)))
    assert {"40", "50"} <= set(figures(alone.sentence))
    assert (alone.interval, alone.baseline) == ("", "")


# ---------------------------------------------------------------- contributions to scores


def test_the_largest_pairs_of_each_head_are_shown_with_the_medians_of_removals():
    about = {"checkpoint": "x", "task": "sst2", "weighting": "even", "n": 9}
    shares = [
        ScoreShare(level="pair", query_part=query, key_part="token", layer=1, head=head, share=value, **about)
        for head, query, value in ((0, "a", 0.1), (0, "b", 0.5), (0, "c", 0.4), (1, "a", 0.2))
    ]
    shares.append(ScoreShare(level="sort", query_part="a", key_part="", layer=1, head=0, share=0.9, **about))
    shares.append(ScoreShare(level="pair", query_part="z", key_part="z", layer=1, head=0, share=0.9,
                             **about | {"weighting": "attention"}))  # fmt: skip

    def removal(scale, low, kind="removal, median"):
        return RemovalAgreement(kind=kind, checkpoint="x", task="sst2", scale=scale, agreement=0.875, low=low, high=0.9,
                                parts=5, heads=12, n=9)  # fmt: skip

    removals = [removal("held", 0.8), removal("held to recomputed", 0.7), removal("recomputed", None),
                removal("held", 0.1, "removal")]  # fmt: skip
    table, *said = WHY.shown(rows_of(*shares, *removals))
    assert [(row["head"], row["query_part"], row["share"]) for row in table] == [
        ("L2H1", "b", 0.5), ("L2H1", "c", 0.4), ("L2H2", "a", 0.2),
    ]  # fmt: skip
    assert [figures(sentence) for sentence in said] == [
        figures("0.88 (95 % CI 0.80 to 0.90) of 12 heads"), figures("0.88 (95 % CI 0.70 to 0.90) of 12 heads"),
    ]  # fmt: skip


@pytest.mark.parametrize(("agreement", "low"), [(0.9, 0.8), (0.3, 0.2), (0.9, None)])
def test_each_head_counts_for_its_largest_source_and_removals_say_how_well_it_predicts(agreement, low):
    about = {"checkpoint": "x", "task": "sst2", "n": 9}
    shares = {
        (0, 0): {"position": 0.6, "token": 0.4}, (0, 1): {"token": 0.9, "position": 0.1},
        (1, 0): {"position": 0.5, "earlier heads": 0.3}, (1, 1): {"earlier heads": 0.7, "token": 0.2},
    }  # fmt: skip
    scores = [
        SortScore(layer=layer, head=head, feature=feature, value=value, **about)
        for (layer, head), own in shares.items()
        for feature, value in own.items()
    ]
    scores.append(SortScore(statistic="composition", layer=1, head=1, feature="L1H1 in the key", value=0.99, **about))
    medians = [
        RemovalAgreement(kind="removal, median", checkpoint="x", task="sst2", scale=scale, agreement=value, low=low,
                         high=0.95, parts=5, heads=4, n=9)
        for scale, value in (("recomputed", 0.111), ("held", agreement))
    ]  # fmt: skip
    said = WHY.headline(rows_of(*scores, *medians))
    removal = [] if low is None else [f"{agreement:.2f}", "95", f"{low:.2f}", "0.95"]
    assert figures(said.sentence) == sorted(["4", "2", "1", "1", "L1H2", "0.90", *removal])
    assert "feed-forward" not in said.sentence
    assert (said.n, said.of) == (9, "inputs")
    retained = WHY.headline(rows_of(*scores, *medians)).sentence != WHY.headline(rows_of(*scores)).sentence
    assert retained == (low is not None)


# ---------------------------------------------------------------- cross-fitting

GOLD = np.tile([0, 1], 60)


def answers(wrong):
    return np.where(np.arange(120) < wrong, 1 - GOLD, GOLD)


def test_cross_fitted_scores_are_of_all_rows_with_means_over_seeds():
    def tested(initialisation, seed, wrong, constant=0):
        return cross_fitted_scores.TestedModels(
            initialisation, seed, np.arange(120), GOLD, answers(wrong), 90, 4, constant
        )

    merged = cross_fitted_scores.CrossFittedPredictions(
        (
            tested("pretrained", 0, 12),
            tested("pretrained", 1, 24),
            tested("random", 0, 60, 4),
            tested("random", 1, 48, 1),
        )
    )
    study = cross_fitted_scores.STUDY
    results = study.results(study.read({"checkpoint": "x", "task": "sst2"}), merged)
    runs = [one for one in results if one.kind == "run"]
    assert [(one.initialisation, one.seed, one.accuracy, one.dev_rows, one.train_rows) for one in runs] == [
        ("pretrained", 0, pytest.approx(0.9), 120, 90),
        ("pretrained", 1, pytest.approx(0.8), 120, 90),
        ("random", 0, pytest.approx(0.5), 120, 90),
        ("random", 1, pytest.approx(0.6), 120, 90),
    ]
    assert [(one.constant, one.note) for one in runs] == [
        (False, ""), (False, ""), (True, "constant predictions of 4 of 4 models"),
        (False, "constant predictions of 1 of 4 models"),
    ]  # fmt: skip
    means = [one for one in results if one.kind == "mean"]
    assert [(one.initialisation, one.accuracy, one.constant, one.n) for one in means] == [
        ("pretrained", pytest.approx(0.85), 0, 2),
        ("random", pytest.approx(0.55), 1, 2),
    ]
    assert means[0].accuracy_sd == pytest.approx(np.std([0.9, 0.8], ddof=1))
    said = study.headline(rows_of(*results))
    assert figures(said.sentence) == figures(
        "The mean cross-fitted accuracy on the train examples of SST-2 is 85.0 (pretrained), 55.0 (random), depending "
        "on the initialisation."
    )
    assert figures(said.interval) == figures("The standard deviation of the score over 2 seeds is 7.1.")
    assert figures(said.baseline) == figures("A constant prediction scores 50.0.")
    assert (said.n, said.of) == (120, "train examples")


def test_cross_fitted_effects_say_in_how_many_folds_they_have_their_sign():
    """The first head loses answers in three of four folds and wins some in the last; the second changes nothing."""
    folds = np.arange(120) // 30
    plain = np.where(np.arange(120) % 10 == 0, 1 - GOLD, GOLD)
    first = np.where((np.arange(120) % 5 == 1) & (folds < 3), 1 - GOLD, plain)
    first[folds == 3] = GOLD[folds == 3]
    swept = Ablations(np.arange(120), 1, 2, GOLD, plain, np.stack([first, plain]), (), ())
    models = tuple(TunedPart(k, f"fold-{k}", 80 + k, k == 2, {"accuracy": 0.5}) for k in range(4))
    study = cross_fitted.STUDY
    options = study.read({"checkpoint": "x", "task": "sst2", "folds": 4, "operator": "zero"})
    results = study.results(options, cross_fitted.CrossFitted(np.arange(120), folds, swept, models))
    heads = [one for one in results if isinstance(one, AblatedTarget)]
    assert [(one.name, one.folds, one.folds_agree, one.statistic) for one in heads] == [
        ("L1H1", 4, 3, None),
        ("L1H2", 4, 0, None),
    ]
    lost = (first == GOLD).mean() - (plain == GOLD).mean()
    assert heads[0].metrics.first.change.value == pytest.approx(lost)
    assert heads[0].operator == "zero"
    parts = [one for one in results if isinstance(one, CrossFittedPart)]
    assert [(one.name, one.n, one.score, one.baseline, one.train_rows, one.constant) for one in parts] == [
        (f"part {k + 1}", 30, pytest.approx(0.9), 0.5, 80 + k, k == 2) for k in range(4)
    ]
    table, _ = study.shown(rows_of(*results))
    assert [row["parts agree"] for row in table] == [None, 3, 0]
    assert disable.ablation_table(rows_of(*results)) == [
        {name: value for name, value in row.items() if name != "parts agree"} for row in table
    ]
    assert task_of(heads[0].task).key == "sst2"
