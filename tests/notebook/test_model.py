"""`open`, `study`, `labels`, `train_classifier` and `show_maps`: the numbers of the commands, and models left alone."""

import copy
import json
import threading

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification
from typer.testing import CliRunner

from core import __main__, config, notebook
from core.errors import InputError
from core.notebook.showing import checkpoint_of, saved_copy
from core.patterns import discovery

FOLDER = config.BUNDLED_MODELS / config.ENCODER
SENTENCE = "The teacher gave the child a book."


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(FOLDER)


@pytest.fixture
def model():
    torch.manual_seed(3)
    settings = BertConfig(
        vocab_size=8192, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=128, initializer_range=0.6, id2label={0: "negative", 1: "positive"},
        label2id={"negative": 0, "positive": 1},
    )  # fmt: skip
    return BertForSequenceClassification(settings).eval()


def printed(*words):
    done = CliRunner().invoke(__main__.app, [*words, "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)["rows"]


def equal(frame, rows, *, but=()):
    """Every number and text of the command's rows, in their order."""
    assert len(frame) == len(rows) > 0
    for got, wanted in zip(frame.to_dict("records"), rows, strict=True):
        for name, value in wanted.items():
            if name in but:
                continue
            if value is None:
                assert got[name] is None or got[name] != got[name], name
            elif isinstance(value, float):
                assert got[name] == pytest.approx(value, abs=1e-9), name
            else:
                assert got[name] == value, name


@pytest.mark.slow  # 29 CPU seconds: three commands and a saved copy
def test_numbers_of_a_loaded_model_are_those_of_the_commands_on_a_saved_copy(model, tokenizer, tmp_path, monkeypatch):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    saved = str(tmp_path / "saved")
    model.save_pretrained(saved)
    tokenizer.save_pretrained(saved)
    opened = notebook.open(model, tokenizer)
    words = ("--sentence", SENTENCE, "--target", "gave", "--element", "book")
    equal(opened.heads(SENTENCE, "gave", "book"), printed("heads", saved, *words))
    equal(opened.scores(), printed("atlas", saved), but=("checkpoint",))
    swept = opened.ablate(limit=24, method="zero", progress=False)
    equal(swept, printed("study", "disable", saved, "--task", "sst2", "--limit", "24", "--operator", "zero"))
    assert swept.attrs["options"]["operator"] == "zero"
    assert swept.attrs["provenance"]["weights_hash"]


def test_the_budget_of_a_loaded_model_is_that_of_the_command(model, tokenizer, tmp_path, monkeypatch):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    saved = str(tmp_path / "saved")
    model.save_pretrained(saved)
    tokenizer.save_pretrained(saved)
    found = notebook.open(model, tokenizer).budget([SENTENCE, ("It purred.", "It slept.")], progress=False)
    words = ("--text", SENTENCE, "--text", "It purred. | It slept.")
    equal(found, printed("study", "budget", saved, *words), but=("checkpoint",))
    shares = found[(found["statistic"] == "budget") & found["layer"].notna()]
    assert shares.groupby(["layer", "head"])["value"].sum().to_numpy() == pytest.approx(np.ones(4), abs=1e-6)


@pytest.mark.thorough
def test_what_heads_write_has_a_copying_score_for_every_head_and_a_relation_of_own_pairs(
    model, tokenizer, tmp_path, monkeypatch
):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("relation,source,target\nodd,zzqqxx,yyqqzz\n")
    found = notebook.open(model, tokenizer).writes(pairs=pairs, limit=2, progress=False)
    assert (found["statistic"] == "copying").sum() == 4
    assert set(found["feature"].dropna()) == {"odd"}
    assert set(found["reads"].dropna()) == {"embedding matrix"}


@pytest.mark.slow  # 20 CPU seconds: a command and two saved copies
def test_counterparts_of_a_loaded_model_are_those_of_the_command(model, tokenizer, tmp_path, monkeypatch):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    other = copy.deepcopy(model)
    with torch.no_grad():
        other.bert.embeddings.word_embeddings.weight *= 1.5
    saved = [str(tmp_path / name) for name in ("saved", "other")]
    for one, folder in zip((model, other), saved, strict=True):
        one.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    opened = notebook.open(model, tokenizer)
    found = opened.counterparts(notebook.open(other, tokenizer), task="sst2", limit=8, progress=False)
    words = ("--task", "sst2", "--limit", "8", "--draws", "99")
    rows = [row for row in printed("study", "counterparts", *saved, *words) if row["kind"] == "counterpart"]
    named = [{name: row[name] for name in found.columns} for row in rows]
    equal(found, named, but=("checkpoint", "compare"))
    assert len(found) == 4  # two layers of two heads


def test_every_call_leaves_a_loaded_model_as_it_was(model, tokenizer):
    model.set_attn_implementation("eager")
    model.train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    settings, modes = model.config.to_dict(), [module.training for module in model.modules()]
    opened = notebook.open(model, tokenizer)
    opened.maps(SENTENCE)
    opened.show(SENTENCE)
    opened.heads(SENTENCE, "gave", "book")
    opened.scores([SENTENCE])
    opened.why(SENTENCE, "L1H1")
    opened.classify(SENTENCE)
    assert opened.folder
    assert model.config.to_dict() == settings
    assert model.config._attn_implementation == "eager"
    assert [module.training for module in model.modules()] == modes
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def test_a_model_is_saved_once_until_its_weights_change(model, tokenizer):
    first = saved_copy(model, tokenizer)
    assert saved_copy(model, tokenizer) == first
    with torch.no_grad():
        model.classifier.bias += 1
    assert saved_copy(model, tokenizer) != first
    assert model.config.architectures is None  # saving the copy left the model's config alone


def test_another_thread_may_use_the_model_meanwhile_and_no_weight_is_copied(model, tokenizer):
    model.set_attn_implementation("eager")
    model.train()
    ours = checkpoint_of(model, tokenizer).model
    assert {id(tensor) for tensor in ours.parameters()} == {id(tensor) for tensor in model.parameters()}
    seen, ended = set(), threading.Event()

    def watch():
        while not ended.is_set():
            seen.add((model.training, model.bert.encoder.layer[0].training, model.config._attn_implementation))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        opened = notebook.open(model, tokenizer)
        for _ in range(3):
            opened.maps(SENTENCE)
    finally:
        ended.set()
        watcher.join()
    assert seen == {(True, True, "eager")}


def test_one_task_is_also_given_to_a_study_of_several():
    rows = notebook.study("statistics", config.ENCODER, task="sst2", limit=2, progress=False)
    assert set(rows["name"].dropna()) == {f"L{layer}H{head}" for layer in range(1, 7) for head in range(1, 7)}
    assert rows.attrs["options"]["tasks"] == ["sst2"]


def test_options_and_names_are_checked_in_one_sentence():
    with pytest.raises(InputError, match=r"must be one of checkpoint, .*; got 'metod'"):
        notebook.study("ablation", "atlas-encoder-sst2", metod="zero")
    assert {"ablation", "statistics", "circuit"} <= set(notebook.studies())


# ---------------------------------------------------------------- arrays from any source


def pane_of(widget):
    size = int.from_bytes(widget.payload[:4], "little")
    (pane,) = json.loads(widget.payload[4 : 4 + size])["panes"]
    shape = (pane["layers"], pane["heads"], pane["length"], pane["length"])
    return np.frombuffer(widget.payload[4 + size :], "<u2").reshape(shape) / 65535, pane


def random_maps(*shape, causal=False):
    weights = np.random.default_rng(5).random(shape)
    weights = np.tril(weights) if causal else weights
    return weights / weights.sum(-1, keepdims=True)


@pytest.mark.parametrize("causal", [False, True])
def test_arrays_of_numpy_and_torch_and_what_transformers_returns_are_drawn(causal, tmp_path):
    tokens = [f"patch {k}" for k in range(5)]
    weights = random_maps(3, 2, 5, 5, causal=causal)
    np.savez(tmp_path / "maps.npz", weights=weights.astype(np.float32), tokens=np.array(tokens))
    attentions = tuple(torch.tensor(layer)[None] for layer in weights)
    given = [
        weights,
        torch.tensor(weights, requires_grad=True),
        attentions,
        weights[:, None],
        str(tmp_path / "maps.npz"),
    ]
    for one in given:
        drawn, pane = pane_of(notebook.show_maps(one, None if isinstance(one, str) else tokens))
        np.testing.assert_allclose(drawn, weights, atol=1e-4)
        assert (pane["tokens"], pane["causal"]) == (tokens, causal)
    drawn, _ = pane_of(notebook.show_maps(weights[1], tokens))
    np.testing.assert_allclose(drawn, weights[1:2], atol=1e-4)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (config.ENCODER, ("--pair", "It purred.")),
        (config.DECODER, ()),
        ("atlas-translator", ("--part", "cross", "--pair", "It purred.")),
    ],
)
def test_a_file_that_the_command_maps_writes_is_drawn(name, words, tmp_path):
    file = tmp_path / "maps.npz"
    done = CliRunner().invoke(__main__.app, ["maps", name, "--text", SENTENCE, *words, "--out", str(file)])
    assert done.exit_code == 0, done.output
    widget = notebook.show_maps(file)
    with np.load(file) as stored:
        (pane,) = widget.panes
        assert (pane.layers, pane.heads) == stored["weights"].shape[:2]
        drawn = np.frombuffer(pane.weights, "<u2").reshape(stored["weights"].shape) / 65535
        np.testing.assert_allclose(drawn, stored["weights"], atol=1e-4)
        assert pane.tokens == tuple(stored["tokens"])
        assert pane.keys == tuple(stored["key_tokens"])


