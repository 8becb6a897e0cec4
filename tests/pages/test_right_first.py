"""Scales, signs and colours mean the same on every page, and an answer counts what the figure shows."""

import json
from dataclasses import replace

import altair as alt
import numpy as np
import pandas as pd
import pytest

from core.attention import Head
from core.codebook.registry import BERT, GPT2
from core.drawing.panes import Pane, difference
from core.drawing.payload import FULL, as_bytes
from core.labelling.assignment import AnnotatorStatus
from core.models.present import present_weights
from core.scoring.definitions import HEAD_KINDS
from core.store.runs import Provenance, record_run, store_rows
from core.studies.attention.records import ChangeScore, Score
from core.studies.headline import points_more
from core.tasks.glue import read_rows
from pages.parts.charts.curves import points, stacked_bars
from pages.parts.charts.encoding import COLOURS, Axes, Shade, colours_of
from pages.parts.charts.heads import head_picture
from pages.parts.charts.matrices import token_strips
from pages.parts.reports import attending
from pages.parts.reports.stored_runs import rows_second_less_first
from pages.parts.shell import resources
from pages.parts.shell.links import is_missing
from pages.parts.shell.messages import counted
from pages.parts.views.change import STATISTICS, _as_change
from pages.parts.views.project_setup import reason
from pages.parts.views.token_types import sentence
from tests.pages.opening import opened

ROLES = [*HEAD_KINDS]


def colours_in(chart) -> dict[str, str]:
    """The colour of each name in a chart's scale."""
    found = {}
    specification = json.loads(chart.to_json())
    for layer in [specification, *specification.get("layer", [])]:
        scale = layer.get("encoding", {}).get("color", {}).get("scale", {})
        if isinstance(scale.get("range"), list):
            found |= dict(zip(scale["domain"], scale["range"], strict=True))
    return found


def test_a_class_and_a_role_have_one_colour_in_every_kind_of_chart():
    names = list(BERT.names)
    some = pd.DataFrame(
        {"class": names[::-1], "task": "a", "share": 0.2, "layer": 0, "head": range(5), "x": 0.0, "y": 1.0}
    )
    bars = stacked_bars(some, Axes(x="share", y="task", colour="class"), title="", order=names)
    cells = head_picture(some, Shade("class", categories=names), title="")
    dots = points(some.iloc[:3], Axes(x="x", y="y", colour="class"), title="")
    own = {member.name: member.colour for member in BERT.classes}
    assert colours_in(bars) == colours_in(cells) == own
    assert colours_in(dots).items() <= own.items()


@pytest.mark.parametrize("seen", [ROLES, ["separator", "broad"], ["other", "next", "separator"]])
def test_a_roles_colour_does_not_depend_on_which_others_are_there(seen):
    frame = pd.DataFrame({"kind": seen, "x": range(len(seen)), "y": range(len(seen))})
    dots = points(frame, Axes(x="x", y="y", colour="kind"), title="")
    assert colours_in(dots) == {name: COLOURS[name] for name in seen}


def test_names_without_a_colour_of_their_own_never_take_one_that_is_shown():
    names = ["vertical", "mine", "diagonal", "yours"]
    colours = colours_of(names)
    assert len(set(colours)) == 4
    assert (colours[0], colours[2]) == (COLOURS["vertical"], COLOURS["diagonal"])
    assert {member.name for member in (*BERT.classes, *GPT2.classes)} <= COLOURS.keys()


# ---------------------------------------------------------------- second less first


