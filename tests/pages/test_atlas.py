"""The atlas, the page of one head, and the views beyond weights, on rows that are known."""

import json
import re
from dataclasses import asdict, replace

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from core.atlas import scores
from core.atlas.scores import run_here
from core.attention import Head
from core.models.present import present_weights
from core.store import runs
from core.store.rows import plain
from core.store.runs import Provenance
from core.studies.attention import redundancy
from core.studies.attention.records import AlikeHead, HeadGroup, LikenessKept
from core.studies.circuits.records import CircuitEdge
from core.studies.hypotheses.predicates import PREDICATES
from core.studies.lookup import find_study, study_modules
from pages.parts.atlas import choices, head_pictures, measuring
from pages.parts.atlas.atlas_view import axis_of, kinds_of
from pages.parts.atlas.head_pictures import SmallMap
from pages.parts.charts.heads import budget_parts
from pages.parts.shell import resources, shell
from pages.parts.shell.messages import plain as escaped
from pages.parts.views import one_head, similar
from tests.pages.opening import opened as at_link
from tests.pages.opening import switched
from tests.pages.test_counterparts import MATCHED, matched_rows

NAME = "atlas-encoder"


def stored(db, study, statistic, values, **about):
    rows = [
        {
            "statistic": statistic,
            "layer": layer,
            "head": head,
            "value": float(value),
            "low": value - 0.01,
            "high": value + 0.01,
            "n": 40,
            "checkpoint": NAME,
            "task": "sst2",
            **about,
        }
        for (layer, head), value in np.ndenumerate(values)
    ]
    about = Provenance(checkpoint=NAME, weights_hash=present_weights(NAME), task="sst2")
    runs.store_rows(db, runs.record_run(db, study, {}, about), rows)


@pytest.fixture
def filled(tmp_path, monkeypatch):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    monkeypatch.setattr(scores, "FILE", tmp_path / "none.parquet")
    monkeypatch.setattr(scores, "FOLDER", tmp_path)
    resources.database.clear()
    db, chance = resources.database(), np.random.default_rng(0)
    for statistic in ("previous", "normalised entropy", "separator", "distance"):
        stored(db, "statistics", statistic, chance.random((2, 3)))
    stored(db, "roles", "previous", np.array([[0.9, 0.1, 0.1], [0.2, 0.1, 0.1]]), q=0.001, baseline=0.1)
    yield db
    resources.database.clear()


def opened(page):
    app = AppTest.from_file(shell.__file__, default_timeout=120).run()
    switched(app, page).run()
    assert not app.exception
    assert not app.error, app.error[0].value
    return app


@pytest.mark.thorough
def test_the_atlas_offers_every_stored_score_and_says_what_they_are(filled):
    app = opened("heads")
    assert app.selectbox(key="across").options[:2] == ["entropy", "to previous"]
    assert "Clark et al. 2019" in " ".join(one.value for one in app.caption)
    app.segmented_control(key="layout").set_value("two places").run()
    assert not app.error
    assert not app.exception
    app.segmented_control(key="layout").set_value("alike heads").run()
    assert not app.exception
    assert "Measure head statistics" in app.info[0].value


SHARES = {"start": 0.1, "separator": 0.55, "previous": 0.2, "same sentence": 0.15}


@pytest.mark.thorough
def test_the_overview_opens_on_budgets_and_a_link_to_a_score_on_the_score(filled):
    for category, share in SHARES.items():
        stored(filled, "budget", "budget", np.full((2, 3), share), feature=category, baseline=0.25)
    app = opened("heads")
    assert app.segmented_control(key="layout").value == "attention budget"
    answer = app.markdown[0].value.replace("\\", "")
    assert answer == (
        "**On average, 55% of the attention of a head goes to separators (uniform attention: 25%) and 20% to the "
        "previous token (uniform attention: 25%).**"
    )
    assert "attention to" in app.get("vega_lite_chart")[0].proto.spec
    parts = budget_parts(choices.scores_of(NAME))
    assert len(parts) == 2 * 3 * len(SHARES)
    for _, own in parts.groupby(["layer", "head"]):
        assert list(own["category"]) == ["start", "separator", "previous", "same sentence"]
        np.testing.assert_allclose(own["end"], [0.1, 0.65, 0.85, 1.0])
    app.query_params["colour"] = "statistics/distance"
    app.run()
    assert app.selectbox(key="across")


