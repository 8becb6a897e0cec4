"""Charts as Vega-Lite: oriented alike, counted from 1, the scale always there, and files that carry their colours."""

import pandas as pd
import pytest

from core.attention import Head
from core.drawing import theme
from pages.parts.charts.curves import calibration, line_with_band, points, ranked, stacked_bars, values_with_intervals
from pages.parts.charts.encoding import CELL, LARGE, Axes, Shade
from pages.parts.charts.heads import head_picture
from pages.parts.charts.matrices import matrix
from pages.parts.widgets.files import exported, results_page


@pytest.fixture
def heads() -> pd.DataFrame:
    rows = [(layer, head, layer - head / 10) for layer in range(2) for head in range(3)]
    return pd.DataFrame(rows, columns=["layer", "head", "score.of: [x]"])


def test_layers_run_down_and_heads_across_counted_from_one(heads):
    made = head_picture(heads, Shade("score.of: [x]"), title="Score").to_dict()
    encoding = made["layer"][0]["encoding"]
    assert (encoding["y"]["field"], encoding["x"]["field"]) == ("Layer", "Head")
    rows = next(iter(made["datasets"].values()))
    assert rows[0]["Layer"] == rows[0]["Head"] == 1
    assert rows[0]["Name"] == "L1H1"
    assert encoding["color"]["legend"] is not None


def test_a_difference_is_symmetric_about_zero(heads):
    made = head_picture(heads, Shade("score.of: [x]", diverging=True), title="Change").to_dict()
    scale = made["layer"][0]["encoding"]["color"]["scale"]
    assert scale["domain"] == [-1.0, 1.0]
    assert scale["range"] == "diverging"


def test_a_score_starts_at_zero_unless_told(heads):
    positive = heads.assign(score=3.0)
    domain = head_picture(positive, Shade("score"), title="").to_dict()["layer"][0]["encoding"]["color"]["scale"][
        "domain"
    ]
    assert domain == [0.0, 3.0]
    told = head_picture(positive, Shade("score", domain=(0, 10)), title="").to_dict()
    assert told["layer"][0]["encoding"]["color"]["scale"]["domain"] == [0, 10]


def test_highlighted_heads_are_outlined(heads):
    made = head_picture(heads, Shade("score.of: [x]"), title="", highlight=[Head(1, 2)]).to_dict()
    outlined = made["datasets"][made["layer"][1]["data"]["name"]]
    assert [row["Name"] for row in outlined] == ["L2H3"]


def test_a_picture_of_nothing_still_has_its_axes_and_scale(heads):
    made = head_picture(heads.iloc[:0], Shade("score.of: [x]"), title="Empty").to_dict()
    assert made["layer"][0]["encoding"]["color"]["scale"]["domain"] == [0.0, 1.0]


def test_class_pictures_keep_the_order_of_the_classes(heads):
    named = heads.assign(kind="Block")
    made = head_picture(named, Shade("kind", categories=["Vertical", "Block"]), title="").to_dict()
    assert made["layer"][0]["encoding"]["color"]["scale"]["domain"] == ["Vertical", "Block"]


@pytest.fixture
def rows() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "task": ["a", "a", "b", "b"],
            "kind": ["x", "y"] * 2,
            "n": [1, 2, 3, 4],
            "low": [0, 1, 2, 3],
            "high": [2, 3, 4, 5],
        }
    )


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["svg", "png"])
def test_every_kind_of_chart_becomes_a_file(heads, rows, kind):
    made = [
        head_picture(heads, Shade("score.of: [x]"), title="Score", highlight=[Head(0, 0)], select=True),
        stacked_bars(rows, Axes(x="n", y="task", colour="kind"), title="Shares"),
        line_with_band(rows, Axes(x="n", y="n", low="low", high="high", colour="kind"), title="Line", rule=2),
        values_with_intervals(rows, Axes(x="task", y="n", low="low", high="high", colour="kind"), title="Bars", rule=1),
        points(rows, Axes(x="n", y="low", colour="kind", name="task"), title="Points"),
        matrix(rows, Axes(x="task", y="kind"), value="n", order=["a", "b"], title="Confusion"),
    ]
    for chart in made:
        file = exported(chart, kind)
        assert file.startswith(b"<svg") if kind == "svg" else file.startswith(b"\x89PNG")
    if kind == "svg":  # on light ground, whatever the screen's theme is
        ground = f'fill="{theme.theme()["light"]["backgroundColor"]}"'
        assert all(ground in exported(one, "svg").decode() for one in made)
        assert theme.theme()["chartCategoricalColors"][0].lower() in exported(made[1], "svg").decode().lower()


