"""The example pair's maps of any checkpoint on this disk: what a page in one file about its heads lets explore."""

from collections.abc import Sequence
from pathlib import Path

from .. import capture, config, models
from ..drawing.packing import Grid
from ..drawing.page import GridTabs, MapsSource, grid_of
from ..drawing.panes import scored_pane, telling_head
from ..errors import AtlasError, CheckpointError, InputError
from ..models.parts import parts_of
from . import example
from .example import Example


def example_grid(checkpoint: str, *, weights_hash: str = "", head: str = "") -> Grid:
    """All heads on the example pair, one of them enlarged.

    The maps of the bundled encoder are stored; those of another checkpoint are captured now.

    Args:
        weights_hash: what the checkpoint's weights must be; "" where that is not known.
        head: the enlarged one by name, as "L2H5"; "" for the most telling one.

    Raises:
        CheckpointError: the checkpoint is not on this disk, or has other weights by now.
        InputError: it is an encoder-decoder, whose heads lie in three sets.
    """
    shown = example.stored(checkpoint, example.TEXT, example.PAIR) or _captured(checkpoint, weights_hash)
    encoding = shown.encoding
    pane = scored_pane(checkpoint, shown.maps, first=encoding.first, separators=encoding.separators)
    source = MapsSource(checkpoint, example.TEXT, example.PAIR)
    note = f"All heads of {checkpoint} on an example: {source.input}"
    return grid_of([pane], source, head=head or telling_head(pane.scores or {}), note=note)


def example_grids(checkpoints: Sequence[str]) -> GridTabs:
    """The grid of `example_grid` for each of several checkpoints; its caption says of which there are none, and why."""
    grids, left_out = {}, []
    for name in dict.fromkeys(checkpoints):
        try:
            grids[Path(name).name] = example_grid(name)
        except AtlasError as error:
            left_out.append(str(error))
    return GridTabs(grids, caption="\n".join(left_out))


def _captured(checkpoint: str, weights_hash: str) -> Example:
    if len(parts_of(checkpoint)) > 1:
        raise InputError(f"{checkpoint} has three sets of heads: save its maps from the page Attention maps.")
    if not _on_disk(checkpoint):
        raise CheckpointError(f"{checkpoint} is not on this disk, so its maps are not shown here.")

    opened = models.opening.open_checkpoint(checkpoint)
    if weights_hash and opened.weights_hash != weights_hash:
        raise CheckpointError(f"{checkpoint} has other weights than those of this result, so its maps are left out.")
    encoding = opened.encode(example.TEXT, example.PAIR)
    return Example(encoding, capture.running.capture(opened, encoding))


def _on_disk(checkpoint: str) -> bool:
    try:
        return (config.BUNDLED_MODELS / checkpoint).is_dir() or Path(checkpoint).expanduser().is_dir()
    except (OSError, ValueError, RuntimeError):  # too long, NUL, or the home of somebody unknown
        return False
