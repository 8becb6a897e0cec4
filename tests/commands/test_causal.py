"""`study operators|knockout|perturb|patch|separators` as typed: rows as JSON, tables with a sentence, refusals."""

import json

import pytest
from typer.testing import CliRunner

import core.__main__
from core.errors import AtlasError
from tests.studies.planted import CARRIER, save_planted, write_rows

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("planted")
    checkpoint, data = save_planted(folder / "checkpoint"), write_rows(folder / "data", rows=24)
    database = folder / "atlas.duckdb"

    def command(study, *arguments):
        done = CliRunner().invoke(
            core.__main__.app,
            ["study", study, str(checkpoint), "--data", str(data), "--workers", "1", *map(str, arguments)],
            env={"ATLAS_DB": str(database), "OMP_NUM_THREADS": "1", "COLUMNS": "300"},
        )
        if done.exception and not isinstance(done.exception, SystemExit):
            raise done.exception
        assert done.exit_code == 0, done.output
        return done.stdout

    return command


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
        ("disable", "--operator", "resample", "--reference", 20, "--draws", 2): {"baseline", "variant", "split half"},
        ("disable", "--what", "feedforward"): {"baseline", "variant", "split half"},
    }
    for arguments, kinds in wanted.items():
        printed = json.loads(asked(*arguments, "--json"))
        assert printed["study"] == arguments[0]
        assert {row["kind"] for row in printed["rows"]} == kinds, arguments
        assert printed["provenance"]["weights_hash"]


def test_operators_are_summed_up_in_a_sentence(asked):
    said = asked("operators", "--operator", "zero", "--operator", "disable")
    assert f"under every one of 2 operators for {CARRIER}" in said


def test_what_cannot_be_done_is_refused_in_a_sentence(asked):
    with pytest.raises(AtlasError, match="two or more different ones"):
        asked("operators", "--operator", "zero")
    with pytest.raises(AtlasError, match="is none of them"):
        asked("perturb", "--kind", "upper")
    with pytest.raises(AtlasError, match="is none of them"):
        asked("knockout", "--edges", "middle")
    with pytest.raises(AtlasError, match="is none of them"):
        asked("disable", "--operator", "median")
    with pytest.raises(AtlasError, match="None of the 24 rows could be changed"):
        asked("patch", "--kind", "second-only")
