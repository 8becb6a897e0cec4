"""The fast forms of what `python -m tests.survival` runs at length."""

from tests.survival import kills


def test_kills_lose_no_acknowledged_label():
    found = kills.main(3)
    assert found["passed"], found
