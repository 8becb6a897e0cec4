import pytest
import torch

from core.errors import InputError
from core.patterns.training import build, parameters


@pytest.mark.parametrize(
    ("name", "classes", "size", "count"), [("paper", 5, 32, 72_917), ("replication", 4, 1024, 78_004)]
)
def test_the_networks_have_as_many_parameters_as_published(name, classes, size, count):
    network = build(name, classes, size)
    assert parameters(network) == count
    assert sum(isinstance(part, torch.nn.Conv2d) for part in network.modules()) == 8


@pytest.mark.parametrize("name", ["paper", "replication"])
@pytest.mark.parametrize("size", [32, 45, 64])
def test_every_size_from_32_on_gives_a_score_a_class(name, size):
    network = build(name, 4, size).eval()
    assert network(torch.rand(2, 1, size, size)).shape == (2, 4)


def test_smaller_maps_and_unknown_names_are_refused():
    with pytest.raises(InputError, match="32"):
        build("paper", 5, 31)
    with pytest.raises(InputError, match="replication"):
        build("resnet", 5, 32)
