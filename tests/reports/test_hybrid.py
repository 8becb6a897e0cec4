"""Hybrids, in which only some layers have attention, and ALBERT with inner groups: layers keep their own numbers."""

import copy
import json

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification

from core.attention import Head
from core.capture.interventions import Intervention
from core.capture.outputs import mean_outputs
from core.capture.reach import is_streamed
from core.capture.running import capture, run
from core.capture.selfcheck import eager_parts, run_checks
from core.drawing.panes import difference, scored_pane, telling_head
from core.errors import InputError
from core.frames.records import AnnotatedSentence, Element
from core.models.checkpoint import Checkpoint
from core.patterns.classifier_registry import bundled_weights
from core.scoring.definitions import STATISTICS
from core.scoring.rollout import rollout
from core.studies.attention.inputs import SourceText
from core.studies.attention.measures import StatisticsMeasure, observe
from core.studies.attention.partials import InputOffset
from core.studies.frames.frame_lookup import LinkReading, headline, look_up
from core.studies.lookup import find_study
from pages.parts.shell import resources
from pages.parts.widgets import context_bar
from tests.capture.conftest import TEXT
from tests.families.tiny import tiny_config, tiny_of, tokenizer_of
from tests.pages.opening import opened
from tests.studies.through_json import rows_of

ATTENDING = {"jamba": (1, 3), "qwen3_next": (3,)}  # of four layers, counted from 0


@pytest.fixture(params=ATTENDING)
def hybrid(request: pytest.FixtureRequest) -> Checkpoint:
    return tiny_of(request.param)


def states(checkpoint: Checkpoint, *changes) -> torch.Tensor:
    kept = []
    encoding = checkpoint.encode(TEXT[0])
    run(checkpoint, [encoding], [], interventions=changes, on_batch=lambda _, output: kept.append(output[0][0]))
    return kept[0]


def test_maps_stand_under_the_layers_own_numbers(hybrid):
    encoding = hybrid.encode(TEXT[0])
    maps = capture(hybrid, encoding)
    attending = ATTENDING[hybrid.family.model_type]
    assert maps.layers == hybrid.layers == 4
    assert np.array_equal(maps.weights[list(attending)], eager_parts(hybrid, encoding)[0])
    assert np.isnan(maps.weights[[k for k in range(4) if k not in attending]]).all()
    assert maps.of(Head(3, 1)).shape == (len(encoding), len(encoding))


def test_every_check_passes(hybrid):
    assert [finding.name for finding in run_checks(hybrid) if not finding.passed] == []


def test_an_observer_gets_the_same_layers_in_every_batch(hybrid):
    seen = []

    class Keep:
        def update(self, layer, weights, inputs):
            seen.append((layer, tuple(inputs)))

    run(hybrid, [hybrid.encode(text) for text in TEXT[:3]], [Keep()], batch_tokens=1)
    attending = ATTENDING[hybrid.family.model_type]
    assert sorted(seen) == sorted((layer, (k,)) for layer in attending for k in range(3))


def test_a_head_is_ablated_under_its_layers_own_number(hybrid):
    head = Head(3, 2)
    model = copy.deepcopy(hybrid.model)
    projection = model.layers[head.layer].self_attn.o_proj
    width = projection.weight.shape[1] // hybrid.heads
    with torch.no_grad():
        projection.weight[:, head.head * width : (head.head + 1) * width] = 0
    wanted = states(Checkpoint("copy", model, hybrid.tokenizer))
    assert torch.allclose(states(hybrid, Intervention("zero", frozenset({head}))), wanted, atol=1e-5)
    assert not torch.allclose(states(hybrid), wanted, atol=1e-3)


def test_a_head_of_a_layer_without_attention_does_not_exist(hybrid):
    with pytest.raises(InputError, match="L1H1 is in layer 1, which has no attention"):
        states(hybrid, Intervention("zero", frozenset({Head(0, 0)})))
    with pytest.raises(InputError, match="L1H1 is in layer 1, which has no attention"):
        capture(hybrid, hybrid.encode(TEXT[0])).of(Head(0, 0))


def statistics_of(checkpoint: Checkpoint) -> StatisticsMeasure:
    measure = StatisticsMeasure(checkpoint, queries=None, seed=0)
    observe(checkpoint, None, [SourceText(k, str(k), text, None) for k, text in enumerate(TEXT)], [measure])
    return measure


