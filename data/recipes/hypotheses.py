"""The hypotheses that ship: `python -m data.recipes.hypotheses [OUT]` registers and tests some about every head of the
bundled encoder and decoder, and writes a crate of each into data/hypotheses.

What is said of a head is what the shipped scores of SST-2's rows suggest; other rows, of another task, judge it.
"""

import argparse
import tempfile
from pathlib import Path

from core import config
from core.atlas.proposals import proposals
from core.atlas.scores import atlas
from core.attention import all_heads
from core.findings import hypothesis_crate
from core.store.database import Database
from core.store.hypotheses import add_event, hypotheses
from core.studies.hypotheses.records import Criterion
from core.studies.hypotheses.registering import batch_of, options_of, register
from core.studies.hypotheses.row_choice import RowChoice

OUT = config.DATA / "hypotheses"
TASK, HEADS = "sst2", 1  # that the scores are of; the strongest so many of a head
THOUGHT, JUDGED = RowChoice("sst2", "dev", 150), RowChoice("mrpc", "dev", 150)


def made(checkpoint: str, out: Path, *, layers: int = 6, heads: int = 6) -> Path:
    """Register one batch about every head, test it, and write its crate."""
    scores = atlas(None, checkpoint=checkpoint, task=TASK, measure=False)
    chosen = [one for head in all_heads(layers, heads) for one in proposals(scores, head)[:HEADS]]
    with tempfile.TemporaryDirectory() as folder, Database(Path(folder) / "made.duckdb") as db:
        batch, _ = register(db, checkpoint, chosen, thought=THOUGHT, judged=JUDGED, annotator="Attention Atlas")
        criteria = Criterion.among(hypothesis_crate.computed(options_of(*batch_of(db, batch))))
        with db.write() as cursor:
            for one in hypotheses(db):
                mine = [row.as_row() for row in criteria if row.hypothesis == one.hypothesis]
                add_event(cursor, one.hypothesis, "tested", criteria=mine, annotator="Attention Atlas")
        return hypothesis_crate.export(db, checkpoint, out / checkpoint)


def main() -> None:
    """Make both crates."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", nargs="?", type=Path, default=OUT)
    out = parser.parse_args().out
    for checkpoint in (config.ENCODER, config.DECODER):
        print(made(checkpoint, out))


if __name__ == "__main__":
    main()
