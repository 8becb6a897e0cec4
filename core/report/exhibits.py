"""Figures and tables of the sources that a report compares with, declared in exhibits.toml in their order.

Published numbers are in `published_values`, measured numbers in `measures`, and claims in `claims`.
"""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .ids import ExhibitId, Part


@dataclass(frozen=True)
class Exhibit:
    """A figure or table in a source that the report compares with measured numbers."""

    id: ExhibitId
    title: str
    source: str
    section: str
    parts: tuple[Part, ...]
    chart: str
    measured: str
    quantity: str = ""
    errors: Sequence[str] = ()
    causal: Sequence[bool] = (False, True)


@cache
def exhibits() -> tuple[Exhibit, ...]:
    """Return all figures and tables that the report reproduces, in the order of the report."""
    declared = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["exhibit"]
    return tuple(
        Exhibit(
            **exhibit_table | {"id": ExhibitId(exhibit_table["id"]), "parts": tuple(map(Part, exhibit_table["parts"]))}
        )
        for exhibit_table in declared
    )
