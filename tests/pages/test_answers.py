"""What views answer: the finding first, of what the figure shows, and no verdict that seems to contradict another."""

import json
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from core.scoring.circuits import CLAIMED
from core.studies.ablation.records import ImportantHead
from core.studies.attention import effective
from core.studies.attention.records import EffectiveScore, LengthCorrelation, PlaceScore
from core.studies.circuits.records import CircuitEdge, GatedHead
from core.studies.patterns.records import ClassShare
from core.studies.probing import subnetworks, syntax
from core.studies.probing.records import ParsedScore, Subnetwork
from pages.parts.frames.sets import CONTROLS, ranked_heads
from pages.parts.reports import stored_runs
from pages.parts.reports.stored_runs import known_runs
from pages.parts.team.bundled_labels import ANYBODY, STEPS, labels_over_time
from pages.parts.views.circuit import circuit_picture
from pages.parts.views.gates_pairs import fits_picture
from pages.parts.views.generation import attended
from pages.parts.views.norms import special_sentence
from pages.parts.views.similar import group_sentence
from tests.pages.opening import opened

pytestmark = pytest.mark.shipped

AT_CHANCE = "305a174c67d04713beeeae7b6588cf15"  # a bundled pruning study of a model at chance


def said(app):
    return [one.value.replace("\\", "") for kind in (app.markdown, app.caption) for one in kind]


def charts(app):
    return [json.loads(one.proto.spec) for one in app.get("vega_lite_chart")]


def fills(chart):
    """The scale that colours the cells of a layer x head picture, and the column."""
    cells = chart["layer"][0]["encoding"]["color"]
    return cells["field"], cells["scale"].get("domain")


@pytest.mark.thorough
def test_one_head_has_one_finding_a_line_and_no_share_that_reads_as_a_majority(db):
    app = opened("heads/one", head="L1H1")
    texts = said(app)
    assert texts[0] == (
        "**From the tokens of the text, L1H1 gives 99.7% of its attention to the start token. Uniform attention would "
        "give 6.9%.**"
    )
    assert "- 100% of 60 maps of this head are classified as vertical." in "\n".join(texts)
    others = next(text for text in texts if text.startswith("- "))
    assert all(line.startswith("- ") for line in others.splitlines())
    assert (
        "the main source of variance in the attention scores of this head is token, with a share of 0.48"
        in others.lower()
    )
    assert "because of" not in others


def test_the_newest_token_says_where_it_is_and_how_far_back_it_attends():
    rows = np.zeros((1, 2, 4))
    rows[0, 0] = 0.1, 0.7, 0.1, 0.1
    rows[0, 1] = 0.0, 0.2, 0.0, 0.8  # the last key is a sink: the query is at position 3
    shown = attended(rows, ("a", "b", "c", "sink"), 3)
    assert shown.iloc[0].drop("tokens back").tolist() == ["L1H2", 3, "sink", 4, 0.8]
    assert pd.isna(shown.iloc[0]["tokens back"])
    assert shown.iloc[1].tolist() == ["L1H1", 3, "b", 2, 1, 0.7]


def test_the_drawn_tree_is_of_the_probe_that_the_answer_names(db):
    app = opened("linguistics/probes", mode="One sentence")
    texts = said(app)
    assert any(text.startswith("**Attention predicts the syntactic head of ") for text in texts)
    assert any(text.startswith("Probe on the attention of all heads: 54%") for text in texts)
    assert not any("attention and embeddings" in text for text in texts if text.startswith("**"))


@pytest.mark.parametrize(
    ("attention", "compared"), [(0.54, "fewer than"), (0.61, "about as many as"), (0.7, "more than")]
)
def test_a_probe_on_attention_is_compared_with_the_best_simple_baseline_before_words_are_added(attention, compared):
    def score(kind, name, value):
        ends = {"low": value - 0.02, "high": value + 0.02, "n": 100}
        return ParsedScore(kind=kind, name=name, value=value, **ends).as_row()

    rows = [score("baseline", "fixed offset per relation", 0.61), score("baseline", "right-branching", 0.4)]
    rows += [score("probe", "attention", attention), score("probe", "attention and embeddings", 0.8)]
    headline = syntax.STUDY.headline(rows)
    assert headline.sentence == (
        f"A probe on attention alone predicts the syntactic head of {attention:.0%} of words correctly, {compared} "
        "the best simple baseline (fixed offset per relation: 61%). A probe on attention and embeddings predicts "
        "the syntactic head of 80% of words correctly."
    )
    assert headline.interval.startswith(
        f"95 % CI {100 * attention - 2:.0f} to {100 * attention + 2:.0f} for the probe on attention, "
    )


