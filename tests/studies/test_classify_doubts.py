"""What a classifier was unsure of, and what it never saw, is counted by input and told with the shares."""

import numpy as np
import pytest
import torch

from core import config
from core.errors import InputError
from core.patterns import suggestions
from core.patterns.classifier_registry import unfamiliar
from core.studies.patterns import map_classification, pattern_shares
from core.studies.patterns.map_classification import ClassCounts
from core.studies.patterns.pattern_shares import STUDY, ClassifiedChunk, Counts, PatternSharesOptions
from core.tasks.glue import TaskRow


def test_unsure_and_outside_maps_are_counted_by_input(monkeypatch):
    def judged(classifier, maps, *, dtype):
        first = np.array([one[0, 0] for one in maps])
        probabilities = np.stack([first, 1 - first], 1).astype(np.float32) * 0.9
        return suggestions.Judgement(probabilities, first > 0.8, 0)

    monkeypatch.setattr(map_classification, "judged", judged)
    counts = ClassCounts(None, inputs=3, layers=2, heads=2, dtype="float32")
    maps = torch.zeros(2, 2, 2, 2)
    maps[0, :, 0, 0] = torch.tensor([0.9, 0.5])  # outside, and unsure (0.45 each)
    maps[1, :, 0, 0] = torch.tensor([0.1, 0.52])
    counts.update(0, maps, [2, 0])
    assert counts.outside.tolist() == [0, 0, 1]
    assert counts.unsure.tolist() == [1, 0, 1]
    assert counts.classes[:, 0].tolist() == [[1, 0], [-1, -1], [0, 0]]


def test_the_note_of_a_checkpoint_has_shares_of_all_its_maps():
    classes, nothing = np.array([[[0, 1], [1, 1]]]), np.zeros(1)
    partials = [
        Counts((ClassifiedChunk("one", (str(k),), ("a", "b"), classes, np.array([k]), np.ones(1), nothing, nothing),))
        for k in range(2)
    ]
    rows = STUDY.summarize(PatternSharesOptions(class_set="own", name="x"), partials)
    (note,) = [row for row in rows if row["part"] == "note"]
    assert (note["maps"], note["unsure"], note["outside"]) == (8, 1 / 8, 2 / 8)


@pytest.mark.parametrize(("texts", "small"), [(["no", "film", "a plain film"], 2), (["no", "film"], 2)])
def test_inputs_of_up_to_three_tokens_have_no_class_and_are_counted(monkeypatch, texts, small):
    rows = [TaskRow(str(k), text, None, 0) for k, text in enumerate(texts)]
    monkeypatch.setattr(pattern_shares, "_rows", lambda options: rows)
    file = config.ANNOTATIONS / "bert" / "classifier.safetensors"
    options = PatternSharesOptions(
        checkpoints=(config.ENCODER,), task="sst2", classifier=str(file), name="x", class_set="bert"
    )
    partials = [STUDY.run(options, unit).partial for unit in STUDY.units(options)]
    if len(texts) == small:
        with pytest.raises(InputError, match=f"all {small} inputs of sst2 are shorter"):
            STUDY.summarize(options, partials)
        return
    (note,) = [row for row in STUDY.summarize(options, partials) if row["part"] == "note"]
    assert (note["small"], note["inputs"]) == (small, len(texts) - small)


@pytest.mark.parametrize(
    ("unsure", "outside", "warned"), [(0.05, 0.01, False), (0.2, 0.0, True), (0.0, 0.06, True), (0.15, 0.05, False)]
)
def test_a_checkpoint_is_unfamiliar_above_either_share(unsure, outside, warned):
    assert unfamiliar(unsure, outside) is warned
