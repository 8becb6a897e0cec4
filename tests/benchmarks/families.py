"""Every family: capture with all of the maps page's scores against a bare pass; and what a large model takes.

A row each, `NAME_ratio`: seconds of capture and scores over those of the model as transformers opens it, of a random
model of the family (4 layers x 8 heads, width 256) on 8 inputs of 128 tokens. Seconds are of the processor, the least
of ROUNDS interleaved rounds, which other work on the machine disturbs least (run it with one thread). Families whose
softmax is watched run eager either way. `billion_*`: a LLaMA-like decoder of a billion parameters in bfloat16,
written at random and opened: memory beyond its weights after block maxima of 512 tokens.
ATLAS_BENCHMARK_FAMILIES=gpt2,t5 measures some of the rows alone, and billion that.
"""

import gc
import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import psutil
import torch
from transformers import AutoModel
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from core.capture.long_maps import block_maxima
from core.capture.running import prepared
from core.models.family import FAMILIES, family_of
from core.models.opening import open_checkpoint
from core.scoring.registry import head_scores
from tests.benchmarks.capture import random_encoding
from tests.capture.conftest import built, byte_level

ROUNDS, BATCH, LENGTH = 25, 8, 128
SIZES = {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 8, "intermediate_size": 1024}
SHARED = SIZES | {"num_key_value_heads": 4, "head_dim": 32}
SPECIAL = {
    "albert": SIZES | {"embedding_size": 128},
    "electra": SIZES | {"embedding_size": 128},
    "distilbert": {"dim": 256, "n_layers": 4, "n_heads": 8, "hidden_dim": 1024},
    "mobilebert": SIZES | {"embedding_size": 128, "intra_bottleneck_size": 256, "true_hidden_size": 256},
    "xlnet": {"d_model": 256, "n_layer": 4, "n_head": 8, "d_inner": 1024},
    "gpt2": {"n_embd": 256, "n_layer": 4, "n_head": 8},
    "opt": SIZES | {"ffn_dim": 1024, "word_embed_proj_dim": 256},
    "gpt_neo": {"hidden_size": 256, "num_layers": 4, "num_heads": 8, "attention_types": [[["global", "local"], 2]]},
    "falcon": SIZES | {"multi_query": True},
    "deberta": SIZES | {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]},
    "deberta-v2": SIZES | {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]},
    "eurobert": SHARED | {"mask_token_id": 0},
    "gpt_oss": SHARED | {"num_local_experts": 2, "num_experts_per_tok": 1},
    **{
        name: {
            "d_model": 256,
            "encoder_layers": 4,
            "decoder_layers": 4,
            "encoder_attention_heads": 8,
            "decoder_attention_heads": 8,
            "encoder_ffn_dim": 1024,
            "decoder_ffn_dim": 1024,
        }
        for name in ("bart", "mbart", "marian")
    },
    **{
        name: {"d_model": 256, "d_kv": 32, "d_ff": 1024, "num_layers": 4, "num_heads": 8, "decoder_start_token_id": 0}
        for name in ("t5", "mt5")
    },
}
DENSE = ("bert", "roberta", "modernbert", "xlm-roberta", "gpt_neox", "phi", "olmo2")
BILLION = {
    "hidden_size": 2048,
    "num_hidden_layers": 16,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 8192,
    "vocab_size": 32_000,
    "max_position_embeddings": 4096,
}


def main() -> dict[str, object]:
    chosen = [name for name in os.environ.get("ATLAS_BENCHMARK_FAMILIES", "").split(",") if name]
    torch.manual_seed(0)
    figures: dict[str, object] = {"threads": torch.get_num_threads()}
    for name in FAMILIES:
        if not chosen or name in chosen:
            figures[f"{name}_ratio"] = ratio(name)
    if not chosen or "billion" in chosen:
        figures |= of_a_billion()
    return figures


def ratio(name: str) -> float:
    """Seconds of capture with scores over seconds of a bare pass."""
    # as a real checkpoint begins: weights 10 times as wide give numbers too small for the processor's fast path
    sizes = SPECIAL.get(name, SIZES if name in DENSE else SHARED) | {"initializer_range": 0.02}
    family = family_of(name)
    checkpoint = built(name, sizes, encodes=not family.causal)
    checkpoint.model.requires_grad_(requires_grad=False)
    vocabulary = len(checkpoint.tokenizer)
    encodings = []
    for _ in range(BATCH):
        made = random_encoding(LENGTH)
        made = replace(made, ids=tuple(piece % vocabulary for piece in made.ids))
        encodings.append(replace(made, target=made) if family.translates else made)
    tensors, plain = checkpoint.inputs(encodings), checkpoint.model.config._attn_implementation

    def bare() -> None:
        checkpoint.model.set_attn_implementation(plain)
        with torch.no_grad():
            checkpoint.model(**tensors)

    def captured() -> None:
        def score(call: int, weights: torch.Tensor) -> None:
            head_scores(weights, first=0, separators=(LENGTH - 1,), causal=family.causal)

        with torch.no_grad(), prepared(checkpoint, watcher=score, layers=range(checkpoint.calls)):
            checkpoint.model(**tensors)

    bare(), captured()
    rounds = [(processor_seconds(captured), processor_seconds(bare)) for _ in range(ROUNDS)]
    with_scores, alone = (min(column) for column in zip(*rounds, strict=True))
    return with_scores / alone


def of_a_billion() -> dict[str, object]:
    """Memory beyond the weights, and seconds, of a billion parameters in bfloat16 on 512 tokens."""
    with tempfile.TemporaryDirectory() as folder:
        before = psutil.Process().memory_info().rss  # before writing, so that what that leaves behind counts too
        write_billion(Path(folder))
        gc.collect()
        began = time.perf_counter()
        checkpoint = open_checkpoint(folder, dtype="stored", device="cpu")
        opened = time.perf_counter() - began
        encoding = checkpoint.encode("dog " * 600, max_length=512)
        began, peak = time.perf_counter(), Peak()
        with peak:
            found = block_maxima(checkpoint, replace(encoding, cut=0))
        beyond = peak.most - before - checkpoint.size
        return {
            "billion_parameters": sum(one.numel() for one in checkpoint.model.parameters()),
            "billion_weights_gb": checkpoint.size / 1e9,
            "billion_beyond_weights_gb": beyond / 1e9,
            "billion_dtype": checkpoint.dtype,
            "billion_heads": found.maxima.shape[0] * found.maxima.shape[1],
            "billion_open_s": opened,
            "billion_512_tokens_s": time.perf_counter() - began,
        }


def write_billion(folder: Path) -> None:
    """A random LLaMA-like checkpoint of about a billion parameters, in bfloat16, with a tokenizer."""
    config = CONFIG_MAPPING["llama"](**BILLION, bos_token_id=0, eos_token_id=0)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    try:
        model = AutoModel.from_config(config)
    finally:
        torch.set_default_dtype(before)
    model.save_pretrained(folder)
    byte_level().save_pretrained(folder)


class Peak:
    """The most resident memory of this process while the block runs, looked at 50 times a second."""

    def __enter__(self) -> "Peak":
        import threading

        self.most, self._over = 0, threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        process = psutil.Process()
        while not self._over.wait(0.02):
            self.most = max(self.most, process.memory_info().rss)


def processor_seconds(work) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began
