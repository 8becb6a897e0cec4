"""The fast sweep gives the numbers of one whole pass per variant, in every order, batch and family."""

from dataclasses import replace

import pytest
import torch
from transformers import GPT2LMHeadModel

from core.attention import Head
from core.capture import stacks, sweeping
from core.capture.interventions import OPERATORS, Intervention
from core.capture.running import predict
from core.capture.stacks import Linear
from core.capture.sweeping import Computing, every_head, sweep
from core.errors import CheckpointError, InputError, InterventionError
from core.models import memory
from tests.capture.conftest import TEXT, tiny
from tests.capture.test_interventions import INTERCEPTABLE, classifier

GROUPS = [
    frozenset({Head(0, 1), Head(2, 2)}),
    frozenset({Head(1, 1), Head(1, 2), Head(2, 0)}),
    frozenset({Head(2, 0), Head(2, 3)}),
    frozenset({Head(0, 0), Head(0, 1), Head(1, 1)}),
]
LAYERS = [frozenset(Head(layer, head) for head in range(4)) for layer in range(3)]
ALL_BUT_ONE = [layer - head for layer in LAYERS for head in every_head(3, 4) if head < layer]
KINDS = {"heads": every_head(3, 4), "layers": LAYERS, "all-but-one": ALL_BUT_ONE, "groups": GROUPS}


def encodings(checkpoint):
    pairs = [(TEXT[0], None), (TEXT[1], TEXT[3]), (TEXT[3], None), (TEXT[0], None), ("a dog", None), (TEXT[2], TEXT[0])]
    return [checkpoint.encode(text, pair) for text, pair in pairs]


def one_by_one(checkpoint, some, variants, operator):
    return torch.stack([predict(checkpoint, some, interventions=[Intervention(operator, one)]) for one in variants])


# 2 CPU seconds each, so most pairs are slow: by default every operator meets a family and every family an operator
DEFAULT = {
    "zero": ("bert",),
    "disable": ("gpt2", "bert mean"),
    "previous": ("roberta",),
    "current": ("electra",),
    "next": ("bert", "gpt2"),
    "first": ("gpt2",),
}
PAIRS = [
    (family, operator)
    if family in DEFAULT.get(operator, ())
    else pytest.param(family, operator, marks=pytest.mark.slow)
    for operator in OPERATORS
    for family in ("bert", "roberta", "electra", "gpt2", "bert mean", "gpt2 mean", "bert last")
]


@pytest.mark.thorough
@pytest.mark.parametrize(("family", "operator"), PAIRS)
def test_shared_work_changes_no_number(family, operator):
    checkpoint = classifier(family)
    if operator == "next" and checkpoint.causal:
        with pytest.raises(InterventionError, match="next"):
            sweep(checkpoint, encodings(checkpoint), GROUPS, operator)
        return
    some = encodings(checkpoint)
    for kind, variants in KINDS.items():
        found = sweep(checkpoint, some, variants, operator)
        assert found.fast
        assert torch.allclose(found.plain, predict(checkpoint, some), atol=1e-5)
        assert torch.allclose(found.changed, one_by_one(checkpoint, some, variants, operator), atol=1e-5), kind


@pytest.mark.thorough
@pytest.mark.parametrize("family", [name for name in INTERCEPTABLE if name not in stacks._BUILDERS])
def test_families_without_a_stack_give_the_same_numbers_by_full_passes(family):
    checkpoint = classifier(family)
    some, variants = encodings(checkpoint)[:2], GROUPS[:2]
    found = sweep(checkpoint, some, variants, "zero")
    assert not found.fast
    assert torch.equal(found.changed, one_by_one(checkpoint, some, variants, "zero"))


def test_an_option_that_the_stack_does_not_know_is_noticed_and_not_used(monkeypatch):
    checkpoint = classifier("bert")
    with torch.no_grad():
        checkpoint.model.bert.encoder.layer[1].attention.self.scaling *= 3  # as an unusual config would
    some = encodings(checkpoint)
    found = sweep(checkpoint, some, GROUPS)
    assert not found.fast
    assert torch.equal(found.changed, one_by_one(checkpoint, some, GROUPS, "disable"))


ENDINGS = ["a dog", "a dog<|endoftext|>", "a bag<|endoftext|><|endoftext|>", "<|endoftext|>a", "<|endoftext|>"]