@pytest.mark.parametrize(("low", "said_first"), [(0.4, "The result is not informative: "), (0.6, "After retraining, ")])
def test_subnetworks_of_a_model_at_chance_are_not_informative(low, said_first):
    shared = {"metric": "accuracy", "n": 300}
    full = Subnetwork(kind="subnetwork", name="full", share=0.0, value=0.62, low=low, high=0.7, constant=0.5, **shared)
    less = Subnetwork(kind="difference", name="good less bad", value=0.1, low=0.02, high=0.2, **shared)
    headline = subnetworks.STUDY.headline([full.as_row(), less.as_row()])
    assert headline.sentence.startswith(said_first)
    if low < full.constant:
        assert headline.interval == "95 % CI 40.0 to 70.0", "a level has no plus sign"


@pytest.mark.parametrize(
    ("view", "other", "there", "here"),
    [("finetuning/train", "Seed variance", "1,000", "2,000"), ("finetuning/seeds", "Train", "2,000", "1,000")],
)
def test_scores_that_seem_to_contradict_are_explained_where_they_meet(db, view, other, there, here):
    assert (
        f"{other} reports other scores for this model and task, because its runs are fine-tuned on {there} training "
        f"examples for 6 epochs and the runs here on {here} training examples for 6 epochs."
    ) in said(opened(view))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("view", "other"),
    [
        ("interventions/sequential", "Gates and pairs reports for this model: “The task needs 7 of 36 heads"),
        (
            "interventions/together",
            "Sequential test reports for this model: “Ablation changes the loss by more than the margin",
        ),
        ("interventions/circuit", "Gates and pairs reports for this model: “The task needs 7 of 36 heads"),
    ],
)
def test_verdicts_that_seem_to_contradict_are_explained_where_they_meet(db, view, other):
    (told,) = [text for text in said(opened(view)) if text.startswith(other)]
    assert "Both can be true: " in told
    assert told.count(". ") + told.count(".” ") == 1


def test_the_figure_of_gates_draws_what_the_answer_says(db):
    """Beside the classes, how often each head was needed. What one head does alone is another question, in Details."""
    app = opened("interventions/together")
    (run,) = known_runs("gates")
    frame = pd.DataFrame(run.among(GatedHead)).set_index("name")
    (answer,) = [text for text in said(app) if text.startswith("**The task needs")]
    needed = answer.partition("(")[2].partition(")")[0].split(", ")
    assert needed == list(frame.index[frame["facilitating"] >= CLAIMED])
    assert "stays open" in json.dumps(charts(app)[1]["title"])
    bars, rule = fits_picture(frame.reset_index()).to_dict()["layer"]
    assert bars["encoding"]["x"]["field"] == "facilitating"
    assert rule["encoding"]["x"]["field"] == "baseline"
    (details,) = [one for one in app.expander if one.label == "Details"]
    (alone,) = [json.loads(one.proto.spec) for one in details.get("vega_lite_chart")]
    assert "only one needed head is ablated" in " ".join(alone["title"])


