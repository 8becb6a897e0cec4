"""Class sets on the page: one of one's own is made, its classes changed and deleted, bad ones refused in a sentence."""

import pytest
from streamlit.testing.v1 import AppTest

import pages.parts.shell.shell as shell
from core.patterns.class_sets import class_set_names
from core.patterns.snapshot import known_class_set
from core.store import labels
from pages.parts.charts.encoding import colours_of
from pages.parts.shell import resources
from tests.pages.opening import switched
from tests.store.labelling import a_map, event

SET = [("Wave", "A wave."), ("Dots <b>", "Single <script>dots</script>.")]


@pytest.fixture
def page(tmp_path, monkeypatch):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    resources.database.clear()
    opened = AppTest.from_file(shell.__file__, default_timeout=60).run()
    switched(opened, "annotate/classes").run()
    assert not opened.exception
    yield opened
    resources.database.clear()


def press(page, label):
    next(one for one in page.button if one.label == label).click().run()
    assert not page.exception
    return [one.value for one in page.error]


def make(page, members=SET, name="sea", count=None):
    page.number_input(key="new_set_count").set_value(count or len(members)).run()
    page.text_input(key="new_set_name").input(name)
    for k, (title, eye) in enumerate(members):
        page.text_input(key=f"new_set_class_{k}").input(title)
        page.text_input(key=f"new_set_eye_{k}").input(eye)
    return press(page, "Create class set")


def test_a_class_set_is_made_on_the_page_and_is_the_one_that_is_picked(page):
    assert make(page) == []
    made = known_class_set(resources.database(), "sea")
    assert [(one.name, one.title, one.eye, one.key) for one in made.classes] == [
        ("wave", "Wave", "A wave.", "1"),
        ("dots <b>", "Dots <b>", "Single <script>dots</script>.", "2"),
    ]
    assert page.selectbox(key="class_set").value == "sea"
    assert list(page.table[0].value["title"]) == ["Wave", r"Dots \<b\>"], "as markdown it reads Dots <b>"
    assert page.text_input(key="new_set_name").value == "", "the next form begins empty"
    assert len({one.colour for one in made.classes}) == 2


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("members", "said"),
    [
        (SET[:1], "got 1"),
        ([("Wave", "A wave."), ("wave", "Another.")], "in a set must be different"),
        ([("Wave", "A wave."), ("Dots", "")], "has no description"),
    ],
)
def test_a_set_that_cannot_be_is_refused_in_a_sentence_and_the_form_keeps_its_words(page, members, said):
    (error,) = make(page, members)
    assert said in error
    assert page.text_input(key="new_set_class_0").value == "Wave"
    assert class_set_names(resources.database()) == ["bert", "gpt2"]


def test_equal_colours_and_keys_are_refused_on_the_page(page):
    make(page, name="")
    page.text_input(key="new_set_name").input("sea")
    page.text_input(key="new_set_key_1").input("1")
    assert "The key of each class in a set must be different" in press(page, "Create class set")[0]
    page.text_input(key="new_set_key_1").input("")
    page.color_picker(key="new_set_colour_1").set_value(page.color_picker(key="new_set_colour_0").value)
    assert "The colour of each class in a set must be different" in press(page, "Create class set")[0]
    page.color_picker(key="new_set_colour_1").set_value("#123456")
    assert press(page, "Create class set") == []
    assert known_class_set(resources.database(), "sea").classes[1].key == ""


@pytest.mark.thorough
def test_deleting_a_class_asks_what_becomes_of_its_labels(page):
    make(page, [*SET, ("Rest", "All else.")])
    db = resources.database()
    labels.store_maps(db, [a_map("m1")])
    labels.record_events(db, [event(1, "m1", cls="wave", class_set="sea")])
    page.session_state["class_changes"] = "delete"
    page.run()
    assert next(one for one in page.button if one.label == "Delete the class").disabled, "nothing was chosen yet"
    (fate,) = page.radio
    assert fate.label == "1 label is assigned to this class. What should happen to this label?"
    fate.set_value("rest").run()
    assert press(page, "Delete the class") == []
    assert known_class_set(db, "sea").names == ("dots <b>", "rest")
    assert known_class_set(db, "sea").resolved("wave") == "rest"


@pytest.mark.thorough
def test_a_chart_draws_a_class_of_ones_own_in_its_colour(page):
    make(page)

    def script():
        import streamlit as st

        from pages.parts.charts.encoding import colours_of

        st.text(" ".join(colours_of(["dots <b>", "wave"])))
        st.text(" ".join(colours_of(["vertical", "block"])))

    drawn = [one.value.split() for one in AppTest.from_function(script).run().text]
    shades = {one.name: one.colour for one in known_class_set(resources.database(), "sea").classes}
    assert drawn[0] == [shades["dots <b>"], shades["wave"]]
    assert drawn[1] == ["#0072B2", "#CC79A7"], "the shipped ones have theirs"
    assert colours_of(["vertical"]) == ["#0072B2"], "outside of a page too"


@pytest.mark.thorough
def test_the_codebook_shows_the_borders_between_classes_with_bundled_maps(page):
    switched(page, "annotate/codebook").run()
    assert not page.exception
    assert any("Heterogeneous or Vertical" in one.value and "two" not in one.value for one in page.markdown)
    shown = " ".join(one.value for one in page.get("html"))
    assert shown.count("Attention map: Vertical: ") >= 6
    assert shown.count("Attention map: Block: ") == 3
    make(switched(page, "annotate/classes").run())
    switched(page, "annotate/codebook", class_set="sea").run()
    assert not page.exception
    assert not any(" or Vertical" in one.value for one in page.markdown)
