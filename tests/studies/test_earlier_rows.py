"""Results of before rows were records: what units left then is read today, and gives the same rows and sentences.

A job that was interrupted before an update goes on from such partial results; a stored row is read by its columns.
"""

import json
import lzma
from dataclasses import asdict
from pathlib import Path

import pytest

from core.jobs import worker
from core.report.headlines import headline
from core.studies.lookup import study_modules
from core.study_names import current_name

# Of each study on bundled rows or planted checkpoints: {study, options, partials, rows, headline}, as commit 5bb132f
# left the partials; rows and sentences as commit 7da4f7c made them of
# these, after intervals were mended and before records wrote rows; the
# sentence of a fine-tuning at chance is of 24 November 2026, those of dependencies and features (no head finds what was
# not tested) are of 25 November 2026; rows of races were made again when
# their intervals became those of bets; the interval of seeds is in heads, as its sentence. Temporary
# paths say /earlier. Sentences, not rows, were made again when texts were rewritten. Sweeps were written anew when
# their sentence began to name the largest change in either direction, or that nothing changes, and a head's score
# lost its interval where too few predictions flip.
# The partials of disable, crossed, finetune, held and seeds were put into the form that these studies leave since they
# merge by declaration and hold their records; the rows made of them are the same.
# A change that is meant to change rows: write them anew (`python -m tests.studies.test_earlier_rows`) and say why.
FILE = Path(__file__).with_name("earlier_rows.json.xz")
EARLIER = json.loads(lzma.decompress(FILE.read_bytes()))
# frame-heads, and redundancy with two tasks and random weights (the heads of two layers), are of 25 November
# 2026, before records wrote their rows.
# Relations, roles and features with a second checkpoint, of three texts and tiny random weights that see both ways or
# only back, are of 25 November 2026, before records wrote the rows of WHOLE.
# Budget, counterparts, edge-effects, gates, shapley, sinks and writes, of few bundled rows, are of 28 November 2026.
# Without: hypothesis and measure-heads. Circuit, pairs and why leave 100 to 300 kB. The others need files or leave no
# rows.
WITHOUT = {
    "cross-fitted-scores",
    "cross-fitted-prune",
    "hypothesis",
    "why",
    "circuit",
    "development",
    "discover",
    "measure-heads",
    "pairs",
    "train-patterns",
    "draw-maps",
    "index-frames",
}


# Studies whose rows have just the columns that they had: none came later, none was written that had no number.
WHOLE = {"dependencies", "effective", "features", "norms", "relations", "roles", "statistics"}
LATER_KINDS = ("mean over heads",)  # of rows that came later, as columns did


def name_of(earlier):
    options = earlier["options"]
    return "-".join(
        [earlier["study"], *(str(options[name]) for name in ("what", "operator", "dtype") if name in options)]
    )


def close(row):
    """A row whose numbers are compared as they are printed: sums differ between machines in the last bits."""
    return {
        name: pytest.approx(value, rel=1e-7, abs=1e-9, nan_ok=True) if isinstance(value, float) else value
        for name, value in row.items()
    }


@pytest.mark.thorough
@pytest.mark.parametrize("earlier", EARLIER, ids=name_of)
def test_what_units_left_before_gives_the_same_rows_and_sentence(earlier):
    made = worker.summarize(earlier["study"], earlier["options"], earlier["partials"])["rows"]
    made = [row for row in json.loads(json.dumps(made)) if row.get("kind") not in LATER_KINDS]
    assert len(made) == len(earlier["rows"])
    for row, before in zip(made, earlier["rows"], strict=True):
        again = {name: row[name] for name in row if name in before}  # columns that came later are let through
        assert again == close(before)
        assert earlier["study"] not in WHOLE or row.keys() == before.keys()
    assert asdict(headline(earlier["study"], earlier["rows"])) == earlier["headline"]


def test_the_earlier_rows_are_of_every_study():
    assert {current_name(earlier["study"]) for earlier in EARLIER} == study_modules().keys() - WITHOUT


def write_anew():
    """The same partials, with the rows and sentences that are made of them today."""
    anew = []
    for earlier in EARLIER:
        rows = worker.summarize(earlier["study"], earlier["options"], earlier["partials"])["rows"]
        rows = [row for row in json.loads(json.dumps(rows)) if row.get("kind") not in LATER_KINDS]
        anew.append(earlier | {"rows": rows, "headline": asdict(headline(earlier["study"], rows))})
    FILE.write_bytes(lzma.compress(json.dumps(anew).encode(), preset=9))


if __name__ == "__main__":
    write_anew()
