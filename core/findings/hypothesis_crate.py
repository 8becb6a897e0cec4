"""All hypotheses about a checkpoint as an RO-Crate that another machine can read and verify.

The crate has `hypotheses.json` (what was registered, when, by whom, on which examples, which runs of these weights
existed before, and the result of each criterion), one file of examples for each selection, each example with the hash
of its texts, and `ro-crate-metadata.json`, which describes the files, their hashes, the code version and the licence
(https://w3id.org/ro/crate). `hypotheses.json` ends in a hash of its content and of the files of examples.
"""

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from .. import __version__
from ..errors import InputError
from ..jobs import worker
from ..reading import lines_of, read_text
from ..scoring.corrections import CONTROLLED, batch_level
from ..store.database import Database
from ..store.hypotheses import StoredBatch, StoredHypothesis, batches, ever_registered, hypotheses
from ..store.rows import plain
from ..studies.contract import as_json
from ..studies.hypotheses.hypothesis import STUDY, HypothesisOptions, RowChoice, mark_of
from ..studies.hypotheses.predicates import Hypothesis, checked
from ..studies.hypotheses.records import Criterion
from ..studies.hypotheses.registering import hypothesis_of
from ..tasks.glue import TaskRow

FORMAT, VERSION = "attention-atlas/hypotheses", 2
CONTENT = "content_sha256"
DESCRIPTION = "What was said of attention heads before it was tested, and which criteria it met."
FILE, METADATA = "hypotheses.json", "ro-crate-metadata.json"
LICENCE = "https://spdx.org/licenses/MIT"
TOLERANCE = 1e-4
LARGEST = 64 * 2**20  # bytes of a file of a crate
NUMBERS = ("amount", "low", "high", "least", "baseline", "p", "adjusted", "level")
WORDS = ("subject", "sentence", "measure", "n", "measured_by", "note")
MARKUP = re.compile(r"<\s*/?\s*[a-zA-Z!]|javascript:", re.IGNORECASE)


@dataclass(frozen=True)
class CrateMismatch:
    """A value in an exported RO-Crate that differs from the recomputed value."""

    what: str
    then: str
    now: str


def export(db: Database, checkpoint: str, folder: Path) -> Path:
    """Export all registered hypotheses about a checkpoint, with their test results, to a folder as an RO-Crate.

    An RO-Crate in the folder is overwritten. Raises InputError if no hypothesis about the checkpoint is registered, or
    the folder has other content.
    """
    mine = [batch for batch in batches(db) if batch.checkpoint == checkpoint]
    if not mine:
        raise InputError(f"No hypothesis about {checkpoint[:80]} has been registered. Register one first.")
    if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not (folder / METADATA).is_file())):
        raise InputError(
            f"The folder of an RO-Crate must be new, empty or an RO-Crate; {folder.name} is none of these. "
            "Choose another folder."
        )
    every = hypotheses(db)
    chosen = [
        RegisteredBatch(
            batch, [one for one in every if one.batch == batch.batch], ever_registered(db, batch.weights_hash)
        )
        for batch in mine
    ]
    return write(chosen, checkpoint, folder)


@dataclass(frozen=True)
class RegisteredBatch:
    """A batch of hypotheses that were registered together. `ever` counts all hypotheses about the same model
    weights."""

    batch: StoredBatch
    members: Sequence[StoredHypothesis]
    ever: int


def write(chosen: Sequence[RegisteredBatch], checkpoint: str, folder: Path) -> Path:
    """Write batches of registered hypotheses to a folder as an RO-Crate, and return the folder."""
    from rocrate.model.contextentity import ContextEntity  # 0.5 s at start
    from rocrate.rocrate import ROCrate  # as above

    crate = ROCrate()
    crate.name = f"Hypotheses about heads of {checkpoint}"
    crate.description = DESCRIPTION
    crate.root_dataset["license"] = crate.add(
        ContextEntity(crate, LICENCE, properties={"@type": "CreativeWork", "name": "MIT License"})
    )
    crate.root_dataset["softwareVersion"] = __version__
    with tempfile.TemporaryDirectory() as made:
        for name, text in _files(chosen, checkpoint).items():
            file = Path(made) / name.replace("/", "-")
            file.write_text(text, encoding="utf-8")
            properties = {
                "encodingFormat": "application/json" if name == FILE else "application/jsonl",
                "sha256": _hash(text),
                "contentSize": str(len(text.encode())),
            }
            crate.add_file(file, dest_path=name, properties=properties)
        crate.write(folder)
    return folder


