"""Several studies as one job: units of work of each study, and their partial results, kept apart as JSON."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Protocol, TypeVar

from ...store.database import Database
from ...store.rows import Row, plain
from ...store.runs import Provenance, record_run, store_rows
from ..contract import NamedUnit, Study, Unit, as_json, provenance_of_run
from ..merging import SortedBy
from ..transport import decode, encode

O = TypeVar("O")  # noqa: E741 - the options' type
SAID_ONCE = ("weights_hash", "device", "dtype", "split", "task", "seed")  # of a run: the same in all of its units


class Member(Protocol):
    """A study in a joint job, with its options."""

    @property
    def does(self) -> Study[Any, Any]: ...

    @property
    def options(self) -> Any: ...


@dataclass(frozen=True)
class UnitPart:
    """The result (JSON) and provenance of one work unit in a joint job, or the error message of this unit."""

    number: int
    order: int
    packed: str = ""
    provenance: str = "{}"
    error: str = ""

    def partial(self, member: Member) -> Any:
        return decode(member.does.partial, json.loads(self.packed))


@dataclass(frozen=True)
class Parts:
    """The results of all work units in a job that runs several studies."""

    parts: Annotated[tuple[UnitPart, ...], SortedBy("number", "order")]

    def of(self, number: int) -> list[UnitPart]:
        return [part for part in self.parts if part.number == number]


class JointJob(Study[O, Parts]):
    """Base class of studies that run several other studies as one job."""

    partial, arguments = Parts, NamedUnit
    typed_after = None

    def members(self, options: O) -> Sequence[Member]:
        """Return the studies that the joint job runs."""
        raise NotImplementedError

    def paths(self, options: O) -> Iterator[tuple[str, bool]]:
        for member in self.members(options):
            yield from member.does.paths(member.options)


def joint_units(name: str, number: int, units: Sequence[Unit], first: int = 0) -> list[Unit]:
    """Convert the work units of one study to work units of a job that runs several studies."""
    return [
        Unit(
            f"{name} {unit.key}",
            NamedUnit(unit.key, number=number, order=order, packed=json.dumps(encode(unit.arguments))),
            unit.size,
        )
        for order, unit in enumerate(units, first)
    ]


def run_member(member: Member, unit: Unit) -> tuple[UnitPart, Provenance]:
    """Run one unit of work of a study in a job that runs several studies. Return the result and its provenance."""
    piece: NamedUnit = unit.arguments
    own = Unit(piece.name, decode(member.does.arguments, json.loads(piece.packed)), unit.size)
    done = member.does.run(member.options, own)
    about = {name: value for name, value in done.provenance.as_row().items() if value is not None}
    packed = json.dumps(encode(done.partial))
    return UnitPart(piece.number, piece.order, packed, json.dumps(plain(about))), done.provenance


# ---------------------------------------------------------------- members as runs of their own


def where_from(parts: Sequence[UnitPart]) -> dict[str, Any]:
    """Merge the provenance of work units: each example ID once, and the fields in SAID_ONCE from the first unit."""
    said = [json.loads(part.provenance) for part in parts]
    about = {name: said[0][name] for name in SAID_ONCE if name in said[0]}
    ids = dict.fromkeys(row for one in said for row in one.get("row_ids") or ())
    return about | ({"row_ids": list(ids)} if ids else {})


def keep_as_run(
    db: Database, study: Study[Any, Any], options: Any, said: Mapping[str, Any], rows: Sequence[Row], *,
    scores: bool = True,
) -> str:  # fmt: skip
    """Store the rows of a study as a run, with its head scores if `scores` is True, and return the ID of the run."""
    given = as_json(options)
    run = record_run(db, study.name, given, provenance_of_run(given, said), title=study.title(options))
    store_rows(db, run, rows, scores=scores)
    return run
