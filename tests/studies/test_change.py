import json

import numpy as np
import pytest
import torch

from core.capture.running import capture
from core.errors import CheckpointError, InputError
from core.studies.tuning import change
from core.tasks.glue import read_rows
from tests.capture.conftest import tiny
from tests.studies.through_json import rows_of


def saved(folder, family: str, tokenizer, *, moved: float = 0.0):
    """Two tiny checkpoints of one family share their weights; vocabularies trained twice differ, so one is given."""
    checkpoint = tiny(family)
    if moved:
        generator = torch.Generator().manual_seed(1)
        with torch.no_grad():
            for name, parameter in checkpoint.model.named_parameters():
                if "layer.2" in name or "h.2" in name:  # only the last layer's weights move
                    parameter.add_(torch.randn(parameter.shape, generator=generator) * moved)
    checkpoint.model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module", params=["bert", "gpt2"])
def pair(request, tmp_path_factory):
    place = tmp_path_factory.mktemp(request.param)
    tokenizer = tiny(request.param).tokenizer
    after = saved(place / "after", request.param, tokenizer, moved=0.3)
    (place / "after" / "training.json").write_text(json.dumps({"kind": "fine-tuned", "task": "mrpc"}))
    return saved(place / "before", request.param, tokenizer), after


def table(options):
    return rows_of("change", options)


def test_only_the_layer_that_moved_changes(pair, monkeypatch):
    monkeypatch.setattr(change, "ROWS_A_UNIT", 7)
    rows = table({"before": pair[0], "after": [pair[1]], "limit": 20, "max_length": 32})
    json.dumps(rows, allow_nan=False)
    layers = {row["layer"]: row for row in rows if row["kind"] == "layer" and row["statistic"] == "cosine"}
    assert [layers[k]["value"] for k in (0, 1)] == pytest.approx([1, 1], abs=1e-6)
    assert layers[2]["low"] <= layers[2]["value"] <= layers[2]["high"] < 0.999
    assert {row["n"] for row in rows} == {20}
    assert {row["task"] for row in rows} == {"mrpc"}
    wanted = {"cosine", "divergence"}
    if "gpt2" in pair[0]:
        wanted |= {"cosine_without_first", "divergence_without_first"}
        without = next(
            row
            for row in rows
            if row["kind"] == "layer" and row["statistic"] == "cosine_without_first" and row["layer"] == 2
        )
        assert without["value"] < layers[2]["value"]
    assert {row["statistic"] for row in rows} == wanted


@pytest.mark.thorough
def test_a_head_equals_the_mean_over_rows_of_cropped_maps(pair):
    from core.models.opening import open_checkpoint

    rows = table({"before": pair[0], "after": [pair[1]], "task": "RTE", "limit": 5, "max_length": 32})
    models = [open_checkpoint(name) for name in pair]
    values = []
    for one in read_rows("rte", "dev", limit=5):
        maps = [capture(model, model.encode(one.text, one.pair, max_length=32)).weights[2, 1] for model in models]
        flat = [each.astype(np.float64).ravel() for each in maps]
        values.append((float(flat[0] @ flat[1] / np.linalg.norm(flat[0]) / np.linalg.norm(flat[1])), one.id))
    row = next(r for r in rows if r["statistic"] == "cosine" and r.get("head") == 1 and r["layer"] == 2)
    assert row["value"] == pytest.approx(np.mean([value for value, _ in values]), abs=1e-5)
    assert [one["row"] for one in row["changed_most"]] == [name for _, name in sorted(values)]


def test_identical_checkpoints_do_not_change(pair):
    rows = table({"before": pair[0], "after": [pair[0]], "task": "sst2", "limit": 6, "max_length": 32})
    assert all(row["value"] == pytest.approx(1 if "cosine" in row["statistic"] else 0, abs=1e-6) for row in rows)


def test_what_cannot_be_compared(pair, tmp_path):
    study = change.STUDY
    with pytest.raises(InputError, match="needs at least one fine-tuned checkpoint; got none"):
        study.units(change.ChangeOptions(pair[0]))
    with pytest.raises(InputError, match="Choose a task"):
        study.units(change.ChangeOptions(pair[0], (pair[0],)))
    other = saved(tmp_path / "other", "roberta", tiny("roberta").tokenizer)
    options = change.ChangeOptions(pair[0], (other,), task="sst2", limit=3)
    with pytest.raises(CheckpointError, match="the same architecture"):
        study.run(options, study.units(options)[0])


def test_the_finding_names_the_layer_that_changed_most_with_its_interval():
    shared = {"source": "after", "after": "after", "task": "sst2", "statistic": "cosine", "n": 60}
    layers = [0.97, 0.81, 0.69, 0.99]
    rows = [
        {"kind": "layer", "name": f"L{k + 1}", "layer": k, "value": cosine, "low": cosine - 0.02, "high": cosine + 0.01}
        for k, cosine in enumerate(layers)
    ]
    rows.append({"kind": "head", "name": "L3H2", "layer": 2, "head": 1, "value": 0.55, "low": 0.47, "high": 0.63})
    headline = change.STUDY.headline([shared | row for row in rows])
    assert headline.sentence == (
        "On SST-2, fine-tuning changed the attention of head L3H2 most (1 − cosine similarity = 0.45). Layer 3 "
        "has the largest mean change: 0.31 (95 % CI 0.30 to 0.33). The mean change is 0.16 in the last two "
        "layers and 0.11 in the other layers."
    )
    assert change.task_tuned_on("atlas-encoder-sst2") == "sst2"
    assert headline.interval == "L3H2 has a 95 % CI of 0.37 to 0.53."
