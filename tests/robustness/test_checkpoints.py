"""Checkpoints that are none, or have one thing wrong: one sentence, and no code of theirs runs."""

import pytest

from core import config
from core.errors import AtlasError
from core.models.opening import open_checkpoint
from tests.robustness.doors import one_sentence, refused, refused_or_fine
from tests.robustness.folders import FOLDERS, made
from tests.robustness.texts import NAMES, TEXTS


@pytest.mark.parametrize("name", NAMES)
def test_names_that_lead_nowhere(name):
    refused(lambda: open_checkpoint(NAMES[name]))


@pytest.mark.parametrize("name", FOLDERS)
def test_folders_with_one_thing_wrong(tmp_path, name):
    folder = made(config.BUNDLED_MODELS / config.ENCODER, FOLDERS[name], tmp_path)

    def use():
        from core.capture.running import capture

        opened = open_checkpoint(str(folder))
        capture(opened, opened.encode("Paul bought a car."))

    refused(use)
    assert not (tmp_path / "owned").exists(), "code of the checkpoint ran"


@pytest.fixture(scope="module")
def encoder():
    return open_checkpoint(config.ENCODER)


@pytest.mark.parametrize("name", TEXTS)
def test_texts(encoder, name):
    """A text is captured, its rows summing to 1, or refused in a sentence; alone and as a second sentence."""
    from core.capture.running import capture

    for arguments in ((TEXTS[name],), ("A first sentence.", TEXTS[name])):
        try:
            maps = capture(encoder, encoder.encode(*arguments))
        except AtlasError as error:
            one_sentence(str(error))
        else:
            assert abs(maps.weights.sum(-1) - 1).max() < 1e-3
    refused_or_fine(lambda: encoder.encode(TEXTS[name]).pieces(0, 10**6))
