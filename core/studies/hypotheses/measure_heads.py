"""Several studies of the heads of one checkpoint as one job. Each becomes a run, as if it had been started alone.

A study that does not support the checkpoint is left out with the reason, unless no study remains.
"""

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

import pydantic.dataclasses

from ... import config
from ...errors import AtlasError, InputError
from ...store.database import Database
from ...store.rows import Row, plain
from ...store.runs import Provenance, record_run, store_rows
from ..contract import Done, Finished, Flag, Study, Unit, as_json
from ..headline import Headline
from ..lookup import find_study
from ..merging import SortedBy
from ..options import Checkpoint
from ..preflight import check_runnable
from ..provenance import provenance_of_run
from ..records import Result, stated
from ..transport import decode, encode
from ..units import NamedUnit

# what a row took of the bundled classifier, 22.9 s of units together: 2 cores that others used too, 24 November 2026
ROW_SECONDS: Mapping[str, float] = MappingProxyType({
    "statistics": 0.0075, "roles": 0.0173, "norms": 0.0086, "features": 0.0033, "relations": 0.0037,
    "budget": 0.0040, "redundancy": 0.0026, "effective": 0.0108, "pattern-shares": 0.0116, "why": 0.0239,
    "importance": 0.0042, "operators": 0.0268,
})  # fmt: skip
LOOKING = ("statistics", "budget", "roles", "norms", "features", "relations", "redundancy", "effective")
CLASSES, WHY, EFFECTS = "pattern-shares", "why", ("importance", "operators")
GIVES = {  # what the page calls what these give
    CLASSES: "the pattern class of maps",
    WHY: "what decides where heads look",
    "importance": "importance by gradients",
    "operators": "the loss without each head",
}
TASK, ROWS, FEWER = "sst2", 300, 100  # FEWER: of studies that run the model again for every head
SAID_ONCE = ("weights_hash", "device", "dtype", "split", "task", "seed")  # of a run: the same in all of its units


@pydantic.dataclasses.dataclass(frozen=True)
class Asked:
    """A study to run in a joint job. `given` holds its options by name, as JSON; other options have their defaults."""

    study: str
    given: str = "{}"

    @property
    def does(self) -> Study[Any, Any]:
        """Return the study. Raises JobError if it does not exist."""
        return find_study(self.study)

    @property
    def options(self) -> Any:
        """Return the validated options. Raises InputError."""
        return self.does.read(json.loads(self.given))


@pydantic.dataclasses.dataclass(frozen=True)
class MeasureHeadsOptions:
    """Options of a joint job: which studies measure the heads of which checkpoint."""

    checkpoint: Checkpoint = "atlas-encoder"
    studies: Annotated[tuple[Asked, ...], Flag("studies to run in this job, each with its options")] = ()


@dataclass(frozen=True)
class UnitPart:
    """The result of a unit of one study in a joint job, as JSON, with its provenance. `error` is the error message, or
    ""."""

    number: int
    order: int
    packed: str
    provenance: str
    error: str = ""


@dataclass(frozen=True)
class Parts:
    """Results of units from all studies of a joint job."""

    parts: Annotated[tuple[UnitPart, ...], SortedBy("number", "order")]


@dataclass(frozen=True, kw_only=True)
class MeasuredStudy(Result):
    """The result of one study in a joint job. `says` is its summary or the reason why it was left out, `kept` its rows,
    and `provenance` that of its run."""

    KINDS: ClassVar[tuple[str, ...]] = ("measured",)
    study: str
    says: str
    scores: int = stated(0)
    kept: Sequence[Row] = stated(())
    provenance: Mapping[str, Any] = stated(None)