def test_the_difference_of_two_stacks_of_maps_is_second_less_first():
    first, second = np.full((1, 1, 2, 2), 0.25), np.full((1, 1, 2, 2), 0.75)
    panes = [Pane(name, 1, 1, ("a", "b"), as_bytes(maps), False) for name, maps in (("A", first), ("B", second))]
    third = difference(*panes, (first, second))
    assert third.title == "B − A"
    shares = np.frombuffer(third.weights, "<u2") / (FULL // 2) - 1
    np.testing.assert_allclose(shares, 0.5, atol=1e-4)


def score(checkpoint, value, **more):
    return Score(
        statistic="max",
        feature="noun",
        layer=0,
        head=0,
        checkpoint=checkpoint,
        task="sst2",
        value=value,
        n=9,
        low=value - 0.1,
        high=value + 0.3,
        **more,
    )


def test_a_difference_of_features_is_shown_second_less_first():
    """The study stores the first less the second: -0.2 there is 0.2 more in the second."""
    other = {"checkpoint": "a", "value": 0.4, "low": 0.3, "high": 0.7, "n": 9}
    row = {"checkpoint": "difference", "value": -0.2, "low": -0.3, "high": 0.1, "n": 9}
    assert rows_second_less_first([row, other]) == [row | {"value": 0.2, "low": -0.1, "high": 0.3}, other]


def cells_of(scores) -> tuple[dict, list[str]]:
    """The colour scale of a heatmap, and the heads that it does not fade."""
    chart = attending.heatmap(scores, "value", "attention", title="a")
    cells = chart.layer[0]
    drawn = cells.data if cells.data is not alt.Undefined else chart.data
    full = list(drawn["Name"][drawn["Ink"] == 1]) if "Ink" in drawn else list(drawn["Name"])
    return json.loads(chart.to_json())["layer"][0]["encoding"]["color"]["scale"], full


def test_the_scale_of_attention_begins_at_zero_and_that_of_a_difference_is_symmetric():
    shown, _ = cells_of([score("a", 0.4), replace(score("a", 0.1), head=1)])
    assert (shown["domain"], shown["range"]) == ([0.0, 0.4], "ramp")
    shown, _ = cells_of([score("difference", -0.3, q=0.01)])
    assert (shown["domain"], shown["range"]) == ([-0.3, 0.3], "diverging")


@pytest.mark.parametrize(
    ("checkpoint", "effect", "significant"),
    [("difference", None, range(5)), ("difference", None, range(2)), ("a", 0.2, range(2)), ("a", -0.2, [])],
)
def test_heads_that_are_not_significant_are_faded_and_none_without_a_test(checkpoint, effect, significant):
    """A head that attends less than its baseline does not attend significantly more, whatever its q."""
    below = effect is not None and effect < 0
    some = [score(checkpoint, -0.3, q=0.01 if below or k in significant else 0.9, effect=effect) for k in range(6)]
    some = [replace(one, head=head) for head, one in enumerate(some)]
    assert cells_of(some)[1] == [f"L1H{head + 1}" for head in significant]
    assert len(cells_of([replace(one, q=None) for one in some])[1]) == 6


def test_the_scale_of_a_tokens_strip_ends_at_its_largest_weight_and_has_a_legend():
    weights = pd.DataFrame(
        {
            "line": "target",
            "position": range(3),
            "token": list("abc"),
            "mark": ["", "target", ""],
            "weight": [0.02, 0.1, 0.05],
        }
    )
    cells = json.loads(token_strips(weights, title="").to_json())["layer"][0]["encoding"]["color"]
    assert cells["scale"]["domain"] == [0, 0.1]
    assert cells["legend"] is not None


# ---------------------------------------------------------------- more ink is more change


def test_likenesses_are_drawn_as_changes_with_their_intervals_turned():
    found = ChangeScore(
        kind="head",
        statistic="cosine",
        layer=0,
        head=0,
        before="a",
        after="b",
        task="sst2",
        value=0.9,
        low=0.8,
        high=0.95,
        n=5,
    )
    drawn = _as_change(found, STATISTICS["cosine"])
    assert (drawn.value, drawn.low, drawn.high) == pytest.approx((0.1, 0.05, 0.2))
    assert _as_change(found, STATISTICS["divergence"]) == found


# ---------------------------------------------------------------- answers


def test_an_answer_counts_the_heads_that_the_figure_does_not_fade():
    some = [score("a", 0.4, q=0.01, effect=0.2), score("a", 0.1, q=0.6, effect=0.1), score("a", 0.1, q=0.9, effect=0.0)]
    some = [one.__class__(**(vars(one) | {"head": k})) for k, one in enumerate(some)]
    said = sentence(some, "nouns")
    assert said.startswith("1 of 3 heads attend significantly more to nouns than to random tokens (L1H1).")
    assert cells_of(some)[1] == ["L1H1"]
    none = [replace(one, q=0.9) for one in some]
    assert sentence(none, "nouns").startswith("None of 3 heads attend")
    assert cells_of(none)[1] == []


@pytest.mark.thorough
@pytest.mark.shipped
def test_two_places_never_hold_a_checkpoint_against_itself(tmp_path, monkeypatch):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    page = opened("heads/overview", layout="two places")
    assert not page.exception
    assert "choose a checkpoint under “compare with” at the top of the page" in " ".join(
        one.value for one in page.caption
    )


def test_a_folder_that_is_gone_is_known_as_gone(tmp_path):
    assert is_missing(str(tmp_path / "runs" / "gone"))
    assert not is_missing(str(tmp_path))
    assert not is_missing("owner/model")
    assert str(Head(0, 0)) == "L1H1"


@pytest.mark.thorough
@pytest.mark.parametrize("mode", ["Importance", "Curve"])
def test_pruning_says_that_its_model_is_not_above_chance(mode, tmp_path, monkeypatch):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    resources.database.clear()
    db, ids = resources.database(), tuple(row.id for row in read_rows("sst2", "dev")[:100])
    about = Provenance(
        "atlas-encoder", weights_hash=present_weights("atlas-encoder"), task="sst2", split="dev", row_ids=ids
    )
    step = {
        "kind": "step",
        "order": "random",
        "task": "sst2",
        "metric": "accuracy",
        "n": 100,
        "baseline": 0.5,
        "removed": 1,
        "share": 0.1,
        "heads": "L1H1",
        "score": 0.5,
        "change": 0.0,
        "low": 0.4,
        "high": 0.6,
    }
    head = {
        "kind": "head",
        "name": "L1H1",
        "layer": 0,
        "head": 0,
        "rank": 1,
        "value": 1.0,
        "gradient": 0.1,
        "task": "sst2",
        "n": 100,
        "statistic": "importance",
        "feature": "sst2",
    }
    for study, row in (("prune", step), ("importance", head)):
        run = record_run(db, study, {"checkpoint": "atlas-encoder", "task": "sst2"}, about, title=study)
        store_rows(db, run, [row])
    app = opened("interventions/pruning", mode=mode)
    assert not app.exception
    assert any(
        "is not significantly above the accuracy of a constant prediction" in warning.value for warning in app.warning
    )


def test_a_change_says_that_its_model_is_not_above_chance(tmp_path, monkeypatch):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    resources.database.clear()
    db, after = resources.database(), str(tmp_path / "after")
    tuned = {"task": "mrpc", "metric": "accuracy", "dev_rows": 300}
    scores = [
        tuned | {"kind": "run", "initialisation": "pretrained", "accuracy": 0.463, "seed": 0, "folder": after},
        tuned | {"kind": "baseline", "initialisation": "equivalent", "accuracy": 0.517},
    ]
    alike = {
        "before": "atlas-encoder",
        "after": after,
        "task": "mrpc",
        "statistic": "cosine",
        "layer": 0,
        "n": 9,
        "value": 0.9,
        "low": 0.8,
        "high": 0.95,
    }
    changes = [alike | {"kind": "head", "head": 0}, alike | {"kind": "layer"}]
    told = {"before": "atlas-encoder", "after": [after], "limit": 9}
    of_both = Provenance(f"atlas-encoder and {after}", task="mrpc", split="dev")
    for study, options, about, rows in (
        ("finetune", {"checkpoint": "atlas-encoder"}, of_both, scores),
        ("change", told, of_both, changes),
    ):
        store_rows(db, record_run(db, study, options, about, title=study), rows)
    app = opened("finetuning/change")
    assert not app.exception
    assert any("after" in one.value and "are not informative" in one.value for one in app.warning), [
        app.warning,
        app.error,
    ]


def test_a_difference_of_points_is_said_as_a_person_says_it():
    said = [points_more(share, "before") for share in (0.017, -0.017, 0.0001)]
    assert said == ["1.7 points more than before", "1.7 points less than before", "as much as before"]


@pytest.mark.parametrize(
    ("count", "what", "said"),
    [(1, "maps", "1 map"), (0, "maps", "0 maps"), (2142, "new labels", "2,142 new labels"), (1, "people", "1 person")],
)
def test_a_count_is_said_as_a_person_says_it(count, what, said):
    assert counted(count, what) == said


@pytest.mark.parametrize(
    ("standing", "told"),
    [
        (
            AnnotatorStatus("paused", "You are paused: 3 of your last 8 gold maps ...", golds=8, right=3, cause="gold"),
            "3 of the last 8 gold maps were labelled correctly",
        ),
        (
            AnnotatorStatus("paused", "You are paused: 1 of 4 exemplars ...", 0, 0, 4, 1, 2, "exemplars"),
            "1 of 4 exemplars were labelled correctly in round 2",
        ),
        (
            AnnotatorStatus("paused", "An admin has paused you in this project: ...", cause="admin"),
            "paused by an admin",
        ),
        (AnnotatorStatus("labelling", ""), ""),
    ],
)
def test_an_admin_reads_of_others_why_they_are_paused(standing, told):
    assert reason(standing) == told
