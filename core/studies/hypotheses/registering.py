"""Registration of hypotheses before they are tested, and the options of the test.

The error level is divided among all batches about the same weights that share a test input, including withdrawn ones.
Earlier runs of these weights on test inputs are counted, because their results were known before registration.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import TYPE_CHECKING

import pandas as pd

from ... import studies
from ...attention import Head
from ...errors import AtlasError, InputError, StoreError
from ...models.present import present_weights
from ...scoring.corrections import batch_level
from ...store.database import Database
from ...store.hypotheses import (
    Marks,
    StoredBatch,
    StoredHypothesis,
    add_batch,
    batches,
    earlier_batches,
    hypotheses,
)
from ...store.jobs import job_provenance, one_job
from ...store.jobs import jobs as all_jobs
from ...store.rows import Row, from_json, to_json
from ...store.runs import known_runs, runs
from ...tasks.conllu import file_of, read_conllu
from ...tasks.features import FEATURES
from ...tasks.glue import TaskRow, read_rows
from ...tasks.relations import RELATIONS, SAME_WORD
from ..contract import as_json
from ..preflight import check_runnable
from ..stored_runs import hashes_of
from .hypothesis import (
    FRAMES,
    HypothesisOptions,
    RowChoice,
    check_apart,
    input_marks,
    is_plain,
    letters_mark,
    mark_of,
    runs_of,
)
from .predicates import COMPONENTS, DIRECTIONS, OFFSETS, Hypothesis, checked, predicate_of

if TYPE_CHECKING:
    from ...models.checkpoint import Checkpoint


LATEST = "latest"
MOST_HYPOTHESES = 500  # of a batch


@dataclass(frozen=True)
class Proposal:
    """A hypothesis about a head that has not been registered yet."""

    head: Head
    predicate: str
    parameters: Mapping[str, str]

    @property
    def hypothesis(self) -> Hypothesis:
        """Return the proposed hypothesis, without an ID. Raises InputError if it is invalid."""
        if self.head.part:
            raise InputError(
                f"Hypotheses can only be registered for encoders and decoders; {self.head} belongs to an "
                "encoder-decoder. Choose a head of another checkpoint."
            )
        return Hypothesis("", *self.head, self.predicate, checked(self.predicate, self.parameters))


def register(
    db: Database, checkpoint: str, proposals: Sequence[Proposal], *, thought: RowChoice, judged: RowChoice,
    annotator: str = "",
) -> tuple[str, list[str]]:  # fmt: skip
    """Store a batch of hypotheses before they are tested. Return the ID of the batch and the IDs of its hypotheses.

    `judged` holds the test examples, which must differ from those in `thought`. Raises InputError for shared or
    repeated inputs, invalid parameters or heads, or a repeated hypothesis, and CheckpointError for an unknown
    checkpoint.
    """
    if not 0 < len(proposals) <= MOST_HYPOTHESES:
        raise InputError(
            f"A batch must have 1 to {MOST_HYPOTHESES} hypotheses; got {len(proposals)}. Add or remove hypotheses."
        )
    whole = [proposal.hypothesis for proposal in proposals]
    if len(set(whole)) < len(whole):
        raise InputError("The hypotheses of a batch must differ; one hypothesis is given twice. Remove one of the two.")
    opened = studies.worker_cache.get_checkpoint(checkpoint)
    check_apart(thought, judged, opened)
    for hypothesis in whole:
        hypothesis.subject.within(opened.layers, opened.heads)
        for choice in (thought, judged):
            if (choice.task == FRAMES) != (hypothesis.predicate == "frame-link"):
                needed = f"frames ({FRAMES}:train or {FRAMES}:dev)" if choice.task != FRAMES else "a task"
                raise InputError(
                    f'The hypothesis "{hypothesis.sentence}" must be tested on examples of {needed}; got {choice}. '
                    "Choose other examples."
                )
    for run in runs_of(
        HypothesisOptions(checkpoint=checkpoint, hypotheses=tuple(whole), thought=thought, judged=judged)
    ):
        if run.is_random:
            continue
        check_runnable(run.does, as_json(run.options))
        if run.study not in ("why", "counterparts"):  # studies whose units open checkpoints
            run.does.units(run.options)
    rows = {
        name: tuple((row.id, mark_of(row), *input_marks(row, opened)) for row in choice.rows())
        for name, choice in (("thought", thought), ("judged", judged))
    }
    seen = earlier_runs(db, opened, rows["judged"])
    with db.write():  # so that no other batch takes the same number
        number = earlier_batches(db, opened.weights_hash, rows["judged"]) + 1
        batch = StoredBatch(
            checkpoint, opened.weights_hash, asdict(thought), asdict(judged), rows["thought"], rows["judged"], number,
            batch_level(number), tuple(seen), annotator,
        )  # fmt: skip
        return add_batch(db, batch, [(h.layer, h.head, h.predicate, h.parameters) for h in whole])


def earlier_runs(db: Database, checkpoint: "Checkpoint", judged: Marks) -> list[Row]:
    """Find earlier runs and jobs with the same weights. Count how many of the test inputs each of them has used."""
    wanted, ids = {mark for _, _, *marks in judged for mark in marks}, {row_id for row_id, *_ in judged}
    rows_of: dict[tuple[str, str, str | None], dict[str, TaskRow]] = {}
    sentences_of = cache(_sentences_of)
    marks_of = cache(lambda row: (letters_mark(row),) if is_plain(row) else input_marks(row, checkpoint))

    def rows(task: str, split: str, data: str | None) -> dict[str, TaskRow]:
        if (key := (task, split, data)) not in rows_of:
            try:
                rows_of[key] = {row.id: row for row in read_rows(task, split, folder=data)}
            except AtlasError:
                rows_of[key] = {}
        return rows_of[key]

    found = []
    for run in [*known_runs(db, None).to_dict("records"), *_jobs_of(db)]:
        if checkpoint.weights_hash not in hashes_of(run["weights_hash"]):
            continue
        told = from_json(run["options"]) if isinstance(run["options"], str) else run["options"]
        used = set(map(str, from_json(run["row_ids"]) or ())) if isinstance(run["row_ids"], str) else None
        tasks = [task for task in [told.get("task"), *(told.get("tasks") or ())] if isinstance(task, str)]
        data = told.get("data") if isinstance(told.get("data"), str) else None
        inputs = [
            row
            for task in tasks
            for split in (("train", "dev") if used else (run["split"],))
            for row_id, row in rows(task, split, data).items()
            if used is None or row_id in used
        ]
        for text in told.get("texts") or ():
            first, second = (text, None) if isinstance(text, str) else text
            inputs.append(TaskRow("text", first, second, 0))
        if "treebank" in told:
            inputs += sentences_of(told["treebank"], told.get("limit"))
        known = {mark for row in inputs for mark in marks_of(row)} & wanted
        overlap = sum(bool(known.intersection(marks)) for _, _, *marks in judged)
        if not tasks and not told.get("texts") and "treebank" not in told and used:
            overlap = len(used & ids)
        found.append({"run": run["run"], "study": run["study"], "title": run["title"], "created": run["created"],
                      "code_version": run["code_version"], "source": run["source"], "inputs": overlap})  # fmt: skip
    return found


def _sentences_of(treebank: str | None, limit: int | None) -> list[TaskRow]:
    """Return the sentences of a treebank that a run read; none if the treebank can no longer be read."""
    sentences = []
    for part in ("dev", "test"):
        try:
            read = read_conllu(file_of(treebank, part), limit)
        except AtlasError:
            continue
        sentences += [TaskRow("text", sentence.text, None, 0) for sentence in read]
    return sentences


def _jobs_of(db: Database) -> Iterator[Row]:
    """Yield the jobs that have stored units but no run (or whose run was deleted), in the form of runs."""
    stored = set(runs(db)["run"])
    for job in all_jobs(db).to_dict("records"):
        if job.get("run") in stored:
            continue
        units = job_provenance(db, job["job"])
        if not units:
            continue
        known = one_job(db, job["job"])
        hashes = dict.fromkeys(str(unit.get("weights_hash")) for unit in units if unit.get("weights_hash"))
        row_ids = list(dict.fromkeys(str(name) for unit in units for name in unit.get("row_ids") or ()))
        yield {"run": f"job {job['job']}", "study": job["study"], "title": job["title"], "created": job["created"],
               "code_version": units[0].get("code_version") or "", "source": "job", "weights_hash": ", ".join(hashes),
               "options": known["options"], "row_ids": to_json(row_ids) if row_ids else None}  # fmt: skip


def hypothesis_of(stored: StoredHypothesis) -> Hypothesis:
    """Convert the stored record of a hypothesis to the object that the tests use."""
    return Hypothesis(stored.hypothesis, stored.layer, stored.head, stored.predicate, stored.parameters)


def batch_of(db: Database, name: str) -> tuple[StoredBatch, list[StoredHypothesis]]:
    """Find a batch of hypotheses by its ID, the ID of a member, or "latest". Raises StoreError if it does not exist."""
    every = hypotheses(db)
    named = next((one.batch for one in every if one.hypothesis == name), name)
    if name == LATEST and every:
        named = every[-1].batch
    batch = next((one for one in batches(db) if one.batch == named), None)
    if batch is None:
        raise StoreError(
            f'A hypothesis or batch must be named by its ID; the ID "{name[:60]}" is unknown. Choose an ID that '
            "`hypothesis list` shows."
        )
    return batch, [one for one in every if one.batch == named]


def options_of(batch: StoredBatch, members: Sequence[StoredHypothesis]) -> HypothesisOptions:
    """Return the options for testing a batch. Raises InputError if weights or examples have changed."""
    now = present_weights(batch.checkpoint)
    if now and now != batch.weights_hash:
        raise InputError(
            "Hypotheses must be tested on the weights for which they were registered (hash "
            f"{batch.weights_hash[:12]}); the weights of {batch.checkpoint} now have the hash {now[:12]}. Register the "
            "hypotheses again."
        )
    thought, judged = RowChoice(**batch.thought), RowChoice(**batch.judged)
    for choice, before in ((thought, batch.thought_rows), (judged, batch.judged_rows)):
        changed = changed_row(choice, before)
        if changed:
            raise InputError(
                f"The examples {choice} must be the same as when the hypotheses were registered; example {changed} has "
                "changed since then. Restore the file, or register the hypotheses again."
            )
    standing = tuple(hypothesis_of(member) for member in members if member.withdrawn is None)
    if not standing:
        raise InputError(
            "A batch must have at least one hypothesis that has not been withdrawn; all hypotheses of "
            f"{batch.batch} have been withdrawn. Register other hypotheses."
        )
    return HypothesisOptions(
        checkpoint=batch.checkpoint, hypotheses=standing, thought=thought, judged=judged, batch=batch.batch,
        level=batch.level, registered=len(members), weights=batch.weights_hash,
        seen=batch.seen,
    )  # fmt: skip


def changed_row(choice: RowChoice, before: Marks) -> str:
    """Return the ID of the first selected example that has changed since registration, or "" if there is none."""
    now = [(row.id, mark_of(row)) for row in choice.rows()]
    for k, row in enumerate(before):
        if k >= len(now) or now[k] != row[:2]:
            return row[0]
    return now[len(before)][0] if len(now) > len(before) else ""


# ---------------------------------------------------------------- hypotheses that a head's scores suggest


MOST = 3
CONTROL = {"previous": "next", "next": "previous", "first": "previous", "noun": "verb"}
SHARE = "score share"


def proposals(scores: pd.DataFrame, head: Head) -> list[Proposal]:
    """Propose hypotheses based on the scores of a head. The score that is furthest above its baseline comes first."""
    mine = scores[(scores["layer"] == head.layer) & (scores["head"] == head.head)]
    above = (mine["value"] - mine["baseline"].fillna(0)).rename("above")
    ranked = mine.assign(above=above).dropna(subset=["above"]).sort_values("above", ascending=False, kind="stable")
    found: list[Proposal] = []
    for _, row in ranked.iterrows():
        proposed = _proposal(head, str(row["score"]))
        if proposed is not None and (row["above"] > 0 or not found) and len(found) < MOST:
            found.append(proposed)
    return found


def _proposal(head: Head, score: str) -> Proposal | None:
    """Return the hypothesis that a score suggests; None if no kind of hypothesis covers the score."""
    study, name, about = (*score.split("/", 2), "", "")[:3]

    def tests(predicate: str) -> bool:
        return predicate_of(predicate).study == study

    if tests("offset") and name in OFFSETS:
        return Proposal(head, "offset", {"offset": name, "control": CONTROL[name]})
    if tests("looks-at") and name in ("max", "max-visible") and about in FEATURES and not FEATURES[about].special:
        return Proposal(head, "looks-at", {"feature": about, "control": CONTROL.get(about, "noun")})
    if tests("relation") and name in DIRECTIONS and about in RELATIONS:
        if about == SAME_WORD:
            return Proposal(head, "same-word", {"direction": name})
        control = "determiner-noun" if about != "determiner-noun" else "verb-object"
        return Proposal(head, "relation", {"relation": about, "direction": name, "control": control})
    if tests("decided-by") and name == SHARE and about in COMPONENTS:
        control = "token" if about != "token" else "position"
        return Proposal(head, "decided-by", {"component": about, "least": "0.3", "control": control})
    return None
