"""`study disable|importance|prune` as typed: rows in every form, two sweeps compared, a checkpoint saved."""

import json

import pytest

from core.capture.pruning import pruned_heads
from core.errors import AtlasError, InputError
from core.models.opening import open_checkpoint
from tests.commands.asking import asking_planted
from tests.studies.planted import CARRIER

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    return asking_planted(tmp_path_factory.mktemp("planted"))


def test_a_sweep_and_another_beside_it(asked):
    first = json.loads(asked("disable", "--json"))
    assert first["study"] == "disable"
    worst = min((row for row in first["rows"] if row["kind"] == "variant"), key=lambda row: row["accuracy_change"])
    assert worst["name"] == str(CARRIER)
    run = first["provenance"]["run"]
    said = asked("disable", "--operator", "zero", "--beside", run)
    assert f"After correction for 12 ablations, the effects of ablating {CARRIER} are significant (p < 0.05)." in said
    assert "points. 1 of 12 changes are significant after correction." in said
    assert "Rank correlation with the other ablation: Spearman" in said
    assert "n = 12 (most harmful in both: L2H3" in said
    again = json.loads(asked("disable", "--beside", run, "--json"))["rows"][-1]
    assert again["kind"] == "correlation"
    assert again["spearman"] == pytest.approx(1)
    with pytest.raises(InputError, match=r"got 'nope'\. Choose one of: "):
        asked("disable", "--beside", "nope")


def test_groups_typed_and_found(asked):
    typed = asked("disable", "--heads", "L1H1,L2H3; L3H4", "--csv").splitlines()
    assert typed[0].startswith("kind,name")
    assert [line.split(",")[1].strip('"') for line in typed[1:]][1:3] == ["L1H1", "L3H4"]
    near = asked("disable", "--what", "duplicates", "--within", "0.5")
    assert "like L" in near
    assert "accuracy_beyond_apart" in near
    with pytest.raises(AtlasError, match="between 0 and 1"):
        asked("disable", "--what", "duplicates", "--within", "3")


def test_importance_and_a_pruned_checkpoint(asked, tmp_path):
    rows = json.loads(asked("importance", "--raw", "--json"))["rows"]
    assert rows[0]["name"] == str(CARRIER)
    asked("prune", "--order", "importance", "--order", "random", "--save", tmp_path / "pruned", "--share", "0.5")
    gone = pruned_heads(open_checkpoint(str(tmp_path / "pruned"), head="classifier"))
    assert len(gone) == 6
    assert CARRIER not in gone
