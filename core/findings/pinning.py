"""Conversion of a stored run, maps of an input, or facts about a head to a finding."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from ..attention import AttentionMaps, Head
from ..config import command_line
from ..drawing.packing import Grid, pack
from ..drawing.page import MapsSource
from ..errors import AtlasError
from ..report.records import REPORT
from ..report.rendering.words import About, command_of
from ..store import findings, runs
from ..store.database import Database
from ..store.findings import Finding, Number
from ..store.rows import Row
from ..studies.contract import as_json, declared
from ..studies.hypotheses.records import JudgedHypothesis
from ..studies.imports import result_rows
from ..studies.lookup import find_study
from .figures import numbers_of, picture_of_map, pictures_of

MOST_MAPS = 600_000  # bytes of the maps of one finding, so that a page holds several


@dataclass(frozen=True)
class Remark:
    """The note, the title and the user name that are saved with a finding."""

    note: str
    title: str = ""
    annotator: str = ""


def pin_run(db: Database, run: str, note: str, *, annotator: str = "", title: str = "") -> str:
    """Save a stored run as a finding with a note, and return the finding ID. Raises StoreError for an unknown run."""
    return findings.pin(db, finding_of_run(db, run, note, annotator=annotator, title=title))


def finding_of_run(db: Database, run: str, note: str = "", *, annotator: str = "", title: str = "") -> Finding:
    """Convert a stored run and a note to a finding without saving it. Raises StoreError for an unknown run."""
    known, rows = runs.one_run(db, run), result_rows(db, run)
    return Finding(
        kind="run",
        title=title.strip() or str(known["title"]),
        note=note.strip(),
        about=about(known),
        command=command(known),
        numbers=numbers_of(known["study"], rows),
        pictures=pictures_of(known["study"], rows),
        run=run,
        checkpoint=known["checkpoint"],
        weights_hash=known["weights_hash"],
        annotator=annotator,
    )


def pin_maps(
    db: Database,
    grid: Grid,
    source: MapsSource,
    maps: AttentionMaps,
    remark: Remark,
) -> str:
    """Save the attention maps of one input as a finding with a note, and return the ID of the finding.

    `grid` has the maps as the page draws them, `source` the checkpoint, input and command, and `maps` those of the
    first stack, for the picture of the enlarged head. Raises InputError for maps of more than MOST_MAPS bytes;
    RightsError for a viewer.
    """
    head = str((grid.opened or {}).get("head") or grid.head)
    picture = (picture_of_map(maps, Head.parse(head)),) if head != "none" else ()
    return findings.pin(
        db,
        Finding(
            kind="maps",
            title=remark.title.strip() or f"Attention maps: {source.input[:120]}",
            note=remark.note.strip(),
            about=f"{source.checkpoint} · {maps.layers} x {maps.heads} heads · {len(maps)} tokens · n = 1 input",
            command=source.command,
            pictures=picture,
            maps=pack(grid, MOST_MAPS).text,
            checkpoint=source.checkpoint,
            weights_hash=source.weights_hash or None,
            annotator=remark.annotator,
        ),
    )


@dataclass(frozen=True)
class HeadFacts:
    """The description, scores and hypotheses of an attention head, for a finding about this head."""

    told: str
    scores: Sequence[Number]
    judged: Sequence[JudgedHypothesis]


def pin_head(db: Database, head: Head, source: MapsSource, facts: HeadFacts, remark: Remark) -> str:
    """Save facts about an attention head as a finding with a note, and return the ID of the finding."""
    tested = [
        Number(f"{one.sentence}: {criterion.state}", criterion.criterion, criterion.amount, criterion.low,
               criterion.high, criterion.adjusted, criterion.n)
        for one in facts.judged for criterion in one.criteria
    ]  # fmt: skip
    said = [facts.told, *(f"{one.sentence}: {one.verdict}." for one in facts.judged)]
    return findings.pin(
        db,
        Finding(
            kind="head",
            title=remark.title.strip() or f"{head} of {source.checkpoint}",
            note=remark.note.strip(),
            about=" ".join(said),
            command=source.command,
            numbers=(*facts.scores, *tested),
            checkpoint=source.checkpoint,
            weights_hash=source.weights_hash or None,
            annotator=remark.annotator,
        ),
    )


def command(run: Row) -> str:
    """Return the terminal command that reproduces a run, or "" if no command can reproduce it."""
    if run["study"] == REPORT:
        return command_of(About.of(run).options)
    try:
        study = find_study(run["study"])
        read = study.read(run["options"])
        if typed := study.typed(read):
            return command_line(*typed)
        options = as_json(read)
    except AtlasError:  # stored by an earlier version, or the study no longer exists
        return ""
    usual = {name: field.default for name, field in declared(study.options).items()}
    words = [
        f"--set={name}={json.dumps(value, ensure_ascii=False)}"
        for name, value in options.items()
        if json.dumps(value, default=str) != json.dumps(usual.get(name), default=str)
    ]
    return command_line("jobs", "start", run["study"], *words)


def about(run: Row) -> str:
    """Describe in one line how the numbers of a run were computed: study, options, examples, code version and date."""
    names = ("checkpoint", "task", "split", "operator", "dtype", "seed")
    said = [f"{name} {run[name]}" for name in names if run.get(name) is not None]
    rows = [f"{len(run['row_ids'])} rows"] if run.get("row_ids") else []
    made = f"code {run['code_version']} · {run['created']:%d %B %Y}"
    return " · ".join([f"study {run['study']}", *said, *rows, made])