@pytest.mark.thorough
def test_a_result_is_a_page_in_one_file_with_its_rows_and_pictures():
    rows = pd.DataFrame({"head": ["L1H1", "<img src=x>"], "value": [0.25, None]})
    picture = points(rows, Axes(x="value", y="value"), title="two")
    page = results_page(rows, [picture], "statistics")
    assert "Content-Security-Policy" in page
    assert "<td>L1H1</td><td>0.25</td>" in page
    assert "<img src=x>" not in page
    assert "chart-0" in page


def test_calibration_has_its_diagonal_and_n():
    bins = pd.DataFrame({"confidence": [0.3, 0.8], "accuracy": [0.25, 0.9], "n": [40, 160]})
    axes = Axes(x="confidence", y="accuracy", x_title="probability it gave", y_title="share it got right")
    made = calibration(bins, axes, counted="n", title="Calibration").to_dict()
    equal, dots, counts = made["layer"]
    ends = made["datasets"][equal["data"]["name"]]
    assert ends == [{"confidence": 0.0, "accuracy": 0.0}, {"confidence": 1.0, "accuracy": 1.0}]
    assert dots["encoding"]["x"]["scale"]["domain"] == dots["encoding"]["y"]["scale"]["domain"] == [0, 1]
    assert "'n = '" in counts["transform"][0]["calculate"]
    assert dots["encoding"]["x"]["title"] == "probability it gave"


def test_a_class_has_one_colour_in_bars_heads_and_points(heads):
    classes = ["vertical", "diagonal", "block"]
    some = heads.assign(kind=["block", "diagonal"] * 3, share=1.0)  # without the first class
    bars = stacked_bars(some, Axes(x="share", y="layer", colour="kind"), title="", order=classes).to_dict()
    cells = head_picture(some, Shade("kind", categories=classes), title="").to_dict()["layer"][0]
    axes = Axes(x="layer", y="head", colour="kind", classes=classes)
    dots = points(some, axes, title="").to_dict()["layer"][0]
    scales = [drawn["encoding"]["color"]["scale"] for drawn in (bars, cells, dots)]
    assert [scale["domain"] for scale in scales] == [classes] * 3
    assert len({tuple(scale["range"]) for scale in scales}) == 1


def test_a_baseline_is_a_dashed_line_in_lines_and_bars(rows):
    for made in (
        line_with_band(rows, Axes(x="n", y="n"), title="", rule=2.5),
        values_with_intervals(rows, Axes(x="task", y="n"), title="", rule=2.5),
    ):
        drawn = made.to_dict()
        rule = drawn["layer"][-1]
        assert rule["mark"]["strokeDash"]
        assert drawn["datasets"][rule["data"]["name"]] == [{"baseline": 2.5}]


@pytest.mark.parametrize(("count", "cell"), [(6, LARGE), (12, LARGE), (32, 20)])
def test_a_picture_of_few_heads_uses_the_width(count, cell):
    frame = pd.DataFrame({"layer": 0, "head": range(count), "score": 1.0})
    alone = head_picture(frame, Shade("score", cell=LARGE), title="").to_dict()
    assert alone["width"] == {"step": cell}
    assert LARGE > CELL


def test_values_with_intervals_are_dots_and_those_without_are_bars(rows):
    axes = Axes(x="task", y="n", low="low", high="high", colour="kind")
    lines, dots = values_with_intervals(rows, axes, title="").to_dict()["layer"]
    assert (lines["mark"]["type"], dots["mark"]["type"]) == ("rule", "point")
    assert (lines["encoding"]["y"]["field"], lines["encoding"]["y2"]["field"]) == ("low", "high")
    (bars,) = values_with_intervals(rows, Axes(x="task", y="n"), title="").to_dict()["layer"]
    assert bars["mark"]["type"] == "bar"


def test_many_names_have_a_line_each():
    heads = pd.DataFrame({"head": [f"L1H{k}" for k in range(36)], "value": 1.0, "low": 0.5, "high": 1.5})
    made = values_with_intervals(heads, Axes(x="head", y="value", low="low", high="high"), title="").to_dict()
    lines, dots = made["layer"]
    assert (dots["encoding"]["y"]["field"], dots["encoding"]["x"]["field"]) == ("head", "value")
    assert (lines["encoding"]["x"]["field"], lines["encoding"]["x2"]["field"]) == ("low", "high")


def test_ranked_dots_stand_in_order_and_name_their_extremes():
    values = [0.3, 0.1, None, 0.9, 0.5, 0.2]
    frame = pd.DataFrame({"head": list("abcdef"), "value": values})
    made = ranked(frame, Axes(x="rank", y="value", name="head"), title="", named=1, rule=0.4).to_dict()
    dots, said, _ = made["layer"]
    in_order = made["datasets"][dots["data"]["name"]]
    assert [(row["rank"], row["head"]) for row in in_order] == [(1, "b"), (2, "f"), (3, "a"), (4, "e"), (5, "d")]
    assert [row["head"] for row in made["datasets"][said["data"]["name"]]] == ["b", "d"]