def _files(chosen: Sequence[RegisteredBatch], checkpoint: str) -> dict[str, str]:
    """Return the text of each file that the program writes into an RO-Crate, by file name."""
    rows: dict[str, str] = {}
    body = []
    for registered in chosen:
        batch, members = registered.batch, registered.members
        places = {}
        for name, choice in (("thought", RowChoice(**batch.thought)), ("judged", RowChoice(**batch.judged))):
            text = "".join(
                json.dumps({**asdict(row), "sha256": mark_of(row)}, ensure_ascii=False) + "\n" for row in choice.rows()
            )
            places[name] = f"rows/{_hash(text)[:16]}.jsonl"
            rows[places[name]] = text
        fields = {
            name: getattr(batch, name)
            for name in ("batch", "weights_hash", "thought", "judged", "number", "level", "runs", "annotator", "stored")
        }
        fields["hypotheses_ever_registered_on_these_weights"] = registered.ever
        fields["stored"] = batch.stored.isoformat() if batch.stored else None
        members_said = [_said(member) for member in members]
        body.append({**fields, "rows": places, "hypotheses": members_said})
    whole = plain({"format": FORMAT, "version": VERSION, "checkpoint": checkpoint, "code_version": __version__,
                   "controlled": CONTROLLED, "batches": body})  # fmt: skip
    whole[CONTENT] = content_hash(whole, {name: _hash(text) for name, text in rows.items()})
    return {FILE: json.dumps(whole, ensure_ascii=False, indent=1) + "\n", **rows}


def content_hash(body: Mapping[str, Any], files: Mapping[str, str]) -> str:
    """Compute a SHA-256 hash of the JSON content of an RO-Crate and of its example files."""
    told = {name: value for name, value in body.items() if name != CONTENT}
    return _hash(json.dumps([told, dict(files)], sort_keys=True, separators=(",", ":"), ensure_ascii=False))


def _said(one: StoredHypothesis) -> dict[str, Any]:
    return {
        "hypothesis": one.hypothesis, "layer": one.layer, "head": one.head, "predicate": one.predicate,
        "parameters": dict(one.parameters), "sentence": hypothesis_of(one).sentence,
        "withdrawn": one.withdrawn.isoformat() if one.withdrawn else None, "run": one.run, "imported": one.imported,
        "criteria": list(one.criteria),
    }  # fmt: skip


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


# ---------------------------------------------------------------- reading back


@dataclass(frozen=True)
class CrateBatch:
    """The tested hypotheses of a batch, with the examples and the results, read from an RO-Crate."""

    options: HypothesisOptions
    rows: Mapping[str, tuple[tuple[TaskRow, str], ...]]
    criteria: tuple[Criterion, ...]


def read(folder: Path) -> list[CrateBatch]:
    """Read the batches of hypotheses in an RO-Crate. Raises InputError if the RO-Crate is invalid or unsafe."""
    metadata = _json(_inside(folder, METADATA))
    graph = metadata.get("@graph") if isinstance(metadata, dict) else None
    if not isinstance(graph, list):
        raise InputError(
            f'The {METADATA} of an RO-Crate must have a list "@graph"; the {METADATA} of {folder.name} has none. '
            "Choose another RO-Crate."
        )
    for entity in graph:
        _check_entity(folder, entity)
    body = _json(_inside(folder, FILE))
    if not isinstance(body, dict) or body.get("format") != FORMAT:
        raise InputError(
            f"The {FILE} of an RO-Crate with hypotheses must have the format {FORMAT}; {folder.name} has another "
            "format. Choose another RO-Crate."
        )
    if body.get("version") not in (1, VERSION):  # the first version has no hash of its content
        raise InputError(
            f"An RO-Crate must have version 1 or {VERSION}, which this program reads; {folder.name} has version "
            f"{str(body.get('version'))[:20]!r}. Update the program, or export the RO-Crate again."
        )
    _check_text(body, folder)
    try:
        return [_batch(folder, body["checkpoint"], batch) for batch in body["batches"]]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"{FILE} in {folder.name} must contain complete hypotheses, but it could not be read ({error}). "
            "Export the RO-Crate again."
        ) from error


def altered_parts(folder: Path) -> list[CrateMismatch]:
    """Find metadata and files of an RO-Crate that changed after its export. Raises InputError for unreadable crates."""
    read(folder)
    metadata, body = _json(folder / METADATA), _json(folder / FILE)
    try:
        return _altered_parts(folder, metadata, body)
    except (KeyError, TypeError, ValueError) as error:
        return [CrateMismatch("what the crate says of itself", str(error)[:80], "not there")]


