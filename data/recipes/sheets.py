"""Draw maps from a checkpoint and render them as sheets that people label by eye, without suggestions.

    python -m data.recipes.sheets bert --checkpoint atlas-encoder
    python -m data.recipes.sheets gpt2 --checkpoint atlas-decoder
    python -m data.recipes.sheets bert --count 288 --seed 60 --again 0 --bare --out data/annotations/encoder-60m

Writes to data/annotations/SET/: maps.jsonl (a line a map: number, id, checkpoint, weights, input, head, tokens,
largest weight; of a causal map without the first query, which is always 1), maps.npz (float16 weights by id),
first/absolute-NN.png and first/own-NN.png (24 maps a sheet, once on the scale 0 to 1, once on each map's own
scale), and second/ with some of the maps again, shuffled and renumbered from 1, for a second pass that does not
know the first (second.jsonl holds which is which). `--bare` writes only the maps, whose sheets
`data.recipes.paired_sheets` draws. Red ticks at the edges mark separators. Rows are queries (top
to bottom), columns keys (left to right).
"""

import argparse
import json
import random
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from core import config
from core.models.opening import open_checkpoint
from core.studies.patterns import draw_maps

ACROSS, DOWN = 6, 4
SIDE, GAP, LINE = 168, 14, 18  # pixels: a map, between maps, a line of text
TICK = (200, 30, 30)
SHADES = 96  # colours in the file; the eye tells fewer apart
SETS = {"bert": config.ENCODER, "gpt2": config.DECODER}
TASKS = ["mrpc", "stsb", "sst2", "qqp", "rte", "qnli", "mnli"]


def blues(values: np.ndarray) -> np.ndarray:
    """0 to 1 -> RGB from white over blue to nearly black."""
    stops = np.array([[255, 255, 255], [198, 219, 239], [107, 174, 214], [33, 113, 181], [8, 48, 107], [3, 18, 45]])
    places = np.linspace(0, 1, len(stops))
    return np.stack([np.interp(values, places, stops[:, k]) for k in range(3)], -1).astype(np.uint8)


def picture(weights: np.ndarray, maximum: float, *, own_scale: bool) -> Image.Image:
    """One map, nearest neighbour, SIDE pixels; own_scale: up to its `maximum` instead of 1."""
    top = maximum if own_scale else 1.0
    image = Image.fromarray(blues(np.clip(weights / max(top, 1e-9), 0, 1)))
    return image.resize((SIDE, SIDE), Image.Resampling.NEAREST)


def colours() -> Image.Image:
    """The palette of every sheet: shades of the scale, the greys of text and frames, and the ticks."""
    used = [*blues(np.linspace(0, 1, SHADES)).tolist(), *([grey] * 3 for grey in (0, 60, 90, 150, 200)), list(TICK)]
    out = Image.new("P", (1, 1))
    out.putpalette([value for colour in used for value in colour])
    return out


def sheet(rows: list[dict], maps: dict[str, np.ndarray], *, own_scale: bool) -> Image.Image:
    """Up to 24 maps; above each its number, largest weight and length."""
    size = (ACROSS * (SIDE + GAP) + GAP, DOWN * (SIDE + GAP + LINE) + GAP)
    out = Image.new("RGB", size, "white")
    pen, font = ImageDraw.Draw(out), ImageFont.load_default(13)
    for place, row in enumerate(rows):
        left = GAP + place % ACROSS * (SIDE + GAP)
        top = GAP + place // ACROSS * (SIDE + GAP + LINE)
        pen.text((left, top), f"{row['number']}", fill="black", font=font)
        pen.text((left + 42, top), f"max {row['maximum']:.2f}  L {row['length']}", fill=(90, 90, 90), font=font)
        out.paste(picture(maps[row["map_id"]], row["maximum"], own_scale=own_scale), (left, top + LINE))
        pen.rectangle((left - 1, top + LINE - 1, left + SIDE, top + LINE + SIDE), outline=(150, 150, 150))
        for position in row["separators"]:
            at = (position + 0.5) / row["length"] * SIDE
            pen.line((left + at, top + LINE - 5, left + at, top + LINE - 1), fill=TICK, width=2)
            pen.line((left - 6, top + LINE + at, left - 2, top + LINE + at), fill=TICK, width=2)
    return out


def write_sheets(rows: list[dict], maps: dict[str, np.ndarray], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.png"):
        old.unlink()
    for name, own_scale in (("absolute", False), ("own", True)):
        for start in range(0, len(rows), ACROSS * DOWN):
            image = sheet(rows[start : start + ACROSS * DOWN], maps, own_scale=own_scale)
            small = image.quantize(palette=colours(), dither=Image.Dither.NONE)
            small.save(folder / f"{name}-{start // (ACROSS * DOWN) + 1:02d}.png", optimize=True)


def draw(arguments: argparse.Namespace) -> tuple[list[dict], dict[str, np.ndarray]]:
    """Facts and weights of the maps, shuffled so that maps of one input do not stand together."""
    names = ("checkpoint", "tasks", "count", "seed", "longest", "split")
    options = draw_maps.STUDY.read({name: getattr(arguments, name) for name in names} | {"data": arguments.glue})
    checkpoint = open_checkpoint(arguments.checkpoint, device="cpu")
    (unit,) = draw_maps.STUDY.units(options)
    maps_drawn = list(draw_maps.drawn(checkpoint, options, unit.arguments.positions))
    random.Random(arguments.seed).shuffle(maps_drawn)
    facts = [{name: value for name, value in drawn_map.row().items() if name != "weights"} for drawn_map in maps_drawn]
    rows = [{"number": number} | row for number, row in enumerate(facts, start=1)]
    maps = {drawn_map.map_id: drawn_map.weights for drawn_map in maps_drawn}
    return rows, maps


def write_lines(file: Path, rows: list[dict]) -> None:
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("set", choices=SETS)
    parser.add_argument("--checkpoint")
    parser.add_argument("--tasks", nargs="+", default=TASKS)
    parser.add_argument("--split", default="dev")
    parser.add_argument("--glue", help="folder with GLUE's task folders; default: the bundled samples")
    parser.add_argument("--count", type=int, default=432)
    parser.add_argument("--again", type=int, default=100, help="maps of the blind second pass")
    parser.add_argument("--longest", type=int, default=64, help="pieces; longer inputs are passed over")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--bare", action="store_true", help="no sheets")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    arguments.checkpoint = arguments.checkpoint or SETS[arguments.set]
    folder = arguments.out or config.ANNOTATIONS / arguments.set
    rows, maps = draw(arguments)
    folder.mkdir(parents=True, exist_ok=True)
    write_lines(folder / "maps.jsonl", rows)
    np.savez_compressed(folder / "maps.npz", **maps)
    inputs = len({(row["task"], row["row_id"]) for row in rows})
    print(f"{len(rows)} maps of {inputs} inputs in {folder}")
    if arguments.bare:
        return
    write_sheets(rows, maps, folder / "first")
    again = random.Random(arguments.seed + 1).sample(rows, min(arguments.again, len(rows)))
    second = [row | {"number": number} for number, row in enumerate(again, start=1)]
    write_lines(folder / "second.jsonl", [{"number": row["number"], "map_id": row["map_id"]} for row in second])
    write_sheets(second, maps, folder / "second")


if __name__ == "__main__":
    main()
