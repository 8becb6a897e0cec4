"""Every bad input where it comes in. `python -m tests.robustness` prints the same as a table."""

import pytest

from tests.robustness import corpus

pytestmark = pytest.mark.slow


def test_there_are_enough():
    assert sum(len(kind.cases) for kind in corpus.KINDS.values()) >= 150


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    with corpus.opened(tmp_path_factory.mktemp("corpus")) as found:
        yield found


@pytest.mark.parametrize("kind", corpus.KINDS)
def test_one_of_each_kind_is_refused_or_taken_and_nothing_changes(place, kind):
    """The first and the last of a kind here; all of them by the command, and by the tests of each reader."""
    names = list(corpus.KINDS[kind].cases)
    for name in {names[0], names[-1]}:
        corpus.tried(place, kind, name)
