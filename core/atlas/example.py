"""The example that the maps page opens with: captured beforehand, so that the first page needs no model.

`python -m data.recipes.example_maps` makes it anew when the bundled encoder changes; until then it is not used.
"""

import json
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .. import config
from ..attention import AttentionMaps
from ..models.encoding import Encoding
from .shipped_scores import file_hash

# ---------------------------------------------------------------- the example of the maps page


TEXT, PAIR = config.EXAMPLE_TEXT, config.EXAMPLE_PAIR


__all__ = ["FILE", "PAIR", "TEXT", "Example", "stored", "write"]
FILE = config.DATA / "examples" / "maps.npz"


class Example(NamedTuple):
    """One captured input of the bundled encoder."""

    encoding: Encoding
    maps: AttentionMaps


def stored(name: str, text: str, pair: str | None) -> Example | None:
    """The example where it is what is asked for and the bundled encoder is the one it was captured from."""
    if (name, text, pair) != (config.ENCODER, TEXT, PAIR):
        return None
    weights = config.BUNDLED_MODELS / config.ENCODER / "model.safetensors"
    if not (FILE.is_file() and weights.is_file()):
        return None
    return _read(FILE, FILE.stat().st_mtime_ns, file_hash(weights))


def write(encoding: Encoding, maps: AttentionMaps, weights_hash: str, file: Path = FILE) -> None:
    """Keep a captured input as the example. weights_hash: SHA-256 of the checkpoint's safetensors."""
    file.parent.mkdir(exist_ok=True)
    said = json.dumps({"encoding": asdict(encoding), "weights_hash": weights_hash, "causal": maps.causal})
    with file.open("wb") as stream:
        np.savez_compressed(stream, weights=maps.weights, segments=np.array(maps.segments), said=np.array(said))


@lru_cache(maxsize=2)
def _read(file: Path, modified: int, weights_hash: str) -> Example | None:
    with np.load(file, allow_pickle=False) as kept:
        said: dict[str, Any] = json.loads(str(kept["said"]))
        weights, segments = kept["weights"], tuple(int(segment) for segment in kept["segments"])
    if said["weights_hash"] != weights_hash:
        return None
    encoding = Encoding(**{name: _frozen(value) for name, value in said["encoding"].items()})
    return Example(encoding, AttentionMaps(weights, encoding.tokens, segments, said["causal"]))


def _frozen(value: Any) -> Any:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value
