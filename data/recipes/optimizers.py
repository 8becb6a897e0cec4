"""What updates which weight when the bundled checkpoints are trained (`data.recipes.pretrain`)."""

from typing import Protocol

import torch


class Rates(Protocol):
    """What of the recipe says how weights are updated."""

    @property
    def peak_rate(self) -> float: ...
    @property
    def matrix_rate(self) -> float: ...
    @property
    def weight_decay(self) -> float: ...


def in_blocks(name: str, parameter: torch.nn.Parameter) -> bool:
    """Whether Muon updates it: the matrices of the blocks, not embeddings, heads, biases and norms."""
    return parameter.ndim == 2 and (".layer." in name or ".h." in name)


class Optimizers:
    """Muon (Jordan et al. 2024) for the matrices of the blocks, AdamW for the rest, each at its own peak rate."""

    def __init__(self, model: torch.nn.Module, recipe: Rates) -> None:
        named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
        matrices = [p for name, p in named if recipe.matrix_rate and in_blocks(name, p)]
        others = [p for name, p in named if not (recipe.matrix_rate and in_blocks(name, p))]
        groups = [
            {"params": [p for p in others if p.ndim > 1], "weight_decay": recipe.weight_decay},
            {"params": [p for p in others if p.ndim <= 1], "weight_decay": 0.0},
        ]
        adam = torch.optim.AdamW(groups, lr=recipe.peak_rate, betas=(0.9, 0.98), fused=True)
        self.each: list[tuple[torch.optim.Optimizer, float]] = [(adam, recipe.peak_rate)]
        if matrices:
            muon = torch.optim.Muon(matrices, lr=recipe.matrix_rate, weight_decay=recipe.weight_decay)
            self.each.append((muon, recipe.matrix_rate))

    def step(self, share_of_peak: float) -> None:
        for optimizer, peak in self.each:
            for group in optimizer.param_groups:
                group["lr"] = peak * share_of_peak
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    def state(self) -> list[dict]:
        return [optimizer.state_dict() for optimizer, _ in self.each]

    def load(self, states: list[dict]) -> None:
        for (optimizer, _), state in zip(self.each, states, strict=True):
            optimizer.load_state_dict(state)
