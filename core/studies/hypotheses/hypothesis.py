"""A batch of hypotheses about heads of a checkpoint, tested: which criteria each meets (docs/dossier.md).

Each unit is a unit of a study that measures one of the hypotheses (features, roles, relations, why, operators), on the
rows that they were thought of on or on those that judge them. Rows: one a hypothesis and criterion, and two a head:
how many criteria are met of a hypothesis about it, and whether one is held out and causal.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import pydantic.dataclasses

from ... import studies
from ...errors import InputError
from ...scoring.level_spending import ALPHA
from ...store.database import Database
from ...store.hypotheses import add_event, batches, hypotheses
from ...store.runs import Provenance, is_imported
from ..contract import Done, Finished, Study, Unit
from ..headline import Headline
from ..options import Checkpoint, Pipeline
from ..records import Result
from ..standing import hashes_of
from ..transport import decode, encode
from .criteria import Batch, criteria_of
from .predicates import Hypothesis, checked
from .records import CriteriaMet, Criterion
from .row_choice import RowChoice, check_apart
from .runs import StudyRun, runs_of
from .unit_provenance import keep_as_run, said_of, where_from

STATISTICS = ("criteria met", "held out and causal")


@pydantic.dataclasses.dataclass(frozen=True)
class HypothesisOptions:
    """A registered batch of hypotheses.

    Attributes:
        thought, judged: rows that they were thought of on, and rows that judge them.
        batch: its id; "" where it is not registered here.
        level: its share of the error that is allowed.
        seen: how many runs of these weights on judging inputs were stored before it was registered.
        weights: SHA-256 of the weights that it is about; "" where it does not say.
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


@dataclass(frozen=True)
class RunUnit:
    """A unit of one of the batch's runs. run: its number; unit: the key of the unit."""

    run: int
    unit: str


@dataclass(frozen=True)
class RunPart:
    """What a unit of a run gave, and where from, as JSON. order: of the unit within its run."""

    run: int
    order: int
    packed: str
    provenance: str = "{}"


@dataclass(frozen=True)
class HypothesisPartial:
    """Parts of the batch's runs."""

    parts: tuple[RunPart, ...]


