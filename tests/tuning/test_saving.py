import errno
import json
import subprocess
import sys

import pytest
import torch
from transformers import AutoModelForSequenceClassification

from core.capture.running import capture, predict
from core.config import PROJECT
from core.errors import CheckpointError
from core.models.opening import open_checkpoint
from core.tasks.glue import TASKS
from core.tuning.batches import encode
from core.tuning.model import initialised, logits_of
from core.tuning.recipe import Recipe
from core.tuning.saved_checkpoints import Live, read_live, tuned_checkpoints
from core.tuning.training import Fit, load_state, save_state, save_tuned
from tests.capture.conftest import tiny
from tests.tuning.conftest import rows

FACTS = {"task": "sst2", "initialisation": "pretrained", "seed": 0, "recipe": {}, "rows": {}}


def outcome_of(base, pooling="auto", seed=0):
    recipe = Recipe(learning_rate=1e-3, batch=8, epochs=1, pooling=pooling)
    examples = encode(base, rows(16), 64)
    model = initialised(base, TASKS["sst2"], "pretrained", recipe, seed)
    return Fit(base, TASKS["sst2"], model, examples, examples, recipe, seed).run()


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("family", "pooling"),
    [
        ("bert", "auto"),
        ("bert", "sep"),
        ("bert", "mean"),
        ("bert", "last"),
        ("roberta", "auto"),
        ("distilbert", "auto"),
        ("gpt2", "auto"),
        ("gpt2", "mean"),
        ("llama", "auto"),
    ],
)
def test_reopens_with_the_same_logits(tmp_path, family, pooling):
    base = tiny(family)
    outcome = outcome_of(base, pooling)
    save_tuned(tmp_path / "one", outcome, base, FACTS)
    found = open_checkpoint(str(tmp_path / "one"), head="classifier")
    texts = rows(12)
    encodings = [found.encode(one.text, one.pair, max_length=64) for one in texts]
    expected = logits_of(outcome.model, base, encode(base, texts, 64))
    torch.testing.assert_close(predict(found, encodings), expected, atol=1e-5, rtol=1e-4)
    assert found.labels == {0: "negative", 1: "positive"}
    assert capture(found, encodings[0]).layers == 3
    assert open_checkpoint(str(tmp_path / "one")).layers == 3  # the bare Transformer opens too


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_plain_transformers_opens_it(tmp_path, family):
    base = tiny(family)
    outcome = outcome_of(base)
    save_tuned(tmp_path / "one", outcome, base, FACTS)
    model = AutoModelForSequenceClassification.from_pretrained(tmp_path / "one")
    found = logits_of(model, base, encode(base, rows(4), 64))
    torch.testing.assert_close(found, logits_of(outcome.model, base, encode(base, rows(4), 64)))


def test_log_provenance_and_listing(tmp_path):
    base = tiny("bert")
    save_tuned(tmp_path / "one", outcome_of(base), base, FACTS)
    facts = json.loads((tmp_path / "one" / "training.json").read_text())
    assert {"base", "base_hash", "task", "seed", "metrics", "losses", "epochs", "code_version", "date"} <= set(facts)
    for name, log in {"broken": b"{", "list": b"[1]", "bytes": b"\xff"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "training.json").write_bytes(log)
    assert [(one.name, one.task) for one in tuned_checkpoints(tmp_path)] == [("one", "sst2")]


@pytest.mark.parametrize("when", ["weights", "tokenizer"])
def test_a_full_disk_leaves_the_previous_checkpoint(tmp_path, monkeypatch, when):
    base = tiny("bert")
    first, second = outcome_of(base, seed=0), outcome_of(base, seed=1)
    save_tuned(tmp_path / "one", first, base, FACTS)
    before = {file.name: file.read_bytes() for file in (tmp_path / "one").iterdir()}

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(second.model if when == "weights" else base.tokenizer, "save_pretrained", full)
    with pytest.raises(CheckpointError, match="the disk is full"):
        save_tuned(tmp_path / "one", second, base, FACTS)
    assert {file.name: file.read_bytes() for file in (tmp_path / "one").iterdir()} == before
    assert [file.name for file in tmp_path.iterdir()] == ["one"]


@pytest.mark.slow  # 7 CPU seconds, a process with torch for each size; a full disk is above
@pytest.mark.parametrize("kilobytes", [2, 40])
def test_files_that_cannot_grow_leave_the_previous_checkpoint_and_state(tmp_path, kilobytes):
    """In a process whose files may not exceed a size: the writers' own errors, on config (2) or weights (40)."""
    base = tiny("bert")
    save_tuned(tmp_path / "one", outcome_of(base), base, FACTS)
    save_state(tmp_path / "state", {"identity": "a", "step": 1})
    before = {str(file): file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    script = f"""
import resource, torch
from pathlib import Path
from core.errors import CheckpointError
from core.tuning.training import save_tuned
from core.tuning.training import save_state
from tests.capture.conftest import tiny
from tests.tuning.test_saving import FACTS, outcome_of
base, place = tiny("bert"), Path({str(tmp_path)!r})
outcome = outcome_of(base, seed=1)
resource.setrlimit(resource.RLIMIT_FSIZE, ({kilobytes} * 1024, {kilobytes} * 1024))
for save in (
    lambda: save_tuned(place / "one", outcome, base, FACTS),
    lambda: save_state(place / "state", {{"identity": "a", "step": 2, "weights": torch.zeros(100_000)}}),
):
    try:
        save()
    except CheckpointError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=PROJECT)
    assert done.stdout.count("unchanged") == 2, done.stdout + done.stderr
    assert {str(file): file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == before


def test_a_full_disk_leaves_the_previous_state(tmp_path, monkeypatch):
    place = tmp_path / "state"
    save_state(place, {"identity": "a", "step": 1})

    def full(_, part):
        part.write_bytes(b"half")
        raise RuntimeError("[enforce fail] . unexpected pos 64 vs 0")  # what torch raises on a full disk

    monkeypatch.setattr(torch, "save", full)
    with pytest.raises(CheckpointError, match="the disk is full"):
        save_state(place, {"identity": "a", "step": 2})
    assert load_state(place, "a")["step"] == 1
    assert [file.name for file in tmp_path.iterdir()] == ["state"]


def test_live_picture(tmp_path):
    live = Live(tmp_path / "deep" / "live.json", every=100.0)
    live.write({"step": 1})
    live.write({"step": 2})
    assert read_live(live.place) == {"step": 1}
    live.write({"step": 3}, now=True)
    assert read_live(live.place) == {"step": 3}
    assert read_live(tmp_path / "none.json") is None