@pytest.mark.parametrize(
    ("weights", "tokens", "sentence"),
    [
        (random_maps(4, 4), list("abcd"), r"\(layer, head, query, key\).*got the shape \(4, 4\) and 4 tokens"),
        (random_maps(2, 2, 4, 4), list("abc"), r"got the shape \(2, 2, 4, 4\) and 3 tokens"),
        (random_maps(2, 2, 4, 5), list("abcd"), "key_tokens if the keys are not the queries"),
        (
            np.zeros((2, 2, 3, 3)),
            list("abc"),
            "Every row of an attention map must sum to 1; the row of query 1 in L1H1",
        ),
        ([object()], ["a"], "got object. Pass a NumPy array or a torch tensor"),
        ("nowhere.npz", None, "must be an NPZ file"),
    ],
)
def test_arrays_that_are_no_maps_are_one_sentence(weights, tokens, sentence):
    with pytest.raises(InputError, match=sentence):
        notebook.show_maps(weights, tokens)


# ---------------------------------------------------------------- labels and classifiers


@pytest.mark.slow  # trains a classifier
def test_a_classifier_is_trained_on_labels_and_classifies_maps_as_its_file_does(tmp_path):
    labels = notebook.labels(bundled=True)
    assert {"map_id", "class", "annotator", "layer", "head", "weights"} <= set(labels.columns)
    few = labels.groupby("class").head(60)
    trained = notebook.train_classifier(few, folds=2, curve=False, beside=False, progress=False)
    best = trained.scores.iloc[0]
    assert best["low"] < best["macro_f1"] < best["high"]
    assert set(trained.per_class["name"] if "name" in trained.per_class else trained.per_class["class"]) <= set(
        trained.classifier.classes
    )
    model = notebook.open(config.ENCODER)
    found = model.classify(SENTENCE, classifier=trained)
    again = model.classify(SENTENCE, classifier=trained.save(tmp_path / "own.safetensors"))
    assert found.equals(again)
    np.testing.assert_allclose(found[list(trained.classifier.classes)].sum(axis=1), 1, atol=1e-5)


