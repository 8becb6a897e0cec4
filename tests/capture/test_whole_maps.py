"""What needs whole maps says so in a sentence where they would not fit into memory; what does not, goes on."""

from contextlib import nullcontext

import pytest

from core.attention import Head
from core.capture.interventions import Intervention
from core.capture.norms import norm_maps, run_norms
from core.capture.projections import maps_and_values
from core.capture.running import run
from core.errors import InputError
from core.scoring.mean_patterns import MeanPatterns
from tests.capture.conftest import TEXT, tiny

NEEDING_MAPS = {
    "norms": lambda checkpoint, encoding: norm_maps(checkpoint, encoding),
    "norms of many": lambda checkpoint, encoding: run_norms(checkpoint, [encoding], []),
    "effective": lambda checkpoint, encoding: maps_and_values(checkpoint, encoding),
    "heads changed": lambda checkpoint, encoding: run(
        checkpoint, [encoding], [MeanPatterns(3, 4)], interventions=[Intervention("disable", frozenset({Head(0, 0)}))]
    ),
}


@pytest.mark.thorough
@pytest.mark.parametrize("what", NEEDING_MAPS)
def test_whole_maps_that_do_not_fit_into_memory_are_refused_in_a_sentence(what, monkeypatch):
    monkeypatch.setattr("core.capture.running.STREAMED_FROM", 4)
    checkpoint = tiny("bert")
    encoding = checkpoint.encode(TEXT[0])
    NEEDING_MAPS[what](checkpoint, encoding)
    monkeypatch.setattr("core.models.memory.free_bytes", lambda device: 1000)
    with pytest.raises(
        InputError, match=f"need full attention maps, which must fit into memory; maps of {len(encoding)} tok"
    ):
        NEEDING_MAPS[what](checkpoint, encoding)


@pytest.mark.parametrize(("name", "refused"), [("xlnet", True), ("gpt_neo", True), ("bert", False)])
def test_only_families_that_keep_their_maps_must_have_room_for_them(name, refused, monkeypatch):
    monkeypatch.setattr("core.capture.running.STREAMED_FROM", 4)
    monkeypatch.setattr("core.capture.streaming.STREAMED_FROM", 4)
    monkeypatch.setattr("core.models.memory.free_bytes", lambda device: 1000)
    checkpoint = tiny(name)
    asked = pytest.raises(InputError, match="need full attention maps") if refused else nullcontext()
    with asked:
        run(checkpoint, [checkpoint.encode(TEXT[0])], [MeanPatterns(checkpoint.layers, checkpoint.heads)])
