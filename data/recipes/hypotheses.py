"""The hypotheses that ship: `python -m data.recipes.hypotheses [OUT]` registers and tests one about every head of the
bundled encoder, decoder and classifier, and writes a crate of each into data/hypotheses.

What is said of a head is what the shipped scores of SST-2's rows suggest; other rows judge it: of another task, and of
the classifier, which can be asked what happens without a head, its train rows. A head's counterpart in the classifier
that the encoder was fine-tuned to is the head at its own place. Crates of before were judged on MRPC's rows, none on
these, so that their level is that of a first batch.
"""

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from core import config
from core.atlas.scores import atlas
from core.attention import all_heads
from core.findings import hypothesis_crate
from core.store.database import Database
from core.store.hypotheses import add_event, hypotheses
from core.studies.hypotheses.hypothesis import RowChoice
from core.studies.hypotheses.predicates import MARGIN, predicate_of
from core.studies.hypotheses.records import Criterion
from core.studies.hypotheses.registering import Proposal, batch_of, options_of, proposals, register

OUT = config.DATA / "hypotheses"
TASK, HEADS = "sst2", 1  # that the scores are of; the strongest so many of a head


@dataclass(frozen=True)
class Made:
    """A crate. margin: least rise of the loss without a head, "" where nothing asks; counterpart: a checkpoint."""

    checkpoint: str
    thought: RowChoice
    judged: RowChoice
    margin: str = ""
    counterpart: str = ""


OTHER_TASK = RowChoice("sst2", "dev", 150), RowChoice("rte", "dev", 150)
CRATES = (
    Made(config.ENCODER, *OTHER_TASK, counterpart=config.CLASSIFIER),
    Made(config.DECODER, *OTHER_TASK),
    Made(config.CLASSIFIER, RowChoice("sst2", "dev", 300), RowChoice("sst2", "train", 600), margin=str(MARGIN)),
)


def said(about: Made, *, layers: int, heads: int) -> list[Proposal]:
    """What is said of every head."""
    scores = atlas(None, checkpoint=about.checkpoint, task=TASK, measure=False)
    found = [one for head in all_heads(layers, heads) for one in proposals(scores, head)[:HEADS]]
    return [replace(one, parameters={**one.parameters, **_also(about, one)}) for one in found]


def _also(about: Made, one: Proposal) -> dict[str, str]:
    """Parameters that the crate adds to a proposal whose predicate has them."""
    names = {parameter.name for parameter in predicate_of(one.predicate).parameters}
    also = {"margin": about.margin, "counterpart": about.counterpart and f"{about.counterpart}:{one.head}"}
    return {name: value for name, value in also.items() if value and name in names}


def made(about: Made, out: Path, *, layers: int = 6, heads: int = 6) -> Path:
    """Register one batch about every head, test it, and write its crate."""
    chosen: Sequence[Proposal] = said(about, layers=layers, heads=heads)
    with tempfile.TemporaryDirectory() as folder, Database(Path(folder) / "made.duckdb") as db:
        batch, _ = register(
            db, about.checkpoint, chosen, thought=about.thought, judged=about.judged, annotator="Attention Atlas"
        )
        criteria = Criterion.among(hypothesis_crate.computed(options_of(*batch_of(db, batch))))
        with db.write() as cursor:
            for one in hypotheses(db):
                mine = [row.as_row() for row in criteria if row.hypothesis == one.hypothesis]
                add_event(cursor, one.hypothesis, "tested", criteria=mine, annotator="Attention Atlas")
        return hypothesis_crate.export(db, about.checkpoint, out / about.checkpoint)


def main() -> None:
    """Make the crates, or those of one checkpoint."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", nargs="?", type=Path, default=OUT)
    parser.add_argument("--of", choices=[about.checkpoint for about in CRATES], help="make this crate alone")
    chosen = parser.parse_args()
    for about in CRATES:
        if chosen.of in (None, about.checkpoint):
            print(made(about, chosen.out))


if __name__ == "__main__":
    main()