def test_a_head_shows_its_budget_as_one_bar_and_what_its_sink_does(filled):
    for category, share in SHARES.items():
        stored(filled, "budget", "budget", np.full((2, 3), share), feature=category, baseline=0.25)
    about = Provenance(checkpoint=NAME, weights_hash=present_weights(NAME), task="sst2")
    written = {
        "kind": "written tokens", "name": "L1H1", "layer": 0, "head": 0, "source": "[SEP]", "times": 8, "n": 60,
        "promoted": "france, books", "suppressed": "it", "agreement": 0.99, "reads": "prediction head",
        "checkpoint": NAME, "task": "sst2",
    }  # fmt: skip
    runs.store_rows(filled, runs.record_run(filled, "writes", {}, about), [written])
    stored(filled, "budget", "budget of nouns", np.full((2, 3), 1.0), feature="separator", baseline=0.25)
    stored(
        filled, "budget", "distance of a part of speech", np.full((2, 3), 0.5), feature="nouns", baseline=0.1, q=0.02
    )
    for name, value in (("sink share", 0.55), ("whole head removed", 0.4), ("sink removed", 0.02)):
        stored(filled, "sinks", name, np.full((2, 3), value), feature="separators", baseline=0.1)
    stored(filled, "sinks", "sink replaced by its mean", np.full((2, 3), 0.01), feature="separators", baseline=0.1)
    app = opened("heads/one")
    text = " ".join(one.value for one in app.markdown).replace("\\", "")
    assert "What does this head write to the output?" in [one.value for one in app.subheader]
    assert "france, books" in app.dataframe[0].value.to_numpy()
    assert "is a sink head: 55% of its attention goes to the separators. The sink is a no-op" in text
    captions = " ".join(one.value for one in app.caption).replace("\\", "")
    assert "The budget of nouns differs most from that of other words: Jensen-Shannon distance 0.50" in captions
    assert "change of the output" in " ".join(one.proto.spec for one in app.get("vega_lite_chart"))
    assert app.markdown[0].value.replace("\\", "") == (
        "**From the tokens of the text, L1H1 gives 55.0% of its attention to separators. Uniform attention would give "
        "25.0%.**"
    ), "one number for one thing, with what it is a share of"
    assert app.caption[0].value == "95 % CI 54.0% to 56.0%, n = 40 inputs."
    chart = json.loads(app.get("vega_lite_chart")[0].proto.spec)
    assert "tokens of the text" in json.dumps(chart["layer"][0]["encoding"]["y"])


@pytest.mark.thorough
def test_a_head_has_a_sentence_and_every_number_of_the_store(filled):
    app = opened("heads/one")
    app.selectbox(key="head").set_value("L1H1").run()
    assert not app.exception
    assert app.markdown[0].value.replace("\\", "").startswith("**L1H1: The role of this head is previous token: 0.90")
    assert app.subheader[0].value == "What does L1H1 do?"
    assert [tab.label for tab in app.tabs] == one_head.TABS
    kinds = [one.type for one in app.main]
    assert kinds.index("bidi_component") < kinds.index("dataframe"), "maps come before numbers"
    shown = app.dataframe[-1].value
    rows = runs.head_scores(filled)
    mine = rows[(rows["layer"] == 0) & (rows["head"] == 0)]
    assert sorted(shown["value"]) == sorted(mine["value"])
    assert {"low", "high", "n", "baseline", "source"} <= set(shown.columns)
    assert "Heads with the most similar statistics" in [subheader.value for subheader in app.subheader]


@pytest.mark.thorough
def test_what_a_head_lacks_is_one_job_with_its_time_said_before(filled, monkeypatch):
    begun = []
    monkeypatch.setattr(measuring.job_progress, "begin", lambda *asked: begun.append(asked) or "job")
    monkeypatch.setattr(measuring.job_progress, "show_job", lambda *asked, **others: None)
    app = opened("heads/one")
    said = next(one.value for one in app.caption if one.value.startswith("One job runs "))
    app.button(key="measure_missing").click().run()
    assert not app.exception
    ((study, options, title),) = begun
    named = [one.study for one in options.studies]
    assert {"features", "pattern-shares", "why"} <= set(named)
    assert not {"statistics", "roles"} & set(named)  # which are stored
    assert (study, title.split()[0]) == ("measure-heads", str(len(named)))
    assert re.fullmatch(rf"One job runs {len(named)} studies and takes about \d+ (s|min) of computing time\.", said)
    assert not [one for one in app.dataframe if "None" in one.value.to_string()]


