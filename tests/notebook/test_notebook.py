"""The notebook's functions on loaded models: the numbers of a checkpoint, and the model left as it was."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer, BertConfig, BertModel, ByT5Tokenizer

from core import config, notebook
from core.capture.running import capture
from core.capture.words import word_maps
from core.errors import CheckpointError, InputError
from core.models.opening import open_checkpoint
from core.models.present import present_weights
from core.notebook.model import known_scores
from core.scoring.registry import head_scores
from core.store import runs
from core.store.database import Database
from core.store.hypotheses import hypotheses
from core.store.runs import Provenance, one_run, run_rows

TEXT, PAIR = "The cat sat on the mat.", "It purred."
FOLDER = config.BUNDLED_MODELS / config.ENCODER


@pytest.fixture(scope="module")
def expected():
    opened = open_checkpoint(config.ENCODER)
    return capture(opened, opened.encode(TEXT, PAIR)), opened


@pytest.fixture
def loaded():
    return AutoModel.from_pretrained(FOLDER, dtype=torch.float32), AutoTokenizer.from_pretrained(FOLDER)


def weights_of(widget):
    """What the browser is sent: the weights [layer, head, query, key] and the header."""
    size = int.from_bytes(widget.payload[:4], "little")
    header = json.loads(widget.payload[4 : 4 + size])
    pane = header["panes"][0]
    shape = (pane["layers"], pane["heads"], pane["length"], pane["length"])
    return np.frombuffer(widget.payload[4 + size :], "<u2").reshape(shape) / 65535, header


@pytest.mark.thorough
@pytest.mark.parametrize("implementation", ["eager", "sdpa", "atlas"])
def test_a_loaded_model_shows_its_maps_whatever_attention_somebody_switched_to(loaded, expected, implementation):
    model, tokenizer = loaded
    model.set_attn_implementation(implementation)
    model.train()
    model.encoder.layer[0].eval()
    before = [module.training for module in model.modules()]
    seen, header = weights_of(notebook.open(model, tokenizer).show(TEXT, PAIR))
    np.testing.assert_allclose(seen, expected[0].weights, atol=1e-4)
    assert header["panes"][0]["tokens"] == list(expected[0].tokens)
    assert model.config._attn_implementation == implementation
    assert [module.training for module in model.modules()] == before
    model.set_attn_implementation("sdpa")  # and once more after a switch between two calls
    again, _ = weights_of(notebook.open(model, tokenizer).show(TEXT, PAIR))
    np.testing.assert_array_equal(again, seen)


def test_an_error_while_it_runs_leaves_the_model_as_it_was(loaded, monkeypatch):
    model, tokenizer = loaded
    model.set_attn_implementation("eager")
    model.train()

    def broken(*_):
        raise RuntimeError("stop")

    monkeypatch.setattr("core.notebook.model.capture", broken)
    with pytest.raises(RuntimeError, match="stop"):
        notebook.open(model, tokenizer).show(TEXT)
    assert model.training
    assert model.config._attn_implementation == "eager"


def test_a_name_is_opened_and_words_are_shown(expected, tmp_path):
    maps, opened = expected
    widget = notebook.open(config.ENCODER).show(TEXT, PAIR, words=True)
    seen, header = weights_of(widget)
    wanted = word_maps(maps, opened.encode(TEXT, PAIR))
    np.testing.assert_allclose(seen, wanted.weights, atol=1e-4)
    assert header["panes"][0]["tokens"] == list(wanted.tokens)
    page = widget.save(tmp_path / "maps.html").read_text()
    assert "Content-Security-Policy" in page
    assert "python -m core maps atlas-encoder" in page
    assert opened.weights_hash[:16] in page


def test_what_was_cut_is_said():
    _, header = weights_of(notebook.open(config.ENCODER).show("word " * 60, most=20))
    assert header["note"] == "42 tokens were truncated; 20 are shown."


@pytest.fixture
def without_offsets():
    settings = BertConfig(
        vocab_size=400, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16
    )
    return BertModel(settings).eval(), ByT5Tokenizer()


def test_a_tokenizer_without_offsets_shows_pieces_and_says_why_no_words(without_offsets):
    model, tokenizer = without_offsets
    assert not tokenizer.is_fast
    seen, header = weights_of(notebook.open(model, tokenizer).show("cats", "purr"))
    given = tokenizer("cats", "purr", return_tensors="pt")
    assert header["panes"][0]["length"] == given["input_ids"].shape[1]
    with torch.no_grad():
        model.set_attn_implementation("eager")
        eager = torch.stack(model(**given, output_attentions=True).attentions)[:, 0].numpy()
    np.testing.assert_allclose(seen, eager, atol=1e-4)
    with pytest.raises(CheckpointError, match="need a tokenizer with character offsets; ByT5Tokenizer has none"):
        notebook.open(model, tokenizer).show("cats", words=True)
    with pytest.raises(InputError, match="got none"):
        notebook.open(model, tokenizer).show(" ")


def test_a_layer_whose_attention_was_replaced_is_said(loaded):
    model, tokenizer = loaded
    layer = model.encoder.layer[1].attention
    layer.forward = lambda states, *_, **__: (states, None)
    with pytest.raises(CheckpointError, match=r"only 5 of the 6 layers do so"):
        notebook.open(model, tokenizer).show(TEXT)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((object(), None), "got object. Give the object that from_pretrained returned"),
        (
            (BertModel(BertConfig(vocab_size=9, hidden_size=4, num_hidden_layers=1, num_attention_heads=1)), None),
            "A loaded model needs a tokenizer object; got NoneType",
        ),
    ],
)
def test_what_is_no_model_is_one_sentence(arguments, sentence):
    with pytest.raises(CheckpointError, match=sentence):
        notebook.open(*arguments)


def test_what_is_no_text_is_one_sentence():
    with pytest.raises(InputError, match="it is empty"):
        notebook.open(config.ENCODER).show(" ")
    with pytest.raises(InputError, match="text must be a string, and pair a string or None; got NoneType"):
        notebook.open(config.ENCODER).show(None)


def test_heads_are_means_over_texts_with_intervals_and_what_even_attention_gives(loaded, expected):
    model, tokenizer = loaded
    texts = ["The cat sat.", (TEXT, PAIR), "It purred all night.", "Rain fell.", "Nobody saw it go."] * 3
    texts = [one if isinstance(one, tuple) else f"{one} {k}" for k, one in enumerate(texts)]
    found = notebook.open(model, tokenizer).scores(texts)
    assert len(found) == 36 * 5
    assert list(found.columns) == ["layer", "head", "name", "score", "value", "low", "high", "baseline", "n"]
    opened, values, even = expected[1], [], []
    for one in texts:
        encoding = opened.encode(*one) if isinstance(one, tuple) else opened.encode(one)
        maps = capture(opened, encoding)
        places = {"first": encoding.first, "separators": encoding.separators, "causal": False}
        values.append(head_scores(maps.weights, **places)["previous"][2, 3])
        even.append(sum(1 / len(maps) for _ in range(len(maps) - 1)) / (len(maps) - 1))
    mine = found[(found["name"] == "L3H4") & (found["score"] == "previous")].iloc[0]
    assert mine["value"] == pytest.approx(np.mean(values), abs=1e-6)
    assert mine["baseline"] == pytest.approx(np.mean(even), abs=1e-6)
    assert mine["low"] < mine["value"] < mine["high"]
    assert mine["n"] == 15
    single = notebook.open(model, tokenizer).scores(TEXT)
    assert single["low"].isna().all()
    assert (single["n"] == 1).all()
    with pytest.raises(InputError, match="texts must be a sentence, a pair of sentences, or a list"):
        notebook.open(model, tokenizer).scores([])


@pytest.mark.thorough
def test_the_atlas_is_a_frame_of_what_is_stored_and_says_when_another_holds_the_database(tmp_path, monkeypatch):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    about = Provenance(checkpoint=config.ENCODER, weights_hash=present_weights(config.ENCODER), task="mrpc")
    row = {"statistic": "made", "layer": 2, "head": 1, "value": 0.25, "low": 0.2, "high": 0.3, "n": 9}
    with Database(tmp_path / "atlas.duckdb") as db:
        run = runs.record_run(db, "statistics", {}, about)
        runs.store_rows(db, run, [row])
    mine = known_scores(config.ENCODER, measure=False)
    (one,) = mine[mine["score"].str.contains("made")].to_dict("records")
    assert (one["layer"], one["head"], one["value"], one["low"], one["high"], one["n"]) == (2, 1, 0.25, 0.2, 0.3, 9)
    held = str(tmp_path / "atlas.duckdb")
    hold = f"from core.store.database import Database; db = Database({held!r}); print(1, flush=True); input()"
    command = [sys.executable, "-c", hold]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "1\n"
        with pytest.warns(UserWarning, match="The database is held by process"):
            without = known_scores(config.ENCODER, measure=False)
        holder.communicate("\n")
    assert not without["score"].str.contains("made").any()


@pytest.mark.slow  # 5 CPU seconds: tags words and runs a study on both sets of rows
def test_a_hypothesis_is_registered_tested_and_kept(tmp_path, monkeypatch):
    database = tmp_path / "atlas.duckdb"
    monkeypatch.setenv("ATLAS_DB", str(database))
    parameters = {"offset": "first", "control": "next", "counterpart": "atlas-encoder-sst2:L1H1"}
    criteria = notebook.open(config.ENCODER).hypothesis(
        "L1H1", "offset", parameters, thought="sst2:dev:30:0", judged="rte:dev:30:0"
    )
    found = criteria.set_index("criterion")
    assert found.loc[["seen", "held out", "explained"], "state"].tolist() == ["met"] * 3
    assert found.loc["causal", "state"] == "not tested"
    with Database(database) as db:
        (one,) = hypotheses(db)
        kept = {row["criterion"]: row["state"] for row in one.criteria}
        behind = {row["criterion"]: row["run"] for row in one.criteria if row["run"]}
        runs = {name: one_run(db, run) for name, run in behind.items()}
        assert all(run_rows(db, run) for run in behind.values())
        scored = db.read("SELECT DISTINCT run FROM head_score")["run"].tolist()
    assert {run["study"] for run in runs.values()} == {"roles"}  # each criterion opens the run behind it
    assert (runs["seen"]["task"], runs["held out"]["task"]) == ("sst2", "rte")
    assert len(runs["held out"]["row_ids"]) == 30
    assert not set(behind.values()) & set(scored)  # these do not replace the atlas's scores of more rows
    assert (one.hypothesis, kept) == (found["hypothesis"].iloc[0], found["state"].to_dict())
    with pytest.raises(InputError, match="must not be tested on the examples from which it was formed"):
        notebook.open("atlas-encoder").hypothesis("L1H1", "offset", {"offset": "first"}, thought="sst2", judged="sst2")


@pytest.mark.slow  # 8 CPU seconds of imports; import-linter has it of all of core
def test_the_notebook_never_imports_streamlit():
    script = "import core.notebook, sys; assert 'streamlit' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-800:]


def test_why_says_what_decides_the_strongest_cell_of_every_token():
    found = notebook.open("atlas-encoder").why("The cat sat on the mat.", "L2H5")
    cells = found.groupby(["query", "key"])
    assert len(cells) == found["query"].nunique() == found["query"].max() + 1
    assert (cells["value"].sum() - cells["score"].first()).abs().max() < 1e-4
    assert found.iloc[5 * 6]["query_part"].startswith("position")  # a previous-token head is one of places


def test_why_maps_stand_beside_the_heads_own_and_are_its_in_a_head_of_places():
    widget = notebook.open("atlas-encoder").why_maps("The cat sat on the mat.", "L2H5")
    maps = {pane.title: np.frombuffer(pane.weights, "<u2").astype(float) / 65535 for pane in widget.panes}
    own, places = maps["L2H5"], maps["position only, on the key side"]
    assert np.corrcoef(own, places)[0, 1] > 0.9 > np.corrcoef(own, maps["token only, on the key side"])[0, 1]
    assert widget.payload
    with pytest.raises(InputError, match="must be from 1 to 6; got 9"):
        notebook.open("atlas-encoder").why_maps("The cat.", "L2H9")
