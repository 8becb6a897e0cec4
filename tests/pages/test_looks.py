"""What a look at the pages found, each as a test: pictures that begin at one height, names that do not cover each
other, empty cells, bounds that lie flat."""

import re
from datetime import datetime
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from core import glossary
from core.report.rendering.charts import classes_scale
from core.studies.probing.records import DrawnTree
from core.studies.tuning.records import TunedScore
from pages.parts.charts.curves import calibration, line_with_band, points, ranked, values_with_intervals, waterfall
from pages.parts.charts.encoding import COLOURS, Axes, Shade
from pages.parts.charts.heads import head_picture
from pages.parts.charts.matrices import token_map
from pages.parts.reports.stored_runs import StoredRun
from pages.parts.shell.page_table import PAGES_FOLDER, page_of
from pages.parts.tuning.table_one import constant_scores
from pages.parts.views.counterparts import ribbons
from pages.parts.views.development import small_multiples
from pages.parts.views.probes import arcs, tree_picture
from pages.parts.widgets.tables import show_table

TREE = DrawnTree(name="s", n=4, words=["The", "dog", "slept", "."], relations=["det", "nsubj", "root", "punct"],
                 gold=[1, 2, 2, 2], drawn=[1, 2, 2, 1], probability=[0.9, 0.8, 0.7, 0.6])  # fmt: skip
NOON = datetime(2026, 11, 23, 12)
HEADS = pd.DataFrame([{"layer": 0, "head": k, "value": k / 6} for k in range(6)])


def test_the_bound_of_a_curve_lies_flat():
    frame = pd.DataFrame(
        [
            {"layer": 0, "head": 0, "order": k, "snapshot": str(k), "value": 0.1 * k, "low": None, "high": None}
            for k in range(4)
        ]
    )
    marks = [
        layer["mark"] for layer in small_multiples(frame, label="w", title="t", bound=0.5).to_dict()["spec"]["layer"]
    ]
    dashed = [mark for mark in marks if "strokeDash" in mark]
    assert [mark["type"] for mark in dashed] == ["line"], "a rule takes x as well, and stands upright at every snapshot"


def test_pictures_side_by_side_begin_at_one_height():
    long = "atlas-encoder-sst2-pretrained-s0-72241d · SST-2-like"
    titles = [
        head_picture(HEADS, Shade("value"), title=title, lines=3).to_dict()["title"] for title in (long, "difference")
    ]
    assert [len(title) for title in titles] == [3, 3]
    assert " ".join(titles[0]).split() == long.replace("encoder-sst2", "encoder- sst2").split()


def test_names_of_points_do_not_cover_each_other_nor_another_point():
    frame = pd.DataFrame({"x": [0.0, 0.001, 1.0], "y": [0.0, 0.001, 1.0], "name": ["a", "b", "c"]})
    chart = points(frame, Axes(x="x", y="y", name="name"), title="t").to_dict()
    (drawn,) = [layer["data"]["name"] for layer in chart["layer"] if layer["mark"]["type"] == "text"]
    names = chart["datasets"][drawn]
    assert [row["name"] for row in names] == ["b", "c"]


def test_a_unit_is_as_long_up_as_across_where_points_are_read_as_distances():
    frame = pd.DataFrame({"x": [0.0, 4.0], "y": [1.0, 2.0]})
    encoding = points(frame, Axes(x="x", y="y"), title="t", square=True).to_dict()["layer"][0]["encoding"]
    (left, right), (bottom, top) = (encoding[axis]["scale"]["domain"] for axis in "xy")
    assert right - left == pytest.approx(top - bottom)
    assert (left + right, bottom + top) == (4.0, 3.0)
    assert left < 0 < 4 < right


def test_counts_beside_a_calibration_do_not_cover_each_other():
    frame = pd.DataFrame({"p": [0.3, 0.95, 0.97, 0.98], "right": [0.3, 0.96, 0.97, 0.98], "n": [7, 8, 9, 10]})
    chart = calibration(frame, Axes(x="p", y="right"), counted="n", title="t").to_dict()
    _, dots, counts = chart["layer"]
    assert [row["n"] for row in chart["datasets"][dots["data"]["name"]]] == [7, 8, 9, 10]
    assert [row["n"] for row in chart["datasets"][counts["data"]["name"]]] == [7, 10]


def test_every_token_of_a_map_is_named_where_there_is_room_and_a_missing_ring_is_no_part_to_read():
    weights = np.full((20, 20), 0.5)
    tokens = [f"token{k}" for k in range(20)]
    chart = token_map(weights, tokens, tokens, title="t", marked=None).to_dict()
    cells, ring = chart["layer"]
    assert cells["encoding"]["x"]["axis"]["labelOverlap"] is False
    assert ring["mark"]["aria"] is False


