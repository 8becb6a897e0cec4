"""Checkpoint folders with one thing wrong each, made from the bundled encoder."""

import json
import pickle
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

SIX = "six"


def configured(**changes: Any) -> Callable[[Path], None]:
    """Change config.json; a value of ... removes the entry."""

    def change(folder: Path) -> None:
        file = folder / "config.json"
        found = json.loads(file.read_text()) | changes
        file.write_text(json.dumps({name: value for name, value in found.items() if value is not ...}))

    return change


def written(name: str, content: bytes | str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)

    return write


def removed(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def cut(name: str, kept: int) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / name).write_bytes((folder / name).read_bytes()[:kept])

    return change


def pickled(folder: Path) -> None:
    """A pickle that would leave a file behind if anything read it."""

    class Bomb:
        def __reduce__(self):
            return Path.touch, (folder.parent / "owned",)

    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Bomb()))


def remote_code(folder: Path) -> None:
    (folder / "modeling_own.py").write_text(f"open({str(folder.parent / 'owned')!r}, 'w')\n")
    own = {"AutoConfig": "modeling_own.Config", "AutoModel": "modeling_own.Model"}
    configured(model_type="own", auto_map=own)(folder)


def tokenizer_with_code(folder: Path) -> None:
    (folder / "own.py").write_text(f"open({str(folder.parent / 'owned')!r}, 'w')\n")
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "Own", "auto_map": {"AutoTokenizer": ["own.Own", None]}})
    )
    (folder / "tokenizer.json").unlink()


def without_a_weight(folder: Path) -> None:
    from safetensors.numpy import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    weights.pop(next(name for name in sorted(weights) if "query" in name))
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def not_numbers(folder: Path) -> None:
    from safetensors.numpy import load_file, save_file

    weights = {name: value * float("nan") for name, value in load_file(folder / "model.safetensors").items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def folder_in_place(name: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / name).unlink()
        (folder / name).mkdir()

    return change


def as_large_as(name: str, megabytes: int) -> Callable[[Path], None]:
    """Its file made longer by a hole, which takes no room on the disk."""

    def change(folder: Path) -> None:
        with (folder / name).open("ab") as stream:
            stream.truncate(megabytes << 20)

    return change


def with_rules(**rules: Any) -> Callable[[Path], None]:
    """A tokenizer with rules of its own (normalizer, pre_tokenizer) before the pieces."""

    def change(folder: Path) -> None:
        file = folder / "tokenizer.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | rules))

    return change


def nested(kind: str, inner: dict[str, Any], times: int) -> dict[str, Any]:
    rule = inner
    for _ in range(times):
        rule = {"type": "Sequence", kind: [rule]}
    return rule


def by_pattern(pattern: str) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def replacing(pattern: dict[str, str], content: str, times: int) -> dict[str, Any]:
    return {"type": "Sequence", "normalizers": [{"type": "Replace", "pattern": pattern, "content": content}] * times}


FOLDERS: dict[str, Callable[[Path], None]] = {
    "no config": removed("config.json"),
    "an empty config": written("config.json", b""),
    "a config that is no JSON": written("config.json", "{"),
    "a config that is a list": written("config.json", "[1, 2]"),
    "a config in Latin-1": written("config.json", b'{"model_type": "b\xe9rt"}'),
    "a config nested 100,000 deep": written("config.json", "[" * 100_000),
    "a folder for a config": folder_in_place("config.json"),
    "no model type": configured(model_type=..., architectures=...),
    "an unknown model type": configured(model_type="transfoxl-9"),
    "a model type that is a number": configured(model_type=7),
    "a model that is no Transformer of text": configured(model_type="resnet"),
    "code of its own": remote_code,
    "a tokenizer with code of its own": tokenizer_with_code,
    "weights as a pickle": pickled,
    "no weights": removed("model.safetensors"),
    "empty weights": written("model.safetensors", b""),
    "weights cut short": cut("model.safetensors", 5_000),
    "weights of noise": written("model.safetensors", b"\xff" * 4_096),
    "weights with a header of 2 GB": written("model.safetensors", struct.pack("<Q", 2**31) + b"{}"),
    "weights with a header that lies": written(
        "model.safetensors",
        struct.pack("<Q", 68) + b'{"w": {"dtype":"F32","shape":[9,9],"data_offsets":[0,324]}}       ' + b"\0" * 8,
    ),
    "one weight missing": without_a_weight,
    "weights that are no numbers": not_numbers,
    "another width": configured(hidden_size=128),
    "more layers than weights": configured(num_hidden_layers=9),
    "minus one layer": configured(num_hidden_layers=-1),
    "no layers": configured(num_hidden_layers=0),
    "six as a word": configured(num_hidden_layers=SIX),
    "no heads": configured(num_attention_heads=0),
    "heads that do not divide the width": configured(num_attention_heads=7),
    "a fraction of heads": configured(num_attention_heads=1.5),
    "no positions": configured(max_position_embeddings=0),
    "a vocabulary of ten": configured(vocab_size=10),
    "no tokenizer": removed("tokenizer.json"),
    "an empty tokenizer": written("tokenizer.json", b""),
    "a tokenizer that is no tokenizer": written("tokenizer.json", '{"model": 3}'),
    "a tokenizer config that is no JSON": written("tokenizer_config.json", "<html>"),
    "a config nested 900 deep": written("config.json", '{"a": ' + "[" * 900 + "]" * 900 + "}"),
    "a config of 17 MB": as_large_as("config.json", 17),
    "a tokenizer config of 17 MB": as_large_as("tokenizer_config.json", 17),
    "special tokens of 17 MB": as_large_as("special_tokens_map.json", 17),
    "added tokens of 17 MB": as_large_as("added_tokens.json", 17),
    "a chat template of 17 MB": as_large_as("chat_template.jinja", 17),
    "what training left, of 17 MB": as_large_as("training.json", 17),
    "a tokenizer of 97 MB": as_large_as("tokenizer.json", 97),
    "a vocabulary of 97 MB": as_large_as("vocab.txt", 97),
    "a sentencepiece model of 3 GB": as_large_as("spiece.model", 3_000),
    "weights with a header nested 5,000 deep": written(
        "model.safetensors", struct.pack("<Q", 10_000) + b"[" * 5_000 + b"]" * 5_000
    ),
    "weights with a header of no tensors": written("model.safetensors", struct.pack("<Q", 11) + b'{"w": [{}]}'),
    "a tokenizer nested 5,000 deep": written("tokenizer.json", '{"a": ' + "[" * 5_000 + "]" * 5_000 + "}"),
    "pre-tokenizers nested 40 deep": with_rules(pre_tokenizer=nested("pretokenizers", {"type": "Whitespace"}, 40)),
    "normalizers nested 40 deep": with_rules(normalizer=nested("normalizers", {"type": "Lowercase"}, 40)),
    "rules that double a text 40 times": with_rules(normalizer=replacing({"String": "a"}, "aa", 40)),
    "rules that put something between all letters": with_rules(normalizer=replacing({"String": ""}, "a", 40)),
    "patterns that put something between all letters": with_rules(normalizer=replacing({"Regex": "x*"}, "a", 40)),
    "a rule that makes a letter a book": with_rules(normalizer=replacing({"String": "a"}, "a" * 100_000, 1)),
    "a pattern that is none": with_rules(pre_tokenizer=by_pattern("(((")),
}


def made(bundled: Path, wrong: Callable[[Path], None], place: Path) -> Path:
    """A copy of the bundled checkpoint with something wrong."""
    folder = place / "model"
    shutil.copytree(bundled, folder)
    wrong(folder)
    return folder
