"""A view shows results of the chosen checkpoint and task; any other result is in a labelled example box."""

import pytest

from core import config
from core.store.runs import known_runs
from pages.parts.reports import result_card, study_view
from pages.parts.reports.stored_runs import StoredRun
from pages.parts.shell.page_table import RESULTS, page_of
from pages.parts.shell.resources import database
from pages.parts.widgets.context_bar import usual_checkpoint
from tests.pages.opening import opened

# studies whose view opens on its default checkpoint without a bundled result, and why
NOT_BUNDLED = {  # both are below the bundled result of Cross-fitted, and are not shown without a result
    "cross-fitted-scores": "hours of fine-tuning",
    "cross-fitted-prune": "hours of fine-tuning",
}


OTHER_MODES = {"norms", "representation", "writes"}  # of all-MiniLM; not what Token types, Probes and One head open on


def boxes(app) -> list[str]:
    return [
        one.value.replace("\\", "")
        for one in app.markdown
        if "**Example:" in one.value or "**Another result:" in one.value
    ]


@pytest.fixture
def answered(monkeypatch):
    """Every stored result that a view answers with, and whether it is of what was chosen."""
    seen: list[tuple[StoredRun, bool]] = []
    shown = result_card.show_menu

    def show_menu(stored, *, key):
        seen.append((stored, study_view.fits(stored)))
        shown(stored, key=key)

    monkeypatch.setattr(result_card, "show_menu", show_menu)
    return seen


def asks(view: str) -> bool:
    """Whether a view is about one checkpoint: that of reports is about all that a report was made on."""
    page, _, name = view.partition("/")
    return "checkpoint" in page_of(page).view(name).uses


VIEWED = sorted({(shown.view, shown.query) for shown in RESULTS.values() if asks(shown.view)})


@pytest.mark.thorough
@pytest.mark.shipped
@pytest.mark.parametrize("checkpoint", ["atlas-decoder", "all-MiniLM-L6-v2"])
@pytest.mark.parametrize(
    ("view", "query"),
    [case if number % 4 == 0 else pytest.param(*case, marks=pytest.mark.slow) for number, case in enumerate(VIEWED)],
)
def test_no_view_shows_a_result_of_another_checkpoint_outside_the_example_box(db, answered, view, query, checkpoint):
    app = opened(view, checkpoint=checkpoint, rows="sst2", **dict(query))
    assert not app.exception
    assert len(boxes(app)) == sum(not fitting for _, fitting in answered)
    for stored, fitting in answered:
        assert fitting == (checkpoint in stored.checkpoints and "sst2" in (stored.task or "sst2").split(", "))


@pytest.mark.shipped
def test_the_example_says_whose_it_is_and_one_button_runs_the_study_for_the_chosen_model(db, monkeypatch):
    started = []
    monkeypatch.setattr(
        study_view.job_progress, "begin", lambda study, options, title: started.append((study, options))
    )
    app = opened("statistics/heads", checkpoint="atlas-decoder", rows="sst2")
    (box,) = boxes(app)
    assert "on SST-2" in box
    assert "No result for atlas-decoder on SST-2-like is stored yet." in box
    (button,) = [one for one in app.button if one.label == "Run for atlas-decoder"]
    button.click().run()
    ((study, options),) = started
    assert study == "statistics"
    assert (options["checkpoint"], options["tasks"], options["data"]) == ("atlas-decoder", ["sst2"], None)


@pytest.mark.thorough
@pytest.mark.shipped
def test_the_default_checkpoint_counts_as_chosen(db, answered):
    app = opened("linguistics/tokens")
    assert [stored.checkpoint.split(",")[0] for stored, _ in answered] == [config.usual_encoder()]
    assert not boxes(app)


@pytest.mark.shipped
def test_the_checkpoint_follows_the_default_of_a_mode_and_stays_where_it_was_chosen(db, answered):
    app = opened("interventions/ablation", mode="A task's rows")
    assert app.selectbox(key="checkpoint").value == config.CLASSIFIER
    for mode, name in (("All train rows", config.ENCODER), ("A task's rows", config.CLASSIFIER)):
        app.segmented_control(key="mode").set_value(mode).run()
        assert app.selectbox(key="checkpoint").value == name
        assert not boxes(app)
        assert answered[-1][0].checkpoint == name
    app.selectbox(key="checkpoint").set_value("atlas-decoder").run()
    app.segmented_control(key="mode").set_value("All train rows").run()
    assert app.selectbox(key="checkpoint").value == "atlas-decoder"
    assert len(boxes(app)) == 1


@pytest.mark.shipped
def test_cross_fitted_opens_on_a_result_of_its_model_without_results_of_others_below(db, answered):
    app = opened("interventions/ablation", mode="All train rows")
    assert [(stored.study, fitting) for stored, fitting in answered] == [("cross-fitted", True)]
    assert not boxes(app)


@pytest.mark.shipped
@pytest.mark.parametrize("encoder", [config.ENCODER, config.REAL])
def test_every_analysing_view_opens_on_a_bundled_result_of_its_default_checkpoint(db, monkeypatch, encoder):
    """Without and with all-MiniLM on this machine."""
    monkeypatch.setattr(config, "usual_encoder", lambda: encoder)
    every = known_runs(database(), None)
    bundled = {(study, name) for study, of in every[["study", "checkpoint"]].itertuples(index=False)
               for part in str(of).split(" and ") for name in part.split(", ")}  # fmt: skip
    missing = set()
    for study, shown in RESULTS.items():
        page, _, name = shown.view.partition("/")
        view = page_of(page).view(name)
        usual = usual_checkpoint(view, dict(shown.query).get("mode"))
        if study in {row[0] for row in bundled} and "checkpoint" in view.uses and (study, usual) not in bundled:
            missing.add(study)
    assert missing <= set(NOT_BUNDLED) | (OTHER_MODES if encoder == config.REAL else set())


@pytest.mark.thorough
@pytest.mark.shipped
@pytest.mark.parametrize(
    ("view", "second"),
    [("heads/counterparts", "atlas-encoder-sst2"), ("statistics/shares", "atlas-encoder-sst2-pretrained-s0-d49a64")],
)
def test_the_field_of_the_second_model_names_the_one_that_is_shown(view, second):
    app = opened(view, checkpoint=config.ENCODER)
    assert app.selectbox(key="beside").options[0] == f"compared with {second}"
    assert any(second in one.value.replace("\\", "") for one in app.caption)
