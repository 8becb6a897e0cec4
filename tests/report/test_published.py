"""What the papers printed, and what is known to be wrong with it."""

import csv
import json

import numpy as np
import pytest

from core.report import measures, published_values
from core.report.claims import claims
from core.report.claims.scores import GAINED
from core.report.ids import ExhibitId
from core.report.published_values import PAPER, printed
from core.tasks.glue import TASKS
from tests.report.evidence_made import CHECKPOINT, evidence, found
from tests.tasks.constants import constant_baselines


def test_printed_constants_are_constants():
    """Cells marked as constant predictors equal one, to the digit printed, on the official label counts."""
    mrpc = constant_baselines(TASKS["mrpc"], [1] * 279 + [0] * 129)
    cells = {cell.initialisation: cell for cell in printed("mrpc") if cell.source == PAPER}
    assert cells["untrained"].constant
    assert cells["untrained"].values["accuracy"] == pytest.approx(mrpc["not_equivalent"]["accuracy"], abs=5e-4)
    assert cells["random"].constant
    assert cells["random"].values["f1"] == pytest.approx(mrpc["equivalent"]["f1"], abs=5e-4)
    assert not cells["pretrained"].constant
    assert {len(printed(task)) for task in TASKS} == {6}


def test_errors_of_claims_agree_with_the_printed_numbers(shared_data):
    """Three untrained and four random columns equal a constant; random weights score below untrained ones on two
    tasks, as the paper says."""
    known = {claim.id: claim.error for claim in claims()}
    names = ("untrained", "random")
    by_task = {task: {cell.initialisation: cell for cell in printed(task) if cell.source == PAPER} for task in GAINED}
    constant = {name: sum(cells[name].constant for cells in by_task.values()) for name in names}
    assert constant == {"untrained": 3, "random": 4}
    assert known["tuned-beats-untuned"].startswith(
        "In the paper, three scores of pre-trained BERT equal the score of a constant"
    )
    assert known["random-learns"].startswith(
        "Four of the seven scores that Kovaleva et al. report for models fine-tuned from random weights equal the score"
    )
    metric = {task: "pearson" if task == "stsb" else "accuracy" for task in GAINED}
    scores = {task: [cells[name].values[metric[task]] for name in names] for task, cells in by_task.items()}
    assert len(scores) == 7
    assert {task for task, (untrained, random) in scores.items() if random < untrained} == {"stsb", "qnli"}
    qnli = {cell.initialisation: cell for cell in printed("qnli") if cell.source == PAPER}
    assert qnli["random"].constant
    assert known["random-below-untuned"].startswith(
        "In Table 1 of the paper, the QNLI score of the model fine-tuned from"
    )
    sentences = json.loads((shared_data / "paper/replication_23.json").read_text(encoding="utf-8"))
    links = [(row["sentence"], link["earlier"]) for row in sentences for link in row["links"]]
    at_start = sum(sentence.startswith(earlier) for sentence, earlier in links)
    assert known["all-heads-carry"].startswith(
        f"In the GPT-2 replication, {at_start} of the {len(links)} frame-semantic links end at the first"
    )


@pytest.mark.parametrize("name", ["tuned-beats-untuned", "mean-gain"])
def test_an_inference_about_the_papers_column_is_not_stated_as_a_fact(name):
    """That three of its cells equal a constant does not prove that the classification head was never trained."""
    (error,) = (claim.error for claim in claims() if claim.id == name)
    assert "probably never trained" in error


def test_sources_of_claims_are_those_that_say_so():
    """Layer 5 is a summary's number; the paper's text says the first layer."""
    by_id = {claim.id: claim for claim in claims()}
    assert by_id["fifth-layer"].source == "later summaries of Kovaleva et al. 2019 by other authors"
    assert by_id["separator-gradients"].section == "3.2"
    assert by_id["random-below-untuned"].source == "Kovaleva et al. 2019"
    unread = [claim for claim in claims() if claim.source.startswith(("later", "GPT-2"))]
    assert all("wording of this claim has not been compared with the source" in claim.section for claim in unread)