@pytest.mark.thorough
def test_a_head_shows_its_neighbours_and_counterparts_as_maps_and_what_it_does_as_charts(filled, monkeypatch):
    stored(filled, "operators", "zero loss change", np.array([[0.4, 0.01, 0.03], [0.0, 0.02, 0.04]]))
    runs.store_rows(
        filled, runs.record_run(filled, "match", {"checkpoint": NAME, "compare": NAME}, MATCHED), matched_rows()
    )
    edge = CircuitEdge(
        name="L1H1 to L2H1 q",
        sender="L1H1",
        receiver="L2H1",
        input="q",
        edge_kind="head to head",
        sender_layer=0,
        receiver_layer=1,
        effect=0.5,
        low=0.2,
        high=0.8,
        verdict="matters",
        attribution=0.4,
        rank=1,
        proposed=True,
        selection=1.0,
        stable=True,
        n=80,
    )
    other = replace(edge, name="L1H2 to L2H2 v", sender="L1H2", receiver="L2H2")
    about = Provenance(checkpoint=NAME, weights_hash=present_weights(NAME), task="sst2")
    run = runs.record_run(filled, "circuit", {}, about)
    runs.store_rows(filled, run, [edge.as_row(), other.as_row()])
    drawn = {}
    monkeypatch.setattr(head_pictures, "show_small_maps", lambda maps, *, key, cell: drawn.update({key: maps}))
    app = switched(AppTest.from_file(shell.__file__, default_timeout=120), "heads/one", head="L1H1").run()
    assert not app.exception
    assert drawn["nearest_maps"][0].title == "L1H1"
    assert len(drawn["nearest_maps"]) == 6
    assert [one.title for one in drawn["counterpart_maps"]] == ["L1H1, here", f"L1H1 of {NAME}"]
    for one in drawn["nearest_maps"]:
        np.testing.assert_allclose(one.weights.sum(-1), 1, atol=1e-5)
    np.testing.assert_array_equal(*(one.weights for one in drawn["counterpart_maps"]))  # matched with itself
    specs = " ".join(chart.proto.spec for chart in app.get("vega_lite_chart"))
    assert "Effects and importance of this head" in specs
    assert "increase of the loss, nats" in specs
    assert "Strongest edges of this head" in specs
    scores = choices.on_task(choices.scores_of(NAME), "sst2")
    assert {start.split("/")[0] for start in one_head.MEASURED_AS} <= study_modules().keys()
    frame = one_head.effects(scores, Head(0, 0))["increase of the loss, nats"]
    assert frame["value"].tolist() == pytest.approx([0.4, 0.02])  # the head, and the mean of the other five
    assert [one.name for one in one_head.edges_of(NAME, Head(0, 0))] == ["L1H1 to L2H1 q"]


@pytest.mark.thorough
def test_the_form_has_every_predicate_with_its_parameters_and_usual_rows(filled):
    app = opened("heads/one")
    offered = app.selectbox(key="hypothesis_predicate")
    assert len(offered.options) == len(PREDICATES)
    offered.set_value("frame-link").run()
    assert app.text_input(key="hypothesis_judged_frame-link").value == "frames:dev:0:0"
    app.selectbox(key="hypothesis_predicate").set_value("property").run()
    app.text_input(key="hypothesis_property_kind").set_value("drop")
    app.button(key="hypothesis_register").click().run()
    assert not app.exception
    assert "must be a classifier" in app.error[0].value


