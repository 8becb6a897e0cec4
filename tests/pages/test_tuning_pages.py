"""The Fine-tune and Change pages on a real store with real (small) runs."""

import json
import re

import pytest
from streamlit.testing.v1 import AppTest

from core.jobs.worker import complete, divide, run_unit, summarize
from core.store import runs
from core.studies.tuning import change, finetune
from core.studies.tuning.finetune import live_file
from core.studies.tuning.records import TunedScore
from core.tuning.saved_checkpoints import Live
from pages.parts.shell import shell
from pages.parts.tuning import table_one
from tests.capture.conftest import tiny
from tests.pages.opening import switched

SETTINGS = {"epochs": 1, "train_limit": 16, "dev_limit": 8, "batch": 8, "max_length": 24}


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """Options and rows of a fine-tuning and of a comparison."""
    place = tmp_path_factory.mktemp("tuned")
    base = tiny("bert")
    base.model.save_pretrained(place / "tiny")
    base.tokenizer.save_pretrained(place / "tiny")

    def rows_of(study, options):
        chosen = complete(study, options)
        units = divide(study.name, chosen)["units"]
        rows = [row for unit in units for row in run_unit(study.name, chosen, unit)["rows"]]
        return chosen, summarize(study.name, chosen, rows)["rows"]

    tuning = rows_of(
        finetune.STUDY,
        {
            "checkpoint": str(place / "tiny"),
            "tasks": ["mrpc", "stsb"],
            "initialisations": ["pretrained", "untrained"],
            "seeds": [0, 1],
            "settings": SETTINGS,
            "out": str(place / "runs"),
        },
    )
    after = tuning[1][0]["folder"]
    return tuning, rows_of(change.STUDY, {"before": str(place / "tiny"), "after": [after], "limit": 6})


def opened(name: str) -> AppTest:
    page = AppTest.from_file(shell.__file__, default_timeout=60).run()
    return switched(page, name).run()


@pytest.mark.thorough
def test_table_1_stands_beside_the_papers(db, done):
    (options, rows), _ = done
    run = runs.record_run(db, "finetune", options, runs.Provenance(checkpoint=options["checkpoint"]), title="Tiny")
    runs.store_rows(db, run, rows)
    page = opened("finetuning")
    assert not page.exception
    assert not page.error
    table = page.table[0].value.T
    assert list(table.index) == ["MRPC-like (f1/accuracy)", "STS-B-like (pearson/spearman)"]
    assert table.loc["MRPC-like (f1/accuracy)", "BERT paper: pre-trained + FT"] == "87.9/82.3"
    assert table.loc["MRPC-like (f1/accuracy)", "BERT paper: random + FT"] == "81.2/68.3 ‡"
    assert table.loc["STS-B-like (pearson/spearman)", "GPT-2 replication: FT"] == "MSE 0.86"
    assert table.loc["STS-B-like (pearson/spearman)", "best constant prediction"].startswith("undefined/undefined")
    assert "n = 2" in table.loc["MRPC-like (f1/accuracy)", "pre-trained, fine-tuned"]
    assert len(page.dataframe[0].value) == 8
    assert set(table["examples for training / dev"]) == {"16 / 8"}
    assert ", MSE " in table.loc["STS-B-like (pearson/spearman)", "pre-trained, fine-tuned"]
    caption = next(one.value for one in page.caption if "n seeds" in one.value).replace("\\", "")
    assert "bundled samples" in caption
    named = re.findall("“(.+?)”", caption)
    assert len(named) == 2
    assert set(named) <= set(table.columns), "the note speaks of columns as the table names them"
    assert ("†" in caption) == bool(table.map(lambda cell: "†" in str(cell)).any(axis=None))


def tuned(kind, initialisation, accuracy, **more):
    return TunedScore(
        kind=kind,
        task="mrpc",
        metric="accuracy",
        initialisation=initialisation,
        accuracy=accuracy,
        f1=0.5,
        dev_rows=300,
        **more,
    )


def test_a_fine_tuning_at_chance_says_so_and_one_seed_has_no_spread():
    scores = [
        tuned("run", "pretrained", 0.463, seed=0),
        tuned("mean", "pretrained", 0.463, n=1),
        tuned("mean", "untrained", 0.543, n=1),
        tuned("baseline", "equivalent", 0.517),
    ]
    (said,) = table_one.at_chance(scores)
    assert "46.3" in said
    assert "the untrained classifier has 54.3" in said
    drawn = table_one.bars(scores)
    assert drawn[["low", "high"]].isna().all(axis=None), "no spread of one seed"
    learned = [
        tuned("run", "pretrained", 0.9, seed=0),
        tuned("mean", "pretrained", 0.9, n=3, accuracy_sd=0.01),
        tuned("mean", "untrained", 0.543, n=3),
        tuned("baseline", "equivalent", 0.517),
    ]
    assert table_one.at_chance(learned) == []


