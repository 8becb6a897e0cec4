"""Class sets of one's own: made whole or not at all, changed, and what becomes of the labels of a deleted class."""

import pytest

from core.codebook.classes import PatternClass
from core.codebook.registry import BERT
from core.errors import InputError
from core.labelling import projects as making
from core.labelling.label_studio import studio_config
from core.patterns import snapshot as label_snapshot
from core.patterns.class_sets import (
    FEWEST,
    MOST,
    NewClassSet,
    add_class,
    class_set_names,
    colours,
    delete_class,
    edit_class,
    labels_of,
    make_class_set,
)
from core.patterns.classifier_registry import open_classifier, training_options
from core.patterns.snapshot import current_labels, known_class_set, unknown_labels
from core.store import classifiers, label_files, labels, projects
from core.store.database import Database
from core.store.people import Person, RightsError
from core.studies.contract import Finished
from core.studies.patterns.train_patterns import STUDY
from tests.store.labelling import a_map, event
from tests.studies.test_train_patterns import label_everything, run_all

WAVES = (
    PatternClass("wave", "Wave", "A wave.", "#112233", "1"),
    PatternClass("dots", "Dots", "Single dots.", "#445566", "2"),
    PatternClass("rest", "Rest", "All else.", "#778899", ""),
)


@pytest.fixture
def db(tmp_path):
    database = Database(tmp_path / "atlas.duckdb")
    yield database
    database.close()


def wanted(*classes, name="sea", describes="any"):
    return NewClassSet(name, "The sea", "a paper", describes, classes or WAVES)


def labelled(db):
    """Six maps: two of each class by ada; bob first says wave, then rest, of the first."""
    make_class_set(db, wanted(), annotator="ada")
    labels.store_maps(db, [a_map(f"m{k}", row_id=f"dev-{k}") for k in range(1, 7)])
    of = [one.name for one in WAVES for _ in range(2)]
    labels.record_events(db, [event(k, f"m{k}", cls=name, class_set="sea") for k, name in enumerate(of, 1)])
    told = [(1, "wave"), (2, "rest")]
    labels.record_events(
        db, [event(k, "m1", cls=name, class_set="sea", batch="bob", annotator="bob") for k, name in told]
    )


def test_a_set_of_ones_own_has_its_words_colours_keys_and_whose_maps_it_describes(db):
    made = make_class_set(db, wanted(describes="causal"), annotator="ada")
    assert made == known_class_set(db, "sea")
    assert made.classes == WAVES, "a class may have no key"
    assert (made.title, made.source, made.causal) == ("The sea", "a paper", True)
    assert class_set_names(db) == ["bert", "gpt2", "sea"]
    assert [known_class_set(db, name).causal for name in ("bert", "gpt2")] == [False, True]
    assert make_class_set(db, wanted(name="lake", describes="bidirectional"), annotator="ada").causal is False
    assert make_class_set(db, wanted(name="pond"), annotator="ada").causal is None


def changed(k, **what):
    return [one if i != k else PatternClass(**(vars(one) | what)) for i, one in enumerate(WAVES)]


@pytest.mark.parametrize(
    ("classes", "said"),
    [
        (WAVES[:1], "2 to 50 classes; got 1"),
        (
            [PatternClass(f"c{k}", f"C{k}", "x", shade, "") for k, shade in enumerate(colours(MOST + 1))],
            r"got 51\. Remove some",
        ),
        (
            changed(1, name="WAVE"),
            "name of each class in a set must be different; 'WAVE' has 'WAVE' and 'wave' has 'wave'",
        ),
        (changed(1, title="wave "), "title of each class in a set must be different"),
        (changed(1, colour="#112233"), "colour of each class in a set must be different; 'dots' has '#112233' and"),
        (changed(1, key="1"), "key of each class in a set must be different; 'dots' has '1' and 'wave' has '1'"),
        (changed(1, eye="  "), "the class 'dots' has no description"),
        (changed(1, name="", title=""), "the class '' has no name. Add a name"),
        (changed(1, colour="red"), "a colour such as #0072B2"),
        (changed(1, key="x"), "a digit as its shortcut key"),
    ],
)
def test_what_cannot_be_a_class_set_is_refused_in_a_sentence_and_nothing_is_stored(db, classes, said):
    with pytest.raises(InputError, match=said):
        make_class_set(db, wanted(*classes), annotator="ada")
    assert labels.class_events(db) == []


