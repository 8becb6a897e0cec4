"""Which heads carry frame-semantic relations? (Kovaleva et al. 2019, section 4.2, Fig 3.)

For each head the mean over sentences of the largest weight between the pieces of a frame element and of its target;
then whether that is more than the head's habits: four permutation nulls (the place, and which word looks), an interval,
and a correction over heads.
"""

import base64
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from core import config
from core.attention import Head
from core.errors import InputError
from core.frames.filters import NO_FILTER, Filter, Selection, select
from core.frames.papers import read_list
from core.frames.records import AnnotatedSentence, Reading, Spans, links_of, words
from core.frames.rows import parse_rows, read_rows
from core.scoring import link_tests
from core.scoring.links import Links, PairScores, Placement, exchange_groups, fixed_scores, habits, pairs_of, shifted
from core.scoring.links import without_key as without
from core.scoring.queries import Looked, QueryResiduals
from core.studies.study import Options, Row, Study, Unit

BUNDLED = config.SAMPLES / "frames" / "sentences.jsonl"
SENTENCES_A_UNIT = 400  # so that most lengths have many sentences to exchange links with
HABITS = ("previous", "next", "first")
DEFAULTS: Options = {
    "checkpoint": config.ENCODER,
    "sentences": None,
    "rows": None,
    "direction": "element_to_target",
    "pairing": "product",
    "average": "sentences",
    "without_first": False,
    "filter": True,
    **asdict(Filter()),
    "draws": None,
    "seed": 0,
    "dtype": "float32",
    "device": "auto",
}


# ---------------------------------------------------------------- the sentences


def read(options: Options) -> Reading:
    """The sentences that the options name: JSON lines given as text, a file, or the bundled ones.

    A .json file is one of the papers' lists. Raises InputError.
    """
    if options["rows"]:
        return parse_rows(options["rows"])
    file = config.inside(options["sentences"] or BUNDLED)
    return read_list(file) if file.suffix == ".json" else read_rows(file)


def rules_of(options: Options) -> Filter:
    """The filter that the options name; without it only the rule for core elements stays."""
    named = {name: options[name] for name in asdict(Filter())}
    return Filter(**named) if options["filter"] else Filter(**(asdict(NO_FILTER) | {"core": options["core"]}))


def chosen(options: Options) -> tuple[Selection, Reading]:
    """The sentences that pass the filter. Raises InputError when none does."""
    reading = read(options)
    found = select(reading.sentences, rules_of(options))
    if not found.kept:
        reasons = ", ".join(f"{number} {reason}" for reason, number in found.dropped.items())
        raise InputError(
            f"At least one sentence must pass the filter; of {len(reading.sentences)} none does ({reasons}): relax it."
        )
    return found, reading


# ---------------------------------------------------------------- one sentence in pieces


@dataclass(frozen=True)
class Entry:
    """What is scored as one: the links of a sentence (or one link of it) as positions of its encoding."""

    input: int
    links: Links


def positions(encoding: Any, spans: Spans) -> tuple[int, ...]:
    """Pieces that share a character with any of the spans, in order. (The one way from spans to pieces.)"""
    return tuple(sorted({piece for start, end in spans for piece in encoding.pieces(start, end)}))


def links_in_pieces(encoding: Any, sentence: AnnotatedSentence, *, core: str = "core_sets") -> Links:
    """A sentence's links as positions; a link that was cut off with the end of the text is left out."""
    found = (
        (positions(encoding, one.element), positions(encoding, one.target)) for one in links_of(sentence, core=core)
    )
    return tuple((element, target) for element, target in found if element and target)


def entries_of(encodings: Sequence[Any], sentences: Sequence[AnnotatedSentence], options: Options) -> list[Entry]:
    """One entry a sentence, or one a link where the average is over links."""
    found = []
    for number, (encoding, sentence) in enumerate(zip(encodings, sentences, strict=True)):
        links = links_in_pieces(encoding, sentence, core=options["core"])
        parts = [(link,) for link in links] if options["average"] == "links" else [links]
        found += [Entry(number, part) for part in parts if part]
    return found


