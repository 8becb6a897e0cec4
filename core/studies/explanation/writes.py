"""What heads write: the tokens that attention to a token makes more and less likely.

From weights, for a sample of tokens: the mean rank of a token in its own row of E W_V W_O U ("copying", 0 to 1;
baseline: rows paired with other tokens; q over heads). For pairs of related words: the share of pairs whose target is
among the TOP tokens that the source promotes ("relation"; p: targets permuted, largest share of all heads). On text:
what each head adds to the logits at one position of an example from the token that it attends to most there. Encoders
with a prediction head are read at a masked token by the derivative of that head. `agreement` is the cosine similarity
with the effect of removing the contribution. `core.capture.writes` has the definitions (Elhage et al. 2021; Elhelo and
Geva 2025, arXiv 2412.11965).
"""

import csv
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Annotated, Any, ClassVar

import numpy as np
import pydantic.dataclasses
from jaxtyping import Bool, Float

from ... import capture, config, studies
from ...attention import all_heads
from ...errors import InputError
from ...reading import lines_of, read_text
from ...scoring.corrections import q_values
from ...scoring.few_inputs import mean_interval
from ...scoring.registry import HeadScore
from ...store.rows import Row
from ...tasks.glue import TaskRow, task_of
from ..attention.records import Score
from ..contract import Done, ExampleUnit, Flag, Study, Unit, provenance
from ..headline import Fact, Headline, HeadScores, each, head_interval
from ..merging import OfFirst, Positions
from ..options import InputOptions, Limit, inputs_of_task
from ..records import Figure, Result

ELHAGE = "Elhage et al. 2021"
COPYING, RELATION = "copying", "relation"
TOP = 10  # promoted tokens
TOKENS, PERMUTATIONS = 300, 999  # of the copying score; of both nulls
LEAST_PAIRS = 5
ROWS_A_UNIT = 64
SOURCES, LISTED = 3, 5  # source tokens of a head, and the tokens that are listed of each
LEVEL = 0.05
READS = {  # what turns hidden states into logits
    "language-model head": "the language-model head, exactly",
    "prediction head": "the derivative of the masked-language-model head",
    "embedding matrix": "the embedding matrix, because the checkpoint has no language-model head",
}
PAIRS = config.DATA / "relations" / "word-pairs.csv"
COLUMNS = ("relation", "source", "target")
LARGEST_FILE = 1 << 20  # bytes


@pydantic.dataclasses.dataclass(frozen=True)
class WritesOptions(InputOptions):
    """Options for the study of what heads write: the checkpoint, the examples, and the pairs of words."""

    limit: Limit = 60
    pairs_file: Annotated[
        str | None,
        Flag("CSV file with the columns relation, source and target (default: the bundled word pairs)", name="--pairs"),
    ] = None


@dataclass(frozen=True)
class WrittenOnText:
    """The tokens that a head promotes and suppresses at one position through its most attended token, `source`."""

    example: int
    layer: int
    head: int
    source: str
    promoted: tuple[str, ...]
    suppressed: tuple[str, ...]
    agreement: float
    by_weights: tuple[str, ...] = ()  # the tokens that attention to the source promotes most, from weights alone


@dataclass(frozen=True)
class WritesPartial:
    """The copying and relation scores of all heads, and the tokens that heads promote in the examples.

    Attributes:
        copying: rank of each sampled token in its own row, 0 to 1. *Shape:* (layer, head, token).
        usual, p: mean rank with rows paired with other tokens, and p by PERMUTATIONS of them. *Shape:* (layer, head).
        relations, pairs: each relation with the number of its pairs whose words are single tokens.
        share, chance, p_relation: of each relation. *Shape:* (relation, layer, head).
    """

    rows: Positions
    reads: str
    layers: int
    heads: int
    copying: OfFirst[np.ndarray]
    usual: OfFirst[np.ndarray]
    p: OfFirst[np.ndarray]
    relations: OfFirst[tuple[str, ...]]
    pairs: OfFirst[tuple[int, ...]]
    share: OfFirst[np.ndarray]
    chance: OfFirst[np.ndarray]
    p_relation: OfFirst[np.ndarray]
    texts: tuple[WrittenOnText, ...]
    attending: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class WritesScore(Score):
    """How strongly a head promotes the attended token, or words that have the relation `feature` to this token."""

    reads: str | None = None


