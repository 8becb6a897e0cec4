"""What counting words says of an SST-2-like folder: `python -m data.recipes.bag_of_words FOLDER`.

Logistic regression on which words a row has (ridge penalty 1, as is usual), trained on FOLDER/SST-2/train.tsv and
measured on its dev.tsv: what a fine-tuned encoder of the same rows has to beat.
"""

import argparse
from pathlib import Path

import torch
from torch.nn.functional import binary_cross_entropy_with_logits

from core.tasks.glue import TaskRow, read_rows


def bags(rows: list[TaskRow], words: dict[str, int]) -> torch.Tensor:
    """Rows x words, 1 where a row has the word; words that are not known are left out."""
    bag = torch.zeros(len(rows), len(words))
    for number, row in enumerate(rows):
        known = [words[word] for word in row.text.lower().split() if word in words]
        bag[number, known] = 1
    return bag


def right(train: list[TaskRow], dev: list[TaskRow]) -> float:
    """The share of dev rows that it has right."""
    words = {word: k for k, word in enumerate(sorted({word for row in train for word in row.text.lower().split()}))}
    bag, labels = bags(train, words), torch.tensor([float(row.label or 0) for row in train])
    weights = torch.zeros(len(words) + 1, requires_grad=True)
    optimizer = torch.optim.LBFGS([weights], max_iter=300, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        scores = bag @ weights[:-1] + weights[-1]
        value = binary_cross_entropy_with_logits(scores, labels) + weights[:-1].square().sum() / (2 * len(train))
        value.backward()
        return value

    optimizer.step(loss)
    with torch.no_grad():
        said = bags(dev, words) @ weights[:-1] + weights[-1] > 0
    return sum(bool(one) == bool(row.label) for one, row in zip(said, dev, strict=True)) / len(dev)


def main() -> None:
    """Print how many rows it has right."""
    given = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    given.add_argument("folder", type=Path, nargs="?", help="default: the bundled samples")
    chosen = given.parse_args()
    train, dev = (read_rows("sst2", split, folder=chosen.folder) for split in ("train", "dev"))
    print(f"{100 * right(train, dev):.1f} % of {len(dev)} dev rows, trained on {len(train)} rows")


if __name__ == "__main__":
    main()
