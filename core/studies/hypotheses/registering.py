"""Registering hypotheses before they are tested, and what a test of a registered batch is asked.

The level is spent over all batches about the same weights that share a judging row; withdrawn ones count.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from core import studies
from core.attention import Head
from core.errors import InputError, StoreError
from core.models.present import present_weights
from core.scoring.level_spending import batch_level
from core.store.database import Database
from core.store.hypotheses import (
    StoredBatch,
    StoredHypothesis,
    add_batch,
    batches,
    earlier_batches,
    hypotheses,
)
from core.studies.contract import as_json
from core.studies.hypotheses.hypothesis import HypothesisOptions
from core.studies.hypotheses.predicates import Hypothesis, checked
from core.studies.hypotheses.row_choice import FRAMES, RowChoice, check_apart, mark_of
from core.studies.hypotheses.runs import runs_of
from core.studies.preflight import check_runnable

LATEST = "latest"
MOST_HYPOTHESES = 500  # of a batch


@dataclass(frozen=True)
class Proposal:
    """What somebody wants to say of a head, before it is registered."""

    head: Head
    predicate: str
    parameters: Mapping[str, str]

    @property
    def hypothesis(self) -> Hypothesis:
        """The hypothesis that is proposed, checked, without an id. Raises InputError."""
        if self.head.part:
            raise InputError(f"Hypotheses are about models with one set of heads; {self.head} is of one of three sets.")
        return Hypothesis("", *self.head, self.predicate, checked(self.predicate, self.parameters))


def register(
    db: Database, checkpoint: str, proposals: Sequence[Proposal], *, thought: RowChoice, judged: RowChoice,
    annotator: str = "",
) -> tuple[str, list[str]]:  # fmt: skip
    """Store a batch of hypotheses before it is tested.

    Args:
        db: where it is stored.
        checkpoint: that the hypotheses are about.
        proposals: one to MOST_HYPOTHESES of them.
        thought: the rows that they were thought of on.
        judged: the rows that are to judge them; none of those they were thought of on.
        annotator: who registers them.

    Returns:
        The batch's id, and those of its hypotheses, in the proposals' order.

    Raises:
        InputError: judged on rows that it was thought of on; parameters that are missing or wrong; a head that the
            checkpoint does not have; the same hypothesis twice; a checkpoint that cannot be judged on these rows.
        CheckpointError: there is no such checkpoint.
    """
    if not 0 < len(proposals) <= MOST_HYPOTHESES:
        raise InputError(f"A batch has 1 to {MOST_HYPOTHESES} hypotheses; {len(proposals)} were given.")
    whole = [proposal.hypothesis for proposal in proposals]
    if len(set(whole)) < len(whole):
        raise InputError("A batch says each thing once, and one hypothesis is given twice: leave one out.")
    check_apart(thought, judged)
    opened = studies.worker_cache.get_checkpoint(checkpoint)
    for hypothesis in whole:
        hypothesis.subject.within(opened.layers, opened.heads)
    _check_rows(whole, thought, judged)
    for run in runs_of(
        HypothesisOptions(checkpoint=checkpoint, hypotheses=tuple(whole), thought=thought, judged=judged)
    ):
        check_runnable(run.does, as_json(run.options))
        if run.study not in ("why", "match"):  # whose units open checkpoints
            run.does.units(run.options)
    rows = {
        name: tuple((row.id, mark_of(row)) for row in choice.rows())
        for name, choice in (("thought", thought), ("judged", judged))
    }
    with db.write():  # so that no other batch takes the same number
        number = earlier_batches(db, opened.weights_hash, rows["judged"]) + 1
        batch = StoredBatch(
            checkpoint, opened.weights_hash, asdict(thought), asdict(judged), rows["thought"], rows["judged"], number,
            batch_level(number), annotator,
        )  # fmt: skip
        return add_batch(db, batch, [(h.layer, h.head, h.predicate, h.parameters) for h in whole])


def _check_rows(hypotheses: Sequence[Hypothesis], thought: RowChoice, judged: RowChoice) -> None:
    """Raises InputError where rows with frames are to judge what is not about them, or other rows what is."""
    for hypothesis in hypotheses:
        for choice in (thought, judged):
            if (choice.task == FRAMES) != (hypothesis.predicate == "frame-link"):
                raise InputError(
                    f'"{hypothesis.sentence}" cannot be judged on {choice}: frame links take rows of {FRAMES} '
                    f"({FRAMES}:train and {FRAMES}:dev), and everything else takes rows of a task."
                )


def hypothesis_of(stored: StoredHypothesis) -> Hypothesis:
    """A stored hypothesis as it is tested."""
    return Hypothesis(stored.hypothesis, stored.layer, stored.head, stored.predicate, stored.parameters)


def batch_of(db: Database, name: str) -> tuple[StoredBatch, list[StoredHypothesis]]:
    """The batch of this id, or that of the hypothesis of this id, or the newest for "latest"; and all its hypotheses.
    Raises StoreError."""
    every = hypotheses(db)
    named = next((one.batch for one in every if one.hypothesis == name), name)
    if name == LATEST and every:
        named = every[-1].batch
    batch = next((one for one in batches(db) if one.batch == named), None)
    if batch is None:
        raise StoreError(f'A hypothesis or batch is named by its id, and "{name[:60]}" is none; see `hypothesis list`.')
    return batch, [one for one in every if one.batch == named]


def options_of(batch: StoredBatch, members: Sequence[StoredHypothesis]) -> HypothesisOptions:
    """What a test of a batch is asked: those of its hypotheses that were not withdrawn.

    Args:
        batch: as it was registered.
        members: all its hypotheses.

    Returns:
        The options of the study.

    Raises:
        InputError: the checkpoint has other weights now, rows have changed, or all were withdrawn.
    """
    now = present_weights(batch.checkpoint)
    if now and now != batch.weights_hash:
        raise InputError(
            f"These hypotheses are about {batch.checkpoint} with the weights {batch.weights_hash[:12]}, and it has "
            f"others now ({now[:12]}): they stay as they are; register them anew for these weights."
        )
    thought, judged = RowChoice(**batch.thought), RowChoice(**batch.judged)
    for choice, before in ((thought, batch.thought_rows), (judged, batch.judged_rows)):
        changed = changed_row(choice, before)
        if changed:
            raise InputError(
                f"The rows of {choice} are not those that were registered: {changed} has changed; bring back the file, "
                "or register the hypotheses anew."
            )
    standing = tuple(hypothesis_of(member) for member in members if member.withdrawn is None)
    if not standing:
        raise InputError(f"All hypotheses of the batch {batch.batch} were withdrawn: register others.")
    return HypothesisOptions(
        checkpoint=batch.checkpoint, hypotheses=standing, thought=thought, judged=judged, batch=batch.batch,
        level=batch.level, registered=len(members), weights=batch.weights_hash,
    )  # fmt: skip


def changed_row(choice: RowChoice, before: Sequence[tuple[str, str]]) -> str:
    """The id of the first row that is not as it was, "" where all are."""
    now = [(row.id, mark_of(row)) for row in choice.rows()]
    for k, row in enumerate(before):
        if k >= len(now) or now[k] != row:
            return row[0]
    return now[len(before)][0] if len(now) > len(before) else ""
