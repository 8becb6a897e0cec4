"""The toy translation task and the small encoder-decoder that learns it: python -m data.recipes.toy_translation

Sentences of 30 English words, drawn from a grammar, and their translations into made-up words in another order: an
adjective follows its noun, the verb comes last, and a preposition follows its phrase. So which word belongs to which is
known, and the order is not the source's. The rows go to data/translation, the checkpoint (a BART of 3 + 3 layers x 4
heads) to --out. Everything was made for this project: CC0 (rows), MIT (weights).
"""

import argparse
import json
import random
import time
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from torch.nn.functional import cross_entropy
from transformers import BartConfig, BartForConditionalGeneration, PreTrainedTokenizerFast

from core import config
from core.studies.ablation.translation import BUNDLED, Translation

LEXICON = {
    "the": "ul", "a": "en", "every": "oma",
    "dog": "kavo", "cat": "miru", "bird": "pelo", "child": "tasi", "farmer": "boren", "teacher": "lumek",
    "river": "sodo", "house": "harn", "boat": "nuvi", "tree": "drom",
    "red": "zin", "small": "tik", "old": "gar", "quiet": "shul", "clever": "weno", "tall": "lodi", "wet": "fash",
    "sees": "opata", "finds": "irela", "follows": "ukemo", "paints": "azubi", "hears": "etano", "helps": "ovisa",
    "near": "bei", "behind": "dok", "without": "nem", "under": "sut",
}  # fmt: skip
_WORDS = list(LEXICON)
DETERMINERS, NOUNS, ADJECTIVES = _WORDS[:3], _WORDS[3:13], _WORDS[13:20]
VERBS, PREPOSITIONS = _WORDS[20:26], _WORDS[26:30]
SPECIALS = ["<s>", "<pad>", "</s>", "<unk>"]  # numbers 0 to 3, as BART has them
DEV_ROWS, TRAIN_ROWS, SEED = 300, 1000, 0
OUT = config.BUNDLED_MODELS / "atlas-translator"
BATCH, IGNORED = 64, -100


def drawn(chance: random.Random) -> Translation:
    """One sentence with its translation: places of source words in the order of the target's."""
    words: list[str] = []

    def phrase() -> list[int]:
        start = len(words)
        adjectives = chance.choices((0, 1, 2), (4, 4, 1))[0]
        words.extend([chance.choice(DETERMINERS), *chance.sample(ADJECTIVES, adjectives), chance.choice(NOUNS)])
        return [start, len(words) - 1, *range(start + 1, len(words) - 1)]  # determiner, noun, adjectives

    def place(word: str) -> int:
        words.append(word)
        return len(words) - 1

    subject = phrase()
    verb = place(chance.choice(VERBS))
    order = [*subject, *phrase()]
    if chance.random() < 0.5:
        preposition = place(chance.choice(PREPOSITIONS))
        order += [*phrase(), preposition]
    order.append(verb)
    target = [LEXICON[words[k]] for k in order]
    return Translation(" ".join(words), " ".join(target), tuple((k, place) for place, k in enumerate(order)))


def write_rows() -> None:
    """dev.tsv and train.tsv; no source of one is in the other."""
    chance, seen = random.Random(SEED), set()
    for split, count in (("dev", DEV_ROWS), ("train", TRAIN_ROWS)):
        lines: list[str] = []
        while len(lines) < count:
            row = drawn(chance)
            if row.source not in seen:
                seen.add(row.source)
                pairs = " ".join(f"{source}-{target}" for source, target in row.links)
                lines.append(f"{row.source}\t{row.target}\t{pairs}\n")
        (BUNDLED / f"{split}.tsv").write_text("".join(lines), encoding="utf-8")


def tokenizer() -> PreTrainedTokenizerFast:
    """One piece a word, of both languages; `</s>` ends a sentence."""
    vocabulary = {word: k for k, word in enumerate([*SPECIALS, *LEXICON, *LEXICON.values()])}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 2)])
    names = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    return PreTrainedTokenizerFast(
        tokenizer_object=made, model_max_length=64, model_input_names=["input_ids", "attention_mask"], **names
    )


def fresh_model(vocabulary: int) -> BartForConditionalGeneration:
    """Random weights."""
    sizes = {"encoder_layers": 3, "decoder_layers": 3, "encoder_attention_heads": 4, "decoder_attention_heads": 4}
    widths = {"d_model": 64, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128, "max_position_embeddings": 64}
    pieces = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 0}
    ends = {"forced_eos_token_id": None, "forced_bos_token_id": None}
    return BartForConditionalGeneration(BartConfig(vocab_size=vocabulary, **sizes, **widths, **pieces, **ends))


def batch_of(rows: list[Translation], pieces: PreTrainedTokenizerFast) -> dict[str, torch.Tensor]:
    """input_ids, attention_mask, decoder_input_ids (`<s>` first) and labels (`</s>` last)."""
    sources = pieces([row.source for row in rows], padding=True, return_tensors="pt")
    targets = pieces([row.target for row in rows], padding=True, return_tensors="pt")
    labels = targets["input_ids"].masked_fill(targets["attention_mask"] == 0, IGNORED)
    start = torch.zeros(len(rows), 1, dtype=torch.long)
    shifted = torch.cat([start, targets["input_ids"][:, :-1]], 1)
    return {**sources, "decoder_input_ids": shifted, "labels": labels}


def train(steps: int, seed: int) -> BartForConditionalGeneration:
    """Fresh sentences in every batch; those of dev.tsv are left out."""
    held = {line.split("\t")[0] for line in (BUNDLED / "dev.tsv").read_text(encoding="utf-8").splitlines()}
    torch.manual_seed(seed)
    chance, pieces = random.Random(seed + 1), tokenizer()
    model = fresh_model(len(pieces)).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, betas=(0.9, 0.98), weight_decay=0.01)
    rate = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=steps, pct_start=0.1)
    began = time.monotonic()
    for step in range(steps):
        rows = [row for row in (drawn(chance) for _ in range(BATCH)) if row.source not in held]
        tensors = batch_of(rows, pieces)
        labels = tensors.pop("labels")
        loss = cross_entropy(model(**tensors).logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        rate.step()
        if step % 200 == 0 or step == steps - 1:
            print(f"step {step}: loss {loss.item():.4f}, {time.monotonic() - began:.0f} s", flush=True)
    return model.eval()


def main() -> None:
    """Write the rows, train, save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--steps", type=int, default=1200)
    parser.add_argument("--seed", type=int, default=SEED)
    asked = parser.parse_args()
    write_rows()
    model = train(asked.steps, asked.seed)
    model.save_pretrained(asked.out)
    tokenizer().save_pretrained(asked.out)
    (asked.out / "recipe.json").write_text(
        json.dumps({"steps": asked.steps, "seed": asked.seed, "batch": BATCH}), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
