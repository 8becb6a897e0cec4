"""The pages about labels, run as Streamlit runs them, on a real store with labels of two people."""

import io
import json
import shutil
import time
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

import pages.parts.shell.shell as shell
from core.codebook.registry import BERT
from core.drawing.conversion import map_picture, png_bytes
from core.interval import Interval
from core.jobs import api
from core.labelling.queue import Hint, QueueOptions, progress, queue
from core.patterns import snapshot as label_snapshot
from core.patterns import suggestions
from core.patterns.classifier_registry import bundled_classifier, training_options
from core.patterns.retraining import RetrainingChange
from core.store import classifiers, labels
from core.store import jobs as store_jobs
from core.store.database import Database
from core.studies.contract import Finished
from core.studies.patterns.train_patterns import STUDY
from pages.parts.label import label_sheet, map_pictures, retraining
from pages.parts.shell import resources
from pages.parts.views import classifier, labelling
from tests.pages.opening import switched
from tests.store.labelling import a_map, event
from tests.studies.test_train_patterns import label_everything, run_all


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A store with labels of two people and a classifier, made once."""
    file = tmp_path_factory.mktemp("trained") / "atlas.duckdb"
    db = Database(file)
    label_everything(db)
    labels.record_events(db, [event(k, f"m{k}", cls="block", batch="bob", annotator="bob") for k in range(1, 9)])
    wanted = training_options(db, label_snapshot.snapshot(db, "bert"), kind="baseline", folds=4, curve=False)
    options, rows = run_all(wanted)
    STUDY.keep(db, Finished("first", "Training", options, rows))
    db.close()
    return file


@pytest.fixture
def filled(trained, tmp_path, monkeypatch):
    shutil.copy(trained, tmp_path / "atlas.duckdb")
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    resources.database.clear()
    yield
    resources.database.clear()


def opened(name):
    page = AppTest.from_file(shell.__file__, default_timeout=90).run()
    switched(page, name).run()
    assert not page.exception
    assert not page.error, page.error[0].value
    return page


@pytest.mark.thorough
def test_the_classifier_page_shows_scores_and_lets_one_suggest(filled):
    page = opened("annotate/classifier")
    assert [one.label for one in page.metric] == ["Macro F1 on unseen heads", "Macro F1 on unseen inputs"]
    button = next(one for one in page.button if one.label == "Use for suggestions")
    button.click().run()
    assert not page.error
    assert any(one.label == "Stop suggesting" for one in page.button)
    assert classifiers.suggesting(resources.database(), "bert") == "first"


def test_the_classifier_page_says_macro_f1_over_all_classes_and_the_calibration_error_with_its_interval(filled):
    stored = classifiers.one_classifier(resources.database(), "first")["scores"]["rows"]
    (heads,) = (row for row in stored if row.get("on") == "unseen heads")
    said = [one.proto.help.replace("\\", "") for one in opened("annotate/classifier").metric]
    wanted = f"over all classes {heads['macro_f1_all']:.3f}; calibration error {heads['ece']:.3f} ("
    wanted += f"{heads['ece_low']:.3f} to {heads['ece_high']:.3f}, 95 % over heads); wrong with p above 0.8"
    assert any(wanted in text for text in said), said
    told = any("Classes of at least ten maps; over all" in text for text in said)
    assert told == (heads["macro_f1_all"] != heads["macro_f1"]), "they are named only if they make a difference"


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["trees", "baseline", "paper"])
def test_only_a_training_with_epochs_says_that_its_first_is_not_done(filled, monkeypatch, tmp_path, kind):
    monkeypatch.setattr(classifier.job_progress, "jobs_under_way", lambda _: ["job"])
    monkeypatch.setattr(classifier.job_progress, "show_job", lambda *_, **__: None)
    monkeypatch.setattr(classifier.job_progress, "options_of", lambda _: {"kind": kind, "log": str(tmp_path)})
    said = [one.value for one in opened("annotate/classifier").caption]
    assert ("The first epoch of the training has not finished yet." in said) == (kind == "paper")


@pytest.mark.thorough
def test_the_classifier_page_compares_with_the_one_that_suggests(filled):
    db = resources.database()
    about = classifiers.one_classifier(db, "first")
    classifiers.save_classifier(
        db,
        classifiers.Trained(
            "bert", about["weights"], about["recipe"], about["classes"], about["snapshot"], about["scores"]
        ),
        classifier="again",
    )
    classifiers.choose(db, "bert", "first", annotator="ada")
    page = opened("annotate/classifier")
    page.session_state["against"] = True  # its drawer is open
    page.run()
    assert not page.exception
    figures = next(one.value for one in page.dataframe if "figure" in one.value)
    assert set(figures["on"]) == {"unseen heads", "unseen inputs"}
    assert all(change.startswith("+0.000 (+0.000") for change in figures["change"]), "they are the same"


def test_the_agreement_page_shows_kappa_disputes_and_pace(filled):
    page = opened("projects/agreement")
    texts = " ".join(one.value.replace("\\", "") for one in page.markdown)
    assert "Krippendorff's alpha over all annotators is " in texts
    assert "Cohen's kappa is " in texts
    assert any("maps have labels that differ" in one.value for one in page.caption)
    assert set(page.dataframe[0].value["annotator"]) == {"ada", "bob"}


def test_the_shares_page_asks_for_a_task_first(filled):
    page = opened("statistics/shares")
    assert "press “Classify”" in page.info[0].value
    assert "macro F1" in page.caption[0].value


def test_the_label_page_asks_for_a_name_then_shows_the_queue(filled):
    page = opened("annotate")
    assert "Enter your name" in page.info[0].value
    page.text_input(key="annotator").input("cyd").run()
    assert not page.exception
    assert "40 maps of 1 checkpoint " in page.caption[-1].value


@pytest.mark.thorough
def test_new_labels_are_counted_trained_on_in_place_and_then_suggest(filled, monkeypatch):
    db = resources.database()
    assert classifiers.labels_since_newest(db, "bert") == 0
    labels.record_events(db, [event(k, f"m{k}", cls="block", batch="cyd", annotator="cyd") for k in range(1, 4)])
    assert classifiers.labels_since_newest(db, "bert") == 3
    page = opened("annotate")
    page.text_input(key="annotator").input("cyd").run()
    assert not page.exception
    started = []
    done = replace(api.status(db, start_nothing(db)), state="done", run="first")
    monkeypatch.setattr(api, "start", lambda *given: started.append(given) or "job")
    monkeypatch.setattr(api, "status", lambda *_: done)
    next(button for button in page.button if button.label == "Retrain with 3 new labels").click().run()
    assert not page.exception
    assert started[0][1] == "train-patterns"
    kept = label_snapshot.read(started[0][2]["snapshot"])
    assert {kept.facts[k]["map_id"] for k in kept.own} == {row["map_id"] for row in kept.facts[: len(kept.own)]}
    assert len(kept.maps) - len(kept.own) > 2000, "the bundled labels train too"
    assert classifiers.suggesting(db, "bert") == "first"
    assert any("The new classifier now suggests labels" in caption.value for caption in page.caption)


def retrained(monkeypatch, *, worse):
    """The label page after a training whose classifier "first" is worse than the bundled one on something, or not."""
    db, of_before = resources.database(), bundled_classifier(resources.database(), "bert")
    classifiers.choose(db, "bert", of_before, annotator="ada")
    labels.record_events(db, [event(k, f"m{k}", cls="block", batch="cyd", annotator="cyd") for k in range(1, 4)])
    change = Interval(-0.2, -0.3, -0.1) if worse else Interval(0.1, -0.1, 0.3)
    figure = RetrainingChange(
        "unseen heads", "macro F1", Interval(0.8, 0.7, 0.9), Interval(0.6, 0.5, 0.7), change, 40, 8
    )
    monkeypatch.setattr(retraining, "compared", lambda *_: [figure])

    def hints_of(db, classifier, names):
        others = names[:5] if classifier == "first" else ()
        return {name: Hint("block" if name in others else "vertical", 0.9, 0.1) for name in names}

    monkeypatch.setattr(labelling, "hints_of", hints_of)
    monkeypatch.setattr(retraining, "hints_of", hints_of)
    page = opened("annotate")
    page.text_input(key="annotator").input("cyd").run()
    page.toggle(key="label_suggestions").set_value(True).run()
    done = replace(api.status(db, start_nothing(db)), state="done", run="first")
    monkeypatch.setattr(api, "start", lambda *given: "job")
    monkeypatch.setattr(api, "status", lambda *_: done)
    next(button for button in page.button if button.label == "Retrain with 3 new labels").click().run()
    assert not page.exception
    assert not page.error
    return page


@pytest.mark.thorough
def test_after_a_retraining_it_says_what_changed_and_the_new_classifier_suggests(filled, monkeypatch):
    page = retrained(monkeypatch, worse=False)
    said = "The new classifier now suggests labels: 5 of 37 suggestions changed, most often vertical to block (5)."
    assert any(said in caption.value.replace("\\", "") for caption in page.caption)
    figures = next(one.value for one in page.dataframe if "figure" in one.value)
    assert list(figures[["on", "before", "after", "change"]].iloc[0]) == [
        "unseen heads",
        "0.800 (0.700 to 0.900)",
        "0.600 (0.500 to 0.700)",
        "+0.100 (-0.100 to +0.300)",
    ]
    changes = next(one.value for one in page.dataframe if "now" in one.value)
    assert list(changes.iloc[0]) == ["vertical", "block", 5]
    assert any(": vertical 0.90, now block 0.90" in one.value for one in page.html)
    assert classifiers.suggesting(resources.database(), "bert") == "first"


@pytest.mark.thorough
def test_a_new_classifier_that_is_worse_on_something_is_taken_only_when_somebody_says_so(filled, monkeypatch):
    db = resources.database()
    page = retrained(monkeypatch, worse=True)
    assert classifiers.suggesting(db, "bert") == bundled_classifier(db, "bert"), "the one before goes on suggesting"
    assert any("not used, because a score is significantly worse" in one.value for one in page.caption)
    (warning,) = page.warning
    assert "macro F1 on unseen heads" in warning.value
    assert "0.300 to" in warning.value
    next(one for one in page.button if one.label == "Use the new classifier anyway").click().run()
    assert not page.exception
    assert not page.error
    assert classifiers.suggesting(db, "bert") == "first"
    assert not page.warning


@pytest.mark.thorough
def test_a_retraining_on_labels_of_one_class_is_refused_in_a_sentence_and_nothing_changes(filled):
    db = resources.database()
    told = [event(k, f"m{k}", cls="overall", class_set="gpt2", batch="cyd", annotator="cyd") for k in range(1, 12)]
    labels.record_events(db, told)
    page = opened("annotate")
    page.selectbox(key="class_set").set_value("gpt2").run()
    page.text_input(key="annotator").input("cyd").run()
    page.toggle(key="only_mine").set_value(True).run()
    next(button for button in page.button if button.label == "Retrain with 11 new labels").click().run()
    assert not page.exception
    said = (
        "stopped: Training needs labels of at least two classes; got 11 labels of overall. Label maps of another class."
    )
    for _ in range(150):  # the job is another process's
        if any(said in one.value.replace("\\", "") for one in page.caption):
            break
        time.sleep(0.2)
        page.run()
    else:
        raise AssertionError([one.value for one in page.caption])
    assert classifiers.suggesting(db, "gpt2") is None


def test_a_map_too_small_to_have_a_pattern_has_no_suggestion_and_says_so(filled):
    db = resources.database()
    labels.store_maps(db, [a_map(f"tiny{n}", length=n, row_id=f"tiny-{n}", maximum=1.0) for n in (1, 2, 3, 4)])
    names = [f"tiny{n}" for n in (1, 2, 3, 4)]
    hints = label_sheet.hints_of(db, "first", names)
    assert list(hints) == ["tiny4"]
    wish = QueueOptions("bert", "cyd")
    _, data = label_sheet.payload(db, wish, names, BERT, hints=hints, classifier="first")
    header = json.loads(data[4 : 4 + int.from_bytes(data[:4], "little")])
    assert [(known["small"], known["hint"] is None) for known in header["maps"]] == [(True, True)] * 3 + [
        (False, False)
    ]


def test_where_no_class_is_likely_the_sheet_has_the_prediction_set(filled, monkeypatch):
    db = resources.database()
    monkeypatch.setattr(suggestions, "UNSURE", 1.01)
    label_sheet._hints.clear()
    hints = label_sheet.hints_of(db, "first", ["m1"])
    label_sheet._hints.clear()
    among = list(hints["m1"].among)
    assert among[0] == hints["m1"].name
    _, data = label_sheet.payload(db, QueueOptions("bert", "cyd"), ["m1"], BERT, hints=hints, classifier="first")
    header = json.loads(data[4 : 4 + int.from_bytes(data[:4], "little")])
    name, _, why, shown = header["maps"][0]["hint"]
    assert (name, shown) == (among[0], among)
    assert why.startswith("No class has a probability of 50 %; ")


def start_nothing(db):
    return store_jobs.add_job(db, "train-patterns", "Training", {})


def test_progress_is_of_the_choice_and_not_of_what_is_left(filled):
    db = resources.database()
    bob = QueueOptions("bert", "bob")
    assert progress(db, bob) == (8, 40)
    assert len(queue(db, bob)) == 32
    assert progress(db, replace(bob, passing=2)) == (0, 8)
    assert progress(db, replace(bob, review="block")) == (8, 8)
    assert progress(db, replace(bob, layer=99)) == (0, 0)


@pytest.mark.thorough
def test_labels_of_no_class_are_counted_and_take_no_page_from_anybody(filled):
    db = resources.database()
    with db.write() as cursor:
        cursor.execute("UPDATE label_event SET class = 'wavy' WHERE sequence = 1 AND annotator = 'bob'")
    page = opened("projects/agreement")
    assert not page.exception
    assert not page.error
    assert "1 label is of the class “wavy”" in page.warning[0].value
    next(one for one in page.button if one.label == "Retract labels with unknown classes").click().run()
    assert not page.error
    assert not page.warning
    assert labels.all_events(db)[-1]["kind"] == "retire"


@pytest.mark.thorough
def test_an_adjudicator_takes_somebodys_label_back_with_a_reason(filled):
    page = opened("projects/agreement")
    before = len(page.selectbox(key="retired_label").options)
    page.text_input(key="retired_why").input("the map was misread").run()
    next(one for one in page.button if one.label == "Retract label").click().run()
    assert not page.error
    kept = labels.all_events(resources.database())[-1]
    assert (kept["kind"], kept["note"]) == ("retire", "the map was misread")
    assert len(page.selectbox(key="retired_label").options) < before


def test_who_only_labels_is_offered_no_way_to_take_labels_back(filled, monkeypatch):
    monkeypatch.setenv("ATLAS_VISITORS", "annotator")
    page = opened("projects/agreement")
    assert not any(one.label == "Retract label" for one in page.button)


def test_a_map_is_a_picture_that_its_caption_is_read_for():
    pixels = map_picture(np.eye(3))
    stored = Image.open(io.BytesIO(png_bytes(pixels)))
    np.testing.assert_array_equal(np.asarray(stored), pixels)


def test_captions_of_pictures_stay_text(monkeypatch):
    shown = []
    monkeypatch.setattr(map_pictures.st, "html", shown.append)
    map_pictures.show_pictures([np.zeros((2, 2, 3), np.uint8)], ["\"><script>alert('x')</script>"], width=10)
    assert "<script" not in shown[0]
    assert 'alt="Attention map: &quot;&gt;&lt;script&gt;' in shown[0]
