"""Pictures of the borders between classes, from the bundled maps: docs/reference/codebook.md and borders/.

    python -m data.recipes.codebook_borders

For each border of the shipped class sets it takes, on either side, the maps that lie closest to the codebook's
threshold (where it has none, closest to the other side), of different heads: first those to which every rater of two or
more gave the class, then those that one rater did. Writes data/annotations/borders.json, which the Codebook page draws
from, a picture a border, and the page. Nothing is drawn at random.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from core import config
from core.codebook.classes import Border, ClassSet
from core.codebook.measures import sentences
from core.codebook.registry import FILE, SHIPPED, BorderMap, border_maps, borders, labelled_folders, sides
from core.drawing.conversion import map_picture, png_bytes
from data.recipes.paired_sheets import folder_maps
from data.recipes.rater_agreement import source_labels

BORDERS = tuple(border for name in SHIPPED for border in borders(name))
EACH = 3  # maps on either side
SIDE, GAP = 150, 40  # pixels of a map, and between the two sides
DOCS = config.DATA.parent / "docs" / "reference"
INTRODUCTION = """# Codebook

The codebook describes the pattern classes of attention maps and explains how to decide between two classes. The page
*Annotate > Codebook* of the app also shows the codebook. In the figures of the codebook, rows are queries, columns are
keys, and colours range from weight 0 to weight 1 unless stated otherwise. The table below each figure lists one
measurement of each map in the figure. Annotators choose the class of a map by its appearance, not by measurements.
Annotators disagree most often about maps near a border between two classes
([agreement](../../data/annotations/README.md)). The command `python -m data.recipes.codebook_borders` regenerates this
page."""


def candidates(border: Border) -> Iterator[dict]:
    """Every map that all its raters gave one of the border's classes: source, map_id, head, class, value, raters."""
    for source in labelled_folders()[border.class_set]:
        rows, maps = folder_maps(config.ANNOTATIONS / source)
        labels = source_labels(config.ANNOTATIONS / source)
        agreed = labels.groupby("map_id")["class"].agg(["nunique", "first", "size"])
        for row in rows:
            if row["map_id"] not in agreed.index or agreed.loc[row["map_id"], "nunique"] > 1:
                continue
            name = agreed.loc[row["map_id"], "first"]
            two = sentences(row["separators"], row["length"]) == 2
            if name not in border.classes or (border.two_sentences and not two):
                continue
            value = border.measure(maps[row["map_id"]].astype(np.float32), row["separators"], row["causal"])
            head = f"{source}/{row['layer']}/{row['head']}"
            yield {"source": source, "map_id": row["map_id"], "head": head, "class": name, "value": round(value, 4),
                   "raters": int(agreed.loc[row["map_id"], "size"])}  # fmt: skip


def chosen(border: Border) -> dict:
    """The maps of a border, those of the low side, then those of the high one; and of each class how many maps lie on
    their side of the threshold, of how many."""
    every = list(candidates(border))
    shown = []
    counted = {}
    for high, name in enumerate(border.classes):
        mine = [row for row in every if row["class"] == name]
        if border.threshold is not None:
            there = [row for row in mine if (row["value"] >= border.threshold) == bool(high)]
            counted[name], mine = [len(there), len(mine)], there
        mine.sort(key=lambda row: (row["raters"] < 2, row["value"] if high else -row["value"], row["map_id"]))
        by_head = list({row["head"]: row for row in reversed(mine)}.values())[::-1]
        nearest = sorted(by_head[:EACH], key=lambda row: row["value"])
        shown += nearest
    maps = [{name: row[name] for name in ("class", "source", "map_id", "value")} for row in shown]
    return {"maps": maps, "sides": counted}


def picture(border: Border, maps: tuple[BorderMap, ...]) -> bytes:
    """All maps of a border side by side, a gap where it runs."""
    drawn = [map_picture(one.weights, side=SIDE, own_scale=border.own_scale) for one in maps]
    gap = np.full((SIDE, GAP, 3), 255, np.uint8)
    low = sum(one.class_name == border.classes[0] for one in maps)
    return png_bytes(np.concatenate([*drawn[:low], gap, *drawn[low:]], axis=1))


def page(sets: tuple[ClassSet, ...]) -> str:
    """docs/reference/codebook.md."""
    lines = [*INTRODUCTION.splitlines(), ""]
    for classes in sets:
        lines += [
            f"## {classes.title}",
            "",
            f"The pattern classes in this section were defined by {classes.source}.",
            "",
            "| key | class | appearance |",
            "|---|---|---|",
        ]
        lines += [f"| {one.key} | {one.title} | {one.eye} |" for one in classes.classes]
        for border in borders(classes.name):
            low, high = (classes.named(name).title for name in border.classes)
            maps = border_maps(border.name)
            told = [
                "; ".join(border.caption(one.value) for one in maps if one.class_name == name)
                for name in border.classes
            ]
            lines += ["", f"### {low} or {high}: {border.name.replace('-', ' ')}", "", border.rule_text, "",
                      f"![{low} on the left, {high} on the right](borders/{border.name}.png)", "",
                      "| maps | measurement, from left to right |", "|---|---|",
                      f"| {low}, on the left | {told[0]} |", f"| {high}, on the right | {told[1]} |"]  # fmt: skip
            lines += ["", sides(border)] if sides(border) else []
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    every = {border.name: chosen(border) for border in BORDERS}
    FILE.write_text(json.dumps(every, indent=1) + "\n", encoding="utf-8")
    border_maps.cache_clear()
    folder = DOCS / "borders"
    folder.mkdir(exist_ok=True)
    for border in BORDERS:
        (folder / f"{border.name}.png").write_bytes(picture(border, border_maps(border.name)))
        found = every[border.name]
        print(
            f"{border.name} {found['sides']}: {[(row['class'], row['value'], row['source']) for row in found['maps']]}"
        )
    Path(DOCS / "codebook.md").write_text(page(tuple(SHIPPED.values())), encoding="utf-8")


if __name__ == "__main__":
    main()
