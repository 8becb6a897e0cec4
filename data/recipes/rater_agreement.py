"""How far the raters of bundled maps agree: Cohen's kappa by source and by pair of classes, as Markdown.

    python -m data.recipes.rater_agreement bert-base-sst2 minilm
    python -m data.recipes.rater_agreement gpt2

Labels of maps that were chosen because the codebook disputes them are left out: data.recipes.disputed_sheets has those.
Reads labels-*.jsonl and maps.jsonl of folders of one class set under data/annotations/; no database is touched.
"""

import argparse
import json
from itertools import combinations
from pathlib import Path

import pandas as pd

from core import config
from core.codebook.registry import SHIPPED
from core.patterns.agreement import agreement, opinions, pair_agreements

DISPUTED = "disputed-"  # begins batches of labels of maps that were chosen because they are hard to tell


def source_labels(folder: Path) -> pd.DataFrame:
    """Labels of a folder with the facts that `core.patterns.agreement` needs."""
    maps = pd.DataFrame(json.loads(line) for line in (folder / "maps.jsonl").read_text(encoding="utf-8").splitlines())
    events = pd.DataFrame(
        json.loads(line)
        for file in sorted(folder.glob("labels-*.jsonl"))
        for line in file.read_text(encoding="utf-8").splitlines()
    )
    labels = events.merge(maps[["map_id", "task", "split", "row_id"]], on="map_id")
    return labels.assign(ordinal=range(len(labels)))


def overall_rows(sources: dict[str, pd.DataFrame]) -> list[str]:
    """A line for each source and two raters of it."""
    rows = ["| maps of | raters | maps | equal | kappa (95 %) |", "|---|---|---|---|---|"]
    for name, labels in sources.items():
        for first, second in combinations(opinions(labels).columns, 2):
            raters = agreement(labels, first, second)
            rows.append(
                f"| {name} | {first}, {second} | {raters.maps} | {raters.share:.0%} "
                f"| {raters.kappa:.2f} ({raters.low:.2f} to {raters.high:.2f}) |"
            )
    return rows


def pair_rows(labels: pd.DataFrame) -> list[str]:
    """A line for each pair of classes over all sources."""
    first, second = opinions(labels).columns[:2]
    rows = ["| classes | maps with one of them from both | parted | kappa |", "|---|---|---|---|"]
    classes = SHIPPED[str(labels["class_set"].iloc[0])]
    for pair in pair_agreements(labels, first, second, classes.names):
        a, b = (classes.named(name).title for name in pair.classes)
        rows.append(f"| {a}, {b} | {pair.maps} | {pair.differ} | {pair.kappa:.2f} |")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sources", nargs="+")
    arguments = parser.parse_args()
    every = {name: source_labels(config.ANNOTATIONS / name) for name in arguments.sources}
    sources = {name: labels[~labels["batch"].str.startswith(DISPUTED)] for name, labels in every.items()}
    together = pd.concat(sources.values(), ignore_index=True)
    print("\n".join([*overall_rows(sources | {"all": together}), "", *pair_rows(together[together["pass"] == 1])]))


if __name__ == "__main__":
    main()
