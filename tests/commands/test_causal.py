"""`study operators|knockout|perturb|patch|separators` as typed: rows as JSON, tables with a sentence, refusals."""

import json

import pytest

from core.errors import AtlasError
from tests.commands.asking import asking_planted
from tests.studies.planted import CARRIER

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    return asking_planted(tmp_path_factory.mktemp("planted"))


def test_every_study_prints_its_rows_as_json(asked):
    wanted = {
        ("operators", "--operator", "zero", "--operator", "disable"): {
            "baseline",
            "effect",
            "agreement",
        },
        ("knockout", "--edges", "separators", "--keep-weights"): {"baseline", "cut"},
        ("perturb", "--kind", "scramble", "--kind", "drop"): {"baseline", "perturbation"},
        ("patch", "--kind", "drop", "--floor", 0): {"component"},
        ("separators",): {"baseline", "layer"},
        ("disable", "--operator", "resample", "--reference", 20, "--draws", 2): {
            "baseline",
            "variant",
            "mean over heads",
            "split half",
        },
        ("disable", "--what", "feedforward"): {"baseline", "variant", "split half"},
    }
    for arguments, kinds in wanted.items():
        printed = json.loads(asked(*arguments, "--json"))
        assert printed["study"] == arguments[0]
        assert {row["kind"] for row in printed["rows"]} == kinds, arguments
        assert printed["provenance"]["weights_hash"]


def test_operators_are_summed_up_in_a_sentence(asked):
    said = asked("operators", "--operator", "zero", "--operator", "disable")
    assert f"under every one of 2 ablation methods for {CARRIER}" in said


def test_what_cannot_be_done_is_refused_in_a_sentence(asked):
    with pytest.raises(AtlasError, match="two different ablation methods"):
        asked("operators", "--operator", "zero")
    with pytest.raises(AtlasError, match='got "upper"'):
        asked("perturb", "--kind", "upper")
    with pytest.raises(AtlasError, match='got "middle"'):
        asked("knockout", "--edges", "middle")
    with pytest.raises(AtlasError, match='got "median"'):
        asked("disable", "--operator", "median")
    with pytest.raises(AtlasError, match="it changes none of the 24"):
        asked("patch", "--kind", "second-only")
