"""The two convolutional networks that sort attention maps, as their authors published them.

`paper`: eight convolutions and a global mean, found in the later repository of authors of Kovaleva et al.;
72,917 parameters for five classes. `replication`: the GPT-2 replication's eight strided convolutions with batch
normalisation on 1024 x 1024 maps; 78,004 parameters for four classes at that size.
"""

import itertools

import torch
from jaxtyping import Float
from torch import nn

from core.errors import InputError
from core.patterns.raster import SMALLEST

NETWORKS = ("paper", "replication")
REPLICATION_CHANNELS = (1, 8, 16, 16, 16, 32, 32, 64, 64)
REPLICATION_SMALLEST_SIDE = 3  # a 3 x 3 kernel without padding needs as many rows


class PaperNetwork(nn.Module):
    """Maps [map, 1, size, size] -> class scores [map, class]; any size from 32 on (methods section 1)."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 16, 3),
            nn.ReLU(),
            nn.Conv2d(16, 16, 3),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3),
            nn.ReLU(),
            nn.Conv2d(32, 32, 3),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3),
            nn.ReLU(),
            nn.Conv2d(64, 64, 3),
            nn.ReLU(),
            nn.Conv2d(64, 16, 1),
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(16, classes, 1),
            nn.Flatten(),
        )
        for part in self.layers:
            if isinstance(part, nn.Conv2d):
                nn.init.xavier_normal_(part.weight)
                nn.init.zeros_(part.bias)  # type: ignore[arg-type]

    def forward(self, maps: Float[torch.Tensor, "map 1 size size"]) -> Float[torch.Tensor, "map classes"]:
        return self.layers(maps)


class ReplicationNetwork(nn.Module):
    """Maps [map, 1, size, size] -> class scores [map, class]; strided 3 x 3 convolutions without padding.

    The authors' size is 1024, which eight strides bring to 3 x 3. On smaller rasters a convolution takes stride 1
    and keeps its side once a stride would leave fewer than 3 rows, so that eight remain.
    """

    def __init__(self, classes: int, size: int = 1024) -> None:
        super().__init__()
        parts: list[nn.Module] = []
        side = size
        for before, after in itertools.pairwise(REPLICATION_CHANNELS):
            strided = (side - 3) // 2 + 1
            keeps = strided < REPLICATION_SMALLEST_SIDE
            parts += [
                nn.Conv2d(before, after, 3, stride=1 if keeps else 2, padding=1 if keeps else 0),
                nn.BatchNorm2d(after),
                nn.ReLU(),
            ]
            side = side if keeps else strided
        self.layers = nn.Sequential(*parts, nn.Flatten(), nn.Linear(REPLICATION_CHANNELS[-1] * side * side, classes))

    def forward(self, maps: Float[torch.Tensor, "map 1 size size"]) -> Float[torch.Tensor, "map classes"]:
        return self.layers(maps)


def build(name: str, classes: int, size: int) -> nn.Module:
    """A fresh network.

    Raises:
        InputError: maps are smaller than SMALLEST, or there is no such network.
    """
    if size < SMALLEST:
        raise InputError(f"The networks need maps of at least {SMALLEST} rows; {size} was asked for: pad them.")
    if name == "paper":
        return PaperNetwork(classes)
    if name == "replication":
        return ReplicationNetwork(classes, size)
    raise InputError(f'A pattern network is one of {", ".join(NETWORKS)}; "{name[:60]}" was asked for.')


def parameters(network: nn.Module) -> int:
    """How many numbers of a network are trained."""
    return sum(weights.numel() for weights in network.parameters())
