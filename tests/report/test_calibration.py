"""Claims in planted worlds (slow), and docs/results/claims.md, which is made from the code."""

import json
import re
import runpy
from pathlib import Path

import numpy as np
import pytest

from core.report.claims import TESTS, claim, claims
from core.report.claims.outcomes import UNDECIDED
from tests.simulations import claim_worlds, claims_page, planted_claims

PAGE = Path(__file__).parents[2] / "docs" / "results" / "claims.md"


def test_each_claim_declares_its_rule_and_its_test():
    assert [claim.id for claim in claims()] == list(TESTS)
    assert "{margin" not in "".join("".join(claim.meanings) for claim in claims())
    assert all(claim.statistic.endswith(".") for claim in claims())


def test_the_page_of_claims_says_what_the_code_does():
    text = PAGE.read_text()
    version = re.search(r"^This page .* by `python -m [^`]+` on version (\d+\.\d+\.\d+)\.$", text, re.MULTILINE)[1]
    assert text.startswith(claims_page.declared(version))


def test_the_rates_are_printed_as_json(monkeypatch, capsys):
    """The command that the page names, with one draw of one claim: the others as the page has them."""
    monkeypatch.setattr("sys.argv", ["simulations", "claims", "--json", "--draws", "1", "--claim", "negation-qnli"])
    runpy.run_module("tests.simulations", run_name="__main__")
    rates = json.loads(capsys.readouterr().out)
    assert set(rates) == {world.claim for world in claim_worlds.PLANTED}
    assert all(set(of_claim) == {"false_holds", "false_fails", "undecided_at_2x"} for of_claim in rates.values())
    assert all(0 <= rate <= 1 for of_claim in rates.values() for rate in of_claim.values())
    stored = claims_page.rates_now(PAGE.read_text())
    assert {name: of_claim for name, of_claim in rates.items() if name != "negation-qnli"} == {
        name: of_claim for name, of_claim in stored.items() if name != "negation-qnli"
    }


OPEN = [name for name, rates in claims_page.rates_now(PAGE.read_text()).items() if rates["undecided_at_2x"] > 0.5]


@pytest.mark.parametrize(
    "world", [world for world in claim_worlds.PLANTED if world.claim in OPEN], ids=lambda world: world.claim
)
def test_where_twice_the_margin_is_mostly_undecided_the_rows_that_would_decide_are_said(world):
    """But where the estimate lies on the other side of the margin: no number of such rows would."""
    rng = np.random.default_rng(0)
    drawn = [claim(world.claim).test(world.plant(world.truth["twice"], rng))[0] for _ in range(5)]
    undecided = [one for one in drawn if one.outcome == UNDECIDED]
    assert undecided
    assert sum(one.needed is not None for one in undecided) >= len(undecided) - 1
    assert all(one.needed is None or one.needed > one.n for one in undecided)


@pytest.mark.slow
@pytest.mark.parametrize("world", claim_worlds.PLANTED, ids=lambda world: world.claim)
def test_a_claim_is_seldom_wrong_where_the_truth_is_planted(world):
    rates = claim_worlds.rates(world)
    bound = claim_worlds.limit(claim_worlds.DRAWS)
    assert rates["false_holds"] <= bound
    assert rates["false_fails"] <= bound
    assert f"| {world.claim} | {world.n} | {100 * rates['false_holds']:.1f} % |" in PAGE.read_text()


SCORES = ("random-learns", "pretraining", "tuned-beats-untuned")


@pytest.mark.slow
@pytest.mark.parametrize("rows", [2490, 3668])
@pytest.mark.parametrize("name", SCORES)
def test_claims_on_scores_are_seldom_wrong_at_the_rows_of_cross_fitting(monkeypatch, name, rows):
    """All train rows of RTE and MRPC, three seeds of each; 200 draws a world."""
    monkeypatch.setitem(planted_claims.ROWS, "sst2", rows)
    world = next(world for world in claim_worlds.PLANTED if world.claim == name)
    rates = claim_worlds.rates(world, 200)
    assert max(rates["false_holds"], rates["false_fails"]) <= claim_worlds.limit(200), rates
