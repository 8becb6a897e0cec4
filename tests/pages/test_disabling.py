"""Disable and Prune as a visitor uses them: one sentence live, and results of sweeps, weights and curves."""

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

import pages.parts.shell.shell as shell
from core.atlas.scores import atlas
from core.attention import Head
from core.jobs import api, worker
from core.jobs.executors import JobPlacement
from core.models.present import present_weights
from core.store.runs import Provenance, record_run, store_rows
from core.studies import lookup
from core.studies.ablation import fixed_pattern
from core.studies.contract import as_json
from core.studies.tuning.finetune import TunedRun, TunedRuns
from core.studies.tuning.records import TunedRunScore
from pages.parts.shell import resources
from pages.parts.views.one_head import effects
from pages.parts.widgets import pickers
from tests.pages.opening import switched
from tests.studies.planted import CARRIER, save_planted, write_rows
from tests.studies.through_json import rows_of


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("planted")
    return {"checkpoint": str(save_planted(folder / "checkpoint")), "data": str(write_rows(folder / "data", rows=24))}


@pytest.fixture
def db(tmp_path, monkeypatch):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    resources._database.clear()
    database = resources.database()
    keeper = api.runner(database, JobPlacement(workers=1))
    yield database
    keeper.close()
    resources._database.clear()
    database.close()


def stored(db, study, options):
    """What a job of these options leaves in the store."""
    full = worker.complete(lookup.find_study(study), options)
    name = full["checkpoint"]
    about = Provenance(
        checkpoint=name, weights_hash=present_weights(name), task="sst2", split=full["split"], dtype="float32"
    )
    store_rows(db, record_run(db, study, full, about), rows_of(study, options))


def opened(name, **query):
    page = AppTest.from_file(shell.__file__, default_timeout=180)
    page.run()
    for key, value in query.items():
        page.query_params[key] = value
    return switched(page, name).run()


def fine(page):
    assert not page.exception
    assert not page.error, [one.value for one in page.error]
    return page


def said(page):
    return "\n".join(one.value for kind in (page.markdown, page.caption, page.info) for one in kind)


@pytest.mark.thorough
def test_a_classifier_says_what_changes_without_the_carrying_head(db, planted, monkeypatch):
    names = pickers.checkpoint_names()
    monkeypatch.setattr(pickers, "checkpoint_names", lambda: [*names, planted["checkpoint"]])  # AppTest cannot type one
    page = fine(opened("interventions"))
    changes = "If L2H2 is ablated, the prediction changes from positive (81%) to negative (85%)."
    assert changes in said(page).replace("\\", "")  # the example: a classifier above chance
    page.text_input(key="heads").set_value("")
    page.selectbox(key="checkpoint").set_value(planted["checkpoint"])
    page.text_input(key="text").set_value("the old engine ; ran all night")
    fine(page.run())
    assert "No head has been ablated yet" in said(page)
    page.text_input(key="heads").set_value(str(CARRIER))
    fine(page.run())
    assert f"If {CARRIER} is ablated, the prediction changes from" in said(page)
    table = page.dataframe[0].value
    assert table["before"].sum() == pytest.approx(1)
    assert abs(table["before"] - table["after"]).max() > 0.1
    page.text_input(key="heads").set_value("L9H9")
    assert "must be from L1H1 to L3H4; got L9H9" in page.run().error[0].value


def test_a_language_model_says_its_words(db):
    page = opened("interventions")
    page.selectbox(key="checkpoint").set_value("atlas-decoder")
    page.text_input(key="text").set_value("The old cook saw her")
    page.text_input(key="heads").set_value("L1H1,L2H3")
    fine(page.run())
    assert "Word predicted after the last piece" in said(page)
    assert len(page.dataframe[0].value) == 10


@pytest.mark.thorough
def test_results_of_a_sweep(db, planted):
    stored(db, "disable", planted | {"limit": None})
    stored(db, "disable", planted | {"limit": None, "operator": "zero"})
    page = opened("interventions")
    page.segmented_control(key="mode").set_value("A task's rows")
    fine(page.run())
    assert "n = 24 examples" in said(page)
    assert "points on the other half (means over random splits). In 95 % of the splits" in said(page)
    assert "1 of 12 changes are significant after correction" in said(page)
    assert "The unmodified model scores 100.0" in said(page)
    columns = list(page.dataframe[0].value.columns)
    assert columns.index("p") < columns.index("accuracy_low")  # the claim before the interval of one head alone


@pytest.mark.thorough
def test_the_atlas_has_of_a_head_what_the_table_of_its_sweep_has(db, planted):
    stored(db, "disable", planted | {"limit": None})
    table = fine(opened("interventions", mode="A task's rows")).dataframe[0].value
    shown = table[table["name"] == str(CARRIER)].iloc[0]
    scores = atlas(db, checkpoint=planted["checkpoint"])
    known = scores[(scores["layer"] == CARRIER.layer) & (scores["head"] == CARRIER.head)].iloc[0]
    assert known["score"].startswith("disable/disable heads")
    fields = {"value": "accuracy_change", "low": "accuracy_low", "high": "accuracy_high", "q": "p"}
    assert {field: known[field] for field in fields} == {field: shown[name] for field, name in fields.items()}