class HypothesisStudy(Study[HypothesisOptions, HypothesisPartial]):
    """Test a registered batch of hypotheses about heads: which of seven criteria each meets."""

    name, options, partial, arguments = "hypothesis", HypothesisOptions, HypothesisPartial, RunUnit
    typed_after = None
    kinds = (Criterion, CriteriaMet)
    section = "hypotheses"
    gives = "criteria that hypotheses meet"

    def title(self, options: HypothesisOptions) -> str:
        """Name the heads and the checkpoint."""
        count = len(options.hypotheses)
        about = options.hypotheses[0].sentence if count == 1 else f"{count} hypotheses"
        return f"{about} ({options.checkpoint})"

    def checkpoints(self, options: HypothesisOptions) -> list[str]:
        """The batch's, and those of counterparts."""
        return list(dict.fromkeys([options.checkpoint, *(run.checkpoint for run in runs_of(options))]))

    def paths(self, options: HypothesisOptions) -> Iterator[tuple[str, bool]]:
        """Those of every run."""
        for run in runs_of(options):
            yield from run.does.paths(run.options)

    def units(self, options: HypothesisOptions) -> list[Unit]:
        """Those of every run; hypotheses that cannot be tested are refused here."""
        if not options.hypotheses:
            raise InputError("A test needs at least one hypothesis that was not withdrawn; register one.")
        for hypothesis in options.hypotheses:
            checked(hypothesis.predicate, {name: value for name, value in hypothesis.parameters if value})
        check_apart(options.thought, options.judged, studies.worker_cache.get_checkpoint(options.checkpoint))
        return [
            Unit(f"{run.source} {unit.key}", RunUnit(number, unit.key), unit.size)
            for number, run in enumerate(runs_of(options))
            for unit in _units(run)
        ]

    def run(self, options: HypothesisOptions, unit: Unit) -> Done[HypothesisPartial]:
        """One unit of one run."""
        piece: RunUnit = unit.arguments
        run = runs_of(options)[piece.run]
        divided = _units(run)
        order = next(k for k, unit_number in enumerate(divided) if unit_number.key == piece.unit)
        done = run.does.run(run.options, divided[order])
        _check_weights(options, run, done.provenance)
        packed = json.dumps(encode(done.partial))
        is_own = (
            run.checkpoint == options.checkpoint
            and not run.is_random
            and len(hashes_of(done.provenance.weights_hash)) == 1
        )
        part = RunPart(piece.run, order, packed, said_of(done.provenance))
        return Done(HypothesisPartial((part,)), done.provenance if is_own else Provenance())

    def merge(self, options: HypothesisOptions, partials: Sequence[HypothesisPartial]) -> HypothesisPartial:
        """All parts, run by run."""
        parts = [part for partial in partials for part in partial.parts]
        return HypothesisPartial(tuple(sorted(parts, key=lambda part: (part.run, part.order))))

    def results(self, options: HypothesisOptions, merged: HypothesisPartial) -> list[Result]:
        """Criteria of every hypothesis, then what is known of every head."""
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
        count = f"{len(ids)} hypothes{'is' if len(ids) == 1 else 'es'}"
        return Headline(
            f"Of {count} {met['held out']} held on rows fixed before, and {met['causal']} are causal too.",
            n,
            "inputs",
            "",
            f"level {max((c.level or 0 for c in criteria), default=0):.3g}",
        )

    def keep(self, db: Database, run: Finished[HypothesisOptions, HypothesisPartial]) -> None:
        """Add the test to each hypothesis that is registered here, and keep the runs behind its criteria.

        Not of a run that came in from a file, nor where what was tested is not what was registered: its criteria show
        with the run alone.
        """
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

    def _keep_runs(self, db: Database, run: Finished[HypothesisOptions, HypothesisPartial]) -> dict[str, str]:
        """Each study that was run for the criteria as a run of its own, by its source; their scores do not replace
        those of the atlas, which may be of more rows. None where the test was imported as rows."""
        merged = self.merge(run.options, list(run.partials()))
        return {
            one.source: keep_as_run(
                db,
                one.does,
                one.options,
                where_from([part.provenance for part in parts]),
                one.does.rows(one.options, _merged(one, parts)),
                scores=False,
            )
            for one, parts in _parts_by_run(run.options, merged)
            if not one.is_random
        }


STUDY = HypothesisStudy()


def _is_as_registered(db: Database, options: HypothesisOptions) -> bool:
    """Whether what is tested is what was registered here: batch, rows, level, weights and hypotheses."""
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


def _units(run: StudyRun) -> list[Unit]:
    return run.does.units(run.options)


def _parts_by_run(options: HypothesisOptions, merged: HypothesisPartial) -> list[tuple[StudyRun, list[RunPart]]]:
    """Every run that left parts, with them."""
    found = [(run, [part for part in merged.parts if part.run == k]) for k, run in enumerate(runs_of(options))]
    return [(run, parts) for run, parts in found if parts]


def _merged(run: StudyRun, parts: Sequence[RunPart]) -> Any:
    study = run.does
    return study.merge(run.options, [decode(study.partial, json.loads(part.packed)) for part in parts])


def _check_weights(options: HypothesisOptions, run: StudyRun, about: Provenance) -> None:
    if (
        run.checkpoint == options.checkpoint
        and not run.is_random
        and options.weights
        and options.weights not in hashes_of(about.weights_hash)
    ):
        raise InputError(
            f"These hypotheses are about {options.checkpoint} with the weights {options.weights[:12]}, and it has "
            f"others now ({(about.weights_hash or '')[:12]}): they stay as they are; register them anew for these."
        )


def heads_known(options: HypothesisOptions, criteria: Sequence[Criterion]) -> list[CriteriaMet]:
    """What is known of every head that a hypothesis is about."""
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