def test_a_circuit_draws_the_edges_of_the_answer_and_fades_the_others(db):
    app = opened("interventions/circuit")
    (run,) = known_runs("circuit")
    edges = run.among(CircuitEdge)
    counts = Counter(edge.verdict for edge in edges)
    titles = [json.dumps(chart.get("title", "")) for chart in charts(app)]
    assert any(
        f"The {counts['matters']} edge that matters, and the {counts['open']} undecided edges" in one for one in titles
    )
    drawn = circuit_picture(sorted(edges, key=lambda edge: edge.rank)[:40], 6, 6, title="t").to_dict()
    rows = pd.DataFrame(next(rows for rows in drawn["datasets"].values() if "edge" in rows[0]))
    seen = rows.groupby("verdict")["seen"].max()
    assert seen["matters"] > seen["undecided"] > seen["does not matter"]
    towards = rows.assign(right=rows["x2"] - rows["x"], up=rows["y2"] - rows["y"])
    assert (towards["up"] > 0).all(), "later components are above"
    assert (np.sign(np.sin(np.radians(towards["angle"]))).round() == np.sign(towards["right"])).all()
    scale = drawn["layer"][0]["encoding"]["color"]["scale"]
    assert dict(zip(scale["domain"], scale["range"], strict=True))["undecided"] == "#8c8c8c"
    assert any(
        text.startswith("Few edges matter alone, but many are needed together: the 219 strongest") for text in said(app)
    )


def test_bundled_results_of_the_path_are_of_its_model_and_the_figure_is_no_fifth_step(db):
    texts = said(opened("start/path"))
    results = [text for text in texts if text.startswith("Bundled result, until you have your own: ")]
    assert len(results) == 3
    assert all("atlas-encoder" in text for text in results)
    assert [text[2:8] for text in texts if text.startswith("**Step ")] == ["Step 1", "Step 2", "Step 3", "Step 4"]
    assert "**The bundled result, plotted with the values from Kovaleva et al. 2019**" in texts


def test_no_figure_stands_beside_the_answer_of_a_model_at_chance(db):
    app = opened("interventions/subnetworks", pruned=AT_CHANCE)
    assert any(text.startswith("**The result is not informative") for text in said(app))
    label = "Results of this run (not informative, because the model is at chance level)"
    (folded,) = [one for one in app.expander if one.label == label]
    assert len(folded.get("vega_lite_chart")) == len(charts(app)) > 0


def test_headlines_count_what_they_are_about(db):
    """Links and not inputs; one checkpoint and not two; the interval of the head that the sentence names."""
    told = {run.study: stored_runs.headline_of(run.run, rows="sst2") for run in known_runs(None)
            if run.checkpoint == "atlas-encoder" and "sst2" in (run.task or "sst2")}  # fmt: skip
    assert told["relations"].of == "links"
    assert "of 360 head–feature pairs" in told["features"].sentence
    frames = told["frame-heads"]
    assert frames.interval.startswith(f"Head {frames.sentence.removesuffix('.').split()[-1]} ")


def test_the_guided_path_shows_an_ablation_of_each_head_in_turn(db):
    app = opened("start/path")
    (step,) = [
        text
        for text in said(app)
        if text.startswith("Bundled result, until you have your own: ") and "ablation" in text
    ]
    assert "but" not in step


@pytest.mark.thorough
def test_the_correlation_of_several_tasks_names_them_and_the_view_is_of_the_chosen_one(db):
    scores = [
        EffectiveScore(statistic="correlation", layer=0, head=head, checkpoint="a", task=task, value=value, n=9)
        for head, task, value in ((0, "mrpc", 0.5), (1, "mrpc", 0.7), (0, "rte", 0.3), (1, "rte", 0.9))
    ]
    told = effective.STUDY.headline([score.as_row() for score in scores]).sentence
    assert told == "Raw and effective attention correlate with r = 0.60 on average over MRPC, RTE."
    assert effective.STUDY.headline([s.as_row() for s in scores]).n == 18, "the inputs of both tasks"
    assert effective.STUDY.headline([s.as_row() for s in scores]).interval == (
        "Head L1H1 has the lowest correlation on RTE: r = 0.30."
    )
    assert " over " not in effective.STUDY.headline([score.as_row() for score in scores[:2]]).sentence
    for task in ("sst2", "qnli"):
        app = opened("statistics/effective", rows=task)
        (run,) = [run for run in known_runs("effective") if run.checkpoint == "atlas-encoder"]
        assert any(
            text.startswith("The correlation r is the mean over heads and longer inputs, ") for text in said(app)
        )
        longer = [row for row in run.among(LengthCorrelation) if row.task == task and row.length_from > 32]
        inputs, beyond = sum(row.n for row in longer), sum(row.n * row.mean for row in longer)
        assert any(
            text.startswith("**Raw and effective attention are equal on inputs of up to 32 tokens.")
            and text.endswith(
                f"On the {inputs} longer inputs, the two differ: their mean correlation is r = {beyond / inputs:.2f}.**"
            )
            for text in said(app)
        )
        name = {"sst2": "SST-2-like", "qnli": "QNLI-like"}[task]
        assert any(f" · {name} · n = 20 inputs" in text for text in said(app))
        pictures = [chart for chart in charts(app) if len(chart.get("layer", [])) == 2 and "Head" in json.dumps(chart)]
        domains = dict(fills(chart) for chart in pictures)
        assert domains["raw"] == domains["effective"] == [0.0, domains["difference"][1]]
        assert domains["difference"][0] == -domains["difference"][1]


