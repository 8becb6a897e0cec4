"""Test of a batch of hypotheses about heads against seven criteria (docs/explanation/hypotheses.md).

Each unit is a unit of a study that measures one of the hypotheses (features, roles, relations, why, operators), on the
examples from which the hypotheses were formed or on those that test them. There is one row per hypothesis and
criterion, and two per head: the number of criteria that its best hypothesis meets, and whether one is both held out and
causal.
"""

import hashlib
import json
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pydantic.dataclasses

from ... import config, models, studies
from ...capture.components import edge_name
from ...errors import InputError
from ...frames.records import AnnotatedSentence
from ...frames.rows import read_sentences, write_sentences
from ...scoring.corrections import ALPHA, holm
from ...store.database import Database
from ...store.hypotheses import add_event, batches, hypotheses
from ...store.runs import Provenance, is_imported
from ...tasks.glue import TaskRow, read_rows, task_of
from ...tasks.own import absolute
from ..contract import Done, Finished, Study, Unit
from ..headline import Headline
from ..lookup import find_study
from ..options import LARGEST_SEED, Checkpoint, Pipeline
from ..records import Result
from ..stored_runs import hashes_of
from .joint_job import JointJob, Parts, UnitPart, joint_units, keep_as_run, run_member, where_from
from .predicates import Hypothesis, checked, counterpart_of, predicate_of
from .readings import Evidence, Reading, evidence_of, needed_reading, random_effect
from .records import CRITERIA, LEVELLED, SEEN_BEFORE, CriteriaMet, Criterion

EFFECTS = "operators"
OPERATORS = ("zero", "mean")
OWN_RANDOM = ("why", "counterparts")  # studies that compare with random weights themselves
RANDOM = tuple(f"random weights {seed}" for seed in (1, 2))
ONE_TASK = (EFFECTS, "pattern-shares", "patch", "edge-effects")
STATISTICS = ("criteria met", "held out and causal")
Partials = Mapping[tuple[str, str, str], Any]
CUT_FROM, LONGEST_WORD = 400, 60  # characters of inputs and words that every tokenizer reads whole
MARK = 16  # hex digits of a row's hash
FRAMES = "frames"  # not a task: the bundled sentences with frames; each second one is a dev row
FRAME_SENTENCES = config.SAMPLES / "frames" / "sentences.jsonl"


@pydantic.dataclasses.dataclass(frozen=True)
class RowChoice:
    """Selects task examples, or sentences with frames, by split, limit and seed."""

    task: str
    split: str = "dev"
    limit: int | None = 200
    seed: int = 0
    data: str | None = None

    @classmethod
    def parse(cls, text: str, *, data: str | None = None) -> "RowChoice":
        """Parse a selection of examples, written as "task:split:limit:seed" or only "task". A limit of 0 selects all
        examples. Raises InputError if the text is invalid."""
        task, *others = text.rsplit(":", text.count(":")) if not text.endswith((".csv", ".tsv")) else [text]
        split, limit, seed = (*others, *("dev", "200", "0")[len(others) :])[:3]
        if (
            len(others) > 3
            or not task
            or split not in ("dev", "train")
            or not limit.isdecimal()
            or not seed.isdecimal()
        ):
            raise InputError(
                "Examples must be named by task, split, limit and seed, such as mrpc:dev:200:0; got "
                f'"{text[:60]}". Correct the name.'
            )
        if int(seed) > LARGEST_SEED:
            raise InputError(f"A seed must be at most {LARGEST_SEED}; got {seed[:30]}. Choose a smaller seed.")
        return cls(task if task == FRAMES else absolute(task_of(task).key), split, int(limit) or None, int(seed), data)

    def __str__(self) -> str:
        return f"{self.task}:{self.split}:{self.limit or 0}:{self.seed}"

    def rows(self) -> list[TaskRow]:
        """Load the selected examples. Raises InputError if there are none."""
        if self.task == FRAMES:
            return [TaskRow(sentence.id, sentence.text, None, 0) for sentence in self._sentences()]
        return read_rows(self.task, self.split, folder=self.data, limit=self.limit, seed=self.seed)

    def frames(self) -> str:
        """Return the selected sentences with their frames as JSON lines."""
        return write_sentences(self._sentences())

    def _sentences(self) -> list[AnnotatedSentence]:
        if self.split not in ("dev", "train"):
            raise InputError(
                f'The split of sentences with frames must be dev or train; got "{self.split[:40]}". Choose one of them.'
            )
        found = list(read_sentences(FRAME_SENTENCES).sentences[self.split == "train" :: 2])
        if self.limit is not None and self.limit < len(found):
            drawn = np.random.default_rng(self.seed).choice(len(found), self.limit, replace=False)
            found = [found[k] for k in sorted(drawn.tolist())]
        return found


