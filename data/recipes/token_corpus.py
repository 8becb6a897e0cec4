"""Vocabulary and tokens of the bundled checkpoints' training text (`data.recipes.pretrain`)."""

from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

BERT_SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
END_OF_TEXT = "<|endoftext|>"


def train_tokenizer(kind: str, text: Path, size: int) -> Tokenizer:
    if kind == "encoder":
        tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tokenizer.decoder = decoders.WordPiece()
        trainer = trainers.WordPieceTrainer(vocab_size=size, special_tokens=BERT_SPECIALS, show_progress=False)
    else:
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=size,
            special_tokens=[END_OF_TEXT],
            show_progress=False,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        )
    with text.open(encoding="utf-8") as lines:
        tokenizer.train_from_iterator((line for k, line in enumerate(lines) if k % 4 == 0), trainer)
    if kind == "encoder":
        cls, sep = ("[CLS]", tokenizer.token_to_id("[CLS]")), ("[SEP]", tokenizer.token_to_id("[SEP]"))
        tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[cls, sep]
        )
    else:
        tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return tokenizer


def as_transformers(kind: str, tokenizer: Tokenizer, positions: int) -> PreTrainedTokenizerFast:
    """The tokenizer that plain AutoTokenizer opens again."""
    names = (
        {
            "pad_token": "[PAD]",
            "unk_token": "[UNK]",
            "cls_token": "[CLS]",
            "sep_token": "[SEP]",
            "mask_token": "[MASK]",
            "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
        }
        if kind == "encoder"
        else {"bos_token": END_OF_TEXT, "eos_token": END_OF_TEXT, "unk_token": END_OF_TEXT}
    )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=positions, **names)


class Corpus:
    """Sentences as token ids. `plain[i]` starts a text; `spaced[i]` follows another sentence (decoder only)."""

    def __init__(self, folder: Path) -> None:
        self.ids = {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("plain", "spaced")}
        self.starts = {name: np.load(folder / f"{name}_starts.npy") for name in ("plain", "spaced")}
        self.document = np.load(folder / "document.npy")  # document number of each sentence

    def __len__(self) -> int:
        return len(self.document)

    def sentence(self, index: int, *, spaced: bool = False) -> np.ndarray:
        name = "spaced" if spaced else "plain"
        return self.ids[name][self.starts[name][index] : self.starts[name][index + 1]]


def tokenize(tokenizer: Tokenizer, kind: str, text: Path, folder: Path) -> None:
    """Write the corpus as uint16 ids with sentence starts and document numbers."""
    if (folder / "document.npy").exists():
        return
    lines = text.read_text(encoding="utf-8").split("\n")
    document = np.cumsum([not line for line in lines])
    kept = [k for k, line in enumerate(lines) if line]
    for name, prefix in (("plain", ""), ("spaced", " ")):
        pieces, lengths = [], [0]
        for start in range(0, len(kept), 20_000) if name == "plain" or kind == "decoder" else ():
            batch = [prefix + lines[k] for k in kept[start : start + 20_000]]
            for encoding in tokenizer.encode_batch_fast(batch, add_special_tokens=False):
                pieces.append(np.array(encoding.ids, dtype=np.uint16))
                lengths.append(len(encoding.ids))
        np.save(folder / f"{name}.npy", np.concatenate(pieces) if pieces else np.zeros(0, np.uint16))
        np.save(folder / f"{name}_starts.npy", np.cumsum(lengths))
    np.save(folder / "document.npy", document[kept].astype(np.int32))
