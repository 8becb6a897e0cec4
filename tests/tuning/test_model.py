from types import SimpleNamespace

import pytest
import torch

from core.errors import CheckpointError, InputError
from core.models.classifier import fresh_classifier
from core.models.opening import open_checkpoint
from core.tasks.glue import TASKS
from core.tuning.batches import collate, encode
from core.tuning.model import initialised, layers_of, logits_of, loss_of, predictions
from core.tuning.recipe import Recipe
from tests.capture.conftest import tiny
from tests.tuning.conftest import rows

SST2 = TASKS["sst2"]
STACKED = ["bert", "roberta", "distilbert", "electra", "gpt2", "opt", "llama", "gpt_neox"]


def grown(model, base, examples):
    inputs, labels = collate(examples, padding=0, segments=base.takes_token_types)
    loss_of(SST2, model(**inputs).logits, labels).backward()
    return {name for name, p in model.named_parameters() if p.grad is not None and p.grad.abs().sum() > 0}


@pytest.mark.thorough
@pytest.mark.parametrize("family", STACKED)
def test_every_learning_parameter_gets_a_gradient(family):
    base = tiny(family)
    model = initialised(base, SST2, "pretrained", Recipe(), 0)
    learning = {name for name, p in model.named_parameters() if p.requires_grad}
    assert learning == {name for name, _ in model.named_parameters()}
    silent = {"key.bias", "k_proj.bias", "k_lin.bias"}  # a key bias shifts all scores of a row alike: no effect at all
    missing = learning - grown(model, base, encode(base, rows(16), 64))
    assert {name for name in missing if not any(name.endswith(one) for one in silent)} == set()


@pytest.mark.parametrize("family", STACKED)
def test_every_block_changes_the_logits(family):
    base = tiny(family)
    model, examples = initialised(base, SST2, "pretrained", Recipe(), 0), encode(base, rows(4), 64)
    before = logits_of(model, base, examples)
    for layer in layers_of(model)[1]:
        kept = {name: value.clone() for name, value in layer.state_dict().items()}
        with torch.no_grad():
            for parameter in layer.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.1)
        assert (logits_of(model, base, examples) - before).abs().max() > 1e-6
        layer.load_state_dict(kept)
    assert torch.equal(logits_of(model, base, examples), before)


@pytest.mark.thorough
@pytest.mark.parametrize("pooling", ["auto", "mean", "last"])
def test_padding_changes_nothing(base, pooling):
    """Methods 11: pad id and mask are set, an end-of-text separator is not taken for padding."""
    recipe = Recipe(pooling=pooling)
    model, examples = initialised(base, SST2, "pretrained", recipe, 0).eval(), encode(base, rows(12), 64)
    with torch.no_grad():
        together = collate(examples, padding=model.config.pad_token_id, segments=base.takes_token_types, pad_to=60)[0]
        found = model(**together).logits
        alone = [
            model(**collate([one], padding=model.config.pad_token_id, segments=base.takes_token_types)[0]).logits
            for one in examples
        ]
    torch.testing.assert_close(found, torch.cat(alone), atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(logits_of(model, base, examples), found, atol=1e-5, rtol=1e-4)


def test_gpt2_reads_the_last_real_token():
    base = tiny("gpt2")
    model = initialised(base, SST2, "pretrained", Recipe(), 0).eval()
    one = encode(base, rows(2), 64)[1]  # a pair: end-of-text stands between, and equals the padding
    assert model.config.pad_token_id in one.encoding.ids[1:-1]
    inputs = collate([one], padding=model.config.pad_token_id, segments=False, pad_to=40)[0]
    with torch.no_grad():
        states = model.base_model(**inputs).last_hidden_state
        torch.testing.assert_close(model(**inputs).logits[0], model.score(states[0, len(one) - 1]))


def test_initialisations(base):
    source = dict(base.model.named_parameters())

    def like_source(model):
        inner = dict(model.base_model.named_parameters())
        return {name for name in inner if name in source and torch.equal(inner[name], source[name])}

    pretrained = initialised(base, SST2, "pretrained", Recipe(), 0)
    assert like_source(pretrained) == set(dict(pretrained.base_model.named_parameters()))
    random_one = initialised(base, SST2, "random", Recipe(), 7)  # tiny() itself was drawn with 0
    matrices = {n for n, p in random_one.base_model.named_parameters() if p.ndim > 1}
    assert not like_source(random_one) & matrices
    frozen = initialised(base, SST2, "frozen", Recipe(), 0)
    inside = {id(p) for p in frozen.base_model.parameters()}
    assert all(p.requires_grad == (id(p) not in inside) for p in frozen.parameters())
    assert not any(p.requires_grad for p in initialised(base, SST2, "untrained", Recipe(), 0).parameters())
    with pytest.raises(InputError, match="pretrained, random, frozen, untrained"):
        initialised(base, SST2, "xavier", Recipe(), 0)


def test_seeds_draw_the_head():
    base = tiny("bert")
    heads = [initialised(base, SST2, "pretrained", Recipe(), seed).classifier.weight for seed in (0, 0, 1)]
    assert torch.equal(heads[0], heads[1])
    assert not torch.equal(heads[0], heads[2])


def test_random_normal_has_the_configs_spread():
    base = tiny("bert")
    base.model.config.initializer_range = 0.02
    weight = initialised(base, SST2, "random", Recipe(), 0).bert.encoder.layer[0].intermediate.dense.weight
    assert float(weight.detach().std()) == pytest.approx(0.02, rel=0.1)


def test_last_layers_only(base):
    model = initialised(base, SST2, "pretrained", Recipe(train_last=1), 0)
    layers = layers_of(model)[1]
    assert [all(p.requires_grad for p in layer.parameters()) for layer in layers] == [False, False, True]
    assert not any(p.requires_grad for p in model.get_input_embeddings().parameters())
    reset = initialised(base, SST2, "pretrained", Recipe(reset_last=2), 0)
    same = [
        all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True) if a.ndim > 1)
        for one, other in zip(layers_of(reset)[1], layers, strict=True)
    ]
    assert same == [True, False, False]
    with pytest.raises(InputError, match="models share weights"):
        initialised(tiny("albert"), SST2, "pretrained", Recipe(train_last=1), 0)
    with pytest.raises(InputError, match="this model has one layer"):
        layers_of(SimpleNamespace(config=SimpleNamespace(num_hidden_layers=1), named_modules=dict[str, object]().items))


