"""Links between sorts of words: which are cut, that there are as many at the same distances, and what is compared."""

from collections import Counter

import numpy as np
import pytest
import torch
from scipy import stats

from core import config
from core.capture.knockout import LinkEdges
from core.errors import InputError
from core.models.opening import open_checkpoint
from core.studies import tagging
from core.studies.ablation.knockout import STUDY, contrasts, leads, links_of, matched
from core.studies.ablation.records import LinkContrast
from tests.studies.through_json import rows_of

TEXT = "the good film of the year is a good story in a bad book ."


def distances(links):
    return Counter(later - earlier for earlier, later in links)


@pytest.fixture(scope="module")
def encoding():
    return open_checkpoint(config.CLASSIFIER, head="classifier").encode(TEXT, None)


@pytest.fixture(scope="module")
def kinds(encoding):
    tagged = tagging.tag([TEXT], tagging.open_pipeline())
    return [links_of(encoding, tagged, kind) for kind in ("noun-adjective", "noun-preposition")]


@pytest.mark.thorough
def test_links_join_words_of_these_sorts(encoding, kinds):
    words = [{tuple(sorted((encoding.tokens[a], encoding.tokens[b]))) for a, b in links} for links in kinds]
    assert ("film", "good") in words[0]
    assert ("film", "of") in words[1]
    assert not words[0] & words[1]
    assert all(earlier < later for links in kinds for earlier, later in links)


def test_of_each_kind_as_many_are_left_at_every_distance_as_the_fewer_have(kinds):
    chosen = matched(kinds, seed=0, text=TEXT)
    assert distances(chosen[0]) == distances(chosen[1]) == distances(kinds[0]) & distances(kinds[1])
    assert sum(distances(chosen[0]).values()) > 0
    assert all(set(own) <= set(every) for own, every in zip(chosen, kinds, strict=True))
    assert chosen == matched(kinds, seed=0, text=TEXT)
    assert matched([kinds[0], []], seed=0, text=TEXT) == [[], []]


@pytest.mark.parametrize("causal", [False, True])
def test_a_link_is_cut_both_ways_and_backwards_alone_where_a_model_looks_back(encoding, causal):
    cut = LinkEdges({encoding: [(1, 4)]}, causal=causal)(encoding)
    assert cut.nonzero().tolist() == ([[4, 1]] if causal else [[1, 4], [4, 1]])


def test_the_lead_of_what_is_predicted():
    plain = torch.tensor([[1.0, 3.0], [2.0, 0.5]])
    np.testing.assert_allclose(leads(plain, plain), [2.0, 1.5])
    np.testing.assert_allclose(leads(plain.flip(-1), plain), [-2.0, -1.5])
    np.testing.assert_allclose(leads(plain[:, :1], plain[:, :1]), [1.0, 2.0])


def test_the_contrast_is_a_paired_t_interval_over_the_rows_that_have_both():
    chance = np.random.default_rng(0)
    moved = {name: np.abs(chance.normal(0, 1, 30)) for name in ("a", "b")}
    links = {name: np.r_[np.ones(20, dtype=int) * 2, np.zeros(10, dtype=int)] for name in moved}
    (one,) = contrasts("sst2", moved, links)
    interval = stats.ttest_rel(moved["a"][:20], moved["b"][:20]).confidence_interval()
    assert (one.low, one.high) == pytest.approx((interval.low, interval.high))
    assert (one.n, one.links) == (20, 40)
    (none,) = contrasts("sst2", moved, {name: np.zeros(30, dtype=int) for name in moved})
    assert (none.value, none.low, none.n) == (None, None, 0)


@pytest.mark.thorough
def test_a_knockout_of_words_says_which_moves_the_logits_more():
    asked = {"checkpoint": config.CLASSIFIER, "task": "sst2", "limit": 12}
    rows = rows_of("knockout", asked | {"edges": ["noun-adjective", "noun-preposition"]})
    (one,) = LinkContrast.among(rows)
    assert 0 < one.n <= 12
    assert one.first_moves - one.other_moves == pytest.approx(one.value)
    assert LinkContrast.among(rows_of("knockout", asked | {"edges": ["separators", "noun-adjective"]})) == []
    with pytest.raises(InputError, match='got "thing"'):
        STUDY.units(STUDY.read(asked | {"edges": ["noun-thing"]}))