@pytest.mark.thorough
def test_the_share_in_the_answer_is_the_corrected_one_that_the_figure_draws(db):
    app = opened("statistics/shares", rows="sst2")
    (run,) = [run for run in known_runs("pattern-shares") if "atlas-encoder" in run.of and run.task == "sst2"]
    shares = [share for share in run.among(ClassShare) if share.checkpoint == "atlas-encoder"]
    corrected, counted = (max(one.share for one in shares if one.part == part) for part in ("corrected", "share"))
    assert f"{corrected:.0%}" != f"{counted:.0%}"
    (answer,) = [text for text in said(app) if text.startswith("**")][:1]
    assert answer == (
        f"**Vertical is the most frequent pattern on SST-2-like: {corrected:.0%} of the maps. This result is "
        "uncertain, because 17% of the maps of atlas-encoder are unlike the maps that the classifier was trained on.**"
    )
    assert any(f" · {run.date} · bundled" in text for text in said(app))
    assert charts(app)[0]["title"] == "Share of each pattern, corrected"


def test_importance_is_drawn_by_the_gradient_which_layers_share(db):
    app = opened("interventions/pruning")
    assert fills(charts(app)[0])[0] == "gradient"
    (run,) = [run for run in known_runs("importance") if run.checkpoint == "atlas-encoder-sst2"]
    heads = {head.name: head for head in run.among(ImportantHead)}
    assert all(
        score.value == heads[score.name].gradient != heads[score.name].value
        for score in stored_runs.heads_of(run.result_rows)
    )
    assert {number.value for number in heads["L1H1"].numbers()} == {heads["L1H1"].gradient}


def test_heads_that_pass_all_four_controls_are_on_top_with_their_controls_as_ticks(db):
    app = opened("linguistics/frames", mode="A set of sentences", checkpoint="all-MiniLM-L6-v2")
    (chart,) = [chart for chart in charts(app) if "baselines first" in json.dumps(chart.get("title", ""))]
    marks = [layer["mark"]["type"] for layer in chart["layer"]]
    assert marks == ["rule", "point", "tick"]
    (run,) = [run for run in known_runs("frame-heads") if run.checkpoint == "all-MiniLM-L6-v2"]
    heads = pd.DataFrame([row for row in run.result_rows if row["kind"] == "head"])
    ranked = ranked_heads(heads)
    passing = set(heads.loc[heads["survives"].astype(bool), "name"])
    assert len(passing) == 5
    assert set(ranked["head"][:5]) == passing, "also those of smaller weight than others"
    assert not ranked["passes"][5:].any()
    assert ranked["value"][:5].is_monotonic_decreasing
    assert ranked["value"][5:].is_monotonic_decreasing
    assert len(ranked) == 12
    first = heads.set_index("name").loc[ranked["head"].iloc[0]]
    assert list(ranked.iloc[0][list(CONTROLS.values())]) == [first["baseline"], first["exchanged"]]


def test_similar_heads_are_a_group_that_the_colours_draw_with_its_distance():
    def place(head, kind, x, y):
        return PlaceScore(statistic="place", layer=0, head=head, kind=kind, x=x, y=y, n=5)

    scores = [place(0, "separator", 0.0, 0.0), place(1, "separator", 0.3, 0.4), place(2, "other", 3.0, 4.0)]
    assert group_sentence(scores) == (
        "2 of 3 heads attend mostly to separators. Their mean distance is 0.50, compared with 3.33 between all heads."
    )
    assert group_sentence(scores[1:]).startswith("No two heads")