def _altered_parts(folder: Path, metadata: Mapping[str, Any], body: Mapping[str, Any]) -> list[CrateMismatch]:
    places = {name for batch in body["batches"] for name in batch["rows"].values()}
    files = {name: _hash(read_text(_inside(folder, name), most=LARGEST)) for name in places}
    entities = {entity["@id"]: entity for entity in metadata["@graph"]}
    root = entities["./"]
    said = {
        "its hash": (body[CONTENT], content_hash(body, files)),
        "its name": (root["name"], f"Hypotheses about heads of {body['checkpoint']}"),
        "its description": (root["description"], DESCRIPTION),
        "its licence": (root["license"], {"@id": LICENCE}),
        "its version": (root["softwareVersion"], body["code_version"]),
        f"the hash of {FILE}": (entities[FILE]["sha256"], _hash(read_text(_inside(folder, FILE), most=LARGEST))),
        "what is controlled": (body["controlled"], CONTROLLED),
    }
    said |= {f"the hash of {name}": (entities[name]["sha256"], made) for name, made in files.items()}
    for member in (member for batch in body["batches"] for member in batch["hypotheses"]):
        about = Hypothesis("", int(member["layer"]), int(member["head"]), member["predicate"],
                           tuple(member["parameters"].items()))  # fmt: skip
        said[f"the sentence of {member['hypothesis']}"] = (member["sentence"], about.sentence)
    for batch in body["batches"]:
        said[f"the level of {batch['batch']}"] = (batch["level"], batch_level(int(batch["number"])))
    return [CrateMismatch(name, str(then)[:80], str(now)[:80]) for name, (then, now) in said.items() if then != now]


def _check_entity(folder: Path, entity: Any) -> None:
    if not isinstance(entity, dict) or not isinstance(entity.get("@id"), str):
        raise InputError(
            f"Every entity of an RO-Crate must have an @id; an entity of {folder.name} has none. Export the "
            "RO-Crate again."
        )
    _check_text(entity, folder)
    kinds = entity.get("@type", "")
    if "File" in (kinds if isinstance(kinds, list) else [kinds]):
        _inside(folder, entity["@id"])


def _check_text(value: Any, folder: Path) -> None:
    """Refuse markup in every text except those of rows, because the texts that describe rows are shown on pages."""
    if isinstance(value, dict):
        for item in value.values():
            _check_text(item, folder)
    elif isinstance(value, list):
        for item in value:
            _check_text(item, folder)
    elif isinstance(value, str) and MARKUP.search(value):
        raise InputError(
            f"Names and notes in an RO-Crate must be plain text; {folder.name} has markup in {value[:60]!r}. "
            "Remove the markup, or export the RO-Crate again."
        )


def _inside(folder: Path, name: str) -> Path:
    path = PurePosixPath(name)
    file = folder / name
    parts_fit = not path.is_absolute() and ".." not in path.parts and "\\" not in name and "\x00" not in name
    if not parts_fit or not os.path.realpath(file).startswith(os.path.realpath(folder) + os.sep):
        raise InputError(
            f"The files of an RO-Crate must be in its folder; {name[:80]!r} is not in {folder.name}. Export the "
            "RO-Crate again."
        )
    if not file.is_file():
        raise InputError(
            f"An RO-Crate of hypotheses must contain the file {name[:80]}; {folder.name} does not contain it. Choose "
            "another RO-Crate."
        )
    if file.stat().st_size > LARGEST:
        raise InputError(
            f"A file of an RO-Crate must not be larger than {LARGEST // 2**20} MiB; {name[:80]} is larger. Choose "
            "another RO-Crate."
        )
    return file


def _json(file: Path) -> Any:
    try:
        return json.loads(read_text(file, most=LARGEST))
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{file.name} must be JSON in UTF-8; it cannot be parsed. Export the RO-Crate again."
        ) from error


