"""Encoder-decoder studies: exact translation by teacher forcing, importance by differences, pruning, alignment."""

import numpy as np
import pytest
import torch

from core.attention import Head
from core.capture.generating import translated
from core.capture.interventions import Intervention
from core.capture.running import captured_parts, prepared
from core.capture.translating import aligned_words, pairs_of, part_importance, right
from core.errors import CheckpointError, InputError
from core.models.opening import open_checkpoint
from core.scoring.alignment import PositionTable, hits
from core.studies.ablation.translation import STUDY, TranslationOptions, read_translations
from tests.studies.through_json import rows_of

FEW = TranslationOptions(limit=16, order_rows=16)


@pytest.fixture(scope="module")
def checkpoint():
    return open_checkpoint("atlas-translator", head="language", device="cpu")


@pytest.fixture(scope="module")
def rows():
    return read_translations(limit=16)


@pytest.fixture(scope="module")
def encodings(checkpoint, rows):
    return pairs_of(checkpoint, [(row.source, row.target) for row in rows])


@pytest.fixture(scope="module")
def found():
    return rows_of("translation", {"limit": 16, "order_rows": 16})


@pytest.mark.thorough
def test_exact_is_what_greedy_translation_writes(checkpoint, rows, encodings):
    heads = frozenset({Head(2, 0, "cross")})
    whole, changed = right(checkpoint, encodings), right(checkpoint, encodings, [Intervention("zero", heads)])
    assert 0 < changed.exact.mean() < whole.exact.mean()
    written = [translated(checkpoint, row.source) for row in rows]
    assert whole.exact.tolist() == [text == row.target for text, row in zip(written, rows, strict=True)]
    with prepared(checkpoint) as run:  # greedy with the head zeroed, by hand
        run.gates = [torch.ones(4) for _ in range(checkpoint.calls)]
        run.gates[checkpoint.head_set("cross").call(2)][0] = 0
        by_hand = [_greedy(checkpoint, encoding) for encoding in encodings]
    wanted = [[*one.target.ids[1:], 2] for one in encodings]
    assert changed.exact.tolist() == [made == want for made, want in zip(by_hand, wanted, strict=True)]


def _greedy(checkpoint, encoding):
    pieces = [encoding.target.ids[0]]
    with torch.no_grad():
        while len(pieces) < 20 and pieces[-1] != 2:
            logits = checkpoint.model(
                input_ids=torch.tensor([encoding.ids]), decoder_input_ids=torch.tensor([pieces]), use_cache=False
            ).logits
            pieces.append(int(logits[0, -1].argmax()))
    return pieces[1:]


def test_importance_is_how_fast_the_loss_moves(checkpoint, encodings):
    some = encodings[:3]
    scores = part_importance(checkpoint, some, normalize=False)
    for part, head in ((0, Head(2, 1)), (1, Head(0, 2)), (2, Head(2, 2))):
        own, slopes = checkpoint.sets[part], []
        for encoding in some:
            losses = []
            for xi in (1 + 1e-2, 1 - 1e-2):
                gates = [torch.ones(4) for _ in range(checkpoint.calls)]
                gates[own.call(head.layer)][head.head] = xi
                with torch.no_grad(), prepared(checkpoint, gates=gates):
                    logits = checkpoint.model(**checkpoint.inputs([encoding])).logits[0].double()
                wanted = torch.tensor([*encoding.target.ids[1:], 2])
                losses.append(float(torch.nn.functional.cross_entropy(logits, wanted, reduction="sum")))
            slopes.append(abs(losses[0] - losses[1]) / 2e-2)
        assert scores[part][head.layer, head.head] == pytest.approx(np.mean(slopes), rel=0.05, abs=1e-4)


def test_alignment_takes_the_query_that_writes_a_word(checkpoint, rows, encodings):
    words = aligned_words(checkpoint, encodings)
    for k in (0, 5):
        maps = captured_parts(checkpoint, encodings[k], parts=["cross"])[0]
        length = len(rows[k].source.split())
        assert np.array_equal(words[k], maps.weights[:, :, : len(rows[k].target.split()), :length].argmax(-1))


def test_hits_and_positions():
    links = [(1, 0), (0, 1), (2, 1)]
    assert hits(np.array([[1, 2, 9], [0, 0, 9]]), links).tolist() == [[True, True], [False, True]]
    table = PositionTable([(3, 2, [(1, 0), (0, 1)]), (3, 2, [(1, 0), (2, 1)]), (3, 2, [(0, 0), (2, 1)])])
    assert table.guesses(3, 2).tolist() == [1, 2]
    assert table.guesses(5, 3).tolist() == [0, 2, 4]  # not seen: the same share of the way


@pytest.mark.thorough
def test_the_study_has_michels_three_columns_and_the_alignment(found):
    kinds: dict = {"zeroed": [], "importance": [], "pruned": [], "alignment": [], "baseline": []}
    for row in found:
        kinds[row["kind"]].append(row)
    assert [len(rows) for rows in kinds.values()] == [36, 36, 39, 12, 1]
    assert {row["part"] for row in kinds["zeroed"]} == {"encoder", "decoder", "cross"}
    columns: dict = {}
    for row in kinds["pruned"]:
        columns.setdefault(row["column"], []).append(row)
    assert list(columns) == ["Enc-Enc", "Enc-Dec", "Dec-Dec"]
    for steps in columns.values():
        assert [row["removed"] for row in steps] == list(range(13))
        assert steps[0]["exact"] == 1.0 > steps[-1]["exact"]
    assert columns["Enc-Dec"][-1]["exact"] == 0.0  # without cross attention nothing is translated
    best = [row for row in kinds["alignment"] if row["best"]]
    assert len(best) == 1
    assert best[0]["value"] > best[0]["baseline"]
    assert best[0]["low"] < best[0]["value"] < best[0]["high"]
    assert best[0]["words"] == sum(len(row.links) for row in read_translations(limit=16))


def test_what_cannot_be_studied_is_refused(tmp_path):
    with pytest.raises(InputError, match='must be one of sweep, importance, prune, align; got "bleu"'):
        STUDY.units(TranslationOptions(what=("bleu",)))
    file = tmp_path / "rows.tsv"
    file.write_text("a dog\tun chien\nthe cat\tle chat\n", encoding="utf-8")
    with pytest.raises(InputError, match="the examples have none"):
        STUDY.units(TranslationOptions(data=str(file), what=("align",)))
    with pytest.raises(CheckpointError, match="atlas-decoder is not one"):
        STUDY.run(TranslationOptions(checkpoint="atlas-decoder"), STUDY.units(FEW)[0])
