"""Mean, resampled, constant and patched heads' outputs: equal to forwards by hand, causal, exact."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from core.attention import Head
from core.capture.blocks import PartChange
from core.capture.components import PART_KINDS, LayerBlock
from core.capture.interventions import OPERATORS, Intervention, Knockout
from core.capture.knockout import edges_of
from core.capture.outputs import Alignment, ByClass, Donors, Patched, classes_of, head_outputs, mean_outputs
from core.capture.running import predict, prepared
from core.capture.sweeping import Computing, every_head, sweep
from core.errors import InputError, InterventionError
from tests.capture import by_hand
from tests.capture.conftest import TEXT, tiny
from tests.capture.test_components import double
from tests.capture.test_interventions import INTERCEPTABLE, classifier, encodings

HEADS = [(0, 1), (1, 0), (1, 3), (2, 2)]
CHOSEN = frozenset(Head(*head) for head in HEADS)
SETS = [CHOSEN, *every_head(3, 4)]


def reference(checkpoint):
    return [checkpoint.encode(text, pair) for text, pair in ((TEXT[1], None), (TEXT[2], TEXT[0]), (TEXT[3], TEXT[1]))]


def replaced_by_hand(outputs, heads=CHOSEN, places=None):
    """outputs [layer, position, head, dim] in these heads."""

    def change(layer, what, tensor, before=None):
        if what != "heads":
            return tensor
        tensor = tensor.copy()
        for one in heads:
            if one.layer == layer:
                for position in range(len(tensor)) if places is None else places:
                    tensor[position, one.head] = outputs[layer][position, one.head]
        return tensor

    return change


def means_by_hand(checkpoint, some, by):
    """{group: [layer, head, dim]} and the function from an input's position to its group."""
    sums, counts, kept = {}, {}, {}

    def group(encoding, position):
        if by == "all":
            return "all"
        if by == "position":
            return position
        if position == encoding.first:
            return "first"
        return "separator" if position in encoding.separators else "other"

    for encoding in some:

        def keep(layer, what, tensor, before=None):
            if what == "heads":
                kept[layer] = tensor
            return tensor

        by_hand.logits(checkpoint, encoding, keep)
        for position in range(len(encoding)):
            name = group(encoding, position)
            part = np.stack([kept[layer][position] for layer in range(3)])
            sums[name] = sums.get(name, 0) + part
            counts[name] = counts.get(name, 0) + 1
    return {name: total / counts[name] for name, total in sums.items()}, group


@pytest.mark.thorough
@pytest.mark.parametrize("family", ["bert", "gpt2"])
@pytest.mark.parametrize("by", ["class", "position", "all"])
def test_mean_equals_a_forward_by_hand_with_means_by_hand(family, by):
    checkpoint = double(family)
    source = mean_outputs(checkpoint, reference(checkpoint), by=by)
    assert sum(source.n) == sum(map(len, reference(checkpoint)))
    means, group = means_by_hand(checkpoint, reference(checkpoint), by)
    for encoding in encodings(checkpoint):
        outputs = np.stack([means[group(encoding, position)] for position in range(len(encoding))], 1)
        wanted = torch.from_numpy(by_hand.logits(checkpoint, encoding, replaced_by_hand(outputs)))
        found = predict(checkpoint, [encoding], interventions=[Intervention("mean", CHOSEN, source)])[0]
        assert (found - wanted).abs().max() < 1e-9
        fast = sweep(checkpoint, [encoding], [CHOSEN], "mean", source=source, computing=Computing(dtype="float64"))
        assert fast.fast
        assert (fast.changed[0, 0] - wanted).abs().max() < 1e-9


def sources(checkpoint):
    means = mean_outputs(checkpoint, reference(checkpoint))
    return [
        means,
        Donors(checkpoint, tuple(reference(checkpoint)), seed=3),
        ByClass("constant", means.outputs * 2, means.n),
    ]


