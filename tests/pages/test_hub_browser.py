"""A checkpoint from the hub, in the app: it arrives with its progress, or one sentence says why not."""

import pytest
from playwright.sync_api import expect

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
        page.get_by_role("button", name="Download", exact=True).click()
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
        page.get_by_role("button", name="Download", exact=True).click()
        page.get_by_role("button", name="Try again").wait_for()
        settled(page)
        said = page.locator(".st-key-fetch_line").inner_text()
        assert NAME in said
        assert "Traceback" not in said


BERT = "google-bert/bert-base-uncased"


@pytest.mark.slow  # 20 CPU seconds, a fresh server; stopping and going on is in tests/models/test_fetching.py
def test_a_real_model_is_one_click_away(page, tmp_path, folder):
    """Chosen from the list, asked once, stopped, continued where it stopped; the former maps stay until it is there."""
    place = tmp_path / "larger"
    checkpoint = tiny("bert")
    checkpoint.model.resize_token_embeddings(60_000)  # megabytes
    checkpoint.model.save_pretrained(place)
    checkpoint.tokenizer.save_pretrained(place)
    size = (place / "model.safetensors").stat().st_size
    with (
        serving_hub({BERT: {"main": place}}) as hub,
        serving(tmp_path, fresh=True, **environment(hub, tmp_path)) as address,
    ):
        hub.slow["model.safetensors"] = 0.1
        visit(page, f"{address}/maps")
        painted(page)
        page.locator(".st-key-checkpoint input").click()
        page.get_by_role("option", name="bert-base-uncased · real model").first.click()
        line = page.locator(".st-key-fetch_line")
        expect(line).to_contain_text("Shown until then: atlas-encoder")
        line.get_by_role("button", name="Download", exact=True).click()
        expect(line).to_contain_text(f"of {size / 1e6:.1f} MB")
        expect(page.locator("canvas").first).to_be_visible()
        line.get_by_role("button", name="Stop the download").click()
        line.get_by_role("button", name="Continue").wait_for()
        hub.slow.clear()
        line.get_by_role("button", name="Continue").click()
        page.get_by_text("google-bert/bert-base-uncased · 3 layers").wait_for()
        first, second = hub.ranges("model.safetensors")
        assert first is None
        assert int(second.removeprefix("bytes=").rstrip("-")) >= 1 << 20