@pytest.mark.parametrize("name", ["", "  ", "bert", "BERT "])
def test_a_set_has_a_name_of_its_own(db, name):
    with pytest.raises(InputError, match="must not be empty or already in use"):
        make_class_set(db, wanted(name=name), annotator="ada")


def test_fifty_classes_differ_in_colour_and_most_have_no_key(db):
    shades = colours(MOST)
    assert len({shade.lower() for shade in shades}) == MOST
    many = [PatternClass(f"c{k}", f"C{k}", "x", shade, str(k) if k < 10 else "") for k, shade in enumerate(shades)]
    made = make_class_set(db, wanted(*many), annotator="ada")
    assert made.classes == tuple(many)
    assert studio_config(made).count("hotkey") == 10, "who has no key is clicked"
    with pytest.raises(InputError, match="at most 50 classes"):
        add_class(db, made, PatternClass("more", "More", "x", "#010203", ""), annotator="ada")


def test_script_in_a_name_stays_text_wherever_it_is_written(db):
    evil = PatternClass("<script>x</script>", "<b onload=x>", '"><img src=x>', "#010203", "")
    made = make_class_set(db, wanted(WAVES[0], evil), annotator="ada")
    assert made.named("<script>x</script>") == evil
    assert "<b onload" not in studio_config(made)
    assert "<img" not in studio_config(made)


def test_a_class_is_changed_one_thing_at_a_time_and_never_into_another(db):
    made = make_class_set(db, wanted(), annotator="ada")
    edit_class(db, made, "rest", annotator="ada", title="The rest", colour="#ABCDEF", key="3")
    now = known_class_set(db, "sea")
    assert now.named("rest") == PatternClass("rest", "The rest", "All else.", "#ABCDEF", "3")
    for told, said in (
        ({"title": "wave"}, "The title"),
        ({"colour": "#112233"}, "The colour"),
        ({"key": "1"}, "The key"),
    ):
        with pytest.raises(InputError, match=said):
            edit_class(db, now, "rest", annotator="ada", **told)
    edit_class(db, BERT, "block", annotator="ada", colour="#ABCDEF")
    assert known_class_set(db, "bert").named("block").colour == "#ABCDEF", "a shipped set's too"


def test_the_labels_of_a_deleted_class_are_retired_and_what_was_said_before_stands_again(db):
    labelled(db)
    classes = known_class_set(db, "sea")
    assert labels_of(db, "sea", "rest") == 3
    assert delete_class(db, classes, "rest", annotator="ada") == 3
    assert known_class_set(db, "sea").names == ("wave", "dots")
    left = current_labels(db, "sea")
    assert sorted(zip(left.map_id, left.annotator, left["class"], strict=True)) == [
        ("m1", "ada", "wave"),
        ("m1", "bob", "wave"),
        ("m2", "ada", "wave"),
        ("m3", "ada", "dots"),
        ("m4", "ada", "dots"),
    ]
    assert unknown_labels(db, "sea") == {}
    retired = [row for row in labels.all_events(db) if row["kind"] == "retire"]
    assert {row["note"] for row in retired} == {"its class rest was deleted"}, "nothing is lost: it is said why"
    with pytest.raises(InputError, match="at least 2 classes"):
        delete_class(db, known_class_set(db, "sea"), "dots", annotator="ada")
    assert len(known_class_set(db, "sea")) == FEWEST