@pytest.mark.thorough
def test_a_link_of_the_page_to_another_head_is_followed_and_a_choice_afterwards_wins(filled):
    app = switched(AppTest.from_file(shell.__file__, default_timeout=120), "heads/one", head="L1H1").run()
    app.query_params["head"] = "L2H3"  # as a click on one of its nearest heads
    app.run()
    assert app.markdown[0].value.startswith("**L2H3")
    assert any(
        "One comes from a test over inputs, and the other from a test over word types" in caption.value
        for caption in app.caption
    )  # a bundled hypothesis
    assert app.selectbox(key="head").value == "L2H3"
    app.selectbox(key="head").set_value("L1H2").run()
    assert app.markdown[0].value.startswith("**L1H2")
    assert app.run().selectbox(key="head").value == "L1H2"


def test_a_thumbnail_of_a_checkpoint_that_is_not_here_is_a_sentence(filled):
    told = head_pictures.thumbnail("/nowhere/at/all", Head(0, 0), ("A text.", None), "L1H1 of it")
    assert told == "L1H1 of it: /nowhere/at/all is not on this machine."


@pytest.mark.thorough
def test_the_views_beyond_weights_open_computed_and_can_be_left_off(filled):
    app = opened("maps/norms")
    assert not app.info
    app.toggle(key="compute").set_value(False).run()
    assert app.info
    app.toggle(key="compute").set_value(True).run()
    for kind in ("norms", "rollout", "flow", "value zeroing"):
        app.segmented_control(key="mode").set_value(kind).run()
        assert not app.exception, kind
        assert not app.error, kind
        assert any("n = 1" in one.value for one in app.caption)


def test_an_axis_keeps_every_head_and_marks_what_is_unknown():
    known = {"value": [0.5, -0.25], "low": [0.4, None], "high": [0.6, None], "n": [3, 3]}
    rows = pd.DataFrame({"layer": [0, 1], "head": [1, 0]} | known)
    axis = axis_of(rows, "a score", (2, 2))
    assert axis.values == [None, 0.5, -0.25, None]
    assert axis.low == [None, 0.4, None, None]
    assert axis.domain == (-0.6, 0.6)  # signed: the same length both ways
    assert axis.diverging
    above = axis_of(rows.assign(value=[0.02, 0.2], low=[-0.1, 0.1]), "a share", (2, 2))
    assert not above.diverging  # an interval that reaches below 0 makes no difference of a share


def test_heads_are_coloured_by_kind_the_most_frequent_first():
    shares = [
        {"score": f"pattern-shares/class share/{name}", "layer": 0, "head": head, "value": value, "n": 9}
        for head, values in enumerate([(0.2, 0.8), (0.9, 0.1), (0.4, 0.6)])
        for name, value in zip(("Vertical", "Diagonal"), values, strict=True)
    ]
    frame = pd.DataFrame(shares).assign(low=None, high=None)
    assert choices.colours(list(frame["score"]))[0] == choices.CLASS
    axis = kinds_of(choices.kinds(frame, choices.CLASS), "pattern class", (1, 4))
    assert axis.names == ("Diagonal", "Vertical")
    assert axis.values == [0, 1, 0, None]
    grouped = frame.iloc[:3].assign(score=choices.GROUP, head=range(3), value=[2.0, 1.0, 2.0])
    assert kinds_of(choices.kinds(grouped, choices.GROUP), "group", (1, 3)).names == ("group 2", "group 1")
    assert choices.kinds(frame, "statistics/previous") is None


def test_a_small_map_is_sent_as_shares_of_its_scale():
    weights = np.array([[0.9, 0.1], [0.0, 1.0]])
    packed = SmallMap("highest 1: 0.900", weights, ("<b>", "x")).packed(1.0)
    np.testing.assert_allclose(np.array(packed["weights"]) / 255, weights.ravel(), atol=0.5 / 255)
    assert (packed["tokens"], packed["length"]) == (["<b>", "x"], 2)
    assert SmallMap("", weights / 4).packed(0.25)["weights"] == packed["weights"]


