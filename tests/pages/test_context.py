"""One context for all views: what is chosen on one is what the next reads; what it cannot hold it says."""

import pytest
import streamlit as st
import torch

from pages.parts.shell import context, resources, url
from pages.parts.shell.messages import BETWEEN_NAMES, short_names, short_titles
from pages.parts.shell.page_table import PAGES, VIEWS_ROOM
from pages.parts.views import workbench
from pages.parts.widgets.context_bar import FIELDS_OF
from tests.capture.conftest import tiny
from tests.pages.opening import opened, switched
from tests.reports.checkpoints import saved, with_weights


@pytest.fixture(autouse=True)
def own_database(tmp_path, monkeypatch):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    resources.database.clear()
    yield
    resources.database.clear()


def said(app):
    return "\n".join(one.value for kind in (app.caption, app.info, app.markdown) for one in kind).replace("\\", "")


def test_every_view_reads_fields_of_the_context_and_starts_with_some():
    for page in PAGES:
        for view in page.views:
            read = {name for use in view.uses for name in FIELDS_OF.get(use, (use,))}
            assert read <= context.FIELDS.keys()
            assert {name for name, _ in view.starts} <= read, view.name
            assert f"{VIEWS_ROOM}.{view.module}"


@pytest.mark.thorough
def test_what_is_chosen_on_one_page_is_what_the_next_reads():
    app = opened("heads/one", checkpoint="atlas-decoder", head="L2H3")
    assert (app.selectbox(key="checkpoint").value, app.selectbox(key="head").value) == ("atlas-decoder", "L2H3")
    app.query_params.clear()
    app = switched(app, "linguistics/frames").run()
    assert (app.selectbox(key="checkpoint").value, app.selectbox(key="head").value) == ("atlas-decoder", "L2H3")
    assert app.query_params["checkpoint"] in ("atlas-decoder", ["atlas-decoder"])


def test_a_typed_sentence_never_keeps_the_second_one_of_the_demo():
    app = opened("maps")
    assert app.text_input(key="pair").value
    app.text_input(key="text").set_value("The old dog sleeps.").run()
    assert app.text_input(key="pair").value == ""
    assert "pair" not in app.query_params


def test_a_typed_pair_is_kept_while_its_first_is_mended():
    app = opened("maps")
    app.text_input(key="text").set_value("The old dog sleeps.").run()
    app.text_input(key="pair").set_value("So it does.").run()
    app.text_input(key="text").set_value("The old dog slept.").run()
    assert app.text_input(key="pair").value == "So it does."


def test_the_demo_without_its_second_sentence_is_a_choice_that_its_link_keeps():
    app = opened("maps")
    first = app.text_input(key="text").value
    app.text_input(key="pair").set_value("").run()
    link = {name: value if isinstance(value, str) else value[0] for name, value in app.query_params.items()}
    assert link["text"] == first
    other = opened("maps", **link)
    assert (other.text_input(key="text").value, other.text_input(key="pair").value) == (first, "")


def test_a_link_with_one_sentence_has_no_second():
    app = opened("maps", text="The old dog sleeps.")
    assert app.text_input(key="pair").value == ""


def test_what_interrupts_the_run_after_back_does_not_bring_back_what_the_fields_still_hold(monkeypatch):
    """The browser hears of that run too late and says of its fields what they held before."""
    app = opened("maps", text="The old dog sleeps.")
    app.text_input(key="text").set_value("The cat sat.").run()
    app.query_params["text"] = "The old dog sleeps."
    with monkeypatch.context() as interrupted:
        interrupted.setattr(url, "went_back", lambda: True)
        interrupted.setattr(workbench, "show_maps", lambda *asked: st.stop())
        app.run()
    app.text_input(key="text").set_value("The cat sat.").run()
    assert app.text_input(key="text").value == "The old dog sleeps."
    assert app.query_params["text"] in ("The old dog sleeps.", ["The old dog sleeps."])


