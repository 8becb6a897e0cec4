"""A hypothesis about one head: registered, tested on rows that it was not thought of on, and kept."""

from collections.abc import Mapping

import pandas as pd

from ..attention import Head
from ..config import settings
from ..store.database import Database
from ..store.rows import Row
from ..studies.contract import Finished
from ..studies.hypotheses.hypothesis import STUDY, HypothesisOptions, RowChoice, usual_rows
from ..studies.hypotheses.measure_heads import keep_as_run
from ..studies.hypotheses.records import Criterion
from ..studies.hypotheses.registering import Proposal, batch_of, options_of, register

ROWS = 100


def hypothesis(
    checkpoint: str, head: str, predicate: str, parameters: Mapping[str, str], *, thought: str = "", judged: str = "",
    author: str = "",
) -> pd.DataFrame:  # fmt: skip
    """Register what is said of a head, test it in this process, and keep both in your database.

    Args:
        head: such as "L1H1".
        predicate: one of docs/dossier.md, such as "offset".
        parameters: the predicate's, by name, such as {"offset": "first"}.
        thought: rows that it was thought of on, as task:split:limit:seed; without them rows of SST-2, or what the
            predicate takes.
        judged: other rows, which judge it; without them rows of MRPC, or what the predicate takes.

    Returns:
        A row a criterion: hypothesis (its id), criterion, state, measure, amount, low, high, baseline, n, p, adjusted,
        level, note.

    Raises:
        InputError: it cannot be judged so. CheckpointError: the checkpoint cannot be opened. LockedError: the app holds
            the database; use its page, or close it.
    """
    usual = usual_rows(predicate, ROWS)
    rows = [RowChoice.parse(given or other) for given, other in zip((thought, judged), usual, strict=True)]
    said = Proposal(Head.parse(head), predicate, dict(parameters))
    with Database(settings().database) as db:
        batch, _ = register(db, checkpoint, [said], thought=rows[0], judged=rows[1], annotator=author)
        criteria = Criterion.among(_tested(db, options_of(*batch_of(db, batch))))
    names = ("hypothesis", "criterion", "state", "measure", "amount", "low", "high", "baseline", "n", "p", "adjusted",
             "level", "note")  # fmt: skip
    return pd.DataFrame([{name: getattr(criterion, name) for name in names} for criterion in criteria])


def _tested(db: Database, options: HypothesisOptions) -> list[Row]:
    """The rows of the test, which is kept as a job would keep it."""
    units = [STUDY.run(options, unit) for unit in STUDY.units(options)]
    rows = STUDY.summarize(options, [unit.partial for unit in units])
    run = keep_as_run(db, STUDY, options, {"weights_hash": units[0].provenance.weights_hash}, rows)
    STUDY.keep(db, Finished(run, STUDY.title(options), options, rows, lambda: (unit.partial for unit in units)))
    return rows