@pytest.mark.parametrize(
    "family", ["bert", "gpt2", *(pytest.param(name, marks=pytest.mark.slow) for name in ("roberta", "electra"))]
)  # two kinds of stack
def test_shared_work_changes_no_number(family):
    checkpoint = classifier(family)
    some = [*encodings(checkpoint), checkpoint.encode("a dog"), checkpoint.encode(TEXT[0])]
    for source in sources(checkpoint):
        found = sweep(checkpoint, some, SETS, source.operator, source=source)
        assert found.fast
        for number, variant in enumerate(SETS):
            whole = predict(checkpoint, some, interventions=[Intervention(source.operator, variant, source)])
            assert torch.allclose(found.changed[number], whole, atol=1e-5), (source.operator, number)
        assert (found.changed - found.plain).abs().amax((1, 2)).min() > 1e-6


@pytest.mark.thorough
@pytest.mark.parametrize("family", [name for name in INTERCEPTABLE if name not in ("bert", "gpt2")])
def test_every_family_takes_every_operator(family):
    checkpoint = classifier(family)
    some = encodings(checkpoint)
    plain = predict(checkpoint, some)
    for source in sources(checkpoint):
        together = predict(checkpoint, some, interventions=[Intervention(source.operator, CHOSEN, source)])
        alone = [
            predict(checkpoint, [one], interventions=[Intervention(source.operator, CHOSEN, source)]) for one in some
        ]
        assert torch.allclose(together, torch.cat(alone), atol=1e-5)
        assert (together - plain).abs().max() > 1e-5
    assert torch.equal(predict(checkpoint, some), plain)


def states(checkpoint, ids, chosen):
    """Last hidden states of a decoder on given pieces."""
    encoding = checkpoint.encode(TEXT[0])
    changed = replace(encoding, ids=tuple(ids))
    with torch.no_grad(), prepared(checkpoint, chosen, some=[encoding], inputs=[0]):
        return checkpoint.model(**checkpoint.inputs([changed])).last_hidden_state[0]


@pytest.mark.thorough
@pytest.mark.parametrize("family", ["gpt2", "opt", "llama", "gpt_neox"])
def test_causal_models_stay_causal_under_every_operator(family):
    checkpoint = tiny(family)
    encoding = checkpoint.encode(TEXT[0])
    later = [*encoding.ids[:-2], *(one + 1 for one in encoding.ids[-2:])]
    partner = head_outputs(checkpoint, [checkpoint.encode(TEXT[0].upper())])
    aligned = Alignment(tuple((k, k) for k in range(1, min(len(encoding), partner[0].shape[1]), 2)))
    given = [*sources(checkpoint), Patched(partner, [aligned])]
    every = [[Intervention(one.operator, CHOSEN, one)] for one in given]
    every += [[Intervention(name, CHOSEN)] for name in OPERATORS if name != "next"]
    every += [[PartChange(LayerBlock(1, kind))] for kind in PART_KINDS]
    every += [
        [Knockout(edges_of(kind, causal=True), frozenset({0, 2}), renormalised)]
        for kind in ("current", "previous")
        for renormalised in (True, False)
    ]
    for chosen in every:
        first, second = states(checkpoint, encoding.ids, chosen), states(checkpoint, later, chosen)
        assert torch.allclose(first[:-2], second[:-2], atol=1e-6), chosen
        assert (first[-1] - second[-1]).abs().max() > 1e-4
        assert (first - states(checkpoint, encoding.ids, [])).abs().max() > 1e-4


def test_a_head_with_a_constant_output_has_no_effect_under_mean():
    checkpoint = classifier("bert")
    with torch.no_grad():
        value = checkpoint.model.bert.encoder.layer[1].attention.self.value
        value.weight[8:16] = 0  # head 2's values are its bias, whatever it attends to
    source = mean_outputs(checkpoint, reference(checkpoint))
    found = sweep(checkpoint, encodings(checkpoint), every_head(3, 4), "mean", source=source)
    effects = (found.changed - found.plain).abs().amax((1, 2))
    assert effects[1 * 4 + 1] < 1e-6
    assert effects[[k for k in range(12) if k != 5]].min() > 1e-5


