"""Every head of a BERT-base disabled in turn, against the papers' way: pad to 128 and run the model once per head.

Random weights of BERT-base's size (speed does not depend on them) and 64 MRPC dev rows. The papers' way is timed on
12 heads, one a layer, and scaled by 12; so is what somebody would write today, forward hooks on a batch padded to its
own longest row. Everything is timed in one run, piece by piece in turns, so that a busy machine slows all of it alike.
The arithmetic ceiling counts multiplications: padded tokens x 144 passes over the tokens and layers that the sweep has
to run. On a CPU without bfloat16 the sweep computes in float32 whatever is asked; one group of rows then shows it.
"""

import copy
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch.nn.functional import linear
from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

from core.attention import Head
from core.capture.importance import gradients
from core.capture.interventions import Intervention
from core.capture.running import predict, prepared
from core.capture.stacks import Linear
from core.capture.sweeping import Computing, every_head, sweep
from core.models.checkpoint import Checkpoint
from core.models.encoding import Encoding
from core.tasks.glue import read_rows

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
ROWS, PADDED, GROUPS = 64, 128, 8


def base() -> Checkpoint:
    """BERT-base with random weights, and the real vocabulary."""
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(SHARED / "tokenizers" / "bert-base-uncased")
    model = BertForSequenceClassification(BertConfig(initializer_range=0.04)).eval().requires_grad_(False)
    return Checkpoint(name="random BERT-base", model=model, tokenizer=tokenizer)


def timed(work: Callable[[], object], spent: list[float]) -> object:
    start = time.perf_counter()
    result = work()
    spent.append(time.perf_counter() - start)
    return result


def padded_pass(checkpoint: Checkpoint, inputs: dict[str, torch.Tensor], head: Head) -> torch.Tensor:
    chosen = [Intervention("disable", frozenset({head}))]
    with torch.no_grad(), prepared(checkpoint, chosen):
        parts = [{name: one[start : start + 32] for name, one in inputs.items()} for start in range(0, ROWS, 32)]
        return torch.cat([checkpoint.model(**part).logits for part in parts])


class HookedHead:
    """One head of BERT disabled with plain forward hooks, for any model of transformers' own attention."""

    def __init__(self, model: BertForSequenceClassification) -> None:
        self.model = model
        self.model.set_attn_implementation("sdpa")

    def logits(self, batches: list[dict[str, torch.Tensor]], head: Head) -> torch.Tensor:
        attention = self.model.bert.encoder.layer[head.layer].attention
        part = slice(head.head * 64, head.head * 64 + 64)
        kept: dict[str, torch.Tensor] = {}

        def keep(module: object, inputs: object, output: torch.Tensor) -> None:
            kept["values"] = output[..., part]

        def change(module: object, inputs: tuple[torch.Tensor]) -> tuple[torch.Tensor]:
            mixed = inputs[0].clone()
            mixed[..., part] = (kept["values"] * kept["share"]).sum(1, keepdim=True)
            return (mixed,)

        hooks = [
            attention.self.value.register_forward_hook(keep),
            attention.output.dense.register_forward_pre_hook(change),
        ]
        try:
            found = []
            with torch.no_grad():
                for batch in batches:
                    seen = batch["attention_mask"][..., None].float()
                    kept["share"] = seen / seen.sum(1, keepdim=True)
                    found.append(self.model(**batch).logits)
            return torch.cat(found)
        finally:
            for hook in hooks:
                hook.remove()


def multiplications(lengths: list[int], heads: int, layers: int, hidden: int) -> tuple[float, float]:
    """Of the papers' way, and of what the sweep's matrix products come to (attention itself left out)."""
    layer = 12 * hidden**2
    papers = PADDED * len(lengths) * layers * layer * heads * layers
    tokens = sum(lengths)
    shared = tokens * (layers - 1) * layer  # the untouched model
    first = heads * (layers - 1) * tokens * layer * 8 / 12  # feed-forward of the touched layer
    later = heads * tokens * layer * sum(range(layers - 1))
    return papers, shared + first + later


def rates(tokens: int, dtype: torch.dtype) -> tuple[Callable[[], float], Callable[[], float]]:
    """Multiplications a second of F.linear and of the packed kernel at BERT-base's three shapes."""
    shapes = ((768, 768), (768, 768), (768, 768), (768, 768), (768, 3072), (3072, 768))
    made = [(torch.randn(tokens, i, dtype=dtype), torch.randn(o, i, dtype=dtype) / i**0.5) for i, o in shapes]
    packed = [(x, Linear(w, None, dtype)) for x, w in made]
    work = tokens * 12 * 768**2

    def rate(run: Callable[[], object]) -> float:
        start = time.perf_counter()
        run()
        return work / (time.perf_counter() - start)

    with torch.no_grad():
        return (
            lambda: rate(lambda: [linear(x, w) for x, w in made]),
            lambda: rate(lambda: [layer(x) for x, layer in packed]),
        )


