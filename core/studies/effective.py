"""Raw and effective attention side by side (Brunner et al. 2020, section 3; their Figs 2 and 3).

Rows: one a head, token type and kind (raw, effective): the mean attention to the type with its 95% bootstrap interval
and n inputs; one a head with statistic "correlation": mean Pearson r of raw and effective weights; and one a length
(without a head) with statistic "correlation by length": mean r over inputs of about that length and all heads.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from core.scoring.definitions import TYPES
from core.studies import passes
from core.studies.features import estimate
from core.studies.study import Options, Row, Study, Unit

if TYPE_CHECKING:
    from core.models.checkpoint import Checkpoint
    from core.models.encoding import Encoding
    from core.studies.passes import Prepared

ROWS_A_UNIT = 32
BIN = 8  # lengths of 1 to 8, 9 to 16 ... pieces are shown together
PUNCTUATION = (".", ",")
KINDS = ("raw", "effective")
DEFAULTS: Options = passes.DEFAULTS | {"limit": 100, "compare": None}


def both_maps(checkpoint: "Checkpoint", encoding: "Encoding") -> tuple[np.ndarray, np.ndarray]:
    """Raw and effective weights [layer, head, query, key] of one input, float64."""
    from core.capture.values import maps_and_values
    from core.scoring.effective import effective_attention

    weights, values = maps_and_values(checkpoint, encoding)
    effective = np.empty_like(weights)
    for layer, head in np.ndindex(*weights.shape[:2]):
        effective[layer, head] = effective_attention(
            weights[layer, head], values[layer, head], causal=checkpoint.causal
        )
    return weights, effective


def token_types(encoding: "Encoding") -> dict[str, tuple[int, ...]]:
    """Positions of each of TYPES; they cover all positions once."""
    start = () if encoding.first is None else (encoding.first,)
    separators = tuple(k for k in encoding.separators if k not in start)
    points = tuple(
        k
        for k in encoding.ordinary
        if encoding.tokens[k].strip("Ġ▁# ") in PUNCTUATION and k not in (*start, *separators)
    )
    rest = tuple(k for k in range(len(encoding)) if k not in {*start, *separators, *points})
    return dict(zip(TYPES, (start, separators, points, rest), strict=True))


def units(options: Options) -> list[Unit]:
    """Smaller chunks than other studies': every head needs a singular value decomposition."""
    found = []
    for unit in passes.units(options):
        for start in range(unit.arguments["start"], unit.arguments["stop"], ROWS_A_UNIT):
            stop = min(start + ROWS_A_UNIT, unit.arguments["stop"])
            share = (stop - start) / (unit.arguments["stop"] - unit.arguments["start"])
            name = f"{unit.arguments['checkpoint']}|{unit.arguments['task']}|{start}"
            found.append(
                Unit(name, unit.arguments | {"start": start, "stop": stop}, size=max(1, int(unit.size * share)))
            )
    return found


def run(options: Options, unit: Unit) -> list[Row]:
    """The sums of one unit's inputs, which add up over units."""
    wanted = unit.arguments
    checkpoint = passes.opened(wanted["checkpoint"], options["dtype"])
    inputs = passes.sources(options, wanted["task"])[wanted["start"] : wanted["stop"]]
    measure = make(checkpoint, options)
    measure.measure(checkpoint, passes.prepare(checkpoint, None, inputs))
    facts = {"checkpoint": wanted["checkpoint"], "task": wanted["task"], "start": wanted["start"]}
    return [facts | {"packed": measure.packed()}, passes.provenance(checkpoint, [one.row_id for one in inputs])]


