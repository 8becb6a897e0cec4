"""Seeds apart on Fine-tune, and all train rows on Disable heads: results as a visitor sees them."""

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from core.report.headlines import headline
from core.store import runs
from core.studies.ablation import cross_fitted, seeds
from core.studies.ablation.cross_fitting import TunedPart
from core.studies.ablation.disable import Ablations
from core.studies.ablation.seeds import square
from core.studies.tuning.finetune import TunedRun
from core.studies.tuning.records import TunedRunScore
from core.tuning.recipe import Seeds
from pages.parts.shell import resources, shell
from tests.pages.opening import switched

HEADS, ROWS = (2, 4), 60


@pytest.fixture
def db(tmp_path, monkeypatch):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    monkeypatch.setenv("ATLAS_RECORD", str(tmp_path / "no-record"))
    resources.database.clear()
    yield resources.database()
    resources.database.clear()


def tuned(accuracy: float, number: int) -> TunedRun:
    gold = np.arange(ROWS) % 2
    right = np.arange(ROWS) < round(accuracy * ROWS)
    score = TunedRunScore(
        task="sst2", initialisation="pretrained", seed=0, metric="accuracy", accuracy=accuracy, constant=False,
        train_rows=40, dev_rows=ROWS, folder=f"runs/run-{number}", majority="negative", baseline={"accuracy": 0.5},
    )  # fmt: skip
    return TunedRun(score, gold, np.where(right, gold, 1 - gold))


@pytest.fixture
def apart():
    """Nine runs in which the sample of rows alone moves the score, and two heads matter in all of them."""
    generator = np.random.default_rng(0)
    made = []
    for number, (head, rows, order) in enumerate(square(3)):
        importance = generator.random((2, *HEADS)) + np.eye(*HEADS) * 5
        accuracy = 0.6 + 0.1 * rows + 1e-3 * generator.random()
        made.append(seeds.SeedRun(Seeds(head, rows, order), tuned(accuracy, number), importance))
    return seeds.SeedsOptions(top=3), tuple(made)


def opened(name: str, **query: str) -> AppTest:
    page = AppTest.from_file(shell.__file__, default_timeout=60)
    page.run()
    return switched(page, name, **query).run()


def store(db, study, options, rows):
    about = runs.Provenance(checkpoint="atlas-encoder", task="sst2", split="train")
    run = runs.record_run(db, study.name, study.read({}).__dict__ | options, about, title="Made by hand")
    runs.store_rows(db, run, rows)


def test_the_seed_that_moves_the_score_is_named(db, apart):
    options, made = apart
    rows = seeds.STUDY.rows(options, seeds.SeedRuns(made))
    said = headline("seeds", rows)
    assert "seed of the sample of rows accounts for" in said.sentence
    assert "which is significant" in said.sentence
    store(db, seeds.STUDY, {"top": 3}, rows)
    page = opened("finetuning/seeds")
    assert not page.exception
    assert not page.error
    text = " ".join(one.value for one in [*page.markdown, *page.caption])
    assert "L1H1, L2H2" in text
    assert "9 runs" in text
    assert len(page.dataframe[0].value) == 9


def test_runs_that_are_still_coming_say_what_they_can(apart):
    options, made = apart
    kinds = [{row["kind"] for row in seeds.STUDY.rows(options, seeds.SeedRuns(made[:count]))} for count in (1, 4)]
    assert kinds == [{"run"}, {"run", "spread", "overlap", "head"}]


@pytest.mark.thorough
def test_all_train_rows_stand_with_their_parts(db):
    generator = np.random.default_rng(1)
    gold = np.arange(ROWS) % 2
    plain = np.where(generator.random(ROWS) < 0.9, gold, 1 - gold)
    changed = np.stack([plain] * 7 + [1 - gold])  # the last head is what the models live on
    swept = Ablations(np.arange(ROWS), *HEADS, gold, plain, changed, (), ())
    options = cross_fitted.CrossFittedOptions(task="sst2", folds=3)
    models = tuple(TunedPart(k, f"runs/run-{k}", 40, False, {"accuracy": 0.5}) for k in range(3))
    merged = cross_fitted.CrossFitted(np.arange(ROWS), np.arange(ROWS) % 3, swept, models)
    rows = cross_fitted.STUDY.rows(options, merged)
    agree = {row["name"]: row["folds_agree"] for row in rows if row["kind"] == "variant"}
    assert agree == {f"L{layer}H{head}": 0 for layer in (1, 2) for head in (1, 2, 3, 4)} | {"L2H4": 3}
    store(db, cross_fitted.STUDY, {"task": "sst2", "folds": 3}, rows)
    page = opened("interventions", mode="All train rows")
    assert not page.exception
    assert not page.error
    assert list(page.dataframe[-1].value["name"]) == ["part 1", "part 2", "part 3"]
    assert any("for 1 of 8 ablations: L2H4." in one.value.replace("\\", "") for one in page.caption)
