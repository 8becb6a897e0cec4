import hashlib
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import config
from core.attention import Head
from core.errors import InputError
from core.jobs import api
from core.jobs.executors import JobPlacement
from core.patterns.raster import from_float16
from core.store import labels
from core.store.database import Database
from core.store.runs import run_rows
from core.studies.contract import Finished
from core.studies.patterns import draw_maps
from core.studies.patterns.draw_maps import STUDY, DrawMapsOptions, largest, plan

HEADS = [Head(layer, head) for layer in range(3) for head in range(4)]
TEXTS = tuple(
    f"The {word} dog sleeps near the old house and dreams of a {word} cat."
    for word in ("big", "red", "old", "sad", "shy", "fat", "wet", "dry")
)

needs_encoder = pytest.mark.skipif(
    not (config.BUNDLED_MODELS / config.ENCODER / "config.json").is_file(),
    reason="the bundled encoder is not in this checkout",
)


@given(st.integers(1, 40), st.integers(1, 200), st.integers(1, 14), st.integers(0, 99))
def test_few_maps_an_input_every_head_as_often_and_nothing_twice(inputs, count, per_input, seed):
    taken = plan(range(inputs), HEADS, count=count, per_input=per_input, seed=seed)
    assert len(taken) == min(count, inputs * min(per_input, len(HEADS)))
    assert len(set(taken)) == len(taken)
    assert max(Counter(one for one, _ in taken).values()) <= per_input
    often = Counter(head for _, head in taken)
    assert max(often.values()) - min(often[head] for head in HEADS) <= 1


def test_the_seed_decides():
    one, two, other = (plan(range(30), HEADS, count=40, per_input=4, seed=seed) for seed in (1, 1, 2))
    assert one == two != other


def test_the_largest_weight_of_a_causal_map_leaves_out_the_first_query():
    weights = np.array([[1, 0], [0.4, 0.6]])
    assert largest(weights, causal=True) == 0.6
    assert largest(weights, causal=False) == 1


@needs_encoder
def test_drawn_maps_say_where_they_are_from_and_keep_their_weights():
    options = DrawMapsOptions(texts=TEXTS, count=20, per_input=4)
    (unit,) = STUDY.units(options)
    drawn = STUDY.run(options, unit).partial
    assert len(drawn.maps) == 20
    assert len({one.map_id for one in drawn.maps}) == 20
    assert {one.task for one in drawn.maps} == {"text"}
    for one in drawn.maps:
        weights = from_float16(one.row()["weights"], one.length)
        np.testing.assert_allclose(weights.sum(-1), 1, atol=2e-3)  # float16
        assert one.maximum == pytest.approx(weights.max(), abs=1e-3)
        assert len(one.tokens) == one.length


@needs_encoder
def test_a_job_started_anywhere_keeps_its_maps(tmp_path):
    with Database(tmp_path / "atlas.duckdb") as db:
        keeper = api.runner(db, JobPlacement(workers=1))
        job = api.start(db, "draw-maps", {"texts": TEXTS, "count": 8})
        done = api.wait(db, job, 120)
        keeper.close()
        assert done.state == "done", done.error
        facts = labels.map_facts(db)
        assert len(facts) == 8
        assert run_rows(db, done.run) == [{"task": "text", "maps": 8, "inputs": 2}]
        (first, *_) = labels.maps_of(db, list(facts["map_id"]))
        np.testing.assert_allclose(from_float16(first["weights"], first["length"]).sum(-1), 1, atol=2e-3)


def test_maps_do_not_travel_with_rows(tmp_path):
    with Database(tmp_path / "atlas.duckdb") as db, pytest.raises(InputError, match="cannot be imported"):
        STUDY.keep(db, Finished("r1", "Drawn", DrawMapsOptions(), []))


@needs_encoder
def test_inputs_that_are_all_too_long_are_refused():
    options = DrawMapsOptions(texts=TEXTS, longest=4)
    (unit,) = STUDY.units(options)
    with pytest.raises(InputError, match="at most 4 tokens"):
        STUDY.run(options, unit)


def test_nothing_to_draw_is_refused():
    with pytest.raises(InputError, match="number of maps must be at least 1"):
        STUDY.units(DrawMapsOptions(texts=TEXTS, count=0))


def test_rows_of_two_folders_at_the_same_place_are_told_apart_by_their_texts(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    for folder, second in ((here, "It purred."), (there, "It barked.")):
        (folder / "RTE").mkdir(parents=True)
        rows = ["index\tsentence1\tsentence2\tlabel", "0\tThe cat sat.\tIt slept.\tentailment"]
        rows.append(f"1\tThe cat came.\t{second}\tentailment")
        (folder / "RTE" / "dev.tsv").write_text("\n".join(rows) + "\n")
    same, other = (
        [source.row_id for source in draw_maps.sources(DrawMapsOptions(tasks=("rte",), data=str(folder)))]
        for folder in (here, there)
    )
    assert same[0] == other[0] != same[1] != other[1]
    assert not {*same, *other} & {source.row_id for source in draw_maps.sources(DrawMapsOptions(tasks=("rte",)))}


def test_a_pasted_text_keeps_the_name_under_which_its_maps_were_labelled():
    (source,) = draw_maps.sources(DrawMapsOptions(texts=("The dog barked.",)))
    assert source.row_id == hashlib.sha256(b"The dog barked.").hexdigest()[:12]
    assert len(draw_maps.map_id("w", source, Head(0, 1))) == 16
