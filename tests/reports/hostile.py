"""A generator of config.json and training.json files with one thing wrong each."""

import copy
import json
from collections.abc import Iterator
from typing import Any

NAN, INFINITE = float("nan"), float("inf")
VALUES: dict[str, Any] = {
    "a text": "six", "digits as a text": "3", "an empty text": "", "null": None, "true": True, "a fraction": 2.5,
    "NaN": NAN, "infinity": INFINITE, "minus one": -1, "zero": 0, "a large number": 10**7, "a huge number": 10**18,
    "a list": [3], "nested lists": [[[[3]]]], "an object": {"a": 1}, "an empty list": [], "a long text": "x" * 50_000,
}  # fmt: skip
SIZES = (
    "num_hidden_layers", "num_attention_heads", "hidden_size", "intermediate_size", "vocab_size",
    "max_position_embeddings", "type_vocab_size",
)  # fmt: skip
OTHERS = (
    "model_type", "architectures", "id2label", "hidden_act", "layer_norm_eps", "pad_token_id", "num_labels",
    "inner_group_num", "head_ratio",
)  # fmt: skip
LOG = (
    "kind", "task", "date", "recipe", "seeds", "rows", "metrics", "train_rows_hash", "held", "base_hash",
    "constant_predictions",
)  # fmt: skip


def configs(good: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Names and texts of config.json files; each text differs from the good one in one field, or is no object."""
    for field in (*SIZES, *OTHERS):
        for name, value in VALUES.items():
            yield f"{field} is {name}", json.dumps(good | {field: value})
        missing = copy.deepcopy(good)
        missing.pop(field, None)
        yield f"{field} is missing", json.dumps(missing)
    yield "3,000 layers of 3,000 heads", json.dumps(good | {"num_hidden_layers": 3000, "num_attention_heads": 3000})
    yield "names of ten million classes", json.dumps(good | {"num_labels": 10**7})
    yield "labels with odd numbers", json.dumps(good | {"id2label": {"one": "a", "-1": "b"}})
    yield "labels that are lists", json.dumps(good | {"id2label": {"0": ["a"], "1": {}}})
    yield "a config within a config within a config", json.dumps(good | {"text_config": _nested(40)})
    for name, text in _not_objects():
        yield f"config.json is {name}", text


def logs(good: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Names and texts of training.json files of the same kind."""
    for field in LOG:
        for name, value in VALUES.items():
            yield f"{field} is {name}", json.dumps(good | {field: value})
        yield f"{field} is missing", json.dumps({key: value for key, value in good.items() if key != field})
    for field in ("train_limit", "pooling"):
        for name, value in VALUES.items():
            yield f"recipe: {field} is {name}", json.dumps(good | {"recipe": good["recipe"] | {field: value}})
    for name, text in _not_objects():
        yield f"training.json is {name}", text


def _nested(times: int) -> dict[str, Any]:
    inner: dict[str, Any] = {}
    for _ in range(times):
        inner = {"text_config": inner}
    return inner


def _not_objects() -> Iterator[tuple[str, str]]:
    yield from (
        ("empty", ""), ("a list", "[]"), ("a number", "7"), ("a text", '"bert"'), ("null", "null"), ("cut", '{"a": '),
        ("nested deeply", "[" * 60_000), ("NaN", "NaN"), ("a page", "<html></html>"), ("two objects", "{} {}"),
        ("with a byte order mark", "\ufeff{}"), ("a text with half a character", '{"model_type": "\\ud800"}'),
    )  # fmt: skip
