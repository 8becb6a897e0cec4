"""The gallery of the docs: four self-contained HTML files, made by the functions that the app exports with.

    python -m data.recipes.gallery [--out docs/gallery] [--checkpoint NAME]

With --checkpoint only that checkpoint's maps are written, so that a page of any model can be added.
"""

import argparse
import tempfile
from pathlib import Path

from core import config
from core.atlas.example import PAIR, TEXT
from core.capture.running import capture
from core.drawing.page import MapsSource, described, grid_of, html_page
from core.drawing.panes import Pane, scored_pane, telling_head
from core.errors import AtlasError, InputError
from core.findings.export import result_page
from core.models.opening import open_checkpoint
from core.store import shipped_record
from core.store.database import Database
from core.writing import write_whole

FOLDER = config.PROJECT / "docs" / "gallery"
MOST = 2_000_000  # bytes of a file
SENTENCE = "The keys to the old cabinet were on the table."
TOY = "A toy model: 6 layers, trained on 30 million tokens. It is not GPT-2."
FILES = ("minilm.html", "decoder.html", "comparison.html", "ablation.html")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder to write into")
    parser.add_argument("--checkpoint", help="write the maps of this checkpoint alone")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    try:
        if options.checkpoint:
            made = {f"{Path(options.checkpoint).name}.html": maps([options.checkpoint], TEXT, PAIR)}
        else:
            made = pages()
    except AtlasError as error:
        raise SystemExit(f"gallery: {error}") from None
    for name, text in made.items():
        write_whole(options.out / name, text)
        print(f"{options.out / name}: {len(text.encode()):,} bytes")


def pages() -> dict[str, str]:
    """Every file of the gallery by its name."""
    return {
        "minilm.html": maps(["all-MiniLM-L6-v2"], TEXT, PAIR),
        "decoder.html": maps([config.DECODER], SENTENCE, lead=TOY),
        "comparison.html": maps([config.ENCODER, config.CLASSIFIER], SENTENCE),
        "ablation.html": ablation(),
    }


def maps(checkpoints: list[str], text: str, pair: str | None = None, lead: str = "") -> str:
    """All heads of one or two checkpoints on an input, below a line about them."""
    panes = [_pane(name, text, pair) for name in checkpoints]
    source = MapsSource(" and ".join(checkpoints), text, pair)
    if len(checkpoints) == 1:
        source = MapsSource(checkpoints[0], text, pair, open_checkpoint(checkpoints[0]).weights_hash).with_command()
    grid = grid_of(panes, source, head=telling_head(panes[0].scores or {}))
    title = f"Attention maps: {source.input[:120]}"
    return html_page(title, [grid, described(panes, source)], lead=lead, most=MOST)


def _pane(name: str, text: str, pair: str | None) -> Pane:
    opened = open_checkpoint(name)
    encoding = opened.encode(text, pair)
    maps = capture(opened, encoding)
    return scored_pane(name, maps, first=encoding.first, separators=encoding.separators)


def ablation() -> str:
    """The result page of the bundled ablation of every head of the fine-tuned encoder."""
    known = shipped_record.runs("disable")
    runs = known[known["checkpoint"] == config.CLASSIFIER]["run"].tolist()
    if len(runs) != 1:
        raise InputError(f"The record must have one ablation of {config.CLASSIFIER}; got {len(runs)}.")
    with tempfile.TemporaryDirectory() as folder, Database(Path(folder) / "atlas.duckdb") as db:
        return result_page(db, runs[0])


if __name__ == "__main__":
    main()