@pytest.mark.thorough
def test_a_text_that_ends_with_the_padding_piece_is_read_as_the_model_reads_it():
    """Its head takes the right-most piece that is no padding: the last position would be another logit."""
    checkpoint = classifier("gpt2")
    some = [checkpoint.encode(text) for text in [*ENDINGS, *TEXT]]
    assert sum(one.ids[-1] == checkpoint.model.config.pad_token_id for one in some) == 3
    for operator in ("disable", "zero", "previous"):
        found = sweep(checkpoint, some, KINDS["heads"], operator)
        assert found.fast
        assert torch.allclose(found.plain, predict(checkpoint, some), atol=1e-5)
        assert torch.allclose(found.changed, one_by_one(checkpoint, some, KINDS["heads"], operator), atol=1e-5)


@pytest.mark.thorough
def test_a_row_that_the_stack_reads_otherwise_is_seen_wherever_it_stands(monkeypatch):
    checkpoint = classifier("gpt2")
    some = [checkpoint.encode(text) for text in [*TEXT, *ENDINGS, *TEXT]]
    monkeypatch.setattr(stacks.Stack, "read", lambda self, encoding: encoding)  # the defect: always the last piece
    found = sweep(checkpoint, some, GROUPS)
    assert not found.fast
    assert torch.equal(found.changed, one_by_one(checkpoint, some, GROUPS, "disable"))
    assert sweep(checkpoint, some[:4], GROUPS).fast  # where no row holds the piece nothing differs


def test_any_row_is_compared_with_the_model_once_in_a_while():
    checkpoint = classifier("bert")
    some = [checkpoint.encode(TEXT[k % 4]) for k in range(40)]
    checked = sweeping._to_check(some, padding=some[0].ids[1])
    assert {0, 16, 32} <= set(checked)
    assert {k for k in range(40) if k % 4 == 0} <= set(checked)  # those that hold the padding piece
    assert {len(some[k]) for k in checked} >= {min(map(len, some)), max(map(len, some))}


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_batches_of_any_size_give_the_same(family):
    checkpoint = classifier(family)
    some = encodings(checkpoint) * 2
    whole = sweep(checkpoint, some, KINDS["heads"], computing=Computing(batch_tokens=100_000))
    pieces = sweep(checkpoint, some, KINDS["heads"], computing=Computing(batch_tokens=1))
    assert torch.allclose(whole.changed, pieces.changed, atol=1e-5)


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_products_from_the_dimensions_of_a_head_change_no_number(family, monkeypatch):
    checkpoint, used = classifier(family), []
    monkeypatch.setattr(sweeping, "BY_HEAD_FROM", 0)
    monkeypatch.setattr(stacks.BegunByHead, "after", lambda *given, own=stacks.BegunByHead.after: (
        used.append(given[-1]), own(*given))[1])  # fmt: skip
    some = encodings(checkpoint)
    found = sweep(checkpoint, some, KINDS["heads"])
    assert torch.allclose(found.changed, one_by_one(checkpoint, some, KINDS["heads"], "disable"), atol=1e-5)
    assert set(used) == set(range(checkpoint.heads))


def test_a_language_model_is_read_at_the_last_token_of_each_input():
    model = GPT2LMHeadModel(classifier("gpt2").model.config).eval()
    checkpoint = replace(classifier("gpt2"), model=model)
    some = encodings(checkpoint)
    assert len({len(one) for one in some}) > 1
    found = sweep(checkpoint, some, KINDS["heads"][:2], computing=Computing(place=-1))
    assert found.fast
    wanted = torch.stack([model(torch.tensor([one.ids])).logits[0, -1] for one in some])
    assert torch.allclose(found.plain, wanted, atol=1e-5)


def test_a_variant_alone_gives_what_it_gives_among_others():
    checkpoint = classifier("bert")
    some = encodings(checkpoint)
    every = sweep(checkpoint, some, KINDS["heads"]).changed
    assert torch.allclose(sweep(checkpoint, some[2:3], KINDS["heads"][6:7]).changed[0, 0], every[6, 2], atol=1e-6)


def test_the_model_is_left_as_it_was():
    checkpoint = classifier("gpt2")
    before = {name: value.clone() for name, value in checkpoint.model.state_dict().items()}
    sweep(checkpoint, encodings(checkpoint), GROUPS)
    assert all(torch.equal(before[name], value) for name, value in checkpoint.model.state_dict().items())


def test_bfloat16_is_near_and_says_so(monkeypatch):
    monkeypatch.setattr(sweeping, "arithmetic", lambda device, dtype: dtype)  # also on a CPU that only emulates it
    checkpoint = classifier("bert")
    some = encodings(checkpoint)
    exact, rough = (
        sweep(checkpoint, some, KINDS["heads"], computing=Computing(dtype=dtype)) for dtype in (None, "bfloat16")
    )
    assert rough.fast
    assert (exact.dtype, rough.dtype) == ("float32", "bfloat16")
    off = (exact.changed - rough.changed).abs().max()
    assert 0 < off < 0.1  # 8 bits of mantissa through three layers
    assert exact.changed.dtype == rough.changed.dtype == torch.float32