def test_the_labels_of_a_deleted_class_go_to_another_and_then_away_with_it(db):
    labelled(db)
    assert delete_class(db, known_class_set(db, "sea"), "rest", annotator="ada", into="dots") == 3
    now = known_class_set(db, "sea")
    assert now.resolved("rest") == "dots"
    assert labels_of(db, "sea", "dots") == 5
    with pytest.raises(InputError, match="was merged into 'dots'"):
        add_class(db, now, PatternClass("rest", "Rest", "x", "#010203", ""), annotator="ada")
    add_class(db, now, PatternClass("foam", "Foam", "White.", "#010203", "3"), annotator="ada")
    assert delete_class(db, known_class_set(db, "sea"), "dots", annotator="ada") == 5, "those merged into it too"
    assert label_snapshot.present_names(db, "sea") == {"wave": "wave", "foam": "foam"}
    assert labels.class_counts(db, "sea") == {"wave": 3}


def test_a_class_by_which_a_project_tells_who_is_right_is_not_retired(db):
    labelled(db)
    recipe = making.ProjectRecipe(gold=1, known_from="ada")
    making.make_project(db, projects.Heading("Sea", "sea", annotator="ada"), recipe, making.Rules(k=1))
    maps = projects.project_maps(db, projects.projects(db)[0].project)
    (gold,) = {one.given for one in maps if one.given}
    with pytest.raises(InputError, match="the project 'Sea' has such maps"):
        delete_class(db, known_class_set(db, "sea"), gold, annotator="ada")
    assert labels_of(db, "sea", gold) > 0
    other = next(name for name in known_class_set(db, "sea").names if name != gold)
    assert delete_class(db, known_class_set(db, "sea"), gold, annotator="ada", into=other)


def test_only_an_admin_makes_changes_or_deletes_classes(db):
    labelled(db)
    who = db.acting_as(Person("eve", "annotator"))
    for act in (
        lambda: make_class_set(who, wanted(name="lake"), annotator="eve"),
        lambda: edit_class(who, known_class_set(db, "sea"), "rest", annotator="eve", title="Mine"),
        lambda: delete_class(who, known_class_set(db, "sea"), "rest", annotator="eve"),
    ):
        with pytest.raises(RightsError):
            act()
    assert labels_of(db, "sea", "rest") == 3


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_a_set_of_ones_own_goes_with_its_labels_to_another_database(db, tmp_path, ending):
    labelled(db)
    edit_class(db, known_class_set(db, "sea"), "dots", annotator="ada", key="7")
    delete_class(db, known_class_set(db, "sea"), "rest", annotator="ada")
    file = tmp_path / f"labels.{ending}"
    label_files.export_labels(db, file, "sea")
    other = Database(tmp_path / "other.duckdb")
    assert not label_files.import_labels(other, file).refused
    assert known_class_set(other, "sea") == known_class_set(db, "sea")
    assert labels.class_counts(other, "sea") == labels.class_counts(db, "sea")
    other.close()


@pytest.mark.thorough
def test_a_set_of_ones_own_is_trained_on_and_its_classifier_opened(db):
    make_class_set(
        db,
        wanted(*(PatternClass(f"my {one.name}", *list(vars(one).values())[1:]) for one in BERT.classes), name="mine"),
        annotator="ada",
    )
    label_everything(db, class_set="bert")
    events = list(labels.all_events(db, "bert"))
    labels.record_events(
        db,
        [
            {
                "batch": "own",
                "sequence": k,
                "kind": "label",
                "class_set": "mine",
                "map_id": row["map_id"],
                "annotator": "ada",
                "class": f"my {row['class']}",
                "queue_order": "random",
            }
            for k, row in enumerate(events, 1)
        ],
    )
    kept = label_snapshot.snapshot(db, "mine")
    options, rows = run_all(training_options(db, kept, kind="baseline", folds=4, curve=False))
    STUDY.keep(db, Finished("own", "Training", options, rows))
    assert open_classifier(db, "own", class_set="mine").classes == tuple(f"my {name}" for name in BERT.names)
    assert classifiers.classifiers(db, "mine")["macro_f1"].iloc[0] > 0.5