# ---------------------------------------------------------------- resample and patch


def test_donors_are_other_rows_of_the_nearest_length_whatever_the_batch():
    checkpoint = classifier("bert")
    rows = [checkpoint.encode(text) for text in ("a bag", "a can", "she saw", "the old engine ran all night", TEXT[1])]
    donors = Donors(checkpoint, tuple(rows), seed=1)
    chosen = donors.chosen(rows[0])
    assert chosen in (rows[1], rows[2])
    assert {Donors(checkpoint, tuple(rows), seed=1, draw=k).chosen(rows[0]).text for k in range(20)} == {
        "a can",
        "she saw",
    }
    own = head_outputs(checkpoint, [chosen])[0]
    assert torch.equal(donors.given([rows[0]], [0]).outputs[:, 0], own)
    longer = donors.given([rows[3]], [0]).outputs[:, 0]
    nearest = head_outputs(checkpoint, [donors.chosen(rows[3])])[0]
    assert torch.equal(longer[:, 0], nearest[:, 0])
    assert torch.equal(longer[:, -1], nearest[:, -1])


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_patching_some_places_equals_a_forward_by_hand(family):
    checkpoint = double(family)
    a, b = encodings(checkpoint)[0], encodings(checkpoint)[2]
    pairs = ((0, 0), (2, 3), (4, len(b) - 1))
    outputs = head_outputs(checkpoint, [a])
    aligned = np.zeros((3, len(b), 4, 8))
    for theirs, own in pairs:
        aligned[:, own] = outputs[0][:, theirs].numpy()
    wanted = by_hand.logits(checkpoint, b, replaced_by_hand(aligned, places=[own for _, own in pairs]))
    source = Patched(outputs, [Alignment(pairs)])
    found = sweep(checkpoint, [b], [CHOSEN], "patch", source=source, computing=Computing(dtype="float64"))
    assert found.fast
    assert (found.changed[0, 0] - torch.from_numpy(wanted)).abs().max() < 1e-9


def test_classes_of_positions():
    encoding = classifier("bert").encode(TEXT[0], TEXT[3])
    classes = classes_of(encoding).tolist()
    assert classes[0] == 0
    assert [k for k, one in enumerate(classes) if one == 1] == list(encoding.separators)


def test_what_has_no_source_is_refused_in_a_sentence():
    checkpoint = classifier("bert")
    some = encodings(checkpoint)
    with pytest.raises(InputError, match="at least one reference input; got none"):
        mean_outputs(checkpoint, [])
    with pytest.raises(InputError, match='got "word"'):
        mean_outputs(checkpoint, some, by="word")
    with pytest.raises(InputError, match="two different reference inputs; got 1"):
        Donors(checkpoint, (some[0],))
    with pytest.raises(
        InterventionError,
        match=r'"mean" needs head outputs that were computed for this method on reference inputs; got none',
    ):
        sweep(checkpoint, some, [CHOSEN], "mean")
    with pytest.raises(InterventionError, match='got outputs for "mean"'):
        sweep(checkpoint, some, [CHOSEN], "resample", source=mean_outputs(checkpoint, some))
    with pytest.raises(InterventionError, match='"zero" takes no replacement outputs; got outputs for "mean"'):
        sweep(checkpoint, some, [CHOSEN], "zero", source=mean_outputs(checkpoint, some))
    with pytest.raises(InputError, match="must have corresponding tokens"):
        Alignment(()).within(some[0], some[1])
    with pytest.raises(InputError, match="first input must be from 1 to 14; got 31"):
        Alignment(((30, 0),)).within(checkpoint.encode("a b c d e f g h i j k l"), some[1])
    with pytest.raises(InterventionError, match="xlnet models do not"):
        head_outputs(tiny("xlnet"), [tiny("xlnet").encode(TEXT[0])])
