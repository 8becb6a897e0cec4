"""Class shares say whether maps are unlike what the classifier was trained on, and then what to do."""

from types import SimpleNamespace

from streamlit.testing.v1 import AppTest

ABOUT = SimpleNamespace(held_out=SimpleNamespace(macro_f1=0.82, on="unseen checkpoints"))


def page(outside, about):
    from core.studies.patterns.records import ClassNote
    from pages.parts.views.pattern_shares import trust

    note = ClassNote(part="note", checkpoint="/models/one", inputs=10, maps=100, unsure=0.04, outside=outside)
    trust([note] * 2, about)


def shown(outside) -> AppTest:
    return AppTest.from_function(page, default_timeout=90, kwargs={"outside": outside, "about": ABOUT}).run()


def test_a_familiar_checkpoint_has_a_badge_only():
    found = shown(0.01)
    assert not found.exception
    assert not found.caption
    assert "The classifier knows maps like these" in found.markdown[0].value


def test_a_strange_one_says_what_to_do():
    found = shown(0.4)
    assert not found.exception
    assert "These shares are uncertain" in found.markdown[0].value
    (caption,) = found.caption
    for words in ("label 50", "retrain"):
        assert words in caption.value


def test_results_without_this_measure_say_nothing():
    assert not shown(None).exception
    assert not shown(None).caption
