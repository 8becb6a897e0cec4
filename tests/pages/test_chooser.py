"""The chooser of checkpoints: one list, one question before a download, and nothing that an address can download."""

import pytest
from streamlit.testing.v1 import AppTest

from core import config
from core.jobs import api
from core.models import fetching
from core.store.people import Person, RightsError
from pages.parts.shell import people, resources
from pages.parts.shell.page_table import PAGES
from pages.parts.widgets import checkpoint_chooser
from tests.capture.conftest import tiny
from tests.models.loopback_hub import serving_hub
from tests.models.test_hub import on_hub
from tests.pages.opening import opened

NAME, BERT = "someone/tiny-bert", "google-bert/bert-base-uncased"
READING = [f"{page.name}/{view.name}" for page in PAGES for view in page.views if "checkpoint" in view.uses]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("hub") / "main"
    checkpoint = tiny("bert")
    checkpoint.model.save_pretrained(place)
    checkpoint.tokenizer.save_pretrained(place)
    return place


@pytest.fixture
def hub(db, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(fetching, "_FETCHES", {})
    with serving_hub({NAME: {"main": folder}, BERT: {"main": folder}}) as served, on_hub(served, tmp_path, monkeypatch):
        yield served


def said(app: AppTest) -> str:
    return "\n".join(one.value for kind in (app.markdown, app.caption, app.error) for one in kind).replace("\\", "")


def button(app: AppTest, label: str):
    (found,) = [one for one in app.button if one.label == label]
    return found


def buttons(app: AppTest) -> set[str]:
    return {one.label for one in app.button} & {"Download", "Not now", "Continue", "Try again", "Stop the download"}


def waited(name: str) -> None:
    """Until a download has ended; a page that saw its end has forgotten it."""
    fetch = fetching.fetch_of(name)
    assert fetch is None or fetch.ended.wait(60)


@pytest.mark.thorough
def test_one_list_says_of_each_what_it_is(hub):
    field = opened("maps").selectbox(key="checkpoint")
    labels = list(field.options)
    assert labels[0] == "atlas-encoder"
    assert "atlas-decoder · bundled · 6 x 6" in labels
    assert "bert-base-uncased · real model · 12 x 12 · Apache-2.0 · download 440 MB" in labels
    assert labels[-1] == checkpoint_chooser.OTHER_LABEL
    kinds = [label.split(" · ")[1] for label in labels if label.count(" · ") > 1]
    assert kinds == sorted(kinds, key=[fetching.BUNDLED, fetching.HERE, fetching.REAL].index), "one group after another"


@pytest.mark.thorough
def test_choosing_one_that_is_not_there_asks_once_and_the_former_maps_stay(hub):
    app = opened("maps")
    app.selectbox(key="checkpoint").set_value(BERT).run()
    assert "**bert-base-uncased** (Apache-2.0, 440 MB) is not on this machine. Download it from the hub?" in said(app)
    assert "Shown until then: atlas-encoder." in said(app)
    assert "atlas-encoder · 6 layers of 6 heads" in said(app)
    assert app.query_params["checkpoint"] in (BERT, [BERT])
    assert hub.asked == []
    button(app, "Not now").click().run()
    assert app.selectbox(key="checkpoint").value == config.ENCODER
    assert not buttons(app)
    assert hub.asked == []


@pytest.mark.thorough
def test_a_yes_downloads_it_and_shows_its_maps(hub):
    app = opened("maps")
    app.selectbox(key="checkpoint").set_value(BERT).run()
    button(app, "Download").click().run()
    waited(BERT)
    app.run()
    assert not app.exception
    assert not buttons(app)
    assert "3 layers of 4 heads" in said(app)
    labels = list(app.selectbox(key="checkpoint").options)
    assert "bert-base-uncased" in labels, "the chosen one is shown by its name"


@pytest.mark.thorough
def test_a_download_that_failed_says_why_and_can_be_tried_again(hub):
    hub.status["model.safetensors"] = 404
    app = opened("maps", checkpoint=NAME)
    button(app, "Download").click().run()
    waited(NAME)
    app.run()
    assert NAME in said(app)
    hub.status.clear()
    button(app, "Try again").click().run()
    waited(NAME)
    app.run()
    assert not buttons(app)
    assert "3 layers of 4 heads" in said(app)


@pytest.mark.parametrize(
    "view", [view if view in ("maps/maps", "interventions/ablation") else pytest.param(view, marks=pytest.mark.slow)
             for view in READING]
)  # fmt: skip
def test_no_address_downloads_anything(hub, view):
    app = opened(view, checkpoint=NAME, beside="someone/other", checkpoints=NAME, tree_checkpoint=NAME)
    assert not app.exception
    assert "is not on this machine" in said(app)
    assert hub.asked == []
    assert fetching.fetch_of(NAME) is None


def test_whoever_is_no_administrator_is_told_so(hub, monkeypatch):
    monkeypatch.setattr(people, "person", lambda: Person("", "viewer"))
    app = opened("maps", checkpoint=BERT)
    assert "Only an administrator of this app may download it." in said(app)
    assert not buttons(app)
    assert hub.asked == []


def test_a_job_of_a_checkpoint_that_is_not_there_is_started_by_an_administrator_alone(hub):
    db = resources.database().acting_as(Person("ann", "annotator"))
    with pytest.raises(RightsError):
        api.start(db, "tests.jobs.tiny", {"checkpoint": NAME})
    assert hub.asked == []


def test_without_a_network_one_message_says_what_to_do(hub, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    app = opened("maps")
    app.selectbox(key="checkpoint").set_value(BERT).run()
    assert "Connect to a network, give the path of a folder with its files, copy the hub's cache" in said(app)
    assert buttons(app) == {"Not now"}
    assert "atlas-encoder · 6 layers of 6 heads" in said(app)


@pytest.mark.thorough
def test_a_name_is_typed_below_the_list(hub):
    app = opened("maps")
    app.selectbox(key="checkpoint").set_value(checkpoint_chooser.OTHER).run()
    assert "checkpoint" not in app.query_params
    app.text_input(key="fetch_other_checkpoint").set_value("bert-base-uncased").run()
    assert app.selectbox(key="checkpoint").value == BERT
    assert buttons(app) == {"Download", "Not now"}


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("bert-base", BERT),
        ("bert-base-uncased", BERT),
        ("bert-base-uncased · real model · 12 x 12 · Apache-2.0 · download 440 MB", BERT),
        ("atlas-decoder · bundled · 6 x 6", "atlas-decoder"),
        ("bert-base-cased", "bert-base-cased"),
        ("atlas", "atlas"),
        (NAME, NAME),
    ],
)
def test_what_was_typed_or_shown_before_is_understood(hub, typed, meant):
    names = ["atlas-encoder", "atlas-decoder", *(model.chosen for model in fetching.REAL_MODELS)]
    assert checkpoint_chooser.meant(typed, names) == meant


def test_a_view_of_stored_results_reads_the_chosen_name_at_once(hub):
    app = opened("linguistics/tokens", checkpoint=NAME)
    assert "is not on this machine. Download it from the hub?" in said(app)
    assert "Shown until then" not in said(app)
