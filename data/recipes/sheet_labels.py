"""Turn what a person wrote down while looking at rendered sheets into labels that the app imports.

    python -m data.recipes.sheet_labels bert first ada.csv --annotator ada --at 2026-01-31T12:00

The file has a line a map: its number on the sheets and the class (name or key), separated by a comma, tab or blank,
with an optional note behind; empty lines and lines from # on are passed over. `first` reads numbers of first/,
`second` those of the shuffled second/, which become pass 2. The raw file is copied to data/annotations/SET/raw/,
the labels are written to data/annotations/SET/labels-ANNOTATOR-PASS.jsonl. Numbers without a line are reported.
"""

import argparse
import json
import re
import shutil
from collections import Counter
from pathlib import Path

from core import config
from core.codebook.registry import SHIPPED
from core.errors import InputError
from core.store.label_files import write_lines


def numbered_maps(folder: Path, which: str) -> dict[int, str]:
    """Number on the sheets -> map id."""
    file = folder / ("maps.jsonl" if which == "first" else "second.jsonl")
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return {row["number"]: row["map_id"] for row in rows}


def parsed(text: str, set_name: str, known: dict[int, str]) -> dict[int, tuple[str, str | None]]:
    """Number -> (class, note). InputError naming the line that cannot be read, or a number that comes twice."""
    classes = SHIPPED[set_name]
    by_key = {member.key: member.name for member in classes.classes}
    labels: dict[int, tuple[str, str | None]] = {}
    for place, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#") or line.lower().startswith("number"):
            continue
        parts = re.split(r"[,\t ]+", line.strip(), maxsplit=2)
        if len(parts) < 2 or not parts[0].isdigit() or int(parts[0]) not in known:
            raise InputError(f"Line {place} must be a map's number and its class; seen {line.strip()[:60]!r}.")
        if int(parts[0]) in labels:
            raise InputError(f"A map is labelled once a pass; line {place} labels number {parts[0]} again.")
        name = classes.resolved(by_key.get(parts[1], parts[1].lower()))
        labels[int(parts[0])] = (name, parts[2].strip() or None if len(parts) > 2 else None)
    return labels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("set", choices=SHIPPED)
    parser.add_argument("sheets", choices=["first", "second"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--annotator", required=True)
    parser.add_argument("--at", required=True, help="when it was labelled, UTC")
    parser.add_argument("--scale", choices=["absolute", "own"], default="absolute")
    parser.add_argument("--folder", type=Path, help="default: data/annotations/SET")
    arguments = parser.parse_args()
    folder = arguments.folder or config.ANNOTATIONS / arguments.set
    known = numbered_maps(folder, arguments.sheets)
    labels = parsed(arguments.file.read_text(encoding="utf-8"), arguments.set, known)
    passing = 1 if arguments.sheets == "first" else 2
    name = re.sub(r"\W+", "-", arguments.annotator).strip("-").lower()
    rows = [
        {
            "batch": f"sheets-{arguments.set}-{name}-{passing}",
            "sequence": number,
            "kind": "label",
            "class_set": arguments.set,
            "map_id": known[number],
            "annotator": arguments.annotator,
            "pass": passing,
            "class": label,
            "note": note,
            "scale": arguments.scale,
            "way": "image",
            "queue_order": "random",
            "happened": arguments.at,
        }
        for number, (label, note) in sorted(labels.items())
    ]
    write_lines(folder / f"labels-{name}-{passing}.jsonl", rows)
    raw = folder / "raw" / f"{name}-{arguments.sheets}{arguments.file.suffix}"
    raw.parent.mkdir(exist_ok=True)
    if arguments.file.resolve() != raw.resolve():
        shutil.copyfile(arguments.file, raw)
    missing = sorted(set(known) - set(labels))
    print(f"{len(rows)} labels: {dict(Counter(label for label, _ in labels.values()).most_common())}")
    if missing:
        print(f"{len(missing)} maps without a label: {missing[:40]}")


if __name__ == "__main__":
    main()