class MeasureHeads(Study[MeasureHeadsOptions, Parts]):
    """Run several studies of the heads of a checkpoint as one job; each study is stored as its own run."""

    name, options, partial, arguments = "measure-heads", MeasureHeadsOptions, Parts, NamedUnit
    typed_after = None
    kinds = (MeasuredStudy,)

    def title(self, options: MeasureHeadsOptions) -> str:
        return f"{len(options.studies)} kinds of scores of the heads of {options.checkpoint}"

    def paths(self, options: MeasureHeadsOptions) -> Iterator[tuple[str, bool]]:
        for planned in options.studies:
            yield from planned.does.paths(planned.options)

    def units(self, options: MeasureHeadsOptions) -> list[Unit]:
        """Return the units of every requested study that supports the checkpoint. Raises an AtlasError if there is
        none."""
        divided: list[Unit] = []
        refused = None
        for number, planned in enumerate(options.studies):
            if planned.study == self.name:
                raise InputError(f"A joint job must consist of other studies; got {self.name}. Remove it.")
            try:
                units = planned.does.units(planned.options)
            except AtlasError as error:
                refused = refused or error
                continue
            divided += _units_of(number, planned, units, 0)
        if refused and not divided:
            raise refused
        return divided

    def more(self, options: MeasureHeadsOptions, partials: Sequence[Parts]) -> list[Unit]:
        """Return the next units of every study that works in several rounds and has not failed."""
        merged, added = self.merge(options, partials), []
        for number, planned in enumerate(options.studies):
            parts = [part for part in merged.parts if part.number == number]
            if not planned.does.in_rounds or not parts or any(part.error for part in parts):
                continue
            try:
                units = planned.does.more(planned.options, [_partial(planned, part) for part in parts])
            except AtlasError:  # `results` names it
                continue
            added += _units_of(number, planned, units, max(part.order for part in parts) + 1)
        return added

    def run(self, options: MeasureHeadsOptions, unit: Unit) -> Done[Parts]:
        """Run one unit of one study. If the unit fails, its result is the error text."""
        piece: NamedUnit = unit.arguments
        planned, order = options.studies[piece.number], piece.order
        if piece.packed:
            own = Unit(piece.name, decode(planned.does.arguments, json.loads(piece.packed)), unit.size)
        else:  # divided by an earlier version
            divided = planned.does.units(planned.options)
            order = next(k for k, unit_number in enumerate(divided) if unit_number.key == piece.name)
            own = divided[order]
        try:
            done = planned.does.run(planned.options, own)
        except AtlasError as error:
            return Done(Parts((UnitPart(piece.number, order, "", "{}", str(error)),)))
        part = UnitPart(piece.number, order, json.dumps(encode(done.partial)), said_of(done.provenance))
        return Done(Parts((part,)), Provenance(weights_hash=done.provenance.weights_hash))

    def results(self, options: MeasureHeadsOptions, merged: Parts) -> list[MeasuredStudy]:
        """Return one record per study of the joint job, with the result rows of the study."""
        parts_of = {
            number: [part for part in merged.parts if part.number == number]
            for number in dict.fromkeys(part.number for part in merged.parts)
        }
        results = [_measured(options.studies[number], parts) for number, parts in parts_of.items()]
        if not any(result.kept for result in results):
            raise InputError(results[0].says)
        return results

    def headline(self, rows: Sequence[Row]) -> Headline:
        measured = MeasuredStudy.among(rows)
        names = [result.study for result in measured if result.kept]
        scores = sum(result.scores for result in measured)
        return Headline(f"Measured {', '.join(names)}. Each is stored as a separate result.", scores, "scores of heads")

    def keep(self, db: Database, run: Finished[MeasureHeadsOptions, Parts]) -> None:
        """Store the result rows of each study as a separate run."""
        planned = {study.study: study for study in run.options.studies}
        for result in MeasuredStudy.among(run.rows):
            if result.kept:
                one = planned[result.study]
                keep_as_run(db, one.does, one.options, result.provenance, result.kept)


STUDY = MeasureHeads()


def _units_of(number: int, planned: Asked, units: Sequence[Unit], first: int) -> list[Unit]:
    """Convert the units of work of a study to units of the joint job. `first` is the order of the first one."""
    return [
        Unit(
            f"{planned.study} {unit.key}",
            NamedUnit(unit.key, number=number, order=order, packed=json.dumps(encode(unit.arguments))),
            unit.size,
        )
        for order, unit in enumerate(units, first)
    ]


