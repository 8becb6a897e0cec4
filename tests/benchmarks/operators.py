"""What operators cost beside disable, and how long live answers and a study of patched pairs take.

Sweeps of all heads of the bundled encoder's size under mean and resample (one draw) against disable, on the same rows,
in turns. Then the live answers on one pair: mean, blocks, a knockout, patching. Then 100 pairs x 36 heads. At
BERT-base's size, one pair and all heads: the first-order picture and the exact one. Seconds are those of the processor
with one thread, so that what else a machine does is left out.
"""

import time
from collections.abc import Callable
from dataclasses import replace

import torch
from transformers import BertConfig, BertForMaskedLM, BertForSequenceClassification

from core.capture.blocks import PartChange
from core.capture.comparing import compare, predictions
from core.capture.components import LayerBlock
from core.capture.interventions import Knockout
from core.capture.knockout import edges_of
from core.capture.outputs import Donors, mean_outputs
from core.capture.patching import InputPairs, first_order, patch, untouched
from core.capture.sweeping import changes_of, every_head, sweep
from core.models.checkpoint import Checkpoint
from core.models.opening import open_checkpoint
from core.studies.ablation.input_pairs import aligned, beside
from core.tasks.glue import read_rows
from core.tasks.perturbations import perturb

ROWS, TURNS, PAIRS = 60, 5, 100
LONGER = 40  # pieces of a longer pair


def timed(work: Callable[[], object]) -> float:
    """Seconds that this process computes: with one thread those of a machine that does nothing else."""
    start = time.process_time()
    work()
    return time.process_time() - start


def middle(work: Callable[[], object], turns: int = TURNS) -> float:
    work()
    return sorted(timed(work) for _ in range(turns))[turns // 2]


def classifier(**size: int) -> Checkpoint:
    """The bundled tokenizer, random weights of the bundled encoder's size or another."""
    torch.manual_seed(0)
    bundled = open_checkpoint("atlas-encoder")
    config = bundled.model.config.to_dict() | {"initializer_range": 0.1} | size
    model = BertForSequenceClassification(BertConfig(**config)).eval().requires_grad_(False).float()
    return Checkpoint("random", model, bundled.tokenizer)


def pairs_of(checkpoint: Checkpoint, rows: list, wanted: int) -> InputPairs:
    texts = [(row.text, row.pair) for row in rows[:wanted]]
    made = [perturb("drop", *one, seed=k).made for k, one in enumerate(texts)]
    return InputPairs(*aligned(checkpoint, texts, [(one.text, one.pair) for one in made]))


def pair_of(checkpoint: Checkpoint, rows: list, pieces: int) -> InputPairs:
    """The first row of about so many pieces and the same with a word dropped."""
    row = min(rows, key=lambda one: abs(len(checkpoint.encode(one.text, one.pair)) - pieces))
    return pairs_of(checkpoint, [row], 1)


def sweeps(checkpoint: Checkpoint, rows: list) -> dict[str, float]:
    encodings = [checkpoint.encode(row.text, row.pair) for row in rows[:ROWS]]
    reference = [checkpoint.encode(row.text, row.pair) for row in rows[ROWS : ROWS + 200]]
    heads = every_head(checkpoint.layers, checkpoint.heads)
    sources = {"disable": None, "mean": mean_outputs(checkpoint, reference)}
    sources["resample"] = Donors(checkpoint, tuple(reference))
    spent: dict[str, list[float]] = {name: [] for name in sources}
    for turn in range(TURNS + 1):
        for name, source in sources.items():
            seconds = timed(lambda n=name, s=source: sweep(checkpoint, encodings, heads, n, source=s))
            if turn:
                spent[name].append(seconds)
    found = {name: sorted(times)[TURNS // 2] for name, times in spent.items()}
    return {f"{name}_over_disable": found[name] / found["disable"] for name in ("mean", "resample")} | {
        "disable_seconds": found["disable"]
    }


def live(checkpoint: Checkpoint, rows: list) -> dict[str, float]:
    one = next(row for row in rows if len(row.text.split()) > 8)
    pair = pairs_of(checkpoint, [one], 1)
    first, second, heads = pair.firsts[0], pair.seconds[0], every_head(checkpoint.layers, checkpoint.heads)
    source = mean_outputs(checkpoint, [checkpoint.encode(row.text, row.pair) for row in rows[:200]])
    cut = Knockout(edges_of("separators", causal=False), frozenset(range(checkpoint.layers)))
    answers = {
        "live_ms_two_inputs": lambda: (
            beside(checkpoint, first, second),
            predictions(checkpoint, (first, ()), (second, ())),
        ),
        "live_ms_mean": lambda: compare(checkpoint, first, changes_of(heads[0], "mean", source)),
        "live_ms_block_off": lambda: compare(checkpoint, first, [PartChange(LayerBlock(1, "attention"))]),
        "live_ms_knockout": lambda: predictions(checkpoint, (first, ()), (first, (cut,))),
        "live_ms_patching_all_heads": lambda: patched_live(checkpoint, pair),
    }
    return {name: 1000 * middle(work) for name, work in answers.items()}


def patched_live(checkpoint: Checkpoint, pair: InputPairs) -> None:
    """What the page does: both inputs as they are, the first-order picture, every head in turn."""
    before = untouched(checkpoint, pair)
    first_order(checkpoint, pair, lambda logits, _: logits[:, 0] - logits[:, 1], before)
    patch(checkpoint, pair, every_head(checkpoint.layers, checkpoint.heads), before)


def words(**size: int) -> Checkpoint:
    """A masked language model of the same sizes, read at its last piece."""
    bundled = open_checkpoint("atlas-encoder")
    config = bundled.model.config.to_dict() | {"initializer_range": 0.1} | size
    return Checkpoint("words", BertForMaskedLM(BertConfig(**config)).eval().requires_grad_(False), bundled.tokenizer)


def at_a_place(pair: InputPairs) -> InputPairs:
    return replace(pair, places=((3, 3),) * len(pair.firsts))


def main() -> dict[str, object]:
    rows = read_rows("sst2", "train", limit=ROWS + 200, seed=0)
    small = classifier()
    heads = every_head(small.layers, small.heads)
    many = pairs_of(small, rows, PAIRS)
    large = classifier(hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072)
    pair = pairs_of(large, rows, 1)
    base, masked = every_head(12, 12), words()
    long = pair_of(large, read_rows("mrpc", "train", limit=ROWS, seed=0), LONGER)
    return {
        **sweeps(small, rows),
        **live(small, rows),
        "study_seconds_100_pairs_36_heads": timed(lambda: patch(small, many, heads)),
        "live_ms_patching_a_masked_model": 1000 * middle(lambda: patched_live(masked, at_a_place(pair))),
        "base_seconds_first_order": middle(lambda: first_order(large, pair, lambda logits, _: logits[:, 0]), 3),
        "base_seconds_exact_144_heads": middle(lambda: patch(large, pair, base), 1),
        "base_pieces": len(pair.seconds[0]),
        "base_seconds_exact_144_heads_longer": middle(lambda: patch(large, long, base), 1),
        "base_pieces_longer": len(long.seconds[0]),
        "rows": ROWS,
        "threads": torch.get_num_threads(),
    }