@pytest.mark.thorough
def test_one_head_shows_the_changes_and_intervals_that_ablation_shows(db, planted):
    """For each head of one stored run; a head whose ablation changes nothing has no other interval on one of them."""
    stored(db, "disable", planted | {"limit": None})
    table = fine(opened("interventions", mode="A task's rows")).dataframe[0].value.set_index("name")
    scores = atlas(db, checkpoint=planted["checkpoint"])
    for layer, head in {(int(one.layer), int(one.head)) for one in scores.itertuples()}:
        (frame,) = effects(scores, Head(layer, head)).values()
        (shown,) = frame[frame["of"] == "this head"][["value", "low", "high"]].to_numpy()
        wanted = table.loc[str(Head(layer, head)), ["accuracy_change", "accuracy_low", "accuracy_high"]]
        assert shown == pytest.approx(wanted.to_numpy(dtype=float), nan_ok=True)


@pytest.mark.thorough
def test_importance_and_curves(db, planted):
    stored(db, "importance", planted | {"limit": None, "normalize": False})
    stored(
        db,
        "prune",
        planted | {"limit": None, "order_rows": None, "orders": ["importance", "random"], "random_orders": 1},
    )
    page = fine(opened("interventions/pruning"))
    assert "the measured effect of zeroing each head" in said(page)
    assert f"the loss depends most on head {CARRIER}" in said(page)
    assert page.dataframe[1].value["head"].iloc[0] == str(CARRIER)
    assert "The order is computed on train examples" in said(fine(opened("interventions/pruning", mode="Curve")))


@pytest.mark.thorough
def test_a_task_that_was_given_by_its_title_is_one(db, planted):
    task, every = "SST-2", planted | {"limit": None}
    for study, more in (("importance", {"normalize": False}), ("prune", {"order_rows": None, "orders": ["random"]})):
        options = worker.complete(lookup.find_study(study), every | more)
        rows = [row | ({"task": task} if "task" in row else {}) for row in rows_of(study, every | more)]
        about = Provenance(checkpoint=options["checkpoint"], task=task, split="dev")
        store_rows(db, record_run(db, study, options | {"task": task}, about), rows)
    for view in ("Importance", "Curve"):
        assert "SST\\-2 · n = " in said(fine(opened("interventions/pruning", mode=view)))


@pytest.mark.thorough
def test_near_duplicates_beside_their_heads_and_random_ones(db, planted, tmp_path):
    twins = planted | {"checkpoint": str(save_planted(tmp_path / "twins", twin=True)), "limit": None}
    stored(db, "disable", twins | {"what": "duplicates"})
    page = opened("interventions", mode="A task's rows")
    fine(page)
    assert "This holds for **1 of 2** groups" in said(page)
    assert f"2 like {CARRIER}" in said(page)
    table = page.dataframe[0].value
    assert {"distance", "accuracy_beyond_apart", "heads"} <= set(table.columns)


@pytest.mark.thorough
def test_heads_that_a_link_names_are_looked_up_in_every_sweep(db, planted):
    page = fine(opened("interventions", mode="A task's rows", heads=str(CARRIER)))
    assert "No ablation of all heads is stored yet" in said(page)
    stored(db, "disable", planted | {"limit": None})
    stored(db, "disable", planted | {"limit": None, "operator": "zero"})
    page = fine(opened("interventions", mode="A task's rows", heads=f"{CARRIER},L1H1"))
    found = next(table.value for table in page.dataframe if "p corrected" in table.value)
    assert len(found) == 4
    assert set(found["operator"]) == {"disable", "zero"}
    assert list(found.columns).index("p corrected") < list(found.columns).index("95% from")
    carrier = found[found["head"] == str(CARRIER)]
    assert (carrier["change, points"] < -30).all()
    assert (carrier["p corrected"] < 0.05).all()


@pytest.mark.thorough
def test_learning_with_heads_held_in_the_form_of_table_1(db):
    page = fine(opened("interventions", mode="Training without"))
    assert "No training with fixed patterns is stored yet" in said(page)
    gold, rows = [0, 1] * 10, []
    for seed, wrong in ((0, 2), (1, 4)):
        for kind, more in (("free", 0), ("held", 3)):
            predicted = [1 - label if k < wrong + more else label for k, label in enumerate(gold)]
            score = TunedRunScore(
                task="sst2", initialisation=kind, seed=seed, metric="accuracy", accuracy=1 - (wrong + more) / 20,
                constant=False, note="", train_rows=40, dev_rows=20, cut_rows=0, seconds=1.0, folder=f"{kind}-{seed}",
                majority="negative", baseline={"accuracy": 0.5}, held_heads=30 * (kind == "held"),
            )  # fmt: skip
            rows.append(TunedRun(score, np.array(gold), np.array(predicted)))
    options = fixed_pattern.FixedPatternOptions(seeds=(0, 1))
    run = record_run(db, "held", as_json(options), Provenance(checkpoint="atlas-encoder", task="sst2"))
    store_rows(db, run, fixed_pattern.STUDY.rows(options, TunedRuns(tuple(rows))))
    page = fine(opened("interventions", mode="Training without"))
    table = page.table[0].value["SST-2-like (accuracy)"]
    assert table["with learned attention"].startswith("85.0 ± ")
    assert table["with fixed patterns"].startswith("70.0 ± ")
    assert "50.0" in table["best constant prediction"]
    assert "with a fixed pattern in 30 heads, accuracy changes by **-15.0** points" in said(page)