# ---------------------------------------------------------------- the study


def units(options: Options) -> list[Unit]:
    """Slices of the sentences that pass, similar lengths together."""
    _check(options)
    kept = chosen(options)[0].kept
    order = sorted(range(len(kept)), key=lambda k: (len(kept[k].text.split()), k))
    slices = [order[k : k + SENTENCES_A_UNIT] for k in range(0, len(order), SENTENCES_A_UNIT)]
    return [
        Unit(f"sentences-{number}", {"inputs": one}, size=sum(len(kept[k].text.split()) for k in one))
        for number, one in enumerate(slices)
    ]


def _check(options: Options) -> None:
    if options["average"] not in ("sentences", "links"):
        raise InputError(f'The average is over "sentences" or "links"; seen {options["average"]!r}: choose one.')
    if options["draws"] is not None and options["draws"] < 1:
        raise InputError(f"A null needs at least one draw; seen {options['draws']}: leave it empty for enough.")
    pairs_of((), direction=options["direction"], pairing=options["pairing"])


def run(options: Options, unit: Unit) -> list[Row]:
    """Rows of kind "sentence" (a score for each head) and one of kind "draws" (sums under the nulls)."""
    from core.models.opening import open_checkpoint

    checkpoint = open_checkpoint(options["checkpoint"], dtype=options["dtype"], device=options["device"])
    kept = chosen(options)[0].kept
    sentences = [kept[k] for k in unit.arguments["inputs"]]
    return [
        *score_sentences(checkpoint, sentences, options),
        {
            "provenance": {
                "weights_hash": checkpoint.weights_hash,
                "device": str(checkpoint.device),
                "row_ids": [one.id for one in sentences],
            }
        },
    ]


def score_sentences(checkpoint: Any, sentences: Sequence[AnnotatedSentence], options: Options) -> list[Row]:
    """One forward pass over the sentences; every place of every link is read as the maps go by."""
    from core.capture.running import run as run_model

    encodings = [checkpoint.encode(one.text) for one in sentences]
    how = {"direction": options["direction"], "pairing": options["pairing"], "causal": checkpoint.causal}
    entries = [one for one in entries_of(encodings, sentences, options) if pairs_of(one.links, **how)]
    if not entries:
        return []
    groups = exchange_groups([len(encodings[one.input]) for one in entries], seed=options["seed"])
    places = [shifted(one.links, encodings[one.input].ordinary) for one in entries]
    scores = PairScores(
        _placements(entries, places, groups, encodings, how), layers=checkpoint.layers, heads=checkpoint.heads
    )
    residuals = QueryResiduals(
        [Looked(one.input, pairs_of(one.links, **how), encodings[one.input].ordinary) for one in entries],
        layers=checkpoint.layers,
        heads=checkpoint.heads,
        longest=max(len(one) for one in encodings),
        causal=checkpoint.causal,
    )
    both = [scores, residuals]
    run_model(checkpoint, encodings, [_Sinkless(one) for one in both] if options["without_first"] else both)
    found = {key: value.reshape(-1) for key, value in scores.result().items()}
    draws = options["draws"] or link_tests.draws_needed(checkpoint.layers * checkpoint.heads)
    lengths = [len(encodings[one.input]) for one in entries]
    return [
        *(_sentence_row(sentences[one.input], one, found[one.input, (k, "place", 0)]) for k, one in enumerate(entries)),
        _draws_row(entries, places, groups, found, draws, options["seed"])
        | _query_draws(residuals, draws, options["seed"])
        | {
            "layers": checkpoint.layers,
            "heads": checkpoint.heads,
            "causal": checkpoint.causal,
            "fixed": _sums(
                [fixed_scores(one.links, length, **how) for one, length in zip(entries, lengths, strict=True)]
            ),
        },
    ]