@pydantic.dataclasses.dataclass(frozen=True)
class HypothesisOptions:
    """Options for testing hypotheses that were registered before the test.

    Attributes:
        thought, judged: examples from which the hypotheses were formed, and examples that test them.
        batch: ID of the batch; "" if it is not registered in this database.
        level: error level of the batch.
        seen: number of runs of these weights on the test inputs that were stored before registration.
        weights: SHA-256 of the weights that the hypotheses concern; "" if not stated.
    """

    checkpoint: Checkpoint = "atlas-encoder"
    hypotheses: tuple[Hypothesis, ...] = ()
    thought: RowChoice = RowChoice("sst2")
    judged: RowChoice = RowChoice("mrpc")
    batch: str = ""
    level: float = ALPHA
    registered: int = 0
    seen: int = 0
    weights: str = ""
    pipeline: Pipeline = None


class HypothesisStudy(JointJob[HypothesisOptions]):
    """Test a batch of registered hypotheses about heads against seven criteria."""

    name, options = "hypothesis", HypothesisOptions
    kinds = (Criterion, CriteriaMet)
    section = "hypotheses"
    gives = "criteria that hypotheses meet"

    def title(self, options: HypothesisOptions) -> str:
        count = len(options.hypotheses)
        about = options.hypotheses[0].sentence if count == 1 else f"{count} hypotheses"
        return f"{about} ({options.checkpoint})"

    def checkpoints(self, options: HypothesisOptions) -> list[str]:
        return list(dict.fromkeys([options.checkpoint, *(run.checkpoint for run in runs_of(options))]))

    def members(self, options: HypothesisOptions) -> "list[StudyRun]":
        return runs_of(options)

    def units(self, options: HypothesisOptions) -> list[Unit]:
        if not options.hypotheses:
            raise InputError(
                "A test must have at least one hypothesis that has not been withdrawn; got none. Register a hypothesis."
            )
        for hypothesis in options.hypotheses:
            checked(hypothesis.predicate, {name: value for name, value in hypothesis.parameters if value})
        check_apart(options.thought, options.judged, studies.worker_cache.get_checkpoint(options.checkpoint))
        return [
            unit
            for number, run in enumerate(runs_of(options))
            for unit in joint_units(run.source, number, run.does.units(run.options))
        ]

    def run(self, options: HypothesisOptions, unit: Unit) -> Done[Parts]:
        run = runs_of(options)[unit.arguments.number]
        part, provenance = run_member(run, unit)
        hashes = hashes_of(provenance.weights_hash)
        is_own = run.checkpoint == options.checkpoint and not run.is_random
        if is_own and options.weights and options.weights not in hashes:
            raise InputError(
                "Hypotheses must be tested on the weights for which they were registered (hash "
                f"{options.weights[:12]}); the weights of {options.checkpoint} now have the hash "
                f"{(provenance.weights_hash or '')[:12]}. Register the hypotheses again."
            )
        return Done(Parts((part,)), provenance if is_own and len(hashes) == 1 else Provenance())

    def results(self, options: HypothesisOptions, merged: Parts) -> list[Result]:
        partials = {run.key: _merged(run, parts) for run, parts in _parts_by_run(options, merged)}
        registered = max(options.registered, len(options.hypotheses))
        batch = Batch(options.checkpoint, options.level, registered, options.seen)
        criteria = criteria_of(options.hypotheses, batch, runs_of(options), partials)
        return [*criteria, *heads_known(options, criteria)]

    def headline(self, rows: Sequence[Mapping[str, Any]]) -> Headline:
        criteria = Criterion.among(rows)
        ids = list(dict.fromkeys(criterion.hypothesis for criterion in criteria))
        met = {name: sum(c.criterion == name and c.state == "met" for c in criteria) for name in ("held out", "causal")}
        n = max((criterion.n or 0 for criterion in criteria), default=0)
        hypotheses = f"{len(ids)} preregistered {'hypothesis' if len(ids) == 1 else 'hypotheses'}"
        return Headline(
            (
                f"Held-out examples confirmed {met['held out']} of {hypotheses}, and interventions (ablation or "
                f"patching) confirmed {met['causal']}."
            ),
            n,
            "inputs",
            "",
            f"The significance level is {max((c.level or 0 for c in criteria), default=0):.3g}.",
        )

    def keep(self, db: Database, run: Finished[HypothesisOptions, Parts]) -> None:
        """Store the test results of hypotheses. Do nothing if the run was imported or a hypothesis has changed."""
        if is_imported(db, run.run) or not _is_as_registered(db, run.options):
            return
        registered = {stored.hypothesis for stored in hypotheses(db)}
        run_names = self._keep_runs(db, run)
        criteria = [replace(one, run=run_names.get(one.measured_by)) for one in Criterion.among(run.rows)]
        with db.write() as cursor:
            for one in (hypothesis.hypothesis for hypothesis in run.options.hypotheses):
                if one in registered:
                    mine = [criterion.as_row() for criterion in criteria if criterion.hypothesis == one]
                    add_event(cursor, one, "tested", run=run.run, criteria=mine, annotator=db.person.name)

    def _keep_runs(self, db: Database, run: Finished[HypothesisOptions, Parts]) -> dict[str, str]:
        """Store each run for the criteria as a separate run, and return their IDs. The atlas is not changed."""
        partials = list(run.partials())
        merged = self.merge(run.options, partials) if partials else Parts(())
        return {
            one.source: keep_as_run(
                db,
                one.does,
                one.options,
                where_from(parts),
                one.does.rows(one.options, _merged(one, parts)),
                scores=False,
            )
            for one, parts in _parts_by_run(run.options, merged)
            if not one.is_random
        }