def test_numbers_beside_the_longest_bar_have_room():
    frame = pd.DataFrame([{"term": "a", "start": 0.0, "end": 10.0, "value": 10.0, "kind": "raises", "right": 10.0}])
    low, high = waterfall(frame, title="t").to_dict()["layer"][0]["encoding"]["x"]["scale"]["domain"]
    assert low == 0
    assert high >= 11


def test_a_picture_of_counterparts_has_its_heads_height_beside_its_title():
    frame = pd.DataFrame(
        [
            {
                "layer": layer,
                "head": 0,
                "match_layer": layer,
                "match_head": 0,
                "similarity": 0.5,
                "margin": 0.1,
                "p": 0.1,
                "matched": True,
                "best_layer": layer,
                "best_head": 0,
                "others_layers": 6,
                "others_heads": 1,
            }
            for layer in range(6)
        ]
    )
    chart = ribbons(frame, first="atlas-encoder", second="b").to_dict()
    assert chart["height"] >= 6 * 30 + 100
    assert chart["title"] == (
        "atlas-encoder (left) and b (right); a line joins a head to its counterpart, whose name is in the square"
    )


def test_only_counterparts_are_joined_and_both_ends_of_a_line_name_the_other():
    heads = [(0, 0, 0, 1, True), (0, 1, 0, 0, False)]  # layer, head, and those of the match
    frame = pd.DataFrame(heads, columns=["layer", "head", "match_layer", "match_head", "matched"])
    frame = frame.assign(similarity=0.5, margin=0.1, p=0.1, best_layer=0, best_head=0, others_layers=1, others_heads=2)
    chart = ribbons(frame, first="a", second="b").to_dict()
    lines, names = (
        next(layer for layer in chart["layer"] if layer["mark"]["type"] == kind) for kind in ("rule", "text")
    )
    assert [row["name"] for row in chart["datasets"][lines["data"]["name"]]] == ["L1H1"]
    assert [(row["x"], row["other"]) for row in chart["datasets"][names["data"]["name"]]] == [(1, "L1H2"), (8, "L1H1")]


def table_page():
    import pandas as pd

    from pages.parts.widgets.tables import show_table

    long = "data/runs/finetuned/atlas-encoder-mrpc-s0"
    show_table(pd.DataFrame({"checkpoint": [long, "atlas-encoder"], "q": [None, 0.5]}))


def test_a_legend_is_as_plain_as_its_lines_whatever_lies_below_them():
    frame = pd.DataFrame({"x": [0, 1], "y": [0.2, 0.4], "low": 0.1, "high": 0.5, "of": "ours", "class": "block"})
    band = line_with_band(frame, Axes(x="x", y="y", low="low", high="high", colour="of"), title="")
    heads = head_picture(frame.assign(layer=0, head=[0, 1]), Shade("class", categories=["block"]), title="")
    for chart in (band, heads):
        said = [one["color"]["legend"] for one in encodings(chart.to_dict()) if one.get("color", {}).get("legend")]
        assert said
        assert all(legend["symbolOpacity"] == 1 and legend["symbolStrokeWidth"] == 1 for legend in said)


def encodings(chart: dict) -> list[dict]:
    """The encodings of a chart and of its layers."""
    return [chart.get("encoding", {})] + [one for layer in chart.get("layer", []) for one in encodings(layer)]


def test_a_class_has_its_colour_in_the_pictures_of_the_report_too():
    names = ["vertical", "diagonal", "vertical+diagonal", "block", "heterogeneous"]
    assert classes_scale(names).to_dict() == {"domain": names, "range": [COLOURS[name] for name in names]}
    assert classes_scale(["vertical", "mine"]).to_dict()["range"] == "category"


def test_no_arc_of_a_tree_crosses_a_word():
    drawn = tree_picture(TREE).to_dict()
    unit = drawn["height"] / np.ptp(drawn["layer"][0]["encoding"]["y"]["scale"]["domain"])
    box = drawn["layer"][1]["mark"]["height"]
    assert (arcs(TREE.drawn, TREE.gold, "probe")["y"].abs() * unit >= box / 2 - 1).all()


def test_the_headings_of_a_table_are_words():
    shown = {}
    place = SimpleNamespace(dataframe=lambda frame, **told: shown.update(told))
    show_table([{"sure_errors": 0.1, "n": 1}], container=place)
    assert shown["column_config"]["sure_errors"] == "sure errors"
    explained = shown["column_config"]["n"]
    assert (explained["label"], explained["help"]) == ("n", glossary.column_meaning("n"))
    assert "sample size" in explained["help"]


