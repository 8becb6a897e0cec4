"""Texts that all formats of a report share: names, the command, the numbers of a claim."""

import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any

from ...config import command_line
from ...studies.records import record_of
from ...studies.stored_runs import TitledRun
from ..plan import ReportOptions
from ..records import ClaimRecord

FLAGS = {"tasks": "--task", "parts": "--part"}  # flags that are repeated for each value of an option


@dataclass(frozen=True)
class About:
    """The title, time and options of a stored report."""

    title: str
    created: datetime
    options: ReportOptions

    @classmethod
    def of(cls, run: Mapping[str, Any]) -> "About":
        names = {option.name for option in fields(ReportOptions)}
        titled_run = record_of(TitledRun, run)
        options = {name: value for name, value in titled_run.options.items() if name in names}
        return cls(titled_run.title, titled_run.created, ReportOptions(**options))

    @property
    def day(self) -> str:
        return f"{self.created:%d %B %Y}"


def short(name: str) -> str:
    """Return the last part of a checkpoint name, without folders or organisation."""
    return Path(name).name


def numbers_of(claim: ClaimRecord) -> str:
    """State what was measured for a claim, with its margin and number of seeds. If the claim is undecided, also state
    how many examples or seeds are needed."""
    parts = [f"{claim.said.removesuffix('.')}."]
    if claim.margin:
        parts.append(f"The margin is {claim.margin:g}.")
    if claim.seeds == 1:
        parts.append("With one seed of fine-tuning, the interval does not include the variation between seeds.")
    elif claim.seeds:
        parts.append(f"The result covers {claim.seeds} seeds of fine-tuning.")
    if claim.needed or claim.needed_seeds:
        parts.append(f"To decide the claim, {needed_of(claim)} would be needed.")
    return " ".join(parts)


def needed_of(claim: ClaimRecord) -> str:
    """State how many examples or fine-tuning seeds are needed to decide an undecided claim. Return "" if this is
    unknown."""
    rows = needed_rows(claim.needed) if claim.needed else ""
    seeds = f"{claim.needed_seeds} seeds of fine-tuning" if claim.needed_seeds else ""
    return " and ".join(filter(None, (rows, seeds)))


def needed_rows(needed: int) -> str:
    """Format a number of examples, rounded to two significant digits, such as "about 2,600 examples"."""
    return f"about {int(float(f'{needed:.2g}')):,} examples"


def command_of(options: ReportOptions) -> str:
    """Return the terminal command that produces a report with these options."""
    default = asdict(ReportOptions())
    words = [command_line("reproduce"), *map(shlex.quote, options.checkpoints)]
    for name, value in asdict(options).items():
        if name == "checkpoints" or value == default[name]:
            continue
        if value is True:
            words.append(f"--{name}")
            continue
        several = value if isinstance(value, list) else [0 if value is None else value]
        flag = FLAGS.get(name, f"--{name.replace('_', '-')}")
        words += [f"{flag} {shlex.quote(str(word))}" for word in several]
    return " ".join(words)
