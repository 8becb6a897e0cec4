"""Several studies of the heads of one checkpoint as one job. Each becomes a run, as if it had been started alone.

A study that does not support the checkpoint is left out with the reason, unless no study remains.
"""

import json
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

import pydantic.dataclasses

from ... import config
from ...errors import AtlasError, InputError
from ...store.database import Database
from ...store.rows import Row, plain
from ...store.runs import Provenance
from ..contract import Done, Finished, Flag, NamedUnit, Study, Unit, as_json
from ..headline import Headline
from ..lookup import find_study
from ..options import Checkpoint
from ..preflight import check_runnable
from ..records import Result, stated
from .joint_job import JointJob, Parts, UnitPart, joint_units, keep_as_run, run_member, where_from

# seconds for a row of the bundled classifier, 22.9 s for all units: 2 shared cores, 24 November 2026
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


@pydantic.dataclasses.dataclass(frozen=True)
class Asked:
    """A requested study in a joint job. `given` has its options as JSON. Other options have default values."""

    study: str
    given: str = "{}"

    @property
    def does(self) -> Study[Any, Any]:
        return find_study(self.study)

    @property
    def options(self) -> Any:
        return self.does.read(json.loads(self.given))


@pydantic.dataclasses.dataclass(frozen=True)
class MeasureHeadsOptions:
    """Options for a joint job that runs several studies on the heads of one checkpoint."""

    checkpoint: Checkpoint = "atlas-encoder"
    studies: Annotated[tuple[Asked, ...], Flag("studies to run in this job, each with its options")] = ()


@dataclass(frozen=True, kw_only=True)
class MeasuredStudy(Result):
    """The result of one study in a joint job: its summary and rows, or the reason why the study was not run."""

    KINDS: ClassVar[tuple[str, ...]] = ("measured",)
    study: str
    says: str
    scores: int = stated(0)
    kept: Sequence[Row] = stated(())
    provenance: Mapping[str, Any] = stated(None)


class MeasureHeadsStudy(JointJob[MeasureHeadsOptions]):
    """Run several studies of the heads of a checkpoint as one job. Each study is stored as its own run."""

    name, options = "measure-heads", MeasureHeadsOptions
    kinds = (MeasuredStudy,)

    def title(self, options: MeasureHeadsOptions) -> str:
        return f"{len(options.studies)} kinds of scores of the heads of {options.checkpoint}"

    def members(self, options: MeasureHeadsOptions) -> Sequence[Asked]:
        return options.studies

    def units(self, options: MeasureHeadsOptions) -> list[Unit]:
        divided: list[Unit] = []
        refused = None
        for number, planned in enumerate(options.studies):
            if planned.study in [other.study for other in options.studies[:number]]:
                raise InputError(
                    f"A job with several studies can contain each study only once; got {planned.study} twice. Start "
                    "another job for the other options of this study."
                )
            if planned.study == self.name:
                raise InputError(
                    f"The studies of a job must not include {self.name}, which runs them; got {self.name} in the list. "
                    "Remove it from the list."
                )
            try:
                units = planned.does.units(planned.options)
            except AtlasError as error:
                refused = refused or error
                continue
            divided += joint_units(planned.study, number, units)
        if refused and not divided:
            raise refused
        return divided

    def more(self, options: MeasureHeadsOptions, partials: Sequence[Parts]) -> list[Unit]:
        merged, added = self.merge(options, partials), []
        for number, planned in enumerate(options.studies):
            parts = merged.of(number)
            if not planned.does.in_rounds or not parts or any(part.error for part in parts):
                continue
            try:
                units = planned.does.more(planned.options, [part.partial(planned) for part in parts])
            except AtlasError:  # `results` names it
                continue
            added += joint_units(planned.study, number, units, parts[-1].order + 1)
        return added

    def run(self, options: MeasureHeadsOptions, unit: Unit) -> Done[Parts]:
        """Run one unit of work of one study. If the unit fails, its result is the error text."""
        piece: NamedUnit = unit.arguments
        try:
            part, provenance = run_member(options.studies[piece.number], unit)
        except AtlasError as error:
            return Done(Parts((UnitPart(piece.number, piece.order, error=str(error)),)))
        return Done(Parts((part,)), Provenance(weights_hash=provenance.weights_hash))

    def results(self, options: MeasureHeadsOptions, merged: Parts) -> list[MeasuredStudy]:
        results = [
            _measured(planned, parts) for number, planned in enumerate(options.studies) if (parts := merged.of(number))
        ]
        if not any(result.kept for result in results):
            raise InputError(results[0].says)
        return results

    def headline(self, rows: Sequence[Row]) -> Headline:
        measured = MeasuredStudy.among(rows)
        names = [result.study for result in measured if result.kept]
        scores = sum(result.scores for result in measured)
        return Headline(
            f"These studies were run: {', '.join(names)}. The result of each study is stored separately.",
            scores,
            "scores of heads",
        )

    def keep(self, db: Database, run: Finished[MeasureHeadsOptions, Parts]) -> None:
        planned = {study.study: study for study in run.options.studies}
        for result in MeasuredStudy.among(run.rows):
            if result.kept:
                one = planned[result.study]
                keep_as_run(db, one.does, one.options, result.provenance, result.kept)


STUDY = MeasureHeadsStudy()


def _measured(planned: Asked, parts: Sequence[UnitPart]) -> MeasuredStudy:
    complaint = next((part.error for part in parts if part.error), "")
    if complaint:
        return MeasuredStudy(study=planned.study, says=f"left out: {complaint}")
    study = planned.does
    try:
        rows = study.summarize(planned.options, [part.partial(planned) for part in parts])
    except AtlasError as error:
        return MeasuredStudy(study=planned.study, says=f"left out: {error}")
    headline = study.headline(rows)
    scores = sum({"statistic", "layer", "head", "value"} <= row.keys() for row in rows)
    return MeasuredStudy(
        study=planned.study,
        says=headline.sentence if headline else f"{len(rows)} rows",
        scores=scores,
        kept=[plain(row) for row in rows],
        provenance=where_from(parts),
    )


# ---------------------------------------------------------------- what is missing for a checkpoint


def missing(
    checkpoint: str, task: str | None, *, measured: Set[str], class_set: str, data: str | None = None
) -> list[Asked]:
    """List the studies that can run on a checkpoint but have no results for it yet, together with their options."""
    names = [name for name in (*LOOKING, CLASSES, WHY, *EFFECTS) if name not in measured]
    if "disable" in measured and "operators" in names:
        names.remove("operators")
    planned = [_asked(name, checkpoint, task or TASK, class_set, data) for name in names]
    return [study for study in planned if study is not None]


def gives(study: str) -> str:
    """Describe briefly what a study measures about attention heads."""
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
