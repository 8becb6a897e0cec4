"""Sheets of the bundled maps whose label the codebook's measurements dispute, for a blind further pass.

    python -m data.recipes.disputed_sheets draw bert --out /tmp/sheets
    python -m data.recipes.disputed_sheets labels bert written.csv --annotator NAME --at 2026-11-23T06:30
    python -m data.recipes.disputed_sheets agreement bert --annotator NAME

`draw` shuffles the disputed maps of all sources, those whose raters parted, and a random control, numbers them anew and
renders 25 a sheet without label, suggestion or source; key.jsonl says which number is which map, and why it is there.
`labels` reads a line a map (its number, a comma, its class or key) and writes labels-NAME-1.jsonl into each source's
folder, the key and the raw file into data/annotations/disputed/. The measurements choose maps; they label none.
"""

import argparse
import random
import re
from pathlib import Path

import pandas as pd
from sklearn.metrics import cohen_kappa_score

from core import config
from core.patterns.classes import SHIPPED
from core.patterns.codebook import dispute, measured, sentences
from core.store.label_files import write_lines
from data.recipes.paired_sheets import folder_maps, write_paired
from data.recipes.rater_agreement import DISPUTED, source_labels
from data.recipes.sheet_labels import parsed

CONTROL = {"bert": 40, "gpt2": 30}
FOLDER = config.ANNOTATIONS / "disputed"


def first_labels(folder: Path) -> pd.DataFrame:
    """First passes of a source by those who labelled before these sheets."""
    labels = source_labels(folder)
    return labels[(labels["pass"] == 1) & ~labels["batch"].str.startswith(DISPUTED)]


def reasons(class_set: str, source: str) -> dict[str, str | None]:
    """Why each labelled map of a source is to be seen again: disputed, parted, or None."""
    rows, maps = folder_maps(config.ANNOTATIONS / source)
    labels = first_labels(config.ANNOTATIONS / source)
    largest = labels["annotator"].value_counts().index[0]
    by_first = dict(labels.loc[labels["annotator"] == largest, ["map_id", "class"]].to_numpy())
    parted = labels.groupby("map_id")["class"].nunique() > 1
    why: dict[str, str | None] = {}
    for row in (row for row in rows if row["map_id"] in by_first):
        found = measured(maps[row["map_id"]], separators=row["separators"], causal=row["causal"])
        disputed = dispute(
            class_set, by_first[row["map_id"]], found, sentences=sentences(row["separators"], row["length"])
        )
        why[row["map_id"]] = "parted" if parted[row["map_id"]] else "disputed" if disputed else None
    return why


def chosen_maps(class_set: str, *, seed: int = 36) -> list[dict]:
    """The maps of the sheets in their order: number, source, map_id, why (disputed, parted, control)."""
    rng = random.Random(seed)
    every = [
        {"source": source, "map_id": map_id, "why": why}
        for source in config.LABELLED[class_set]
        for map_id, why in reasons(class_set, source).items()
    ]
    control = rng.sample([one for one in every if one["why"] is None], CONTROL[class_set])
    chosen = [one for one in every if one["why"]] + [one | {"why": "control"} for one in control]
    rng.shuffle(chosen)
    return [{"number": number} | one for number, one in enumerate(chosen, start=1)]


def draw(class_set: str, out: Path) -> None:
    """Write the sheets and their key."""
    chosen, rows, maps = chosen_maps(class_set), {}, {}
    for source in config.LABELLED[class_set]:
        facts, weights = folder_maps(config.ANNOTATIONS / source)
        rows |= {(source, row["map_id"]): row for row in facts}
        maps |= {f"{source}/{map_id}": of for map_id, of in weights.items()}
    numbered = [
        rows[one["source"], one["map_id"]] | {"number": one["number"], "map_id": f"{one['source']}/{one['map_id']}"}
        for one in chosen
    ]
    files = write_paired(numbered, maps, out)
    write_lines(out / "key.jsonl", chosen)
    counts = pd.Series([one["why"] for one in chosen]).value_counts().to_dict()
    print(f"{len(files)} sheets in {out}: {counts}")


def store(class_set: str, written: Path, *, annotator: str, at: str) -> None:
    """Write what was noted down as labels into each source's folder, beside the key and the raw file."""
    chosen = {one["number"]: one for one in chosen_maps(class_set)}
    labels = parsed(written.read_text(encoding="utf-8"), class_set, {n: one["map_id"] for n, one in chosen.items()})
    name = re.sub(r"\W+", "-", annotator).strip("-").lower()
    rows: dict[str, list[dict]] = {}
    for number, (label, note) in sorted(labels.items()):
        one = chosen[number]
        rows.setdefault(one["source"], []).append(
            {
                "batch": f"{DISPUTED}{class_set}-{name}-{one['source']}",
                "sequence": number,
                "kind": "label",
                "class_set": class_set,
                "map_id": one["map_id"],
                "annotator": annotator,
                "pass": 1,
                "class": label,
                "note": note,
                "scale": "absolute",
                "way": "image",
                "queue_order": "codebook" if one["why"] != "control" else "random",
                "happened": at,
            }
        )
    for source, lines in rows.items():
        write_lines(config.ANNOTATIONS / source / f"labels-{name}-1.jsonl", lines)
    FOLDER.mkdir(exist_ok=True)
    write_lines(FOLDER / f"{class_set}.jsonl", list(chosen.values()))
    (FOLDER / f"{name}-{class_set}.csv").write_text(written.read_text(encoding="utf-8"), encoding="utf-8")
    print(f"{len(labels)} of {len(chosen)} labelled")


def agreement(class_set: str, annotator: str) -> None:
    """Print how often a further pass gave the first rater's class, by why a map was on the sheets and by pair."""
    chosen = pd.DataFrame(chosen_maps(class_set))
    first, again = {}, {}
    for source in config.LABELLED[class_set]:
        before = first_labels(config.ANNOTATIONS / source)
        rater = before["annotator"].value_counts().index[0]
        first |= dict(before.loc[before["annotator"] == rater, ["map_id", "class"]].to_numpy())
        after = source_labels(config.ANNOTATIONS / source)
        again |= dict(after.loc[after["annotator"] == annotator, ["map_id", "class"]].to_numpy())
    both = chosen.assign(first=chosen["map_id"].map(first), again=chosen["map_id"].map(again)).dropna()
    print("| maps | n | equal | kappa | most often parted (first, again) |\n|---|---|---|---|---|")
    for why, maps in both.groupby("why"):
        parted = maps[maps["first"] != maps["again"]].groupby(["first", "again"]).size().nlargest(3)
        pairs = "; ".join(f"{a}, {b}: {n}" for (a, b), n in parted.items())
        kappa = cohen_kappa_score(maps["first"], maps["again"])
        print(f"| {why} | {len(maps)} | {(maps['first'] == maps['again']).mean():.0%} | {kappa:.2f} | {pairs} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["draw", "labels", "agreement"])
    parser.add_argument("set", choices=SHIPPED)
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--annotator")
    parser.add_argument("--at", help="when it was labelled, UTC")
    arguments = parser.parse_args()
    if arguments.what == "draw":
        draw(arguments.set, arguments.out)
    elif arguments.what == "agreement":
        agreement(arguments.set, arguments.annotator)
    else:
        store(arguments.set, arguments.file, annotator=arguments.annotator, at=arguments.at)


if __name__ == "__main__":
    main()
