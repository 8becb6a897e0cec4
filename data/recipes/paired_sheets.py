"""Sheets of maps with two scales side by side, for sources whose weights lie in a file, without their texts.

    python -m data.recipes.paired_sheets data/annotations/minilm --out /tmp/sheets

Reads maps.jsonl (number, map_id, separators ...) and maps.npz of the folder and writes sheet-NN.png: 25 maps a
sheet, of each the scale 0 to 1 (left) and the map's own scale (right), its number, largest weight and length above.
Red ticks mark [CLS] and the separators on both edges.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from data.recipes.sheets import TICK, colours, picture

ACROSS, DOWN = 5, 5
SIDE, GAP, LINE = 146, 16, 19  # pixels: a map, between maps, a line of text
SHEET = ACROSS * DOWN


def paired_sheet(rows: list[dict], maps: dict[str, np.ndarray]) -> Image.Image:
    """Up to SHEET maps, each at both scales."""
    size = (ACROSS * (2 * SIDE + 8 + GAP) + GAP, DOWN * (SIDE + GAP + LINE) + GAP)
    out = Image.new("RGB", size, "white")
    pen, font = ImageDraw.Draw(out), ImageFont.load_default(15)
    for place, row in enumerate(rows):
        left = GAP + place % ACROSS * (2 * SIDE + 8 + GAP)
        top = GAP + place // ACROSS * (SIDE + GAP + LINE)
        pen.text((left, top - 3), f"{row['number']}", fill="black", font=font)
        pen.text((left + 50, top - 3), f"max {row['maximum']:.2f}  L {row['length']}", fill=(90, 90, 90), font=font)
        for own_scale in (False, True):
            at = left + own_scale * (SIDE + 8)
            image = picture(maps[row["map_id"]], row["maximum"], own_scale=own_scale)
            out.paste(image.resize((SIDE, SIDE), Image.Resampling.NEAREST), (at, top + LINE))
            pen.rectangle((at - 1, top + LINE - 1, at + SIDE, top + LINE + SIDE), outline=(150, 150, 150))
            _ticks(pen, row, at, top + LINE)
    return out


def _ticks(pen: ImageDraw.ImageDraw, row: dict, left: int, top: int) -> None:
    for position in {0, *row["separators"]}:
        at = (position + 0.5) / row["length"] * SIDE
        pen.line((left + at, top - 5, left + at, top - 1), fill=TICK, width=2)
        pen.line((left - 6, top + at, left - 2, top + at), fill=TICK, width=2)


def write_paired(rows: list[dict], maps: dict[str, np.ndarray], folder: Path, name: str = "sheet") -> list[Path]:
    """The sheets of `rows`, in their order; their files."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for start in range(0, len(rows), SHEET):
        files.append(folder / f"{name}-{start // SHEET + 1:02d}.png")
        image = paired_sheet(rows[start : start + SHEET], maps)
        image.quantize(palette=colours(), dither=Image.Dither.NONE).save(files[-1], optimize=True)
    return files


def folder_maps(folder: Path) -> tuple[list[dict], dict[str, np.ndarray]]:
    """Facts and weights of an annotation folder."""
    rows = [json.loads(line) for line in (folder / "maps.jsonl").read_text(encoding="utf-8").splitlines()]
    with np.load(folder / "maps.npz", allow_pickle=False) as held:
        return rows, {row["map_id"]: held[row["map_id"]].astype(np.float32) for row in rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    files = write_paired(*folder_maps(arguments.folder), arguments.out)
    print(f"{len(files)} sheets in {arguments.out}")


if __name__ == "__main__":
    main()
