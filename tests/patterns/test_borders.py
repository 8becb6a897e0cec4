"""The borders between classes in the codebook: bundled maps on the sides that they are shown on, and the page."""

import numpy as np
import pytest

from core import config
from core.codebook.registry import SHIPPED, border_maps, borders
from data.recipes import codebook_borders
from data.recipes.codebook_borders import BORDERS
from data.recipes.rater_agreement import source_labels


@pytest.mark.parametrize("border", BORDERS, ids=lambda border: border.name)
def test_each_side_of_a_border_shows_three_maps_that_lie_on_it(border):
    maps = border_maps(border.name)
    assert [one.class_name for one in maps] == [border.classes[0]] * 3 + [border.classes[1]] * 3
    for one in maps:
        np.testing.assert_allclose(one.weights.sum(1), 1, atol=2e-3)
        if border.threshold is not None:
            assert (one.value >= border.threshold) == (one.class_name == border.classes[1])
    assert set(border.classes) <= set(SHIPPED[border.class_set].names)


def test_whoever_labelled_a_map_of_a_border_gave_it_that_class():
    said = {}
    for source in {one.source for border in BORDERS for one in border_maps(border.name)}:
        for map_id, name in source_labels(config.ANNOTATIONS / source)[["map_id", "class"]].to_numpy():
            said.setdefault(map_id, set()).add(name)
    shown = codebook_borders.json.loads(codebook_borders.FILE.read_text(encoding="utf-8"))
    assert all(said[row["map_id"]] == {row["class"]} for one in shown.values() for row in one["maps"])


def test_the_codebook_of_the_docs_and_its_pictures_are_those_of_the_command():
    docs = codebook_borders.DOCS
    assert codebook_borders.page(tuple(SHIPPED.values())) == (docs / "codebook.md").read_text(encoding="utf-8")
    assert {file.stem for file in (docs / "borders").glob("*.png")} == {border.name for border in BORDERS}
    for border in BORDERS:
        drawn = codebook_borders.picture(border, border_maps(border.name))
        assert drawn == (docs / "borders" / f"{border.name}.png").read_bytes()


@pytest.mark.slow  # 6 CPU seconds: all bundled maps are measured for every border
def test_the_maps_are_those_that_the_command_chooses():
    shown = codebook_borders.json.loads(codebook_borders.FILE.read_text(encoding="utf-8"))
    assert {border.name: codebook_borders.chosen(border) for border in BORDERS} == shown


def test_the_first_token_parts_majority_from_overall():
    """What lay in the first sentence did not: a causal map that is even has most of it there."""
    counted = codebook_borders.json.loads(codebook_borders.FILE.read_text(encoding="utf-8"))["first-sentence"]["sides"]
    assert all(right >= 0.95 * maps > 50 for right, maps in counted.values())


def test_a_set_that_somebody_made_has_no_borders():
    assert borders("sea") == []
    assert len(borders("bert")) == 5