def batch_of(checkpoint: Checkpoint, encodings: list[Encoding], **options: object) -> dict[str, torch.Tensor]:
    """The rows as a tokenizer pads them."""
    texts, pairs = [one.text for one in encodings], [one.pair for one in encodings]
    return dict(checkpoint.tokenizer(texts, pairs, truncation=True, return_tensors="pt", **options))


def main() -> dict[str, object]:
    checkpoint = base()
    hooked = HookedHead(copy.deepcopy(checkpoint.model))
    rows = read_rows("mrpc", "dev", folder=SHARED / "glue", limit=ROWS)
    encodings = sorted((checkpoint.encode(row.text, row.pair) for row in rows), key=len)
    padded = batch_of(checkpoint, encodings, padding="max_length", max_length=PADDED)
    ragged = [batch_of(checkpoint, encodings[start : start + 32], padding=True) for start in (0, 32)]
    variants = every_head(12, 12)
    groups = [encodings[k * ROWS // GROUPS : (k + 1) * ROWS // GROUPS] for k in range(GROUPS)]
    plain_rate, packed_rate = rates(600, torch.float32)
    padded_pass(checkpoint, padded, Head(0, 0)), hooked.logits(ragged, Head(0, 0))  # warm up
    sweep(checkpoint, groups[0], variants[:12])
    native = sweep(checkpoint, groups[0][:1], variants[:1], computing=Computing(dtype="bfloat16")).dtype == "bfloat16"

    names = ("papers", "hooks", "fp32", "bf16", "plain", "importance")
    spent: dict[str, list[float]] = {name: [] for name in names}
    found: dict[str, list[torch.Tensor]] = {name: [] for name in names}
    speeds: dict[str, list[float]] = {"linear": [], "packed": []}
    for turn in range(12):
        found["papers"].append(
            timed(lambda turn=turn: padded_pass(checkpoint, padded, Head(turn, turn)), spent["papers"])
        )
        found["hooks"].append(timed(lambda turn=turn: hooked.logits(ragged, Head(turn, turn)), spent["hooks"]))
        speeds["linear"].append(plain_rate())
        speeds["packed"].append(packed_rate())
        if turn >= GROUPS:
            continue
        group = groups[turn]
        for name, dtype in (("fp32", None), ("bf16", "bfloat16")) if native or not turn else (("fp32", None),):
            result = timed(
                lambda group=group, dtype=dtype: sweep(checkpoint, group, variants, computing=Computing(dtype=dtype)),
                spent[name],
            )
            found[name].append(result.changed)
        timed(lambda group=group: predict(checkpoint, group), spent["plain"])
        timed(lambda group=group: gradients(checkpoint, group, [0] * len(group)), spent["importance"])

    fp32, bf16 = torch.cat(found["fp32"], 1), torch.cat(found["bf16"], 1)
    diagonal = torch.stack([fp32[13 * layer] for layer in range(12)])
    papers, hooks = torch.stack(found["papers"]), torch.stack(found["hooks"])
    alike = fp32[:, : bf16.shape[1]]
    seconds_bf16 = sum(spent["fp32"]) * sum(spent["bf16"]) / sum(spent["fp32"][: len(spent["bf16"])])
    total = {name: sum(times) for name, times in spent.items()}
    lengths = [len(one) for one in encodings]
    papers_work, sweep_work = multiplications(lengths, 12, 12, 768)
    linear_rate, kernel_rate = (sorted(speeds[name])[6] for name in ("linear", "packed"))
    rate = sweep_work / total["fp32"]
    return {
        "ratio_fp32": 12 * total["papers"] / total["fp32"],
        "ratio_bf16": 12 * total["papers"] / seconds_bf16,
        "bf16_computed_in": "bfloat16" if native else "float32: this CPU has no bfloat16 instructions",
        "ratio_hooks": 12 * total["hooks"] / total["fp32"],
        "gemm_share": rate / linear_rate,
        "kernel_share": rate / kernel_rate,
        "kernel_over_linear": kernel_rate / linear_rate,
        "ceiling_by_arithmetic": papers_work / sweep_work,
        "max_logit_diff": float((diagonal - papers).abs().max()),
        "hooks_logit_diff": float((diagonal - hooks).abs().max()),
        "equal_predictions_fp32": float((diagonal.argmax(-1) == papers.argmax(-1)).float().mean()),
        "equal_predictions_bf16": float((bf16.argmax(-1) == alike.argmax(-1)).float().mean()),
        "importance_ratio": total["importance"] / total["plain"],
        "seconds_papers_scaled": 12 * total["papers"],
        "seconds_hooks_scaled": 12 * total["hooks"],
        "seconds_fp32": total["fp32"],
        "seconds_bf16": seconds_bf16,
        "heads_timed_the_papers_way": 12,
        "rows": ROWS,
        "mean_length": sum(lengths) / ROWS,
        "threads": torch.get_num_threads(),
    }
