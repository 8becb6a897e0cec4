"""The example on the first pages, captured in advance from the bundled checkpoints, so that no model is needed.

`python -m data.recipes.example_maps` captures it again when the bundled encoder changes; until then it is not used.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .. import capture, config, models
from ..attention import AttentionMaps
from ..drawing.packing import Grid
from ..drawing.page import GridTabs, MapsSource, grid_of
from ..drawing.panes import scored_pane, telling_head
from ..errors import AtlasError, CheckpointError, InputError
from ..models.encoding import Encoding
from ..models.present import parts_of

# ---------------------------------------------------------------- the example of the maps page


TEXT, PAIR = config.EXAMPLE_TEXT, config.EXAMPLE_PAIR


__all__ = ["FILE", "PAIR", "TEXT", "Example", "stored", "write"]
FILE = config.DATA / "examples" / "maps.npz"


class Example(NamedTuple):
    """An encoded input with its attention maps, captured in advance so that pages need not load a model."""

    encoding: Encoding
    maps: AttentionMaps


def file_of(name: str) -> Path:
    """Return the path of the file that stores the attention maps of a checkpoint on the bundled example."""
    return FILE if name == config.ENCODER else FILE.with_name(f"maps-{name}.npz")


def stored(name: str, text: str, pair: str | None) -> Example | None:
    """Return the stored example for these texts and the current weights of a checkpoint, or None if none is stored."""
    if name not in (config.ENCODER, config.REAL) or (text, pair) != (TEXT, PAIR):
        return None
    folder = config.BUNDLED_MODELS / name if name == config.ENCODER else config.packaged_checkpoints().get(name)
    weights, file = folder and folder / "model.safetensors", file_of(name)
    if not (weights and weights.is_file() and file.is_file()):
        return None
    from ..store.shipped_record import hash_of  # pyarrow and duckdb: 0.1 s of start-up

    return _read(file, file.stat().st_mtime_ns, hash_of(weights))


def write(encoding: Encoding, maps: AttentionMaps, weights_hash: str, file: Path = FILE) -> None:
    """Store the encoded example input and its attention maps, with the SHA-256 hash of the safetensors file."""
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


# -------------------- The example pair's maps of any checkpoint on this disk


def example_grid(checkpoint: str, *, weights_hash: str = "", head: str = "") -> Grid:
    """Return the attention maps of all heads on the bundled pair of sentences, with the map of one head enlarged.

    `weights_hash` is the required hash of the weights ("": any; not checked if the maps are stored), and `head` the
    enlarged head ("": the most distinctive one). Raises CheckpointError if the checkpoint is not local or its weights
    have changed; InputError: encoder-decoder.
    """
    shown = stored(checkpoint, TEXT, PAIR) or _captured(checkpoint, weights_hash)
    encoding = shown.encoding
    pane = scored_pane(checkpoint, shown.maps, first=encoding.first, separators=encoding.separators)
    source = MapsSource(checkpoint, TEXT, PAIR)
    note = f"All heads of {checkpoint} on an example: {source.input}"
    return grid_of([pane], source, head=head or telling_head(pane.scores or {}), note=note)


def example_grids(checkpoints: Sequence[str]) -> GridTabs:
    """Return the attention maps of each checkpoint on the bundled sentence pair. If maps are missing, the caption
    explains why."""
    grids, left_out = {}, []
    for name in dict.fromkeys(checkpoints):
        try:
            grids[Path(name).name] = example_grid(name)
        except AtlasError as error:
            left_out.append(str(error))
    return GridTabs(grids, caption="\n".join(left_out))


def _captured(checkpoint: str, weights_hash: str) -> Example:
    if len(parts_of(checkpoint)) > 1:
        raise InputError(
            f"The attention maps of {checkpoint} are not shown because an encoder-decoder has three sets of heads. "
            "Export the maps on the Attention maps page instead."
        )
    if not (config.is_folder(config.BUNDLED_MODELS / checkpoint) or config.is_folder(checkpoint)):
        raise CheckpointError(
            f"The attention maps of {checkpoint} are not shown because it is neither a bundled checkpoint nor a local "
            "folder."
        )

    opened = models.opening.open_checkpoint(checkpoint)
    if weights_hash and opened.weights_hash != weights_hash:
        raise CheckpointError(
            f"The attention maps of {checkpoint} are not shown because its weights have changed since the result "
            "was computed."
        )
    encoding = opened.encode(TEXT, PAIR)
    return Example(encoding, capture.running.capture(opened, encoding))