class EffectiveMeasure:
    """Means per head of attention to token types, raw and effective, and of r; and r by length."""

    def __init__(self, layers: int, heads: int):
        from core.scoring.intervals import Means

        self.means = Means(layers, heads, len(KINDS) * len(TYPES) + 1)
        self.by_length: dict[int, list[float]] = {}  # length: sum of r, inputs

    def add(self, number: int, raw: np.ndarray, effective: np.ndarray, encoding: "Encoding", *, causal: bool) -> None:
        """One input's maps [layer, head, query, key]."""
        from core.scoring.effective import correlation, mass_by_type

        types = token_types(encoding)
        counts = np.array([[float(bool(keys)) for keys in types.values()] * len(KINDS) + [1.0]])
        seen = np.full(raw.shape[:2], np.nan)
        for layer in range(len(raw)):
            rows = []
            for head in range(raw.shape[1]):
                one, other = raw[layer, head], effective[layer, head]
                seen[layer, head] = correlation(one, other, causal=causal)
                masses = [*mass_by_type(one, types).values(), *mass_by_type(other, types).values()]
                rows.append([*masses, seen[layer, head]])
            values = np.array([rows])
            defined = counts * ~np.isnan(values[:, 0])
            self.means.update(layer, values, defined, [number])
        if not np.isnan(seen).all():
            kept = self.by_length.setdefault(len(encoding), [0.0, 0.0])
            kept[0] += float(np.nanmean(seen))
            kept[1] += 1

    def measure(self, checkpoint: "Checkpoint", inputs: "Sequence[Prepared]") -> None:
        """All inputs, one after another."""
        for one in inputs:
            self.add(one.number, *both_maps(checkpoint, one.encoding), one.encoding, causal=checkpoint.causal)

    def merge(self, other: "EffectiveMeasure") -> None:
        self.means.merge(other.means)
        for length, (total, inputs) in other.by_length.items():
            kept = self.by_length.setdefault(length, [0.0, 0.0])
            kept[0] += total
            kept[1] += inputs

    def packed(self) -> Row:
        return {"means": self.means.packed(), "by_length": [[k, *v] for k, v in self.by_length.items()]}


def make(checkpoint: Any, options: Options) -> EffectiveMeasure:
    """The measure of one checkpoint."""
    return EffectiveMeasure(checkpoint.layers, checkpoint.heads)


def unpack(packed: Row) -> EffectiveMeasure:
    """What `EffectiveMeasure.packed` gave."""
    from core.scoring.intervals import Means

    means = Means.unpacked(packed["means"])
    found = EffectiveMeasure(*means.sums.shape[:2])
    found.means = means
    found.by_length = {int(length): [total, inputs] for length, total, inputs in packed["by_length"]}
    return found


def summarize(options: Options, rows: list[Row]) -> list[Row]:
    """Add the units up and turn them into rows: one a head and statistic, by checkpoint and task."""
    out = []
    for (checkpoint, task), measure in passes.merged(rows, unpack).items():
        out += rows_of(measure, {"checkpoint": checkpoint, "task": task})
    return out


def rows_of(measure: EffectiveMeasure, facts: Row) -> list[Row]:
    """Rows of every kind and token type, of r, and of r by length."""
    whole, rows = measure.means.result(), []
    names: list[tuple[str, Any]] = [(kind, kind_type) for kind in KINDS for kind_type in TYPES] + [
        ("correlation", None)
    ]
    for place, (kind, token_type) in enumerate(names):
        found, known = whole.part(place), facts | {"statistic": kind, "feature": token_type}
        if not found.n[0]:
            rows.append(known | {"n": 0, "note": "no input has such tokens"})
        else:
            rows += [known | estimate(found, *one) for one in np.ndindex(*found.value.shape[:2])]
    bins: dict[int, list[float]] = {}
    for length, (total, inputs) in sorted(measure.by_length.items()):
        kept = bins.setdefault((length - 1) // BIN * BIN + 1, [0.0, 0.0])
        kept[0], kept[1] = kept[0] + total, kept[1] + inputs
    for low, (total, inputs) in bins.items():
        known = facts | {"statistic": "correlation by length", "length_from": low, "length_to": low + BIN - 1}
        rows.append(known | {"mean": total / inputs, "n": int(inputs)})
    return rows


STUDY = Study("effective", DEFAULTS, units, run, summarize)
