"""Train the bundled checkpoints from any text file, resumably.

    python -m data.recipes.pretrain encoder --text corpus.txt --work DIR --out data/models/atlas-encoder
    python -m data.recipes.pretrain decoder --text corpus.txt --work DIR --out data/models/atlas-decoder

`encoder`: a small BERT (masked tokens + next sentence, WordPiece, lower-cased). `decoder`: a small GPT-2
(next token, byte-level BPE, `<|endoftext|>` first and between documents). The text file has a sentence a
line and an empty line between documents (`data.recipes.corpus` writes one). Run the same command again
after an interruption: the vocabulary, the token file and the last saved step in `--work` are taken up.
`--begin CHECKPOINT` begins at a checkpoint's weights instead of random ones; the lengths of its batches are then those
of a run's end from the first step, and `--swapped SHARE` of the pairs have their halves exchanged (they do not follow).
The learning rate is constant and falls to zero over the last fifth of `--tokens`; a run that is resumed with fewer
`--tokens` falls earlier. Weights are kept on the way, at the shares of SNAPSHOTS or, with `--snapshots 20`, at as many
on a log scale, as `--work`/snapshots/SHARE.safetensors: what heads look at, and when they begin to, can be read from
them (`data.recipes.curve`).
"""

import argparse
import json
import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch.nn.functional import cross_entropy
from transformers import BertConfig, BertForPreTraining, GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from data.recipes.optimizers import Optimizers
from data.recipes.token_corpus import (
    BERT_SPECIALS,
    END_OF_TEXT,
    Corpus,
    as_transformers,
    tokenize,
    train_tokenizer,
)

# Lengths of the batches: share of the run until which a row holds, and the lengths it draws from. Short first, because
# a head finds its neighbour among 32 keys long before it finds it among 128.
LENGTHS = ((0.45, (32,)), (0.7, (32, 64)), (1.0, (32, 64, 128)))
SNAPSHOTS = (0.0, 0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0)  # shares of the run whose weights are kept
FIRST_SHARE = 0.001  # of the run: the first snapshot with trained weights on a log scale
IGNORED = -100  # torch's index for targets that do not count


@dataclass(frozen=True)
class Recipe:
    """What is trained and how; written into the model card."""

    kind: str
    layers: int = 6
    heads: int = 6
    hidden: int = 192
    vocabulary: int = 8192
    positions: int = 128
    batch_tokens: int = 2048
    peak_rate: float = 1e-3
    warm_up_steps: int = 400
    masked: float = 0.2  # share of pieces the encoder has to guess
    weight_decay: float = 0.01
    matrix_rate: float = 0.005  # Muon's, for the matrices of the blocks; 0: AdamW for all
    tokens: int = 60_000_000
    seed: int = 0
    begin: str = ""  # the name of the checkpoint whose weights it begins from; random weights without one
    swapped: float = 0.0  # share of the encoder's pairs whose halves are exchanged (Lan et al. 2020), "does not follow"


# ---------------------------------------------------------------- batches


