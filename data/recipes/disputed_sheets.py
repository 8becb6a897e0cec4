"""Sheets of the bundled maps whose label is in doubt, for a blind further pass.

    python -m data.recipes.disputed_sheets draw bert --out /tmp/sheets
    python -m data.recipes.disputed_sheets labels bert written.csv --annotator NAME --at 2026-11-23T06:30
    python -m data.recipes.disputed_sheets agreement bert --annotator NAME

`--round 1` (the default) has the maps whose label the codebook's measurements dispute and those whose raters parted.
`--round 2` has the maps that were left without a class because as many said one as another, and those that one rater
alone labelled and that lie near one of the codebook's borders, or are of a class that raters often part on. Each adds
a random control, shuffles, numbers the maps anew and renders 25 a sheet without label, suggestion or source; key.jsonl
says which number is which map, and why it is there. `labels` reads a line a map (its number, a comma, its class or
key) and writes labels-NAME-1.jsonl into each source's folder, the key and the raw file into data/annotations/disputed/.
The measurements choose maps; they label none.
"""

import argparse
import json
import random
import re
from collections.abc import Callable
from pathlib import Path

import pandas as pd
from sklearn.metrics import cohen_kappa_score

from core import config
from core.codebook.measures import measured, sentences
from core.codebook.registry import SHIPPED, borders, dispute, labelled_folders
from core.patterns.agreement import tied
from core.store.label_files import write_lines
from data.recipes.paired_sheets import folder_maps, write_paired
from data.recipes.rater_agreement import DISPUTED, source_labels
from data.recipes.sheet_labels import parsed

CONTROL = {"bert": 40, "gpt2": 30}
FOLDER = config.ANNOTATIONS / "disputed"
NEAR = 0.1  # of a border's measurement to its threshold
OFTEN_PARTED = {"bert": ("vertical+diagonal",), "gpt2": ("block", "overall")}
SEEDS = {1: 36, 2: 72}
Reasons = dict[str, str | None]


def first_labels(folder: Path) -> pd.DataFrame:
    """First passes of a source by those who labelled before any of these sheets."""
    return labels_before(folder, 1)


def labels_before(folder: Path, round: int) -> pd.DataFrame:
    """First passes of a source, without those of the sheets of this round and later ones."""
    labels = source_labels(folder)
    names = labels["batch"].str.extract(rf"^{DISPUTED}(?:(\d)-)?", expand=False)
    rounds = names.fillna("1").astype(int).where(labels["batch"].str.startswith(DISPUTED), 0)
    return labels[(labels["pass"] == 1) & (rounds < round)]


def reasons(class_set: str, source: str) -> Reasons:
    """Why each labelled map of a source is in round 1: disputed, parted, or None."""
    rows, maps = folder_maps(config.ANNOTATIONS / source)
    labels = first_labels(config.ANNOTATIONS / source)
    largest = labels["annotator"].value_counts().index[0]
    by_first = dict(labels.loc[labels["annotator"] == largest, ["map_id", "class"]].to_numpy())
    parted = labels.groupby("map_id")["class"].nunique() > 1
    why: Reasons = {}
    for row in (row for row in rows if row["map_id"] in by_first):
        found = measured(maps[row["map_id"]], separators=row["separators"], causal=row["causal"])
        disputed = dispute(
            class_set, by_first[row["map_id"]], found, sentences=sentences(row["separators"], row["length"])
        )
        why[row["map_id"]] = "parted" if parted[row["map_id"]] else "disputed" if disputed else None
    return why


def reasons_of_second(class_set: str, source: str) -> Reasons:
    """Why each labelled map of a source is in round 2: tied, border, parted class, or None."""
    rows, maps = folder_maps(config.ANNOTATIONS / source)
    labels = labels_before(config.ANNOTATIONS / source, 2)
    ties, by_map = set(tied(labels)), labels.groupby("map_id")["class"]
    given, count = by_map.first(), by_map.size()
    why: Reasons = {}
    for row in (row for row in rows if row["map_id"] in given):
        name, one = row["map_id"], given[row["map_id"]]
        near = any(
            abs(border.measure(maps[name], row["separators"], row["causal"]) - border.threshold) < NEAR
            for border in borders(class_set)
            if border.threshold is not None and one in border.classes
        )
        often = one in OFTEN_PARTED[class_set]
        reason = "border" if near else "parted class" if often else None
        why[name] = "tied" if name in ties else reason if count[name] == 1 else None
    return why


CHOOSERS: dict[int, Callable[[str, str], Reasons]] = {1: reasons, 2: reasons_of_second}


def chosen_maps(class_set: str, round: int = 1) -> list[dict]:
    """The maps of the sheets in their order: number, source, map_id, why (control: none of the reasons)."""
    rng = random.Random(SEEDS[round])
    every = [
        {"source": source, "map_id": map_id, "why": why}
        for source in labelled_folders()[class_set]
        for map_id, why in CHOOSERS[round](class_set, source).items()
    ]
    control = rng.sample([one for one in every if one["why"] is None], CONTROL[class_set])
    chosen = [one for one in every if one["why"]] + [one | {"why": "control"} for one in control]
    rng.shuffle(chosen)
    return [{"number": number} | one for number, one in enumerate(chosen, start=1)]


def draw(class_set: str, out: Path, round: int) -> None:
    """Write the sheets and their key."""
    chosen, rows, maps = chosen_maps(class_set, round), {}, {}
    for source in labelled_folders()[class_set]:
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


def store(class_set: str, written: Path, *, annotator: str, at: str, round: int) -> None:
    """Write what was noted down as labels into each source's folder, beside the key and the raw file."""
    chosen = {one["number"]: one for one in chosen_maps(class_set, round)}
    labels = parsed(written.read_text(encoding="utf-8"), class_set, {n: one["map_id"] for n, one in chosen.items()})
    name, sheets = re.sub(r"\W+", "-", annotator).strip("-").lower(), "" if round == 1 else f"{round}-"
    rows: dict[str, list[dict]] = {}
    for number, (label, note) in sorted(labels.items()):
        one = chosen[number]
        rows.setdefault(one["source"], []).append(
            {
                "batch": f"{DISPUTED}{sheets}{class_set}-{name}-{one['source']}",
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
    write_lines(FOLDER / key_name(class_set, round), list(chosen.values()))
    (FOLDER / f"{name}-{class_set}.csv").write_text(written.read_text(encoding="utf-8"), encoding="utf-8")
    print(f"{len(labels)} of {len(chosen)} labelled")


def key_name(class_set: str, round: int) -> str:
    """The file that says which number of a round's sheets is which map."""
    return f"{class_set}.jsonl" if round == 1 else f"{class_set}-{round}.jsonl"


def agreement(class_set: str, annotator: str, round: int) -> None:
    """Print how often a further pass gave the first rater's class, by why a map was on the sheets and by pair."""
    key = (FOLDER / key_name(class_set, round)).read_text(encoding="utf-8")
    chosen = pd.DataFrame(json.loads(line) for line in key.splitlines())
    first, again = {}, {}
    for source in labelled_folders()[class_set]:
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
    parser.add_argument("--round", type=int, choices=CHOOSERS, default=1)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--annotator")
    parser.add_argument("--at", help="when it was labelled, UTC")
    arguments = parser.parse_args()
    if arguments.what == "draw":
        draw(arguments.set, arguments.out, arguments.round)
    elif arguments.what == "agreement":
        agreement(arguments.set, arguments.annotator, arguments.round)
    else:
        store(arguments.set, arguments.file, annotator=arguments.annotator, at=arguments.at, round=arguments.round)


if __name__ == "__main__":
    main()
