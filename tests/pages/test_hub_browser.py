"""A checkpoint from the hub, in the app: it arrives with its progress, or one sentence says why not."""

import pytest

from tests.capture.conftest import tiny
from tests.models.loopback_hub import serving_hub
from tests.pages.browsing import painted, serving, settled, visit

pytestmark = pytest.mark.browser  # fresh servers: what the hub's client is told, it is told when it is imported
NAME = "someone/tiny-bert"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("hub") / "main"
    checkpoint = tiny("bert")
    checkpoint.model.save_pretrained(place)
    checkpoint.tokenizer.save_pretrained(place)
    return place


def environment(hub, tmp_path):
    return {"HF_ENDPOINT": hub.address, "HF_HUB_OFFLINE": "0", "HF_HOME": str(tmp_path / "cache")}


@pytest.mark.slow  # 12 CPU seconds, a fresh server; downloads are in tests/models/test_hub.py
def test_a_checkpoint_arrives_and_its_maps_are_painted(page, tmp_path, folder):
    """Files come in threads of the hub's library, and each tells the page how far it is."""
    with (
        serving_hub({NAME: {"main": folder}}) as hub,
        serving(tmp_path, fresh=True, **environment(hub, tmp_path)) as address,
    ):
        visit(page, f"{address}/maps?checkpoint={NAME}")
        painted(page)
        assert page.get_by_role("alert").all_inner_texts() == []
        assert hub.ranges("model.safetensors") == [None]


@pytest.mark.slow  # 8 CPU seconds, a fresh server; each trouble's sentence is in tests/models/test_hub.py
def test_a_hub_in_trouble_is_one_sentence(page, tmp_path, folder):
    with (
        serving_hub({NAME: {"main": folder}}) as hub,
        serving(tmp_path, fresh=True, **environment(hub, tmp_path)) as address,
    ):
        hub.status["model.safetensors"] = 404
        visit(page, f"{address}/maps?checkpoint={NAME}")
        page.get_by_role("alert").first.wait_for()
        settled(page)
        (said,) = page.get_by_role("alert").all_inner_texts()
        assert NAME in said
        assert "Traceback" not in said