class _Sinkless:
    """Hands maps on without the first position (the sink), rows renormalised."""

    def __init__(self, observer: PairScores | QueryResiduals) -> None:
        self._observer = observer

    def update(self, layer: int, weights: Any, inputs: list[int]) -> None:
        self._observer.update(layer, without(weights.float(), 0), inputs)


def _placements(
    entries: list[Entry],
    places: list[tuple[Links, ...]],
    groups: list[list[int]],
    encodings: Sequence[Any],
    how: Options,
) -> list[Placement]:
    """What to read for each entry: its links at every place, the links of its group, and its head's habits."""
    found = []
    for k, one in enumerate(entries):
        length = len(encodings[one.input])
        found += [Placement(one.input, (k, "place", j), pairs_of(at, **how)) for j, at in enumerate(places[k])]
        own = habits(pairs_of(one.links, **how), length, causal=how["causal"])
        found += [Placement(one.input, (k, "habit", name), pairs, average=True) for name, pairs in own.items()]
    for group in groups:
        found += [
            Placement(entries[i].input, (i, "donor", j), pairs_of(entries[j].links, **how))
            for i in group
            for j in group
        ]
    return found


def _sentence_row(sentence: AnnotatedSentence, entry: Entry, scores: np.ndarray) -> Row:
    links = links_of(sentence, core="any")
    return {
        "kind": "sentence",
        "id": sentence.id,
        "text": sentence.text,
        "frame": sentence.frame,
        "target": sentence.target_text,
        "elements": [words(sentence.text, one.element) for one in links],
        "before": sum(min(element) < min(target) for element, target in entry.links),
        "links": len(entry.links),
        "scores": [round(float(value), 6) for value in scores],
    }


def _draws_row(
    entries: list[Entry],
    places: list[tuple[Links, ...]],
    groups: list[list[int]],
    found: dict[Any, Any],
    draws: int,
    seed: int,
) -> Row:
    moved = [
        np.stack([found[one.input, (k, "place", j)] for j in range(len(places[k]))]) for k, one in enumerate(entries)
    ]
    exchanged = [
        np.stack([[found[entries[i].input, (i, "donor", j)] for j in group] for i in group]) for group in groups
    ]
    habit = {
        name: np.nansum([found[one.input, (k, "habit", name)] for k, one in enumerate(entries)], axis=0).tolist()
        for name in HABITS
    }
    return {
        "kind": "draws",
        "n": len(entries),
        "draws": draws,
        "habits": habit,
        "movable": sum(len(one) > 1 for one in places),
        "exchangeable": sum(len(one) for one in groups if len(one) > 1),
        "distance": packed(link_tests.place_draws(moved, draws, seed=seed)),
        "exchange": packed(link_tests.exchange_draws(exchanged, draws, seed=seed + 1)),
    }


def _query_draws(residuals: QueryResiduals, draws: int, seed: int) -> Row:
    """True sums and draws of the nulls on which word looks; comparable: inputs with another query."""
    row: Row = {"comparable": sum(len(one) > 1 for one in residuals.places)}
    for number, (name, kind) in enumerate((("query", "weight"), ("share", "share"))):
        places = residuals.result(kind)
        row[f"{name}_observed"] = np.sum([one[0] for one in places], axis=0).tolist()
        row[name] = packed(link_tests.place_draws(places, draws, seed=seed + 2 + number))
    return row


def packed(values: np.ndarray) -> str:
    """float32 as compressed base64, because rows are JSON."""
    return base64.b64encode(zlib.compress(values.astype("<f4").tobytes(), 1)).decode()


def unpacked(text: str, draws: int) -> np.ndarray:
    """Back to [draw, head]."""
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype="<f4").reshape(draws, -1).astype(np.float64)


def _sums(rows: list[dict[str, float]]) -> dict[str, float]:
    return {name: float(sum(row[name] for row in rows)) for name in rows[0]}


# ---------------------------------------------------------------- the verdict