def test_labels_of_a_database_are_those_that_hold(tmp_path):
    from core.store import labels as store
    from core.store.database import Database
    from tests.store.labelling import a_map, event

    with Database(tmp_path / "labels.duckdb") as db:
        store.store_maps(db, [a_map()])
        store.record_events(db, [event(1), event(2, cls="diagonal")])  # a second thought
    found = notebook.labels(tmp_path / "labels.duckdb")
    assert found["class"].tolist() == ["diagonal"]
    assert len(found["weights"][0]) == 2 * found["length"][0] ** 2
    with pytest.raises(InputError, match="does not exist"):
        notebook.labels(tmp_path / "none.duckdb")


def test_a_map_of_few_tokens_has_no_class():
    with pytest.raises(InputError, match="must have more than 3 tokens"):
        notebook.open(config.ENCODER).classify("a")


@pytest.mark.thorough
def test_patterns_of_a_loaded_model_are_discovered(model, tokenizer, tmp_path, monkeypatch):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    for name, value in (("SEARCHED", 1), ("HALVES", 2), ("OF_SAMPLE", 1), ("SAMPLES", 1)):
        monkeypatch.setattr(discovery, name, value)
    opened = notebook.open(model, tokenizer)
    found = opened.discover(maps=60, limit=15, progress=False)
    assert set(found["part"]) >= {"clusters", "cluster"}
    assert set(found["checkpoint"]) == {opened.name}
    assert found["maps"].iloc[0] == 60
