"""Small checkpoints that tests of reports save to a folder: random weights, vocabularies trained on a few sentences."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from core.models.checkpoint import Checkpoint
from tests.capture.conftest import TEXT, tiny

SENTENCES = [*TEXT, "x = foo(bar) in the House", "NASA paid 3.14 and 2024", "Café 42!"]


def saved(checkpoint: Checkpoint, folder: Path) -> Path:
    """A checkpoint in a folder, as from_pretrained reads it."""
    checkpoint.model.save_pretrained(folder)
    checkpoint.tokenizer.save_pretrained(folder)
    return folder


def with_config(folder: Path, **changes: Any) -> Path:
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))
    return folder


def with_weights(folder: Path, more: dict[str, torch.Tensor], *, file: str = "model.safetensors") -> Path:
    weights = load_file(folder / "model.safetensors")
    save_file(weights | more, folder / file, metadata={"format": "pt"})
    return folder


@cache
def byte_bpe(*, split: str = "", lowercase: bool = False, digits: bool = False) -> str:
    """A byte-level BPE as tokenizer.json has it. split: a pattern before the bytes, as in cl100k."""
    tokenizer = Tokenizer(models.BPE())
    if lowercase:
        tokenizer.normalizer = normalizers.Lowercase()
    first = [pre_tokenizers.Digits(individual_digits=True)] if digits else []
    if split:
        first.append(pre_tokenizers.Split(Regex(split), "isolated"))
    parts = [*first, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not split)]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(parts) if first else parts[0]
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=420,
        special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>", "<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(SENTENCES * 4, trainer)
    return tokenizer.to_str()


@cache
def unigram(*, lowercase: bool = False) -> str:
    """A Unigram vocabulary with the mark of SentencePiece as tokenizer.json has it."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.Lowercase()] if lowercase else [normalizers.NFKC()])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    specials = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "[CLS]", "[SEP]", "[MASK]"]
    letters = sorted(set("".join(SENTENCES)) | set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"))
    trainer = trainers.UnigramTrainer(
        vocab_size=160, special_tokens=specials, unk_token="<unk>", initial_alphabet=letters, show_progress=False
    )
    tokenizer.train_from_iterator(SENTENCES * 4, trainer)
    return tokenizer.to_str()


def with_tokenizer(folder: Path, written: str, kind: str, **settings: Any) -> Path:
    """Replace the tokenizer of a folder by a tokenizer.json and the class that tokenizer_config.json names."""
    for file in folder.glob("*token*"):
        file.unlink()
    (folder / "tokenizer.json").write_text(written, encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": kind} | settings))
    return folder


def with_template(written: str, first: str, last: str) -> str:
    """The tokenizer.json with special tokens around a text and between the texts of a pair."""
    tokenizer = Tokenizer.from_str(written)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{first} $A {last}",
        pair=f"{first} $A {last} $B {last}",
        special_tokens=[(one, tokenizer.token_to_id(one)) for one in (first, last)],
    )
    return tokenizer.to_str()


def sized(model_type: str, rows: int) -> Checkpoint:
    """A random checkpoint of a family with so many token embeddings."""
    checkpoint = tiny(model_type)
    checkpoint.model.resize_token_embeddings(rows, mean_resizing=False)
    return checkpoint