class Batches:
    """Draws batches of one length, by step number, so that a resumed run sees what it would have seen."""

    def __init__(self, corpus: Corpus, recipe: Recipe, specials: dict[str, int], *, held_out: bool = False) -> None:
        self.corpus, self.recipe, self.specials = corpus, recipe, specials
        self.held_out = held_out
        edge = int(len(corpus) * 0.995)
        self.low, self.high = (edge, len(corpus) - 1) if held_out else (0, edge)

    def run_of(self, start: int, budget: int) -> tuple[np.ndarray, int]:
        """Consecutive sentences of one document from `start`, cut at `budget`; and the index behind them."""
        parts, size, k = [], 0, start
        while size < budget and k < self.high and self.corpus.document[k] == self.corpus.document[start]:
            parts.append(self.corpus.sentence(k, spaced=self.recipe.kind == "decoder" and k > start))
            size, k = size + len(parts[-1]), k + 1
        return np.concatenate(parts)[:budget] if parts else np.zeros(0, np.uint16), k

    def pair(self, rng: np.random.Generator, length: int) -> tuple[list[int], list[int], int]:
        """Ids, segments and the next-sentence label (0 follows, 1 random, IGNORED single) of one example."""
        cls, sep = self.specials["[CLS]"], self.specials["[SEP]"]
        start = int(rng.integers(self.low, self.high))
        if rng.random() < 0.2:
            first, _ = self.run_of(start, length - 2)
            return [cls, *first, sep], [0] * (len(first) + 2), IGNORED
        room = length - 3
        first, after = self.run_of(start, max(4, int(room * rng.uniform(0.25, 0.75))))
        drawn, continues = rng.random(), self.corpus.document[after] == self.corpus.document[start]
        follows, swaps = continues and drawn < 0.5, continues and drawn > 1 - self.recipe.swapped
        other = after if follows or swaps else int(rng.integers(self.low, self.high))
        second, _ = self.run_of(other, room - len(first))
        first, second = (second, first) if swaps else (first, second)
        ids = [cls, *first, sep, *second, sep]
        return ids, [0] * (len(first) + 2) + [1] * (len(second) + 1), 0 if follows else 1

    def encoder_batch(self, rng: np.random.Generator, length: int) -> dict[str, torch.Tensor]:
        rows = [self.pair(rng, length) for _ in range(self.recipe.batch_tokens // length)]
        shape = (len(rows), length)
        ids, segments, mask = np.zeros(shape, int), np.zeros(shape, int), np.zeros(shape, int)
        for k, (row, segment, _) in enumerate(rows):
            ids[k, : len(row)], segments[k, : len(row)], mask[k, : len(row)] = row, segment, 1
        chosen = (rng.random(shape) < self.recipe.masked) & (ids >= len(BERT_SPECIALS))
        targets = np.where(chosen, ids, IGNORED)
        fate = rng.random(shape)
        ids = np.where(chosen & (fate < 0.8), self.specials["[MASK]"], ids)
        ids = np.where(chosen & (fate > 0.9), rng.integers(len(BERT_SPECIALS), self.recipe.vocabulary, shape), ids)
        following = np.array([row[2] for row in rows])
        arrays = {"ids": ids, "segments": segments, "mask": mask, "targets": targets, "next": following}
        return {name: torch.from_numpy(array) for name, array in arrays.items()}

    def decoder_batch(self, rng: np.random.Generator, length: int) -> dict[str, torch.Tensor]:
        end = self.specials[END_OF_TEXT]
        ids = np.full((self.recipe.batch_tokens // length, length + 1), end)
        for row in ids:
            filled, start = 1, int(rng.integers(self.low, self.high))
            while filled <= length:
                text, start = self.run_of(start, length + 1 - filled)
                row[filled : filled + len(text)] = text
                filled += len(text) + 1  # the end of text that stands between documents
                start = int(rng.integers(self.low, self.high)) if rng.random() < 0.5 or start >= self.high else start
        return {"ids": torch.from_numpy(ids)}

    def at(self, step: int) -> dict[str, torch.Tensor]:
        rng = np.random.default_rng([self.recipe.seed, step, self.low])
        is_late = self.held_out or self.recipe.begin
        share = 0.99 if is_late else step * self.recipe.batch_tokens / self.recipe.tokens
        length = int(rng.choice(next(lengths for until, lengths in LENGTHS if share < until)))
        return self.encoder_batch(rng, length) if self.recipe.kind == "encoder" else self.decoder_batch(rng, length)


# ---------------------------------------------------------------- model and loss


def sinusoids(positions: int, width: int) -> torch.Tensor:
    """Sine and cosine waves [position, width] (Vaswani et al. 2017), as wide as the other initial weights.

    Learned positions that start from waves let heads find the previous and the next token within the few million
    tokens we train on; from noise they had not after six million.
    """
    rates = torch.exp(torch.arange(0, width, 2) * (-math.log(10_000.0) / width))
    angles = torch.arange(positions)[:, None] * rates
    return 0.02 * math.sqrt(2) * torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


def build(recipe: Recipe, end: int = 0) -> torch.nn.Module:
    """A new model with random weights and wave-like positions."""
    if recipe.kind == "encoder":
        config = BertConfig(
            vocab_size=recipe.vocabulary,
            hidden_size=recipe.hidden,
            num_hidden_layers=recipe.layers,
            num_attention_heads=recipe.heads,
            intermediate_size=4 * recipe.hidden,
            max_position_embeddings=recipe.positions,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
        model = BertForPreTraining(config)
        table = model.bert.embeddings.position_embeddings.weight
    else:
        config = GPT2Config(
            vocab_size=recipe.vocabulary,
            n_embd=recipe.hidden,
            n_layer=recipe.layers,
            n_head=recipe.heads,
            n_positions=recipe.positions,
            bos_token_id=end,
            eos_token_id=end,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
        )
        model = GPT2LMHeadModel(config)
        table = model.transformer.wpe.weight
    with torch.no_grad():
        table.copy_(sinusoids(*table.shape))
    model.set_attn_implementation("eager")  # twice as fast as SDPA here: its backward is half of a step on a CPU
    return model


def load_weights(model: torch.nn.Module, checkpoint: Path) -> None:
    """The weights of a folder that `export` wrote; tied ones are those that they are tied to."""
    absent, unknown = model.load_state_dict(load_file(checkpoint / "model.safetensors"), strict=False)
    tied = {"cls.predictions.decoder.weight", "cls.predictions.decoder.bias", "lm_head.weight"}
    if unknown or not set(absent) <= tied:
        raise SystemExit(f"pretrain: {checkpoint} has other weights than this recipe's ({[*unknown, *absent][:3]})")


def losses(model: torch.nn.Module, batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Mean losses in nats: `token` (masked or next), and `next_sentence` for the encoder."""
    if "targets" not in batch:
        scores = model(input_ids=batch["ids"][:, :-1]).logits
        return {"token": cross_entropy(scores.flatten(0, 1).float(), batch["ids"][:, 1:].flatten())}
    states = model.bert(batch["ids"], attention_mask=batch["mask"], token_type_ids=batch["segments"])
    chosen = batch["targets"] != IGNORED  # the vocabulary is only scored where a token was masked
    scores = model.cls.predictions(states.last_hidden_state[chosen])
    relation = model.cls.seq_relationship(states.pooler_output)
    return {
        "token": cross_entropy(scores.float(), batch["targets"][chosen]),
        "next_sentence": cross_entropy(relation.float(), batch["next"], ignore_index=IGNORED),
    }


def share_of_peak(step: int, recipe: Recipe) -> float:
    """The learning rate at `step` as a share of its peak: warm-up, constant, then linearly to 0."""
    total = math.ceil(recipe.tokens / recipe.batch_tokens)
    falling = min(1.0, (total - step) / (0.2 * total))
    return min(1.0, (step + 1) / recipe.warm_up_steps) * max(0.0, falling)


@torch.no_grad()
def held_out_loss(model: torch.nn.Module, batches: Batches, count: int = 24) -> dict[str, float]:
    batch_losses = [losses(model, batches.at(step)) for step in range(count)]
    return {name: float(torch.stack([batch[name] for batch in batch_losses]).mean()) for name in batch_losses[0]}


# ---------------------------------------------------------------- the run


def train(
    recipe: Recipe,
    corpus: Corpus,
    specials: dict[str, int],
    work: Path,
    save_every: int,
    begin: Path | None = None,
    shares: Sequence[float] = SNAPSHOTS,
) -> torch.nn.Module:
    torch.manual_seed(recipe.seed)
    model = build(recipe, specials.get(END_OF_TEXT, 0))
    if begin:
        load_weights(model, begin)
    optimizers = Optimizers(model, recipe)
    first, saved = 0, work / "resume.pt"
    if saved.exists():
        state = torch.load(saved, weights_only=True)
        model.load_state_dict(state["model"])
        optimizers.load(state["optimizers"])
        first = state["step"]
    batches, unseen = Batches(corpus, recipe, specials), Batches(corpus, recipe, specials, held_out=True)
    total, began = math.ceil(recipe.tokens / recipe.batch_tokens), time.time()
    keep = {round(share * total): share for share in shares}
    for step in range(first, total):
        if step in keep:
            snapshot(model, work, keep[step])
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = sum(losses(model, batches.at(step)).values())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizers.step(share_of_peak(step, recipe))
        if (step + 1) % save_every == 0 or step + 1 == total:
            state = {"model": model.state_dict(), "optimizers": optimizers.state(), "step": step + 1}
            torch.save(state, saved.with_suffix(".part"))
            saved.with_suffix(".part").replace(saved)
            speed = (step + 1 - first) * recipe.batch_tokens / (time.time() - began)
            log = dict(step=step + 1, of=total, tokens_per_second=round(speed), **held_out_loss(model, unseen))
            print(json.dumps(log), flush=True)
            with (work / "log.jsonl").open("a", encoding="utf-8") as out:
                out.write(json.dumps(log) + "\n")
    snapshot(model, work, 1.0)
    return model


def log_shares(count: int) -> tuple[float, ...]:
    """Shares of the run for `count` snapshots: random weights, then evenly on a log scale from FIRST_SHARE to 1."""
    if count < 3:
        raise SystemExit(f"pretrain: --snapshots {count}: at least 3 are needed (the first, one on the way, the last)")
    return 0.0, *(float(f"{share:.3g}") for share in np.geomspace(FIRST_SHARE, 1.0, count - 1))


def snapshot(model: torch.nn.Module, work: Path, share: float) -> None:
    """Keep the weights of now, as float16, under the share of the run that is done."""
    (work / "snapshots").mkdir(exist_ok=True)
    tied = {"cls.predictions.decoder.weight", "cls.predictions.decoder.bias", "lm_head.weight"}
    tensors = {name: t.half().contiguous() for name, t in model.state_dict().items() if name not in tied}
    save_file(tensors, work / "snapshots" / f"{share:g}.safetensors")


def export(model: torch.nn.Module, tokenizer: PreTrainedTokenizerFast, recipe: Recipe, work: Path, out: Path) -> None:
    """Write float16 safetensors, the config (dropout back at 0.1 for fine-tuning), tokenizer and training log."""
    for name in ("hidden_dropout_prob", "attention_probs_dropout_prob", "resid_pdrop", "embd_pdrop", "attn_pdrop"):
        if hasattr(model.config, name):
            setattr(model.config, name, 0.1)
    model.half().save_pretrained(out)
    tokenizer.save_pretrained(out)
    log = [json.loads(line) for line in (work / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    (out / "training.json").write_text(
        json.dumps({"recipe": asdict(recipe), "log": log}, indent=1) + "\n", encoding="utf-8"
    )


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=["encoder", "decoder"])
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True, help="vocabulary, tokens and the last saved step")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tokens", type=int, default=Recipe.tokens)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--save-every", type=int, default=250)
    parser.add_argument("--matrix-rate", type=float, default=Recipe.matrix_rate, help="of Muon; 0: AdamW for all")
    parser.add_argument("--begin", type=Path, help="a checkpoint's folder: begin at its weights")
    parser.add_argument("--swapped", type=float, default=Recipe.swapped, help="share of pairs in exchanged order")
    parser.add_argument("--snapshots", type=int, help="how many, on a log scale; without it the shares of SNAPSHOTS")
    parser.add_argument("--vocabulary", type=Path, help="a tokenizer.json to keep instead of training one")
    return parser.parse_args()


def main() -> None:
    chosen = options()
    shares = log_shares(chosen.snapshots) if chosen.snapshots is not None else SNAPSHOTS
    torch.set_num_threads(chosen.threads)
    peak_rate = 1e-3 if chosen.kind == "encoder" else 2e-3  # norms before the blocks bear a higher rate
    recipe = Recipe(
        chosen.kind,
        tokens=chosen.tokens,
        seed=chosen.seed,
        peak_rate=peak_rate,
        matrix_rate=chosen.matrix_rate,
        begin=chosen.begin.name if chosen.begin else "",
        swapped=chosen.swapped,
    )
    chosen.work.mkdir(parents=True, exist_ok=True)
    vocabulary = chosen.work / "tokenizer.json"
    if not vocabulary.exists() and chosen.vocabulary:
        vocabulary.write_bytes(chosen.vocabulary.read_bytes())
    if not vocabulary.exists():
        train_tokenizer(chosen.kind, chosen.text, recipe.vocabulary).save(str(vocabulary))
    tokenizer = Tokenizer.from_file(str(vocabulary))
    tokenize(tokenizer, chosen.kind, chosen.text, chosen.work)
    names = BERT_SPECIALS if chosen.kind == "encoder" else [END_OF_TEXT]
    specials = {name: tokenizer.token_to_id(name) for name in names}
    corpus = Corpus(chosen.work)
    model = train(recipe, corpus, specials, chosen.work, chosen.save_every, chosen.begin, shares)
    export(model, as_transformers(chosen.kind, tokenizer, recipe.positions), recipe, chosen.work, chosen.out)


if __name__ == "__main__":
    main()
