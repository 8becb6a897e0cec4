"""Class shares warn where a checkpoint's maps lie outside what the classifier was trained on, and say the way out."""

from streamlit.testing.v1 import AppTest


def page(outside):
    from core.studies.patterns.records import ClassNote
    from pages.parts.views.pattern_shares import doubts

    doubts([ClassNote(part="note", checkpoint="/models/one", inputs=10, maps=100, unsure=0.04, outside=outside)] * 2)


def test_a_familiar_checkpoint_has_a_caption_only():
    found = AppTest.from_function(page, default_timeout=90, kwargs={"outside": 0.01}).run()
    assert not found.exception
    assert not found.warning
    assert "unsure of 4.0%" in found.caption[0].value


def test_a_strange_one_has_a_warning_with_the_way_out():
    found = AppTest.from_function(page, default_timeout=90, kwargs={"outside": 0.4}).run()
    (warning,) = found.warning
    assert "40.0% lie outside" in warning.value
    assert "Label 50" in warning.value
    assert "retrain" in warning.value


def test_shares_kept_before_this_was_measured_say_nothing():
    found = AppTest.from_function(page, default_timeout=90, kwargs={"outside": None}).run()
    assert not found.exception
    assert not found.warning
    assert not found.caption