def test_a_sentence_too_long_for_a_link_is_named_by_its_length_and_never_opens_the_demo():
    app = opened("maps")
    app.text_input(key="text").set_value("word " * 400).run()
    assert "text" not in app.query_params
    link = {name: value if isinstance(value, str) else value[0] for name, value in app.query_params.items()}
    assert link["cut"] == "2000"
    other = opened("maps", **link)
    assert other.text_input(key="text").value == ""
    assert "The sentence was too long for this link (2000 characters)" in said(other)


@pytest.mark.thorough
def test_a_head_that_the_checkpoint_lacks_gives_way_and_the_rest_stays():
    app = opened("heads/one", checkpoint="atlas-encoder", head="L12H12", rows="mrpc")
    assert app.selectbox(key="head").value == "L1H1"
    assert app.selectbox(key="rows").value == "mrpc"
    assert "L12H12" in said(app)


def test_a_folder_that_vanished_is_said_and_the_rest_of_the_link_stays():
    app = opened("maps", checkpoint="/nowhere/gone", text="The old dog sleeps.", head="L2H3")
    assert not app.exception
    assert any("/nowhere/gone" in error.value.replace("\\", "") for error in app.error)
    assert app.text_input(key="text").value == "The old dog sleeps."
    assert app.query_params["head"] in ("L2H3", ["L2H3"])


def test_rows_that_vanished_are_said_and_the_rest_of_the_link_stays():
    app = opened("interventions", rows="/nowhere/own.csv", checkpoint="atlas-encoder", mode="A task's rows")
    assert not app.exception
    assert "own.csv" in app.selectbox(key="rows").value
    assert app.selectbox(key="checkpoint").value == "atlas-encoder"
    assert any(
        "own.csv" in one.value.replace("\\", "")
        for kind in (app.error, app.info, app.caption, app.warning)
        for one in kind
    )


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("view", "link", "words", "stays"),
    [
        ("heads/development", {"checkpoint": "/nowhere/gone"}, "gone is not on this machine", "checkpoint"),
        (
            "interventions/pruning",
            {"checkpoint": "/nowhere/gone", "rows": "mrpc"},
            "must be stored on this machine",
            "rows",
        ),
        (
            "finetuning/seeds",
            {"checkpoint": "atlas-decoder", "rows": "OWN"},
            'own.csv has no column "label"',
            "checkpoint",
        ),
        (
            "interventions/circuit",
            {"checkpoint": "atlas-encoder-sst2", "rows": "OWN"},
            'own.csv has no column "label"',
            "checkpoint",
        ),
        ("linguistics/frames", {"checkpoint": "atlas-decoder", "head": "L12H12"}, "no head L12H12", "checkpoint"),
        (
            "maps/generation",
            {"cut": "2000", "checkpoint": "atlas-decoder"},
            "too long for this link (2000 characters)",
            "checkpoint",
        ),
        ("interventions/sequential", {"rows": "nonsense", "checkpoint": "atlas-encoder-sst2"}, "nonsense", "rows"),
    ],
)
def test_what_does_not_fit_is_said_and_what_fits_stays(view, link, words, stays, tmp_path):
    """A folder or rows that are gone, rows without labels, a head too many, a sentence that a link has no room for."""
    (tmp_path / "own.csv").write_text("text\nThe old dog sleeps.\n", encoding="utf-8")
    link = link | ({"rows": str(tmp_path / "own.csv")} if link.get("rows") == "OWN" else {})
    app = opened(view, **link)
    assert not app.exception
    every = "\n".join(one.value for kind in (app.error, app.warning, app.info, app.caption) for one in kind)
    assert words in every.replace("\\", "")
    assert app.selectbox(key=stays).value == link[stays]


def test_a_view_says_what_of_the_context_it_does_not_use():
    app = opened("heads/overview", text="The old dog sleeps.", head="L2H3")
    assert "does not use the chosen sentence, head" in said(app)