@dataclass(frozen=True, kw_only=True)
class Written(Result):
    """The tokens that a head most often promotes and suppresses when it attends most to the token `source`.

    Attributes:
        times: number of examples with this source, out of n.
        agreement: median cosine similarity with the effect of removing the contribution.
        by_weights: the tokens that attention to the source promotes most, from weights alone; "" in older results.
    """

    KINDS: ClassVar[tuple[str, ...]] = ("written tokens",)
    FIGURE = Figure("times", "examples in which the head attends most to {source}|{task}")
    name: str
    layer: int
    head: int
    source: str
    times: int
    promoted: str
    suppressed: str
    agreement: float
    reads: str
    checkpoint: str
    task: str
    n: int
    by_weights: str = ""


class WritesStudy(Study[WritesOptions, WritesPartial]):
    """List tokens that each head promotes and suppresses. Test whether heads promote attended or related words."""

    name, options, partial, arguments = "writes", WritesOptions, WritesPartial, ExampleUnit
    question = "What do heads write?"
    kinds = (WritesScore, Written)
    head_scores = (
        HeadScore(COPYING, "copying score", "mean rank of a token among the tokens that attention to it promotes",
                  ("values",), 0.0, 1.0, ELHAGE),
        HeadScore(RELATION, "relation score", "share of word pairs whose target is among the 10 most promoted tokens",
                  ("values",), 0.0, 1.0, "Elhelo and Geva 2025", about="relation"),
    )  # fmt: skip
    section = "beyond weights"
    said_at = 11
    gives = "tokens that heads promote and suppress"
    called = "What heads of {checkpoint} write"

    def units(self, options: WritesOptions) -> list[Unit]:
        rows = inputs_of_task(options)
        word_pairs(options.pairs_file)
        parts = [tuple(range(start, min(start + ROWS_A_UNIT, len(rows)))) for start in range(0, len(rows), ROWS_A_UNIT)]
        return [
            Unit(f"rows-{part[0]}", ExampleUnit(part), sum(len(rows[k].text) // 4 + 1 for k in part)) for part in parts
        ]

    def run(self, options: WritesOptions, unit: Unit) -> Done[WritesPartial]:
        checkpoint, rows = studies.worker_cache.with_head(options.checkpoint, ("language",)), inputs_of_task(options)
        texts = _on_text(checkpoint, rows, unit.arguments.positions, options.seed)
        done = replace(_from_weights(options, checkpoint), rows=np.array(unit.arguments.positions), texts=texts)
        return Done(done, provenance(checkpoint, [row.id for row in rows]))

    def results(self, options: WritesOptions, merged: WritesPartial) -> list[Result]:
        about: dict[str, Any] = {"checkpoint": options.checkpoint, "task": task_of(options.task).key}
        score = WritesScore(**about, reads=merged.reads)
        heads, results = all_heads(merged.layers, merged.heads, merged.attending), list[Result]()
        low, high = mean_interval(merged.copying.reshape(-1, merged.copying.shape[-1]).T)
        ends = np.stack([low, high]).reshape(2, merged.layers, merged.heads)
        q = q_values(merged.p)
        for head in heads:
            at = (head.layer, head.head)
            results.append(replace(
                score, statistic=COPYING, layer=head.layer, head=head.head, value=float(merged.copying[at].mean()),
                low=float(ends[0][at]), high=float(ends[1][at]), baseline=float(merged.usual[at]),
                p=float(merged.p[at]), q=float(q[at]), n=merged.copying.shape[-1],
            ))  # fmt: skip
        for number, (relation, n) in enumerate(zip(merged.relations, merged.pairs, strict=True)):
            of_relation = replace(score, statistic=RELATION, feature=relation, n=n)
            if n < LEAST_PAIRS:
                note = f"fewer than {LEAST_PAIRS} pairs have words that are single tokens"
                results.append(replace(of_relation, n=0, note=note))
                continue
            for head in heads:
                cell = (number, head.layer, head.head)
                results.append(replace(
                    of_relation, layer=head.layer, head=head.head, value=float(merged.share[cell]),
                    baseline=float(merged.chance[cell]), p=float(merged.p_relation[cell]),
                    q=float(merged.p_relation[cell]),
                ))  # fmt: skip
        by_head: dict[tuple[int, int], dict[str, list[WrittenOnText]]] = defaultdict(lambda: defaultdict(list))
        for text in sorted(merged.texts, key=lambda one: (one.example, one.layer, one.head)):
            by_head[text.layer, text.head][text.source].append(text)
        for head in heads:
            found = by_head[head.layer, head.head]
            for source in sorted(found, key=lambda token: (-len(found[token]), token))[:SOURCES]:
                own = found[source]
                promoted, suppressed = (
                    ", ".join(token for token, _ in Counter(tokens).most_common(LISTED))
                    for tokens in (
                        [token for one in own for token in one.promoted],
                        [token for one in own for token in one.suppressed],
                    )
                )
                results.append(Written(
                    name=str(head), layer=head.layer, head=head.head, source=source, times=len(own),
                    promoted=promoted, suppressed=suppressed, agreement=median(one.agreement for one in own),
                    reads=merged.reads, n=len(merged.rows), by_weights=", ".join(own[0].by_weights), **about,
                ))  # fmt: skip
        return results

    def headline(self, rows: Sequence[Row]) -> Headline:
        scores = [score for score in WritesScore.of_heads(rows) if score.statistic == COPYING]
        if not scores:
            return Headline("The result contains no copying scores.")
        copying = [score for score in scores if is_above_null(score.value, score.baseline, score.q)]
        best = max(scores, key=lambda score: score.value or 0.0)
        are_copying_heads = "is a copying head" if len(copying) == 1 else "are copying heads"
        return Headline(
            f"{len(copying):,} of {len(scores):,} heads of {best.checkpoint} {are_copying_heads}. A copying head "
            f"promotes the attended token more than other tokens. Head {best.name} has the highest copying "
            f"score: {best.value:.2f}.",
            best.n,
            "tokens",
            head_interval(best.name, best.low, best.high, "{:.2f}"),
            "If the outputs of this head are assigned to other tokens at random, its copying score is "
            f"{best.baseline:.2f}.",
        )

    def facts(self, scores: HeadScores) -> list[Fact]:
        found = []
        for row in each(scores.own[scores.own["value"].notna()]):
            if not is_above_null(row["value"], row["baseline"], row["q"]):
                continue
            relation = row["score"].partition("/")[2]
            if relation:
                text = (
                    f"For {row['value']:.0%} of {int(row['n'])} word pairs, this head promotes the {relation} of the "
                    "attended word."
                )
            else:
                text = (
                    f"This head promotes the token that it attends to. Its copying score is {row['value']:.2f} (95 % "
                    f"CI {row['low']:.2f} to {row['high']:.2f}, n = {int(row['n'])} tokens)."
                )
            found.append(Fact(self.name, text, row["source"]))
        return found

    def warnings(self, rows: Sequence[Row]) -> list[str]:
        reads = {str(row["reads"]) for row in rows if row.get("reads") is not None}
        return [f"Hidden states are converted to logits by {READS[name]}." for name in sorted(reads & set(READS))]

    def shown(self, rows: Sequence[Row]) -> list[list[Row] | str]:
        scores = [score for score in WritesScore.of_heads(rows) if is_above_null(score.value, score.baseline, score.q)]
        names = ("name", "statistic", "feature", "value", "low", "high", "baseline", "q", "n")
        columns = ("name", "source", "times", "n", "promoted", "suppressed", "agreement", "by_weights")
        written = [one.columns(*columns) for one in Written.among(rows)]
        return [[score.columns(*names) for score in scores], written]


STUDY = WritesStudy()


def is_above_null(value: float | None, baseline: float | None, q: float | None) -> bool:
    """Return True if a score is significantly above its null baseline."""
    return value is not None and baseline is not None and q is not None and value > baseline and q <= LEVEL


def word_pairs(file: str | None) -> dict[str, list[tuple[str, str]]]:
    """Read the word pairs of each relation from a CSV file, or the bundled pairs. Raises InputError for an invalid
    file."""
    path = PAIRS if file is None else Path(file).expanduser()
    try:
        rows = csv.DictReader(lines_of(read_text(path, most=LARGEST_FILE, given=file is not None)))
    except OSError as error:
        raise InputError(
            f"A file of word pairs must be a readable text file of at most 1 MB; {path.name} cannot be read. Choose "
            "another file."
        ) from error
    if not set(COLUMNS) <= set(rows.fieldnames or ()):
        raise InputError(
            f"A file of word pairs must have the columns {', '.join(COLUMNS)}; {path.name} has "
            f"{', '.join(rows.fieldnames or ()) or 'none'}. Add the missing columns."
        )
    found: dict[str, list[tuple[str, str]]] = {}
    for row in rows:
        relation, source, target = ((row[name] or "").strip() for name in COLUMNS)
        if relation and source and target:
            found.setdefault(relation, []).append((source, target))
    if not found:
        raise InputError(f"A file of word pairs must have at least one pair; {path.name} has none. Add pairs.")
    return found


# ---------------------------------------------------------------- from weights


def _token(tokenizer: Any, word: str) -> int | None:
    """Return the token of a word that is a single token, otherwise None."""
    for form in (f" {word}", word):
        ids = tokenizer.encode(form, add_special_tokens=False)
        if len(ids) == 1 and ids[0] != tokenizer.unk_token_id:
            return int(ids[0])
    return None


@lru_cache(maxsize=1)
def _from_weights(options: WritesOptions, checkpoint: Any) -> WritesPartial:
    """Return the scores from weights, without texts. Cached for other units."""
    tokenizer = checkpoint.tokenizer
    words = np.array([k for k in range(len(tokenizer)) if tokenizer.convert_ids_to_tokens(k).lstrip("Ġ▁").isalpha()])
    chance = np.random.default_rng(options.seed)
    sample = chance.permutation(words)[:TOKENS]
    named = {
        relation: [(a, b) for one, two in pairs if (a := _token(tokenizer, one)) is not None
                   and (b := _token(tokenizer, two)) is not None]
        for relation, pairs in word_pairs(options.pairs_file).items()
    }  # fmt: skip
    return from_weights(checkpoint, sample, named, chance)


def from_weights(
    checkpoint: Any, sample: np.ndarray, relations: dict[str, list[tuple[int, int]]], chance: np.random.Generator
) -> WritesPartial:
    """Compute from the weights how strongly heads copy tokens, and how often they map a word to a related word."""
    shape, pairs = (checkpoint.layers, checkpoint.heads), [pair for own in relations.values() for pair in own]
    sources, targets = (np.array([pair[side] for pair in pairs], dtype=int) for side in (0, 1))
    parts = np.cumsum([0, *map(len, relations.values())])
    copying, (usual, p) = np.full((*shape, len(sample)), np.nan), np.full((2, *shape), np.nan)
    hits: Bool[np.ndarray, "layer head source target"] = np.zeros((*shape, len(pairs), len(pairs)), dtype=bool)
    orders = np.stack([chance.permutation(len(sample)) for _ in range(PERMUTATIONS)])
    at = np.arange(len(sample))
    for head, rows in capture.writes.circuit_rows(checkpoint, [*sample.tolist(), *sources.tolist()]):
        effects = rows.cpu().numpy()
        own = effects[: len(sample), sample]
        ranks = own.argsort(1).argsort(1) / (len(sample) - 1)
        copying[head] = ranks[at, at]
        drawn = ranks[at, orders].mean(1)
        usual[head] = drawn.mean()
        p[head] = (1 + (drawn >= copying[head].mean()).sum()) / (1 + PERMUTATIONS)
        if len(pairs):
            effects = effects[len(sample) :]
            least = np.partition(effects, -TOP, axis=1)[:, -TOP]
            hits[head] = effects[:, targets] >= least[:, None]
    share, chances, p_relation = np.full((3, len(relations), *shape), np.nan)
    for number, (start, stop) in enumerate(pairwise(parts.tolist())):
        n = stop - start
        if n < LEAST_PAIRS:
            continue
        block, at = hits[..., start:stop, start:stop], np.arange(n)
        share[number] = block[..., at, at].mean(-1)
        orders = np.stack([chance.permutation(n) for _ in range(PERMUTATIONS)])
        drawn = block[..., at, orders].mean(-1)  # layer, head, permutation
        chances[number] = drawn.mean(-1)
        largest: Float[np.ndarray, " permutation"] = drawn.max((0, 1))
        p_relation[number] = (1 + (largest >= share[number][..., None]).sum(-1)) / (1 + PERMUTATIONS)
    return WritesPartial(
        np.zeros(0, dtype=int), capture.writes.read_by(checkpoint), *shape, copying, usual, p, tuple(relations),
        tuple(np.diff(parts).tolist()), share, chances, p_relation, (), checkpoint.attending,
    )  # fmt: skip


# ---------------------------------------------------------------- on text


def _on_text(
    checkpoint: Any, rows: Sequence[TaskRow], positions: Sequence[int], seed: int
) -> tuple[WrittenOnText, ...]:
    """Return what each head writes at the last token (decoders) or a random, masked token of each example."""
    tokenizer, heads = checkpoint.tokenizer, all_heads(checkpoint.layers, checkpoint.heads, checkpoint.attending)
    encodings, places, numbers, found = [], [], [], list[WrittenOnText]()
    for number in positions:
        encoding = checkpoint.encode(rows[number].text, rows[number].pair)
        if not encoding.ordinary:
            continue
        drawn = np.random.default_rng([seed, number]).choice(encoding.ordinary)
        place = len(encoding) - 1 if checkpoint.causal else int(drawn)
        is_masked = capture.writes.read_by(checkpoint) == capture.writes.PREDICTION
        encodings.append(capture.writes.masked(checkpoint, encoding, place) if is_masked else encoding)
        places.append(place)
        numbers.append(number)

    ids: list[int] = []  # of the source tokens of `found`

    def take(k: int, written: Any) -> None:
        logits = written.logits[:, : len(tokenizer)]
        orders = (logits.topk(TOP).indices.tolist(), (-logits).topk(TOP).indices.tolist())
        size = written.logits.norm(dim=-1) * written.removed.norm(dim=-1)
        agreements = ((written.logits * written.removed).sum(-1) / size.clamp(min=1e-30)).tolist()
        for head, most, least, agreement in zip(heads, *orders, agreements, strict=True):
            promoted, suppressed = (tuple(tokenizer.decode([token]).strip() for token in ids) for ids in (most, least))
            at = written.source[head.layer, head.head]
            source = encodings[k].tokens[at]
            ids.append(int(encodings[k].ids[at]))
            found.append(WrittenOnText(numbers[k], head.layer, head.head, source, promoted, suppressed, agreement))

    capture.writes.text_writes(checkpoint, encodings, places, take)
    sources = sorted(set(ids))
    by_weights = {
        (head.layer, head.head, source): tuple(tokenizer.decode([token]).strip() for token in tokens)
        for head, effects in capture.writes.circuit_rows(checkpoint, sources)
        for source, tokens in zip(sources, effects[:, : len(tokenizer)].topk(LISTED).indices.tolist(), strict=True)
    }
    return tuple(
        replace(one, by_weights=by_weights[one.layer, one.head, source]) for one, source in zip(found, ids, strict=True)
    )
