"""Sums of contributions: each operation equals that of the whole tensor, or of every contribution by itself."""

import pytest
import torch
from torch import nn

from core.capture.contributors import BIAS, LAST_BIAS, Contributor
from core.capture.sums import FixedPart, FrozenNorm, HeldNorm, Sum, fixed_part

TOKEN, POSITION, OTHER = Contributor("token"), Contributor("position"), Contributor("segment")
ROWS, HIDDEN = (2, 5), 8


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed + sum(shape)), dtype=torch.float64)


def a_sum(*, scaled: bool = True, by_position: bool = True, last: bool = True, role="stream") -> Sum:
    """Two contributions of every row, one that is the same in every input, and constants."""
    vector = drawn(3, *((1, 5) if by_position else (1, 1)), HIDDEN, seed=1)
    fixed = [FixedPart(POSITION, vector, drawn(3, *ROWS, 1, seed=2) if scaled else None), fixed_part(BIAS, drawn(8), 3)]
    fixed += [fixed_part(LAST_BIAS, drawn(HIDDEN, seed=3), 3)] if last else []
    return Sum((TOKEN, Contributor("head", 0, 1)), lambda: drawn(2, *ROWS, HIDDEN, seed=4), role, None, fixed)


def by_component(states: Sum) -> dict[Contributor, torch.Tensor]:
    """All contributions as they are defined, a loop over rows and vectors."""
    shape = (*ROWS, (states.chunks[0] if states.chunks else states.fixed[0].vectors).shape[-1])
    found = {component: torch.zeros(shape, dtype=torch.float64) for component in states.components}
    names = iter(states.names)
    for chunk in states.chunks:
        for part in chunk:
            found[next(names)] += part
    for part in states.fixed:
        for number, vector in enumerate(part.vectors):
            for row in range(ROWS[0]):
                for place in range(ROWS[1]):
                    own = vector[min(row, vector.shape[0] - 1), min(place, vector.shape[1] - 1)]
                    scale = 1.0 if part.scales is None else float(part.scales[number, row, place, 0])
                    found[part.component][row, place] += own * scale
    return found


FORMS = [{}, {"scaled": False}, {"by_position": False}, {"scaled": False, "by_position": False}, {"last": False}]


@pytest.mark.parametrize("form", FORMS)
def test_parts_and_linear_functions_of_them_are_those_of_each_contribution(form):
    states, weight = a_sum(**form), drawn(HIDDEN, 3, seed=5)
    wanted = by_component(states)
    assert states.components == tuple(wanted)
    for component, part in zip(states.components, states.parts, strict=True):
        assert torch.allclose(part, wanted[component])
    bias = fixed_part(LAST_BIAS, drawn(3, seed=6), 3)
    projected = states.projected(weight, bias, "branch")
    for found, extra, role in (
        (projected, bias.vectors[0], "branch"),
        (states.projected(weight, None, "branch"), 0.0, "branch"),
        (states.times(weight, "branch"), 0.0, "branch"),
        (states.mapped(lambda part: part @ weight), 0.0, states.role),
        (states.mapped(lambda parts: parts @ weight, broadcasts=True), 0.0, states.role),
    ):
        assert found.role == role
        for component, part in zip(found.components, found.parts, strict=True):
            own = wanted.get(component, torch.zeros(*ROWS, HIDDEN, dtype=torch.float64)) @ weight
            assert torch.allclose(part, own + extra if component == LAST_BIAS else own), component
    assert LAST_BIAS in projected.components
    assert not any(component.is_spared for component in projected.components)


def test_the_first_contribution_can_be_projected_for_the_first_input_alone():
    states, weight = a_sum(), drawn(HIDDEN, 3, seed=5)
    spared = states.projected(weight, None, "branch", spares=True)
    assert [component.is_spared for component in spared.components] == [True, False, False, False, False]
    whole = states.projected(weight, None, "branch").parts
    assert torch.allclose(spared.parts[0, 0], whole[0, 0])
    assert not spared.parts[0, 1:].any()
    assert torch.allclose(spared.parts[1:], whole[1:])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("is_centred", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_a_norm_with_its_own_scale_is_torchs_norm_of_the_whole(form, is_centred, weighted):
    states, eps = a_sum(**form), 1e-3
    whole = sum(by_component(states).values())
    weight, bias = (drawn(HIDDEN, seed=7), drawn(HIDDEN, seed=8)) if weighted else (None, None)
    frozen = FrozenNorm(states.components, states.parts, is_centred, eps)
    held = HeldNorm(is_centred, 1 / frozen.spread[..., None], weight)
    normed = states.normed(held, bias)
    if is_centred:
        wanted = nn.functional.layer_norm(whole, (HIDDEN,), weight, bias, eps)
    else:
        wanted = nn.functional.rms_norm(whole, (HIDDEN,), weight, eps) + (0 if bias is None else bias)
    assert torch.allclose(normed.parts.sum(0), wanted)
    assert torch.allclose(normed.normed(held, bias).parts.sum(0), by_hand(normed.parts.sum(0), held, bias))
    found = by_component(normed)
    assert (LAST_BIAS in found) == weighted  # the earlier last bias is one of the constants now
    if weighted:
        assert torch.allclose(found[LAST_BIAS], bias.expand(*ROWS, -1))
    constants = [part for component, part in by_component(states).items() if component in (BIAS, LAST_BIAS)]
    assert torch.allclose(found[BIAS], by_hand(sum(constants), held, None))
    for component in (TOKEN, POSITION):
        assert torch.allclose(found[component], by_hand(by_component(states)[component], held, None))
    without = whole - by_component(states)[TOKEN] + drawn(HIDDEN, seed=9)
    centred = without - without.mean(-1, keepdim=True) if is_centred else without
    found_spread = frozen.spread_with(TOKEN, drawn(HIDDEN, seed=9))
    assert torch.allclose(found_spread, (centred.square().mean(-1) + eps).sqrt())


def by_hand(states: torch.Tensor, norm: HeldNorm, bias: torch.Tensor | None) -> torch.Tensor:
    centred = states - states.mean(-1, keepdim=True) if norm.is_centred else states
    scaled = centred * norm.scale * (1 if norm.weight is None else norm.weight)
    return scaled if bias is None else scaled + bias


@pytest.mark.parametrize("role", ["stream", "branch"])
@pytest.mark.parametrize("others", [(TOKEN, OTHER), (OTHER,)])
def test_sums_are_added_component_by_component(role, others):
    states = a_sum(role=role)
    other = Sum(others, lambda: drawn(len(others), 5, HIDDEN, seed=10), role, None, [fixed_part(BIAS, drawn(8), 3)])
    found, wanted = states.plus(other), by_component(states)
    for component, part in [*zip(others, other.chunks[0], strict=True), (BIAS, drawn(8))]:
        wanted[component] = wanted.get(component, 0) + part.expand(*ROWS, HIDDEN)
    assert set(found.components) == set(wanted)
    for component, part in zip(found.components, found.parts, strict=True):
        assert torch.allclose(part, wanted[component]), component
    assert found.role == role
    assert a_sum(role="branch").plus(a_sum(role="heads")).role == "stream"


def test_before_a_norm_the_last_bias_is_one_of_the_constants():
    states = a_sum()
    for settled in (states.settled(), states.mapped(lambda part: part).settled()):
        wanted = by_component(states)
        wanted[BIAS] = wanted[BIAS] + wanted.pop(LAST_BIAS)
        assert set(settled.components) == set(wanted)
        for component, part in zip(settled.components, settled.parts, strict=True):
            assert torch.allclose(part, wanted[component])