def test_the_paper_printed_three_cells_of_a_task():
    assert [cell.source for cell in printed("sst2")].count(PAPER) == 3


def test_printed_numbers_have_one_place_each():
    found = published_values.figures()
    keys = [(one.source, one.exhibit, one.task, one.item, one.condition) for one in found]
    assert len(keys) == len(set(keys))
    assert {one.exhibit for one in found} >= {"shares", "frames", "table-1", "change", "features", "heads", "layers"}


def test_shares_of_the_paper_fill_the_figure():
    for task in ("mrpc", "qqp"):
        some = [
            one.value
            for one in published_values.figures()
            if (one.source, one.exhibit, one.task) == (PAPER, "shares", task)
        ]
        assert sum(some) == pytest.approx(1.0, abs=0.02)


def test_the_range_of_heterogeneous_maps_in_the_prose_includes_block():
    share = {
        (one.task, one.item.text): one.value
        for one in published_values.figures()
        if (one.source, one.exhibit) == (PAPER, "shares")
    }
    for task, said in (("mrpc", 0.32), ("qqp", 0.61)):
        assert share[task, "heterogeneous"] + share[task, "block"] == pytest.approx(said, abs=0.006)
        assert abs(share[task, "heterogeneous"] - said) > 0.02


@pytest.mark.parametrize(
    ("file", "exhibit", "item"),
    [("cos_qqp", "change", "layer {} of 12"), ("sep_qqp_base", "features", "separator, layer {} of 12")],
)
def test_layer_means_are_those_of_the_recovered_pictures(shared_data, file, exhibit, item):
    with (shared_data / "paper" / f"recovered_{file}.csv").open() as stream:
        means = [np.mean([float(one) for one in row]) for row in csv.reader(stream)]
    known = {
        one.item.text: one.value
        for one in published_values.figures()
        if one.exhibit == exhibit and one.condition != "fine-tuned"
    }
    assert [known[item.format(k)] for k in range(1, 13)] == pytest.approx(means, abs=0.01)


def test_frame_heads_are_those_of_the_recovered_picture(shared_data):
    with (shared_data / "paper" / "recovered_framenet_bert.csv").open() as stream:
        table = np.array([[float(one) for one in row] for row in csv.reader(stream)])
    known = {one.item.text: one.value for one in published_values.figures() if one.exhibit == "frames"}
    assert known["L1H2"] == pytest.approx(table[0, 1], abs=0.003)
    assert known["L7H6"] == pytest.approx(table[6, 5], abs=0.003)
    assert known["mean over heads"] == pytest.approx(table.mean(), abs=0.003)
    assert known["99th percentile of the heads"] == pytest.approx(np.quantile(table, 0.99), abs=0.003)


def test_the_replications_classifier_stands_beside_the_one_that_ships():
    row = {"part": "share", "checkpoint": CHECKPOINT, "inputs": 9, "class": "block", "share": 0.5}
    by = {
        name: evidence(found("shares", [row | {"classifier": name}], "rte"), causal=True)
        for name in ("bundled-gpt2-0a1b2c3d", "mine")
    }
    assert measures.classifier(by["mine"]) == []
    ours = {one.item: one for one in measures.classifier(by["bundled-gpt2-0a1b2c3d"])}
    printed_there = {one.item: one.value for one in published_values.figures() if one.exhibit == ExhibitId.CLASSIFIER}
    assert ours.keys() == printed_there.keys()
    assert {item.text: value for item, value in printed_there.items()} == {
        "F1 of the classifier, mean over classes": 0.61,
        "share of block among the labels": 0.09,
        "share of diagonal among the labels": 0.15,
        "share of majority among the labels": 0.20,
        "share of overall among the labels": 0.54,
    }
    shares = [one.estimate for item, one in ours.items() if item.subject]
    assert sum(share.value for share in shares) == pytest.approx(1.0)
    assert all(share.low < share.value < share.high for share in shares)