STUDY = HypothesisStudy()


# ---------------------------------------------------------------- choice of rows


def mark_of(row: TaskRow) -> str:
    """Hash the texts of an example. The hash does not depend on the example's ID or label."""
    return _hashed([row.text, row.pair])


def input_marks(row: TaskRow, checkpoint: "models.checkpoint.Checkpoint") -> tuple[str, str]:
    """Return two hashes of an input: of its letters, and of its token IDs. Inputs that share a hash are duplicates."""
    return letters_mark(row), "tokens:" + _hashed(list(checkpoint.encode(row.text, row.pair).ids))


def letters_mark(row: TaskRow) -> str:
    """Hash the letters and digits of an input, ignoring case and accents."""
    return "letters:" + _hashed([_letters(text) for text in (row.text, row.pair or "")])


def is_plain(row: TaskRow) -> bool:
    """Return True for a short ASCII text without long words. Different letters then always have different tokens."""
    text = f"{row.text} {row.pair or ''}"
    return text.isascii() and len(text) < CUT_FROM and all(len(word) < LONGEST_WORD for word in text.split())


def _letters(text: str) -> str:
    parts = unicodedata.normalize("NFKD", text).casefold()
    return "".join(letter for letter in parts if letter.isalnum()) or " ".join(text.split())


def _hashed(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, ensure_ascii=False).encode()).hexdigest()[:MARK]


def check_apart(thought: RowChoice, judged: RowChoice, checkpoint: "models.checkpoint.Checkpoint") -> None:
    """Raise InputError if the examples for forming and testing a hypothesis overlap or contain duplicates."""
    before: set[str] = set()
    both = []
    for choice in (thought, judged):
        own: dict[str, str] = {}
        for row in choice.rows():
            marks = input_marks(row, checkpoint)
            if twin := next((own[mark] for mark in marks if mark in own), None):
                raise InputError(
                    f"Each input must occur only once in a test; rows {twin} and {row.id} of {choice} have the same "
                    "text or the same tokens. Remove repeated examples, or choose others."
                )
            own |= dict.fromkeys(marks, row.id)
            if choice is judged and before.intersection(marks):
                both.append(row.id)
        second, before = own, before | set(own)
    if both:
        raise InputError(
            f"A hypothesis must not be tested on the examples from which it was formed; {len(both)} of the "
            f"{len(set(second.values()))} examples of {judged} are also in {thought}, such as {both[0]}. Choose "
            "another task or split."
        )


# ---------------------------------------------------------------- which studies are needed, on which rows