@pytest.mark.slow  # the record is read
@pytest.mark.shipped
def test_no_link_leads_to_a_shipped_folder_that_is_not_here(db):
    app = opened("finetuning")
    assert not app.exception
    said = " ".join(one.value for one in app.caption).replace("\\", "")
    assert "The folders of these checkpoints are not on this machine" in said
    assert not any(button.key == "compare_attention" for button in app.button)


@pytest.mark.thorough
@pytest.mark.parametrize("keep", ["best", "last"])
def test_a_kept_best_epoch_is_said_beside_table_1(db, done, keep):
    (options, rows), _ = done
    options = options | {"settings": SETTINGS | {"keep": keep}}
    run = runs.record_run(db, "finetune", options, runs.Provenance(checkpoint=options["checkpoint"]), title="Tiny")
    runs.store_rows(db, run, rows)
    said = " ".join(one.value for one in opened("finetuning").caption)
    assert ("the epoch with the best score on these dev examples was used, so scores are too high" in said) == (
        keep == "best"
    )


@pytest.mark.thorough
def test_a_job_is_started_with_what_was_chosen(db, monkeypatch):
    asked = []
    monkeypatch.setattr("core.jobs.api.start", lambda *given: asked.append(given[1:]) or "job")
    page = opened("finetuning")
    page.multiselect[0].set_value(["rte", "mrpc"]).run()
    next(one for one in page.button if one.label == "Fine-tune").click().run()
    study, options, title = asked[0]
    assert study == "finetune"
    assert options["tasks"] == ["rte", "mrpc"]
    assert (options["seeds"], options["settings"], options["preset"]) == ([0, 1, 2], {}, "bundled")
    assert title.endswith("on RTE-like, MRPC-like")


def test_loss_is_seen_while_it_falls(db, done, tmp_path):
    """A run under way is drawn from the file its worker writes."""
    (options, _), _ = done
    options = options | {"out": str(tmp_path / "runs"), "tasks": ["mrpc"]}
    unit = divide("finetune", options)["units"][0]
    epochs = [{"epoch": 0, "step": 0, "accuracy": 0.4, "f1": 0.1}]
    Live(live_file(options["out"], unit["key"])).write(
        {"step": 3, "steps": 9, "left": 12.0, "losses": [{"step": 1, "loss": 0.7}], "epochs": epochs}
    )
    from core.store import jobs as store

    job = store.add_job(db, "finetune", "Tiny", options)
    store.add_units(db, job, options, [unit])
    store.set_state(db, job, "interrupted")
    page = opened("finetuning")
    assert not page.exception
    assert any("step 3 of 9" in one.value and "12 s left" in one.value for one in page.markdown)


@pytest.mark.thorough
def test_change_draws_heads_and_leads_to_the_maps(db, done):
    _, (options, rows) = done
    run = runs.record_run(db, "change", options, runs.Provenance(checkpoint="tiny", task="mrpc"), title="Tiny")
    runs.store_rows(db, run, rows)
    page = opened("finetuning/change")
    assert not page.exception
    assert not page.error
    assert any("n = 6 examples" in one.value for one in page.caption)
    heads = next(one for one in page.selectbox if one.label.startswith("Head"))
    assert len(heads.options) == 12
    assert sum("cosine" in one.value for one in page.text) == 5
    assert len(page.get("page_link")) >= 5
    values = [1 - row["value"] for row in rows if row["kind"] == "head" and row["statistic"] == "cosine"]
    assert scale_of_heads(page) == pytest.approx([0, max(values)])  # no change is paper; differences are seen
    page.toggle(key="whole").set_value(True).run()
    assert scale_of_heads(page) == [0, 1]
    next(one for one in page.segmented_control if one.key == "statistic").set_value("divergence").run()
    assert not page.exception


def scale_of_heads(page) -> list[float]:
    """The ends of the colours of the first layer x head picture."""
    spec = json.loads(page.get("vega_lite_chart")[0].proto.spec)
    return spec["layer"][0]["encoding"]["color"]["scale"]["domain"]


def test_empty_pages_say_what_to_do(db):
    for name in ("finetuning", "finetuning/change"):
        assert "press" in opened(name).info[0].value