def test_a_cpu_without_bfloat16_computes_in_float32_and_says_so(monkeypatch):
    checkpoint = classifier("bert")
    some = encodings(checkpoint)
    monkeypatch.setattr(memory, "has_bfloat16", lambda: False)
    exact = sweep(checkpoint, some, GROUPS)
    found = sweep(checkpoint, some, GROUPS, computing=Computing(dtype="bfloat16"))
    assert found.dtype == "float32"
    assert torch.equal(found.changed, exact.changed)


def test_every_head_and_every_layer_in_order():
    assert every_head(2, 3)[4] == {Head(1, 1)}


def test_what_cannot_be_swept_is_refused_in_a_sentence():
    checkpoint = classifier("bert")
    some = encodings(checkpoint)
    with pytest.raises(InputError, match="at least one example"):
        sweep(checkpoint, [], GROUPS)
    with pytest.raises(InputError, match="at least one head"):
        sweep(checkpoint, some, [frozenset()])
    with pytest.raises(InputError, match="from L1H1 to L3H4; got L9H1"):
        sweep(checkpoint, some, [{Head(8, 0)}])
    with pytest.raises(InterventionError, match="An ablation method must be one of"):
        sweep(checkpoint, some, GROUPS, "median")
    with pytest.raises(InputError, match='got "int4"'):
        sweep(checkpoint, some, GROUPS, computing=Computing(dtype="int4"))
    with pytest.raises(CheckpointError, match="classification head"):
        sweep(tiny("bert"), some, GROUPS)


PACKED = pytest.param(
    True,
    marks=pytest.mark.skipif(not hasattr(torch.ops.mkldnn, "_linear_pointwise"), reason="PyTorch without oneDNN"),
)


@pytest.mark.parametrize("packed", [PACKED, False])
@pytest.mark.parametrize("activation", [None, "gelu", "gelu_new", "relu"])
def test_a_layer_equals_its_formula_and_leaves_its_input(activation, packed, monkeypatch):
    monkeypatch.setattr(stacks, "packs", lambda device, dtype: packed)  # whatever this CPU would choose
    torch.manual_seed(0)
    x, weight, bias = torch.randn(2, 5, 24), torch.randn(16, 24), torch.randn(16)
    wanted = torch.einsum("bti,oi->bto", x.double(), weight.double()) + bias.double()
    functions = {
        None: lambda y: y,
        "gelu": lambda y: y * 0.5 * (1 + torch.erf(y / 2**0.5)),
        "gelu_new": lambda y: 0.5 * y * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (y + 0.044715 * y**3))),
        "relu": lambda y: y.clamp(min=0),
    }
    layer, before = Linear(weight, bias, torch.float32), x.clone()
    assert layer.packed == packed
    assert torch.allclose(layer(x, activation=activation).double(), functions[activation](wanted), atol=1e-5)
    if activation is None:
        assert torch.allclose(layer(x, plus=x[..., :16]).double(), wanted + x[..., :16], atol=1e-5)
    assert torch.equal(x, before)


@pytest.mark.skipif(not hasattr(torch.ops.mkldnn, "_linear_pointwise"), reason="PyTorch without oneDNN")
def test_with_and_without_packed_kernels_the_numbers_are_the_same(monkeypatch):
    checkpoint = classifier("gpt2")
    some, found = encodings(checkpoint), []
    for packed in (True, False):
        monkeypatch.setattr(stacks, "packs", lambda device, dtype, packed=packed: packed)
        found.append(sweep(checkpoint, some, GROUPS))
    assert found[0].fast
    assert found[1].fast
    assert torch.allclose(found[0].changed, found[1].changed, atol=1e-5)


def test_sweeping_is_the_module_that_batches(monkeypatch):
    """Untouched layers below a variant run once per batch, however many variants there are."""
    checkpoint, runs = classifier("bert"), []
    honest = stacks.Block.mixed_of
    monkeypatch.setattr(stacks.Block, "mixed_of", lambda *a: runs.append(1) or honest(*a))
    some = [checkpoint.encode(TEXT[0])]
    sweeping.sweep(checkpoint, some, every_head(3, 4)[4:8], computing=sweeping.Computing(batch_tokens=10_000))
    assert len(runs) == 2 + 2  # two layers to check the stack, two to run; the third is the classifier's token
