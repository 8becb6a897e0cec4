"""A circuit as a graph of NetworkX and as a frame, from the rows of `study circuit`."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import networkx as nx
import pandas as pd

from ..errors import InputError
from ..studies.circuits.records import CircuitEdge

Rows = Sequence[Mapping[str, Any]]


def circuit_edges(rows: Rows | str | Path) -> pd.DataFrame:
    """Every edge of a circuit, strongest first, a row each; `circuit_edges("circuit.json").to_parquet(...)` keeps them.

    Args:
        rows: of `study circuit`, or the file that its `--json` was written to.

    Raises:
        InputError: where there is no edge among them.
    """
    edges = sorted(CircuitEdge.among(_rows(rows)), key=lambda edge: edge.rank)
    if not edges:
        raise InputError("A circuit is read from the rows of `study circuit --json`; there is no edge among these.")
    return pd.DataFrame(edges)


def circuit_graph(rows: Rows | str | Path, *, most: int | None = None, verdict: str | None = None) -> nx.MultiDiGraph:
    """A circuit as a directed graph: a node a component, an edge a way from one to another.

    Args:
        rows: as of `circuit_edges`.
        verdict: only those with this one, as "matters".

    Returns:
        The graph. An edge is keyed by the input it feeds ("q", "k", "v", or "" of blocks and the output) and has all
        columns of its row.
    """
    frame = circuit_edges(rows)
    frame = frame if verdict is None else frame[frame["verdict"] == verdict]
    graph = nx.MultiDiGraph()
    for edge in frame.head(most if most is not None else len(frame)).to_dict("records"):
        graph.add_edge(edge["sender"], edge["receiver"], key=edge["input"], **edge)
    return graph


def _rows(rows: Rows | str | Path) -> Rows:
    if not isinstance(rows, str | Path):
        return rows
    try:
        return json.loads(Path(rows).expanduser().read_text(encoding="utf-8"))["rows"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"A circuit is read from what `study circuit --json` printed; {rows} is no such file."
        ) from error