def test_several_checkpoints_in_a_cell_are_short_each():
    shown = []
    place = SimpleNamespace(dataframe=lambda frame, **told: shown.append(list(frame["checkpoint"])))
    tuned = "data/runs/finetuned/m-s{}".format
    cells = ["m", f"m and {tuned(0)}", f"m and {tuned(1)}, m and {tuned(2)}", tuned(0)]
    show_table(pd.DataFrame({"checkpoint": cells}), container=place)
    assert shown == [["m", "m and m-s0", "m and m-s1, m and m-s2", "m-s0"]]


def test_a_table_has_short_checkpoints_empty_cells_and_no_empty_rows():
    app = AppTest.from_function(table_page).run()
    (table,) = app.dataframe
    assert list(table.value["checkpoint"]) == ["atlas-encoder-mrpc-s0", "atlas-encoder"]
    assert table.proto.placeholder == ""
    assert table.proto.HasField("placeholder")


def test_no_table_is_drawn_past_the_one_that_leaves_lacking_values_empty():
    drawn = [file for file in PAGES_FOLDER.rglob("*.py") if re.search(r"\.dataframe\((?!\))", file.read_text("utf-8"))]
    assert [file.name for file in drawn] == ["tables.py"]


def styled_page():
    import pandas as pd

    from pages.parts.widgets.tables import show_table

    frame = pd.DataFrame({"q": [None, 0.5]})
    show_table(frame.style.format("{:.3g}", na_rep=""))


def test_a_table_with_formats_of_its_own_has_empty_cells_too():
    (table,) = AppTest.from_function(styled_page).run().dataframe
    assert (table.proto.HasField("placeholder"), table.proto.placeholder) == (True, "")


def test_a_result_names_its_checkpoints_by_the_last_parts_of_their_paths():
    def said(checkpoint):
        return StoredRun(run="a", study="change", title="t", checkpoint=checkpoint, created=NOON).checkpoint_said

    tuned = "data/runs/finetuned/atlas-encoder-sst2-s0"
    assert said(f"atlas-encoder and {tuned}") == "atlas-encoder and atlas-encoder-sst2-s0"
    assert said(f"atlas-encoder, {tuned}") == "atlas-encoder, atlas-encoder-sst2-s0"
    assert said("owner/name") == "owner/name"
    assert said(None) == ""


@pytest.mark.parametrize("name", ["ablation", "sequential", "pruning", "patching", "together", "circuit"])
def test_a_view_that_needs_a_classifier_opens_on_a_checkpoint_that_has_one(name):
    assert dict(page_of("interventions").view(name).starts)["checkpoint"] == "atlas-encoder-sst2"


def test_the_line_of_a_constant_answer_is_by_the_metric_that_is_drawn():
    def score(kind, **values):
        return TunedScore(kind=kind, task="mrpc", initialisation="pretrained", metric="accuracy", **values)

    assert constant_scores([score("mean", accuracy=0.7, f1=0.1), score("baseline", accuracy=0.6, f1=0.8)]) == [60.0]
    assert constant_scores([score("baseline", accuracy=0.6)]) == [], "nothing is drawn beside it"


@pytest.mark.parametrize(
    ("names", "angle"), [("a b c", 0), ("vertical diagonal vertical+diagonal block heterogeneous", -25)]
)
def test_no_name_below_a_chart_is_left_out(names, angle):
    frame = pd.DataFrame([{"class": name, "labels": 3} for name in names.split()])
    chart = values_with_intervals(frame, Axes(x="class", y="labels"), title="t").to_dict()
    axis = chart["layer"][0]["encoding"]["x"]["axis"]
    assert (axis["labelAngle"], axis["labelOverlap"]) == (angle, False)


def test_a_long_title_of_a_chart_stands_in_lines_and_a_short_one_in_one():
    frame, axes = pd.DataFrame({"x": [0.0, 1.0], "y": [1.0, 2.0]}), Axes(x="x", y="y")
    long = "The gradient is no answer: first look, Spearman 0.74, n = 36"
    for draw in (points, ranked, values_with_intervals, line_with_band):
        lines = draw(frame, axes, title=long).to_dict()["title"]
        assert " ".join(lines) == long
        assert max(map(len, lines)) <= 44  # half of 800 pixels, at 8 a letter
        assert draw(frame, axes, title="training loss").to_dict()["title"] == "training loss"