def usual_rows(predicate: str, limit: int) -> tuple[str, str]:
    """Return the default examples for forming and for testing a hypothesis of the given kind."""
    study = predicate_of(predicate).study
    if study == "frame-heads":
        return f"{FRAMES}:train:0:0", f"{FRAMES}:dev:0:0"
    if study in (EFFECTS, "patch", "edge-effects"):  # studies of a classifier: both use its task
        return f"sst2:train:{limit}:0", f"sst2:dev:{limit}:0"
    return f"sst2:dev:{limit}:0", f"rte:dev:{limit}:0"  # no shipped result uses these rows


@dataclass(frozen=True)
class StudyRun:
    """A run of a study on selected examples, with results on which hypotheses are tested.

    `study` includes the variant, as in `Hypothesis.measured_by`. `rows` is "thought of on" (the examples from which
    hypotheses were formed), "judged on" (those that test them), or one of RANDOM (test with random weights).
    """

    study: str
    checkpoint: str
    rows: str
    choice: RowChoice
    options: Any

    @property
    def key(self) -> tuple[str, str, str]:
        return (self.study, self.checkpoint, self.rows)

    @property
    def is_random(self) -> bool:
        return self.rows in RANDOM

    @property
    def source(self) -> str:
        source = f"{self.study} on {self.choice}, {self.checkpoint}"
        return f"{source} ({self.rows})" if self.is_random else source

    @property
    def does(self) -> Study[Any, Any]:
        return find_study(self.study.partition(":")[0])


def runs_of(options: "HypothesisOptions") -> list[StudyRun]:
    """List all study runs that are needed to test a batch of hypotheses, without duplicates."""
    needed: dict[tuple[str, str, str], list[Hypothesis]] = {}
    for hypothesis in options.hypotheses:
        for key in _keys(options.checkpoint, hypothesis):
            needed.setdefault(key, []).append(hypothesis)
    found = []
    for (study, checkpoint, rows), mine in needed.items():
        choice = options.thought if rows == "thought of on" else options.judged
        name = studies.worker_cache.random_name(checkpoint, 1 + RANDOM.index(rows)) if rows in RANDOM else checkpoint
        run_options = _options(study, name, choice, mine, options.pipeline)
        found.append(StudyRun(study, checkpoint, rows, choice, run_options))
    return found


def _keys(checkpoint: str, hypothesis: Hypothesis) -> list[tuple[str, str, str]]:
    study = hypothesis.measured_by
    keys = [(study, checkpoint, "thought of on"), (study, checkpoint, "judged on")]
    if study.partition(":")[0] not in OWN_RANDOM and not hypothesis.is_of_words:
        keys += [(study, checkpoint, rows) for rows in RANDOM]
    if hypothesis.parameter("margin"):
        keys.append((EFFECTS, checkpoint, "judged on"))
    if hypothesis.parameter("counterpart"):
        keys.append((study, counterpart_of(hypothesis.parameter("counterpart"))[0], "judged on"))
    return list(dict.fromkeys(keys))


def _options(
    named: str, checkpoint: str, choice: RowChoice, hypotheses: Sequence[Hypothesis], pipeline: str | None
) -> Any:
    study, _, apart = named.partition(":")
    rows: dict[str, Any] = {"split": choice.split, "limit": choice.limit or 0, "seed": choice.seed, "data": choice.data}
    about: dict[str, Any] = {"checkpoint": checkpoint, **rows}
    if study in ONE_TASK:
        about |= {"task": choice.task, **_of_task(study, apart, checkpoint, hypotheses)}
        if study == "pattern-shares":
            del about["checkpoint"]
    elif study == "frame-heads":
        about = {"checkpoint": checkpoint, "rows": choice.frames(), "filter": False, "direction": apart}
    else:
        about |= {"tasks": [choice.task], "pipeline": pipeline, **_of_tasks(study, apart, hypotheses)}
    return find_study(study).read(about)


def _of_task(study: str, apart: str, checkpoint: str, hypotheses: Sequence[Hypothesis]) -> dict[str, Any]:
    """Return the options of a study of one task."""
    if study == EFFECTS:
        return {"operators": list(OPERATORS)}
    if study == "pattern-shares":
        file = config.ANNOTATIONS / apart / "classifier.safetensors"
        return {"checkpoints": [checkpoint], "classifier": str(file), "name": f"bundled, {apart}", "class_set": apart}
    if study == "patch":
        return {"kind": apart}
    edges = [edge_name(h.subject, h.parameter("reader"), h.parameter("input")) for h in hypotheses]
    return {"edges": sorted(set(edges))}