def test_special_tokens_are_compared_by_weight_and_by_norm_with_the_head_that_changes_most():
    weights, norms = np.array([[0.8, 0.6], [np.nan, 0.4]]), np.array([[0.7, 0.1], [np.nan, 0.4]])
    said = special_sentence(weights, norms)
    assert said == (
        "On average, the heads give 60% of their attention weight to special tokens, but 40% of their norm-based "
        "attention. Averaged over queries, the share changes most in L1H2: from 60% to 10%."
    )


def test_every_view_with_an_answer_names_its_unit_once_in_the_explanation_of_the_test(db):
    """A sentence with a placeholder in braces is a string that was never formatted."""
    for view in ("linguistics/tokens", "linguistics/relations"):
        assert not any("{" in text for text in said(opened(view)))


def test_the_fine_tuned_score_that_opens_is_of_the_run_that_compares_initialisations(db):
    texts = said(opened("finetuning/train"))
    answer = next(text for text in texts if text.startswith("**After fine-tuning"))
    assert answer.endswith(
        "accuracy is 83.9. This score is significantly above a constant prediction. For comparison, the model scores "
        "85.0 if fine-tuned from random weights and 48.0 without fine-tuning on this task. So this result shows no "
        "benefit of pre-training.**"
    )
    table = opened("finetuning/train").table[0].value
    assert table.loc["best constant prediction"].tolist() == ["51.7 (always positive)"], "as the answer has it"
    assert any("scores 51.7." in text for text in texts)
    answer = next(text for text in said(opened("interventions/subnetworks")) if text.startswith("**"))
    assert answer.startswith(
        "**Pruning up to 70% of the weights after fine-tuning does not lower accuracy significantly."
    )
    texts = said(opened("interventions/subnetworks", pruned=AT_CHANCE))
    assert any("A constant prediction (always positive) scores 51.7." in text for text in texts)
    assert any("the same checkpoint gives a score of 83.9 (see Fine-tuning > Train)" in text for text in texts)
    answer = next(text for text in texts if text.startswith("**"))
    assert answer.startswith("**The result is not informative: ")


def test_progress_shows_first_how_many_bundled_maps_are_labelled_by_whom_over_time(db):
    app = opened("projects/progress")
    assert "How many maps are labelled?" in [one.value for one in app.subheader]
    answer = next(text for text in said(app) if text.startswith("**"))
    assert answer == "**2,142 of 2,142 bundled maps have a label, and 928 have labels by two or more annotators.**"
    (chart,) = charts(app)
    assert (chart["title"], chart["encoding"]["x"]["field"]) == (
        "Number of labelled maps over time, by annotator",
        "time",
    )
    assert chart["encoding"]["y"]["title"] == "number of labelled maps"


def test_the_progress_of_labels_ends_at_the_number_of_maps_that_the_answer_names():
    days = pd.to_datetime(["2026-01-01", "2026-01-01", "2026-01-02", "2026-01-03"])
    given = pd.DataFrame({"map_id": ["a", "b", "a", "a"], "annotator": ["x", "x", "y", "x"], "time": days})
    drawn = next(iter(labels_over_time(given).to_dict()["datasets"].values()))
    ends = {name: max(row["maps"] for row in drawn if row["annotator"] == name) for name in (ANYBODY, "x", "y")}
    assert ends == {ANYBODY: 2, "x": 2, "y": 1}, "a map counts once, also if one annotator labels it again"


def test_the_chart_of_many_labels_has_few_steps_and_the_same_end():
    count = 5 * STEPS
    given = pd.DataFrame({"map_id": [f"m{k}" for k in range(count)], "annotator": "x",
                          "time": pd.date_range("2026-01-01", periods=count, freq="s")})  # fmt: skip
    drawn = next(iter(labels_over_time(given).to_dict()["datasets"].values()))
    assert len(drawn) <= 2 * (STEPS + 2)
    assert max(row["maps"] for row in drawn) == count