def _partial(planned: Asked, part: UnitPart) -> Any:
    return decode(planned.does.partial, json.loads(part.packed))


def _measured(planned: Asked, parts: Sequence[UnitPart]) -> MeasuredStudy:
    complaint = next((part.error for part in parts if part.error), "")
    if complaint:
        return MeasuredStudy(study=planned.study, says=f"left out: {complaint}")
    study = planned.does
    try:
        rows = study.summarize(planned.options, [_partial(planned, part) for part in parts])
    except AtlasError as error:
        return MeasuredStudy(study=planned.study, says=f"left out: {error}")
    headline = study.headline(rows)
    scores = sum({"statistic", "layer", "head", "value"} <= row.keys() for row in rows)
    return MeasuredStudy(
        study=planned.study,
        says=headline.sentence if headline else f"{len(rows)} rows",
        scores=scores,
        kept=[plain(row) for row in rows],
        provenance=where_from([part.provenance for part in parts]),
    )


# ---------------------------------------------------------------- what is missing for a checkpoint


def missing(
    checkpoint: str, task: str | None, *, measured: Set[str], class_set: str, data: str | None = None
) -> list[Asked]:
    """Return the studies, with options, that support a checkpoint and have neither stored nor bundled results for it.

    `task` is the task to use (None: SST-2), and `data` the folder of its examples (None: bundled samples).
    """
    names = [name for name in (*LOOKING, CLASSES, WHY, *EFFECTS) if name not in measured]
    if "disable" in measured and "operators" in names:
        names.remove("operators")
    planned = [_asked(name, checkpoint, task or TASK, class_set, data) for name in names]
    return [study for study in planned if study is not None]


def gives(study: str) -> str:
    """Return a short description of what a study measures about attention heads."""
    return GIVES.get(study) or find_study(study).gives


def _asked(name: str, checkpoint: str, task: str, class_set: str, data: str | None) -> Asked | None:
    study_options: dict[str, object] = {"checkpoint": checkpoint}
    try:
        if name in LOOKING:
            study_options |= {"tasks": [task]}
        elif name == WHY:
            study_options |= {"tasks": [task], "removal": 0, "single_heads": False}
        elif name == CLASSES:
            file = config.ANNOTATIONS / class_set / "classifier.safetensors"
            study_options = {"checkpoints": [checkpoint], "task": task, "limit": ROWS, "classifier": str(file),
                     "name": f"bundled, {class_set}", "class_set": class_set}  # fmt: skip
        elif name == "importance":
            study_options |= {"task": task, "limit": ROWS, "sweep": None}
        else:
            study_options |= {"task": task, "limit": FEWER, "operators": ["zero", "mean"]}
        study = find_study(name)
        study_options["data"] = data
        check_runnable(study, study_options)
        return Asked(name, json.dumps(as_json(study.read(study_options))))
    except AtlasError:
        return None


# ---------------------------------------------------------------- units of other studies as runs of their own


def said_of(provenance: Provenance) -> str:
    """Return the provenance of a unit of work as JSON text."""
    return json.dumps(plain({name: value for name, value in provenance.as_row().items() if value is not None}))


def where_from(units: Sequence[str]) -> dict[str, Any]:
    """Combine the provenance of units: fields that are equal, and the ID of every example once."""
    said = [json.loads(unit) for unit in units]
    about = {name: said[0][name] for name in SAID_ONCE if name in said[0]}
    ids = dict.fromkeys(row for one in said for row in one.get("row_ids") or ())
    return about | ({"row_ids": list(ids)} if ids else {})


def keep_as_run(
    db: Database, study: Study[Any, Any], options: Any, said: Mapping[str, Any], rows: Sequence[Row], *,
    scores: bool = True,
) -> str:  # fmt: skip
    """Store the rows of a study as a run, and return its ID. `scores` adds its head scores to the atlas."""
    given = as_json(options)
    run = record_run(db, study.name, given, provenance_of_run(given, said), title=study.title(options))
    store_rows(db, run, rows, scores=scores)
    return run