def test_dropout_can_be_turned_off(base):
    model, examples = initialised(base, SST2, "pretrained", Recipe(dropout=0.0), 0), encode(base, rows(4), 64)
    inputs = collate(examples, padding=0, segments=base.takes_token_types)[0]
    model.train()
    assert torch.equal(model(**inputs).logits, model(**inputs).logits)


def test_outputs_and_losses():
    base = tiny("bert")
    assert initialised(base, TASKS["mnli"], "pretrained", Recipe(), 0).config.id2label[2] == "contradiction"
    score = initialised(base, TASKS["stsb"], "pretrained", Recipe(), 0)
    assert score.config.num_labels == 1
    logits = torch.tensor([[1.0], [3.0]])
    assert float(loss_of(TASKS["stsb"], logits, torch.tensor([2.0, 5.0]))) == pytest.approx(2.5)
    assert predictions(TASKS["stsb"], logits) == [1.0, 3.0]
    assert predictions(SST2, torch.tensor([[1.0, 2.0], [2.0, 1.0]])) == [1, 0]


@pytest.mark.parametrize(
    ("family", "pooling", "message"),
    [
        ("gpt2", "cls", "does not attend to the rest of the sentence"),
        ("gpt2", "sep", "needs a separator"),
    ],
)
def test_impossible_poolings(family, pooling, message):
    with pytest.raises(CheckpointError, match=message):
        initialised(tiny(family), SST2, "pretrained", Recipe(pooling=pooling), 0)


def test_a_head_reads_from_a_known_place():
    with pytest.raises(CheckpointError, match="must be one of auto, cls"):
        fresh_classifier(tiny("bert"), ("one", "other"), pooling="max")


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_a_checkpoint_whose_head_has_another_number_of_labels_gets_a_new_head(tmp_path, family):
    base = tiny(family)
    initialised(base, TASKS["mnli"], "pretrained", Recipe(), 0).save_pretrained(tmp_path)
    base.tokenizer.save_pretrained(tmp_path)
    model = initialised(open_checkpoint(str(tmp_path)), SST2, "pretrained", Recipe(), 0)
    assert model.config.id2label == {0: "negative", 1: "positive"}
    assert logits_of(model, base, encode(base, rows(3), 64)).shape == torch.Size([3, 2])
    kept = dict(model.base_model.named_parameters())
    assert all(torch.equal(kept[name], value) for name, value in base.model.named_parameters() if "pooler" not in name)