@pytest.mark.parametrize(
    ("names", "shorts"),
    [
        (["atlas-encoder", "owner/model"], ["atlas-encoder", "owner/model"]),
        (["data/runs/finetuned/a1/sst2-0", "data/runs/finetuned/a1/sst2-1"], ["sst2-0", "sst2-1"]),
        (["/home/x/a/model", "/home/x/b/model"], ["a/model", "b/model"]),
        (["/a/model", "/a/model/"], ["/a/model", "/a/model"]),
    ],
)
def test_short_names_differ_wherever_the_paths_do(names, shorts):
    assert list(short_names(names).values()) == shorts


def test_a_cell_of_several_checkpoints_keeps_a_name_with_spaces_whole():
    cells = ["/home/x/my models/bert and /home/x/other, /home/y/other", "atlas-encoder", "/data/atlas-encoder"]
    shorts = ["bert and x/other, y/other", "atlas-encoder", "data/atlas-encoder"]
    assert list(short_titles(cells, BETWEEN_NAMES).values()) == shorts


def test_titles_have_short_names_that_differ_in_all_of_a_list():
    titles = ["Match of /home/x/a/model and /home/x/b/model", "Knockout of noun/verb in runs/tuned/s1, sst2", "No path"]
    shorts = ["Match of a/model and b/model", "Knockout of noun/verb in s1, sst2", "No path"]
    assert list(short_titles(titles).values()) == shorts


def test_the_maps_show_the_chosen_head_so_no_line_comes_and_moves_them():
    assert "cannot be ablated" not in said(opened("maps", head="L2H3"))


# ---------------------------------------------------------------- who only labels


def sidebar_of(app):
    return [link.proto.label for link in app.sidebar.get("page_link")]


def test_a_projects_link_shows_label_and_codebook_alone_until_its_visitor_asks_for_more():
    app = opened("annotate", project="p1")
    assert sidebar_of(app) == ["Annotate"]
    assert app.segmented_control(key="views_annotate").options == ["Label", "Codebook"]
    app.button(key="all_pages").click().run()
    assert sidebar_of(app) == [page.title for page in PAGES]


def test_a_lead_who_follows_a_link_within_the_app_keeps_every_page():
    app = opened("projects")
    app = switched(app, "annotate", project="p1").run()
    assert sidebar_of(app) == [page.title for page in PAGES]


def test_an_annotator_by_role_is_led_to_labelling(monkeypatch):
    monkeypatch.setenv("ATLAS_VISITORS", "annotator")
    app = opened("results/jobs")
    assert app.title[0].value == "Annotate"
    assert sidebar_of(app) == ["Annotate"]
    assert "all_pages" not in [button.key for button in app.button]


def test_maps_are_drawn_from_the_checkpoint_of_the_link():
    app = opened("annotate/label", checkpoint="atlas-decoder")
    assert app.selectbox(key="draw_checkpoint").value == "atlas-decoder"


def test_what_opening_a_checkpoint_noticed_stands_under_the_chooser(tmp_path):
    folder = saved(tiny("bert"), tmp_path / "with-a-pooler")
    with_weights(folder, {"cls.predictions.bias": torch.zeros(7)})
    app = opened("maps", checkpoint=str(folder), text="The old dog sleeps.", pair="")
    assert "One weight outside the embeddings and layers is not used (cls.predictions.bias)." in said(app)
    assert "not used" not in said(opened("maps", text="The old dog sleeps."))


def test_a_mask_is_not_asked_for_where_it_was_typed(tmp_path):
    folder = saved(tiny("bert"), tmp_path / "without-a-head")
    link = {"checkpoint": str(folder), "heads": "L1H1", "mode": "One sentence"}
    app = opened("interventions/ablation", text="The old [MASK] sat.", **link)
    assert "was saved without a head that predicts words" in said(app)
    assert "type [MASK]" not in said(app)