def summarize(options: Options, rows: list[Row]) -> list[Row]:
    """One row of kind "summary", one "head" a head (best score first), one "sentence" a scored entry."""
    parts = [row for row in rows if row["kind"] == "draws"]
    sentences = [row for row in rows if row["kind"] == "sentence"]
    if not parts:
        raise InputError(
            "No link can be scored: in a decoder a query never sees a later key, so choose the direction "
            "later_to_earlier or target_to_element, or sentences with elements on the other side."
        )
    scores = np.array([row["scores"] for row in sentences])
    drawn = {
        name: np.sum([unpacked(part[name], part["draws"]) for part in parts], axis=0)
        for name in ("distance", "exchange", "query", "share")
    }
    query, share = (
        link_tests.Null(np.sum([part[f"{name}_observed"] for part in parts], axis=0), drawn[name])
        for name in ("query", "share")
    )
    test = link_tests.verdict(scores, drawn["distance"], drawn["exchange"], query, share)
    heads = _head_rows(test, parts, options)
    return [_summary(test, heads, parts, sentences, options), *sorted(heads, key=lambda row: -row["value"]), *sentences]


def _head_rows(test: link_tests.LinkTest, parts: list[Row], options: Options) -> list[Row]:
    width = parts[0]["heads"]
    line = float(np.quantile(test.score, 0.99))
    habit = {name: np.sum([part["habits"][name] for part in parts], axis=0) / test.n for name in HABITS}
    return [
        {
            "kind": "head",
            "statistic": "frames",
            "feature": options["direction"],
            "layer": k // width,
            "head": k % width,
            "name": str(Head(k // width, k % width)),
            "value": float(test.score[k]),
            "low": float(test.low[k]),
            "high": float(test.high[k]),
            "n": test.n,
            "baseline": float(test.distance[k]),
            "exchanged": float(test.exchange[k]),
            "p_distance": float(test.p_distance[k]),
            "p_exchange": float(test.p_exchange[k]),
            "p_query": float(test.p_query[k]),
            "p_share": float(test.p_share[k]),
            "p": float(max(test.p_distance[k], test.p_exchange[k], test.p_query[k], test.p_share[k])),
            "excess": float(test.excess[k]),
            "q": float(test.q[k]),
            "survives": bool(test.survives[k]),
            "q_places": float(test.q_places[k]),
            "beats_places": bool(test.beats_places[k]),
            "above_99": bool(test.score[k] >= line),
            **{f"to_{name}": float(habit[name][k]) for name in HABITS},
        }
        for k in range(len(test.score))
    ]


def _summary(
    test: link_tests.LinkTest, heads: list[Row], parts: list[Row], sentences: list[Row], options: Options
) -> Row:
    selection, reading = chosen(options)
    return {
        "kind": "summary",
        "checkpoint": options["checkpoint"],
        "direction": options["direction"],
        "pairing": options["pairing"],
        "n": test.n,
        "average": options["average"],
        "layers": parts[0]["layers"],
        "heads": parts[0]["heads"],
        "causal": parts[0]["causal"],
        "links": sum(row["links"] for row in sentences),
        "links_before": sum(row["before"] for row in sentences),
        "survivors": [row["name"] for row in heads if row["survives"]],
        "beat_places": [row["name"] for row in heads if row["beats_places"]],
        "line_99": float(np.quantile(test.score, 0.99)),
        "above_99": sum(row["above_99"] for row in heads),
        "draws": parts[0]["draws"],
        "movable": sum(part["movable"] for part in parts),
        "exchangeable": sum(part["exchangeable"] for part in parts),
        "comparable": sum(part["comparable"] for part in parts),
        "mean": float(test.score.mean()),
        "fixed": {name: sum(part["fixed"][name] for part in parts) / test.n for name in parts[0]["fixed"]},
        "read": len(reading.sentences),
        "kept": len(selection.kept),
        "dropped": selection.dropped,
        "skipped": len(reading.skipped),
    }


STUDY = Study("frame-heads", DEFAULTS, units, run, summarize)
"""Sentences with links -> heads."""
