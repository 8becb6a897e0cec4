"""A tiny classifier whose answer is carried by one head: L2H3 looks for a semicolon and tells [CLS]; or by a pair."""

import random
from pathlib import Path

import torch
from transformers import BertConfig, BertForSequenceClassification
from transformers.models.bert.modeling_bert import BertAttention

from core.attention import Head
from tests.capture.conftest import TEXT, wordpiece

CARRIER = Head(1, 2)
TWIN = Head(1, 3)
SEEN, TOLD = 0, 1  # directions of the residual stream: "this piece is a semicolon"; "there was one"


def planted(*, twin: bool = False, mark: str = ";") -> BertForSequenceClassification:
    """3 layers of 4 heads. Every other head has small random weights, so that it matters a little. twin: a second head
    does what the carrier does, and either of them is enough. mark: the token that is looked for."""
    tokenizer = wordpiece()
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=64,
        initializer_range=0.05,
        num_labels=2,
    )
    model = BertForSequenceClassification(config).eval().requires_grad_(False)
    bert, width = model.bert, 8
    for part in ("word", "position", "token_type"):
        getattr(bert.embeddings, f"{part}_embeddings").weight[:, [SEEN, TOLD]] = 0
    bert.embeddings.word_embeddings.weight[tokenizer.convert_tokens_to_ids(mark), SEEN] = 1.0
    for head in (CARRIER, TWIN) if twin else (CARRIER,):
        _carry(bert.encoder.layer[head.layer].attention, head.head * width, width)
    model.bert.pooler.dense.weight.zero_()
    model.bert.pooler.dense.weight[0, TOLD] = 0.5
    model.classifier.weight.zero_()
    model.classifier.weight[1, 0] = 4.0
    model.classifier.bias.copy_(torch.tensor([0.0, -2.8]))
    return model


def _carry(head: BertAttention, mine: int, width: int) -> None:
    """Have the head whose part of the weights starts at `mine` tell [CLS] of a semicolon."""
    rows = slice(mine, mine + width)
    for part in (head.self.query, head.self.key, head.self.value):
        part.weight[rows] = 0
        part.bias[rows] = 0
    head.self.query.bias[mine] = 6.0
    head.self.key.weight[mine, SEEN] = 3.0
    head.self.value.weight[mine, SEEN] = 1.0
    head.output.dense.weight[:, rows] = 0
    head.output.dense.weight[TOLD, mine] = 1.0


def save_planted(folder: Path, *, twin: bool = False, mark: str = ";") -> Path:
    """The classifier as a checkpoint folder."""
    planted(twin=twin, mark=mark).save_pretrained(folder)
    wordpiece().save_pretrained(folder)
    return folder


def write_rows(folder: Path, rows: int = 60, mark: str = ";") -> Path:
    """SST-2 files whose label is 1 where a sentence has the mark, a semicolon."""
    generator = random.Random(0)  # noqa: S311 - test rows
    words = [word for text in TEXT for word in text.replace(";", "").split() if word != mark]
    (folder / "SST-2").mkdir(parents=True)
    for split in ("train", "dev"):
        lines = ["sentence\tlabel"]
        for number in range(rows):
            some = generator.choices(words, k=generator.randint(4, 9))
            if number % 2:
                some.insert(generator.randint(1, len(some)), mark)
            lines.append(f"{' '.join(some)}\t{number % 2}")
        (folder / "SST-2" / f"{split}.tsv").write_text("\n".join(lines) + "\n")
    return folder
