import pytest

from core.codebook.registry import BERT, GPT2, SHIPPED, class_set
from core.errors import InputError


def test_the_shipped_sets_are_the_papers():
    assert BERT.names == ("vertical", "diagonal", "vertical+diagonal", "block", "heterogeneous")
    assert GPT2.names == ("diagonal", "block", "majority", "overall")


@pytest.mark.parametrize("one", SHIPPED.values(), ids=SHIPPED)
def test_every_class_says_what_the_eye_sees_and_has_its_own_key_and_colour(one):
    assert all(cls.eye.endswith(".") and len(cls.eye) > 30 for cls in one.classes)
    assert len({cls.key for cls in one.classes}) == len({cls.colour for cls in one.classes}) == len(one)


def event(kind, name, **other):
    return {
        "class_set": "bert",
        "kind": kind,
        "class": name,
        "title": None,
        "eye": None,
        "colour": None,
        "key": None,
        "into": None,
    } | other


def test_events_rename_merge_and_add_without_touching_the_shipped_set():
    after = class_set(
        "bert",
        [
            event("add", "corner", title="Corner", eye="A dark corner.", colour="#000000", key="6"),
            event("rename", "block", title="Squares"),
            event("merge", "vertical+diagonal", into="vertical"),
        ],
    )
    assert after.names == ("vertical", "diagonal", "block", "heterogeneous", "corner")
    assert after.named("block").title == "Squares"
    assert after.resolved("vertical+diagonal") == "vertical"
    assert len(BERT) == 5
    assert BERT.named("block").title == "Block"


def test_a_class_nobody_made_is_named_with_those_that_exist():
    with pytest.raises(InputError, match="heterogeneous"):
        BERT.resolved("zigzag")
    with pytest.raises(InputError, match="bert, gpt2"):
        class_set("mine")


def test_merges_may_chain():
    after = class_set("bert", [event("merge", "block", into="diagonal"), event("merge", "diagonal", into="vertical")])
    assert after.resolved("block") == "vertical"
