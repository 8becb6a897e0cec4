"""What views answer: the finding first, of what the figure shows, and no verdict that seems to contradict another."""

import numpy as np
import pandas as pd
import pytest

from core.studies.probing import subnetworks
from core.studies.probing.records import Subnetwork
from pages.parts.reports import headlines
from pages.parts.reports.provenance import known_runs
from pages.parts.views.generation import attended
from tests.pages.opening import opened

pytestmark = pytest.mark.shipped


def said(app):
    return [one.value.replace("\\", "") for kind in (app.markdown, app.caption) for one in kind]


def test_one_head_has_one_finding_a_line_and_no_share_that_reads_as_a_majority(db):
    app = opened("heads/one", head="L1H1")
    answer, others = said(app)[:2]
    assert answer == "**L1H1: vertical in 100% of 60 maps.**"
    assert all(line.startswith("- ") for line in others.splitlines())
    assert "largest part of its score variance: token, 0.48" in others.lower()
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


@pytest.mark.parametrize(("low", "said_first"), [(0.4, "Not informative: "), (0.6, "Retrained, ")])
def test_subnetworks_of_a_model_at_chance_are_not_informative(low, said_first):
    shared = {"metric": "accuracy", "n": 300}
    full = Subnetwork(kind="subnetwork", name="full", share=0.0, value=0.62, low=low, high=0.7, constant=0.5, **shared)
    less = Subnetwork(kind="difference", name="good less bad", value=0.1, low=0.02, high=0.2, **shared)
    headline = subnetworks.STUDY.headline([full.as_row(), less.as_row()])
    assert headline.sentence.startswith(said_first)


@pytest.mark.parametrize(
    ("view", "other"),
    [
        ("interventions/sequential", "Gates and pairs reports for this model: “The task needs 7 of 36 heads"),
        ("interventions/together", "Sequential test reports for this model: “None of 36 heads matters"),
        ("interventions/circuit", "Gates and pairs reports for this model: “The task needs 7 of 36 heads"),
    ],
)
def test_verdicts_that_seem_to_contradict_are_explained_where_they_meet(db, view, other):
    (told,) = [text for text in said(opened(view)) if text.startswith(other)]
    assert told.endswith("so both can be true.")
    assert told.count(". ") + told.count(".” ") == 1


def test_headlines_count_what_they_are_about(db):
    """Links and not inputs; one checkpoint and not two; the interval of the head that the sentence names."""
    told = {run.study: headlines.headline_of(run.run, rows="sst2") for run in known_runs(None)
            if run.checkpoint == "atlas-encoder" and "sst2" in (run.task or "sst2")}  # fmt: skip
    assert told["relations"].of == "links"
    assert "of 360 head–feature pairs" in told["features"].sentence
    frames = told["frame-heads"]
    assert frames.interval.startswith(frames.sentence.removesuffix(".").split()[-1])


def test_the_guided_path_shows_an_ablation_of_each_head_in_turn(db):
    app = opened("start/path")
    (step,) = [
        text for text in said(app) if text.startswith("A bundled result, until you have one: ") and "ablation" in text
    ]
    assert "but" not in step
