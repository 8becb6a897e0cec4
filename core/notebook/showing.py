"""`show`: the workbench of the app as a widget of Jupyter, VS Code, Colab or Marimo; and as a file to send."""

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from ..capture.words import special_positions_of, word_maps
from ..drawing import theme
from ..drawing.maps_page import MapsSource, maps_page
from ..drawing.panes import Pane, header_of, scored_pane, telling_head
from ..drawing.payload import packed, workbench_script, workbench_style
from ..errors import InputError
from ..writing import write_whole
from .model_objects import checkpoint_of, encode, maps_of, must_have_words

HERE = Path(__file__).resolve().parent
PIECES_SHOWN = 256  # longer inputs are cut: 144 heads of 256 pieces are 19 MB


class MapsWidget(anywidget.AnyWidget):
    """The workbench. payload: what it draws. view: what the user chose: the head by name, and how it looks.

    height: pixels. Setting `view` (to {"head": "L2H3"}, say) shows that.
    """

    payload = traitlets.Bytes(b"").tag(sync=True)
    view = traitlets.Dict().tag(sync=True)
    height = traitlets.Int(560).tag(sync=True)

    def __init__(self, panes: Sequence[Pane], source: MapsSource, *, head: str, note: str = "", height: int = 560):
        self.panes, self.source, self.head, self.note = tuple(panes), source, head, note
        header = header_of(panes, caption=source.input[:200], head=head, note=note)
        payload = packed(header, [pane.weights for pane in panes])
        super().__init__(payload=payload, height=height, _esm=script_text())

    def save(self, file: str | Path, *, megabytes: float = 2) -> Path:
        """Write the maps as one HTML file that needs no server; what does not fit is said in it.

        Args:
            file: where to.
            megabytes: the most that the file may have, in millions of bytes.

        Raises:
            InputError: the file cannot be written.
        """
        page = maps_page(
            self.panes, self.source, head=self.head, opened=self.view, note=self.note, most=int(megabytes * 1e6)
        )
        write_whole(file, page)
        return Path(file)


def show(
    model: Any,
    tokenizer: Any = None,
    text: str | None = None,
    pair: str | None = None,
    *,
    words: bool = False,
    height: int = 560,
    most: int = PIECES_SHOWN,
) -> MapsWidget:
    """Every head of a model on a sentence or pair, to explore in the notebook: the same drawing as the app's.

    Args:
        model: an object that from_pretrained returned, with its tokenizer; or a checkpoint's name or folder, and then
            the text may come second. It is put into eval mode and given our attention function while it runs, and then
            left as it was.
        tokenizer: of the model; None with a name or folder.
        most: pieces; longer inputs are cut, and the widget says so.

    Raises:
        CheckpointError, InputError: the model cannot be opened or seen into; there is no text.
    """
    if isinstance(model, str) and isinstance(tokenizer, str):
        tokenizer, text, pair = None, tokenizer, text if text is not None else pair
    if not isinstance(text, str):
        raise InputError("Maps are of a text: show(model, tokenizer, text), or show(name, text).")
    checkpoint = checkpoint_of(model, tokenizer)
    if words:
        must_have_words(checkpoint)
    encoding = encode(checkpoint, text, pair, most=most)
    maps = maps_of(checkpoint, encoding)
    maps = word_maps(maps, encoding) if words else maps
    first, separators = special_positions_of(encoding, words=words)
    pane = scored_pane(checkpoint.name, maps, first=first, separators=separators)
    cut = f"The last {encoding.cut} pieces were cut: {len(encoding)} are shown." if encoding.cut else ""
    source = MapsSource(checkpoint.name, text, pair, checkpoint.weights_hash, words)
    source = source.with_command() if isinstance(model, str) else source
    return MapsWidget([pane], source, head=telling_head(pane.scores or {}), note=cut, height=height)


@cache
def script_text() -> str:
    """The widget's module: the shared drawing, its styles and colours as text, and in_notebook.js."""
    colours = {mode: theme.variables(theme.WORKBENCH, mode) for mode in ("light", "dark")}
    data = f"\nconst STYLE = {json.dumps(workbench_style())};\nconst COLOURS = {json.dumps(colours)};\n"
    return workbench_script() + data + (HERE / "in_notebook.js").read_text(encoding="utf-8")