@pytest.mark.thorough
def test_groups_by_mean_pattern_and_whether_redundancy_is_kept(filled):
    given = redundancy.STUDY.read({"checkpoint": NAME, "tasks": ["sst2", "mrpc"], "limit": 6, "groups": 3})
    run = runs.record_run(filled, "redundancy", {}, Provenance(checkpoint=NAME, task="sst2, mrpc"))
    rows = run_here(redundancy.STUDY, given)
    runs.store_rows(filled, run, rows)
    app = at_link("heads/similar", mode="Groups")
    kept = LikenessKept.among(rows)[0]
    assert escaped(similar.comparison_sentence(kept)) in [one.value for one in app.markdown]
    assert f"r = {kept.r:.2f} [{kept.low:.2f}, {kept.high:.2f}]" in similar.comparison_sentence(kept)
    assert any("phase-independent and task-agnostic" in one.value for one in app.caption)
    frame = pd.DataFrame(rows)
    mine = [row for row in rows if row["task"] == "sst2"]
    figures = similar._figures(HeadGroup.among(mine), AlikeHead.among(mine))
    assert sorted(" ".join(one.note.partition(": ")[2] for one in figures).split()) == sorted(
        frame.loc[(frame["task"] == "sst2") & (frame["kind"] == "head"), "name"]
    )
    others = replace(kept, low=-0.1, p=0.4)
    assert similar.comparison_sentence(others).endswith("no significant agreement.")
    assert similar.comparison_sentence(replace(kept, low=0.8, p=0.001)).endswith("the same heads are similar in both.")


SOURCES = {  # of each study: what it is given, its page, and how that page is brought to one of its scores
    "statistics": ({}, "statistics", {"statistic": "entropy"}),
    "features": ({"features": ["noun"]}, "linguistics", {}),
    "relations": ({}, "linguistics/relations", {}),
    "norms": ({"features": ["noun"]}, "statistics", {"by": "norms", "statistic": "entropy"}),
}


# 3 CPU seconds a study; what an atlas takes from rows is in tests/atlas
@pytest.mark.parametrize(
    "name", [name if name == "features" else pytest.param(name, marks=pytest.mark.slow) for name in SOURCES]
)
def test_every_number_of_a_head_is_the_one_on_the_page_that_it_came_from(filled, name):
    given, page, settings = SOURCES[name]
    study = find_study(name)
    options = study.read({"checkpoint": NAME, "tasks": ["sst2"], "limit": 40} | given)
    hashed = present_weights(NAME)
    about = Provenance(checkpoint=NAME, weights_hash=hashed, task="sst2", row_ids=tuple(range(40)))
    run = runs.record_run(filled, name, plain(asdict(options)), about)
    runs.store_rows(filled, run, run_here(study, options))
    app = AppTest.from_file(shell.__file__, default_timeout=120)
    for key, value in (settings | {"every_heads": True}).items():  # also heads that do not stand out
        app.session_state[key] = value
    switched(app, page).run()
    assert not app.exception
    assert not app.error, app.error[0].value
    source = app.dataframe[0].value
    theirs = source[source["head"] == "L2H3"].iloc[0]
    app = opened("heads/one")
    app.selectbox(key="head").set_value("L2H3").run()
    mine = app.dataframe[-1].value
    mine = mine[mine["source"].str.startswith(f"{name}, run {run[:8]}")]
    same = mine[np.isclose(mine["value"].astype(float), theirs["value"], rtol=0, atol=0)]
    assert len(same) >= 1, f"{name}: {theirs['value']} of the page is not among the head's numbers"
    row = same.iloc[0]
    assert (row["low"], row["high"], row["n"]) == (theirs["95% from"], theirs["95% to"], theirs["n"])
    if "baseline" in theirs:
        assert (row["baseline"], row["q"]) == (theirs["baseline"], theirs["q"])


@pytest.mark.thorough
def test_what_is_stored_meanwhile_is_shown_on_the_next_run(filled):
    app = opened("heads")
    before = app.selectbox(key="across").options
    stored(filled, "redundancy", "nearest", np.ones((2, 3)))
    app.run()
    assert set(app.selectbox(key="across").options) - set(before) == {"distance to the nearest head"}
    runs.delete_runs(filled, [runs.latest_run(filled, "redundancy")])
    assert app.run().selectbox(key="across").options == before


@pytest.mark.thorough
def test_the_brush_and_the_groups_of_disable_heads_do_not_meet(filled):
    app = opened("heads")
    for page in ("interventions", "heads", "statistics", "heads", "maps/norms", "interventions/patching"):
        switched(app, page).run()
        assert not app.exception, page