def _batch(folder: Path, checkpoint: str, batch: Mapping[str, Any]) -> CrateBatch:
    members = batch["hypotheses"]
    standing = tuple(
        Hypothesis(member["hypothesis"], int(member["layer"]), int(member["head"]), member["predicate"],
                   checked(member["predicate"], {name: value for name, value in member["parameters"].items() if value}))
        for member in members
        if member["criteria"]
    )  # fmt: skip
    options = HypothesisOptions(
        checkpoint=checkpoint, hypotheses=standing, thought=RowChoice(**batch["thought"]),
        judged=RowChoice(**batch["judged"]), batch=batch["batch"], level=batch["level"], registered=len(members),
        weights=batch["weights_hash"], seen=sum(run["inputs"] > 0 for run in batch.get("runs", ())),
    )  # fmt: skip
    rows = {name: _rows(_inside(folder, batch["rows"][name])) for name in ("thought", "judged")}
    criteria = tuple(Criterion.of(row) for member in members for row in member["criteria"])
    return CrateBatch(options, rows, criteria)


def _rows(file: Path) -> tuple[tuple[TaskRow, str], ...]:
    rows = []
    for line in lines_of(read_text(file, most=LARGEST)):
        row = json.loads(line)
        mark = row.pop("sha256")
        rows.append((TaskRow(**row), mark))
    return tuple(rows)


# ---------------------------------------------------------------- running it again


def crates(folder: Path) -> list[Path]:
    """Return `folder` if it is an RO-Crate, otherwise its subfolders that are RO-Crates. Raises InputError if there are
    none."""
    if (folder / METADATA).is_file():
        return [folder]
    found = sorted(file.parent for file in folder.glob(f"*/{METADATA}")) if folder.is_dir() else []
    if not found:
        raise InputError(
            f"An RO-Crate must be a folder with {METADATA}; {folder.name} has no such file. Choose another folder."
        )
    return found


def altered_rows(batch: CrateBatch) -> list[CrateMismatch]:
    """Find examples of a batch that do not match their stored hash or the same examples on this machine."""
    found = []
    for name, rows in batch.rows.items():
        choice: RowChoice = getattr(batch.options, name)
        here = {row.id: row for row in choice.rows()}
        for row, mark in rows:
            if mark_of(row) != mark:
                found.append(CrateMismatch(f"row {row.id} of {choice}", mark, mark_of(row)))
            elif row.id not in here or mark_of(here[row.id]) != mark:
                now = mark_of(here[row.id]) if row.id in here else "not there"
                found.append(CrateMismatch(f"row {row.id} of {choice} on this machine", mark, now))
        missing = sorted(set(here) - {row.id for row, _ in rows})
        found += [
            CrateMismatch(f"row {row_id} of {choice}", "not in the crate", "on this machine") for row_id in missing
        ]
    return found


def verify(folder: Path) -> tuple[int, list[CrateMismatch]]:
    """Recompute the criteria of all hypotheses in an RO-Crate. Returns the number of criteria and all mismatches.

    If examples differ, nothing is recomputed. Raises InputError if the folder is not a valid crate, or the weights on
    this machine differ.
    """
    every = read(folder)
    found = [difference for batch in every for difference in altered_rows(batch)]
    if found:
        return 0, found
    found = altered_parts(folder)
    compared = 0
    if not any(batch.criteria for batch in every):
        return 0, [*found, CrateMismatch("criteria", "at least one", "none")]
    for batch in (batch for batch in every if batch.criteria):
        now = {(c.hypothesis, c.criterion): c for c in Criterion.among(computed(batch.options))}
        compared += len(batch.criteria)
        found += [
            difference
            for then in batch.criteria
            for difference in _compared(then, now.get((then.hypothesis, then.criterion)))
        ]
    return compared, found


def computed(options: HypothesisOptions) -> list[dict[str, Any]]:
    """Compute the test results of a batch of hypotheses in this process, and return the result rows."""
    divided = worker.divide(STUDY.name, as_json(options))
    rows = [row for unit in divided["units"] for row in worker.run_unit(STUDY.name, divided["options"], unit)["rows"]]
    return list(worker.summarize(STUDY.name, divided["options"], rows)["rows"])


def _compared(then: Criterion, now: Criterion | None) -> list[CrateMismatch]:
    what = f"{then.hypothesis} ({then.subject}), {then.criterion}"
    if now is None:
        return [CrateMismatch(what, then.state, "not there")]
    if then.state != now.state:
        return [CrateMismatch(what, then.state, now.state)]
    pairs = {name: (getattr(then, name), getattr(now, name)) for name in (*NUMBERS, *WORDS)}
    return [
        CrateMismatch(f"{what}, {name}", str(a), str(b))
        for name, (a, b) in pairs.items()
        if not (_same(a, b) if name in NUMBERS else a == b)
    ]


def _same(first: float | None, second: float | None) -> bool:
    if first is None or second is None:
        return first is second
    return abs(first - second) <= TOLERANCE