def _of_tasks(study: str, apart: str, hypotheses: Sequence[Hypothesis]) -> dict[str, Any]:
    """Return the options that hypotheses set in a study of several tasks, if they differ from its defaults."""
    controls = [hypothesis.parameter("control") for hypothesis in hypotheses]
    if study == "features":
        return {"features": _named([h.parameter("feature") for h in hypotheses] + controls), "word_types": True}
    if study == "relations":
        return {"relations": _named([h.relation for h in hypotheses] + controls)}
    if study == "budget":
        return {}
    if study == "roles":
        return {"sequences": 2}  # the fewest: no predicate is about words that come twice
    return {"compare": apart, "random_inputs": 12} if study == "counterparts" else {"removal": 0, "single_heads": False}


def _named(names: Sequence[str]) -> list[str]:
    return sorted({name for name in names if name})


# ---------------------------------------------------------------- the seven criteria


@dataclass(frozen=True)
class Batch:
    """A batch of hypotheses that were registered together, with its checkpoint and error level."""

    checkpoint: str
    level: float
    registered: int
    seen: int = 0


def criteria_of(
    hypotheses: Sequence[Hypothesis], batch: Batch, runs: Sequence[StudyRun], partials: Partials
) -> list[Criterion]:
    """Test every hypothesis against all criteria, based on the results of study runs. P-values are Holm-corrected."""
    sources = {run.key: run.source for run in runs}
    table = [_criteria(hypothesis, batch, sources, partials) for hypothesis in hypotheses]
    for criterion in LEVELLED:
        index = CRITERIA.index(criterion)
        adjusted = holm([row[index].p for row in table], registered=batch.registered)
        for row, p in zip(table, adjusted, strict=True):
            row[index] = _levelled(row[index], p, batch)
    return [criterion for row in table for criterion in row]


def _levelled(criterion: Criterion, adjusted: float | None, batch: Batch) -> Criterion:
    if criterion.state == "not tested":
        return criterion
    state = "met" if adjusted is not None and adjusted <= batch.level else "not met"
    note = "too few inputs differ from 0 for a p" if adjusted is None else criterion.note
    if state == "met" and batch.seen:
        state, note = SEEN_BEFORE, f"stored runs of these weights on these inputs, before registration: {batch.seen}"
    return replace(criterion, state=state, adjusted=adjusted, level=batch.level, note=note)


def _criteria(
    hypothesis: Hypothesis, batch: Batch, sources: Mapping[tuple[str, str, str], str], partials: Partials
) -> list[Criterion]:
    """Decide all criteria of a hypothesis. Each value must exceed its minimum; the least certain value is shown."""
    study, head = hypothesis.measured_by, hypothesis.subject
    thought, judged = ((study, batch.checkpoint, rows) for rows in ("thought of on", "judged on"))
    fresh = [partials[key] for key in _keys(batch.checkpoint, hypothesis) if key[2] in RANDOM and key in partials]
    random = random_effect(hypothesis, fresh)
    first, then = (
        Evidence(*["not run yet"] * 4)  # of its four
        if (partial := partials.get(key)) is None
        else evidence_of(hypothesis, partial, head, random)
        for key in (thought, judged)
    )
    effects = (EFFECTS, batch.checkpoint, "judged on")
    other = counterpart_of(hypothesis.parameter("counterpart")) if hypothesis.parameter("counterpart") else None
    answers: list[tuple[str, tuple[Reading, ...] | str, tuple[str, str, str]]] = [
        ("seen", _one(first.effect), thought),
        ("held out", _one(then.effect), judged),
        ("explained", _one(_both(then.effect, then.explained)), judged),
        ("causal", _operators(hypothesis, partials.get(effects)), effects)
        if then.causal is None
        else ("causal", _one(then.causal), judged),
        ("specific", _one(then.specific), judged),
        ("stable", then.halves, judged),
    ]
    if other is None:
        answers.append(("transfers", "no counterpart was named", judged))
    else:
        there = (study, other[0], "judged on")
        measured = partials.get(there)
        beyond = evidence_of(hypothesis, measured, other[1], random).effect if measured is not None else "not run yet"
        answers.append(("transfers", _one(beyond), there))
    columns: dict[str, Any] = {
        "hypothesis": hypothesis.hypothesis,
        "subject": str(head),
        "sentence": hypothesis.sentence,
    }
    decided = []
    for name, readings, key in answers:
        if isinstance(readings, str):
            decided.append(Criterion(**columns, criterion=name, state="not tested", note=readings))
            continue
        shown = min(readings, key=lambda one: float("-inf") if one.interval.low is None else one.interval.low)
        of = {
            "causal": "both operators, the weaker shown" if len(readings) > 1 else "by patching",
            "stable": "both halves of the inputs, the weaker shown",
        }
        decided.append(
            Criterion(
                **columns, criterion=name, state="met" if all(reading.is_beyond for reading in readings) else "not met",
                measure=shown.measure, amount=shown.interval.value, low=shown.interval.low, high=shown.interval.high,
                least=shown.least, baseline=shown.baseline, n=shown.interval.n, p=shown.p if name in LEVELLED else None,
                measured_by=sources.get(key, ""), note=of.get(name, ""),
            )
        )  # fmt: skip
    return decided