def test_statistics_are_those_of_the_layers_that_attend(hybrid):
    attending = list(ATTENDING[hybrid.family.model_type])
    sums = statistics_of(hybrid).sums(InputOffset("tiny", "pasted", 0))
    value = sums.means.result().value
    entropy = list(STATISTICS).index("entropy")
    by_hand = []
    for text in TEXT:
        weights = capture(hybrid, hybrid.encode(text)).weights[attending].astype(np.float64)
        logs = np.log(np.where(weights > 0, weights, 1))
        by_hand.append(-(weights * logs).sum(-1)[..., 1:].mean(-1))  # the first query sees one key
    assert np.allclose(value[attending, :, entropy], np.mean(by_hand, 0), atol=1e-4)
    assert np.isnan(np.delete(value, attending, 0)).all()
    assert sums.names == hybrid.all_heads == [Head(layer, head) for layer in attending for head in range(hybrid.heads)]


def test_distances_are_between_heads_that_exist(hybrid):
    sums = statistics_of(hybrid).sums(InputOffset("tiny", "pasted", 0))
    own = sums.distances[np.ix_(sums.numbers, sums.numbers)]
    assert (own[~np.eye(len(own), dtype=bool)] > 0).all()
    assert np.isnan(np.delete(sums.distances, sums.numbers, 0)).all()


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Two classifiers of one hybrid, from different random weights."""
    made = []
    for seed in range(2):
        tokenizer = tokenizer_of("jamba")
        torch.manual_seed(seed)
        settings = tiny_config("jamba", len(tokenizer))
        settings.pad_token_id = 0
        model = AutoModelForSequenceClassification.from_config(settings)
        made.append(tmp_path_factory.mktemp("hybrid"))
        model.save_pretrained(made[-1])
        tokenizer.save_pretrained(made[-1])
    return str(made[0]), str(made[1])


FEW = {"tasks": ["sst2"], "limit": 3}
ROWS = {"task": "sst2", "limit": 3}
STUDIES = {
    "statistics": FEW,
    "budget": FEW,
    "features": FEW | {"features": ["first", "noun"]},
    "relations": FEW | {"relations": ["verb-subject"]},
    "redundancy": FEW,
    "norms": FEW,
    "effective": FEW,
    "match": FEW | {"draws": 99},
    "change": ROWS,
    "pattern-shares": ROWS,
    "disable": ROWS,
    "importance": ROWS,
    "operators": ROWS | {"operators": ["zero", "disable"]},
    "patch": ROWS,
    "frame-heads": {"direction": "later_to_earlier", "longest_sentence": 9, "draws": 49},
    "gates": ROWS | {"fit_rows": 8, "samples": 2, "starts": 1, "steps": 2},  # the default is 200,000 passes
}
QUICK = {"statistics", "disable"}  # of the others each takes seconds


@pytest.mark.parametrize(
    "study", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in STUDIES]
)
def test_studies_give_rows_of_the_heads_that_exist(study, folders, tmp_path):
    first, other = folders
    classifier = tmp_path / "classifier.safetensors"
    classifier.write_bytes(bundled_weights("bert"))
    given = {
        "match": {"checkpoint": first, "compare": other},
        "change": {"before": first, "after": [other]},
        "pattern-shares": {"checkpoints": [first], "classifier": str(classifier)},
    }
    rows = rows_of(study, given.get(study, {"checkpoint": first}) | STUDIES[study])
    of_heads = [row for row in rows if row.get("layer") is not None]
    assert {row["layer"] for row in of_heads} == set(ATTENDING["jamba"])
    assert all(row.get("value", 0) is not None for row in of_heads)
    assert find_study(study).headline(rows).sentence


def test_outputs_stand_under_the_layers_own_numbers(hybrid):
    source = mean_outputs(hybrid, [hybrid.encode(text) for text in TEXT])
    given = source.given([hybrid.encode(TEXT[0])], [0])
    filled = [bool((layer != 0).any()) for layer in given.outputs]
    assert filled == [layer in ATTENDING[hybrid.family.model_type] for layer in range(4)]


def test_every_attention_layer_of_albert_with_inner_groups_has_a_map():
    checkpoint = tiny_of("albert")
    assert checkpoint.model.config.inner_group_num == 2
    weights = capture(checkpoint, checkpoint.encode(TEXT[0])).weights
    assert len(weights) == checkpoint.layers == 2 * checkpoint.model.config.num_hidden_layers
    assert len({layer.tobytes() for layer in weights}) == len(weights)
    assert [finding.name for finding in run_checks(checkpoint) if not finding.passed] == []


def test_layers_that_choose_keys_by_an_indexer_keep_whole_maps():
    assert not is_streamed(tiny_of("qwen4_exp_text"))
    assert is_streamed(tiny_of("jamba"))


LISTED = [
    *("jamba", "bamba", "qwen3_next", "qwen3_5_text", "lfm2_moe", "granitemoehybrid", "nemotron_h", "olmo_hybrid"),
    *("recurrent_gemma", "zamba", "zamba2", "glm5_next_text", "falcon_h1"),
]


@pytest.mark.thorough
@pytest.mark.parametrize("family", [*LISTED, "albert", "convbert", "gpt2", "t5"])
def test_pages_list_the_heads_that_exist(family, tmp_path):
    checkpoint = tiny_of(family)
    checkpoint.model.config.save_pretrained(tmp_path)
    assert context_bar.heads_of(str(tmp_path)) == [str(head) for head in checkpoint.all_heads]


EARLIER = {  # what configs of earlier versions say of their layers
    "Jamba": {"attn_layer_period": 4, "attn_layer_offset": 1},
    "Bamba": {"attn_layer_indices": [1, 5]},
    "LFM2": {"full_attn_idxs": [1, 5]},
    "Nemotron-H": {"hybrid_override_pattern": "M*-M-*M-"},
    "RecurrentGemma": {"block_types": ["recurrent", "attention", "recurrent", "recurrent"]},
    "Zamba2": {"layers_block_type": ["mamba", "hybrid", "mamba", "mamba"] * 2},
}


@pytest.mark.parametrize("family", EARLIER)
def test_pages_read_earlier_configs_of_hybrids(family, tmp_path):
    sizes = {"model_type": "some_hybrid", "num_hidden_layers": 8, "num_attention_heads": 2}
    (tmp_path / "config.json").write_text(json.dumps(sizes | EARLIER[family]))
    assert context_bar.heads_of(str(tmp_path)) == ["L2H1", "L2H2", "L6H1", "L6H2"]


def test_pages_read_earlier_configs_of_qwen3_next(tmp_path):
    sizes = {"model_type": "qwen3_next", "num_hidden_layers": 8, "num_attention_heads": 1, "full_attention_interval": 4}
    (tmp_path / "config.json").write_text(json.dumps(sizes))
    assert context_bar.heads_of(str(tmp_path)) == ["L4H1", "L8H1"]


def test_a_marked_sentence_ranks_the_heads_that_exist(hybrid):
    sentence = "The cat gave the dog a bone."
    marked = AnnotatedSentence("typed", sentence, ((8, 12),), elements=(Element("Donor", ((0, 7),)),))
    _, ranking = look_up(hybrid, marked, LinkReading("later_to_earlier"))
    rows = ranking.rows("difference")
    assert sorted(row["name"] for row in rows) == [str(head) for head in hybrid.all_heads]
    assert all(np.isfinite(row["score"]) for row in rows)
    assert f"ranks first among {len(rows)} heads" in headline(ranking, "cat", "gave") or ranking.places > 1


def test_a_pane_has_scores_of_the_heads_that_exist(hybrid):
    maps = capture(hybrid, hybrid.encode(TEXT[0]))
    pane = scored_pane("hybrid", maps, first=0, separators=())
    attending = list(ATTENDING[hybrid.family.model_type])
    header = pane.header(0)
    assert header["attending"] == attending
    values = np.reshape(header["scores"]["previous"]["values"], (4, -1))
    assert np.isfinite(values[attending].astype(float)).all()
    assert (np.delete(values, attending, 0) == None).all()  # noqa: E711 - elementwise
    assert Head.parse(telling_head(pane.scores)).layer in attending
    third = difference(pane, pane, (maps.weights, maps.weights))
    assert third.attending == tuple(attending)
    with pytest.raises(InputError, match="need attention in every layer"):
        rollout(maps.weights)


TYPED = {"text": "The dog has barked at the old cat.", "head": "L4H2", "rows": "sst2"}
VIEWS = {
    "maps/maps": {},
    "maps/maps of two sentences": {"compare": "two sentences", "other": "The cat has barked at the old dog."},
    "maps/maps, raw and effective": {"compare": "raw, effective"},
    "maps/norms": {},
    "maps/why": {},
    "heads/one": {"gallery": "yes"},
    "statistics/effective": {},
    "linguistics/frames": {},
    "interventions/ablation": {"mode": "One sentence"},
    "interventions/patching": {"mode": "Two inputs", "pair": "The dog has not barked at the old cat."},
}
SHOWN = ("maps/maps", "interventions/patching")  # of the others each takes seconds


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in SHOWN else pytest.mark.slow) for name in VIEWS]
)
def test_views_of_one_sentence_open_on_a_hybrid(name, folders, tmp_path, monkeypatch):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    resources.database.clear()
    app = opened(name.split(",")[0].split(" ")[0], checkpoint=folders[0], **TYPED | VIEWS[name])
    resources.database.clear()
    assert not app.exception
    assert [error.value for error in app.error] == []
