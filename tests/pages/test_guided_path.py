"""The guided path: its question is judged by the maps, its steps by what is stored, and it ends in a figure."""

import numpy as np
import pytest

from core.atlas import example
from core.attention import Head
from core.config import ENCODER
from core.models.present import present_weights
from core.report.published_values import printed_changes
from core.store import runs
from core.studies.attention.records import ChangeScore
from pages.parts.shell import resources
from pages.parts.views.guided_path import change_by_depth, sentence_of_depth
from tests.pages.opening import opened


@pytest.fixture(autouse=True)
def own_database(tmp_path, monkeypatch):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    resources.database.clear()
    yield
    resources.database.clear()


def next_token_head() -> tuple[str, float]:
    """The head whose queries look most at the token after them, by a loop."""
    maps = example.stored(ENCODER, example.TEXT, example.PAIR).maps.weights
    layers, heads, length, _ = maps.shape
    means = {
        Head(layer, head): float(np.mean([maps[layer, head, k, k + 1] for k in range(length - 1)]))
        for layer in range(layers)
        for head in range(heads)
    }
    best = max(means, key=means.__getitem__)
    return str(best), means[best]


def test_its_question_is_judged_and_its_steps_are_done_when_their_results_are_stored():
    app = opened("start/path")
    assert not app.exception
    name, share = next_token_head()
    for typed, said in (
        ("L1H1", "another head gives more"),
        ("L9H1", "There is no head"),
        (name, f"This head gives {share:.2f} of its attention"),
    ):
        app.text_input(key="path_head").set_value(typed).run()
        shown = [one.value for kind in (app.info, app.error, app.success) for one in kind]
        assert any(said in one for one in shown), shown
    assert app.get("progress")[0].proto.text == "1 of 4 steps done"
    about = runs.Provenance(ENCODER, weights_hash=present_weights(ENCODER), task="sst2")
    options = {"before": ENCODER, "after": ["tuned"]}
    run = runs.record_run(resources.database(), "change", options, about, title="mine")
    runs.store_rows(resources.database(), run, change_rows())
    app.run()
    assert app.get("progress")[0].proto.text == "2 of 4 steps done"
    assert any("Here layer 2 of 3 changed most, in the paper layer 11 of 12" in one.value for one in app.markdown)


def change_rows():
    return [
        {
            "kind": "layer",
            "before": ENCODER,
            "after": "tuned",
            "task": "sst2",
            "statistic": "cosine",
            "layer": layer,
            "value": value,
            "low": value - 0.1,
            "high": value + 0.05,
            "n": 9,
        }
        for layer, value in enumerate((0.9, 0.5, 0.8))
    ]


def test_the_figure_has_both_models_on_one_axis_of_depth():
    scores = ChangeScore.among(change_rows())
    made = change_by_depth(scores).to_dict()
    rows = next(iter(made["datasets"].values()))
    ours = [row for row in rows if row["model"].startswith("yours")]
    assert [(row["depth"], round(row["value"], 6)) for row in ours] == [(0.0, 0.1), (0.5, 0.5), (1.0, 0.2)]
    assert [(round(row["low"], 6), round(row["high"], 6)) for row in ours][1] == (0.45, 0.6)
    theirs = [row["value"] for row in rows if "paper" in row["model"]]
    assert theirs == [1 - value for value in printed_changes()]
    assert "models, tasks and the padding of maps differ" in sentence_of_depth(scores)