def _both(effect: Reading | str, explained: Reading | str) -> Reading | str:
    """Combine an effect with what remains after other explanations; p is the larger of the two."""
    if isinstance(explained, str) or isinstance(effect, str):
        return explained if isinstance(explained, str) else effect
    ps = (effect.p, explained.p)
    return replace(explained, p=None if None in ps else max(ps))  # type: ignore[type-var]  # None was asked for


def _one(reading: Reading | str) -> tuple[Reading, ...] | str:
    return reading if isinstance(reading, str) else (reading,)


def _operators(hypothesis: Hypothesis, partial: Any) -> tuple[Reading, ...] | str:
    """Return how each of two ablation methods changes the loss."""
    if not hypothesis.parameter("margin"):
        return "no margin was named for what happens without the head"
    if partial is None:
        return "not run yet"
    margin = float(hypothesis.parameter("margin"))
    both = [needed_reading(partial, name, hypothesis.subject, margin) for name in OPERATORS]
    numbers = tuple(reading for reading in both if isinstance(reading, Reading))
    return numbers if len(numbers) == len(both) else "the loss never changes"


# ---------------------------------------------------------------- units and passes


def _is_as_registered(db: Database, options: HypothesisOptions) -> bool:
    """Return whether what was tested is what was registered here."""
    batch = next((one for one in batches(db) if one.batch == options.batch), None)
    if batch is None:
        return False
    stored = {one.hypothesis: one for one in hypotheses(db) if one.batch == batch.batch}
    mine = [stored.get(one.hypothesis) for one in options.hypotheses]
    told = [(one.layer, one.head, one.predicate, one.parameters) for one in options.hypotheses]
    known = (batch.checkpoint, batch.level, len(stored), batch.weights_hash, batch.seen)
    return (
        [one and (one.layer, one.head, one.predicate, one.parameters) for one in mine] == told
        and known == (options.checkpoint, options.level, options.registered, options.weights, options.seen)
        and (batch.thought, batch.judged) == (asdict(options.thought), asdict(options.judged))
    )


def _parts_by_run(options: HypothesisOptions, merged: Parts) -> list[tuple[StudyRun, list[UnitPart]]]:
    """Return every run that has results, with the results of its units of work."""
    return [(run, parts) for number, run in enumerate(runs_of(options)) if (parts := merged.of(number))]


def _merged(run: StudyRun, parts: Sequence[UnitPart]) -> Any:
    return run.does.merge(run.options, [part.partial(run) for part in parts])


def heads_known(options: HypothesisOptions, criteria: Sequence[Criterion]) -> list[CriteriaMet]:
    """Return two records per head: the largest number of criteria that a hypothesis about the head meets, and whether a
    hypothesis about the head meets both "held out" and "causal"."""
    stored: dict[Any, list[dict[str, str]]] = {}
    for hypothesis in options.hypotheses:
        states = {c.criterion: c.state for c in criteria if c.hypothesis == hypothesis.hypothesis}
        stored.setdefault(hypothesis.subject, []).append(states)
    rows = []
    for head, records in sorted(stored.items()):
        most = max(sum(state == "met" for state in states.values()) for states in records)
        both = any(states.get("held out") == states.get("causal") == "met" for states in records)
        rows += [
            CriteriaMet(checkpoint=options.checkpoint, name=str(head), layer=head.layer,
                        head=head.head, statistic=statistic, value=float(value), n=len(records))
            for statistic, value in zip(STATISTICS, (most, both), strict=True)
        ]  # fmt: skip
    return rows
