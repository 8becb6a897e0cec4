"""What the papers printed, to stand beside what was measured here.

Kovaleva et al. 2019, Table 1 (BERT-base; dev sets; F1/accuracy for MRPC and QQP, one number elsewhere; the STS-B
column is headed "Acc" there but can only be a correlation). Lalwani 2024, Table 1 (GPT-2; accuracy 0 to 1 there;
STS-B as mean squared error). Seven cells of the first equal a constant predictor to the printed digit, and the second
came from a forward pass of which only the last block reached the logits (see the docs of the Fine-tune page).
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Printed:
    """One printed row of cells. initialisation: ours, or the source's own column name where none of ours is clearly
    meant. values: by metric, 0 to 1 (mse on the 0-to-5 scale). constant: a constant predictor scores the same."""

    source: str
    task: str
    initialisation: str
    values: dict[str, float]
    constant: bool = False


PAPER, REPLICATION = "Kovaleva et al. 2019", "GPT-2 replication 2024"

# task: untrained head (their "pre-trained" column), random normal fine-tuned, pre-trained fine-tuned
_PAPER: dict[str, tuple[dict[str, float], dict[str, float], dict[str, float]]] = {
    "mrpc": ({"f1": 0.0, "accuracy": 31.6}, {"f1": 81.2, "accuracy": 68.3}, {"f1": 87.9, "accuracy": 82.3}),
    "stsb": ({"pearson": 33.1}, {"pearson": 2.9}, {"pearson": 82.7}),
    "sst2": ({"accuracy": 49.1}, {"accuracy": 80.5}, {"accuracy": 92.0}),
    "qqp": ({"f1": 0.0, "accuracy": 60.9}, {"f1": 0.0, "accuracy": 63.2}, {"f1": 65.2, "accuracy": 78.6}),
    "rte": ({"accuracy": 52.7}, {"accuracy": 52.7}, {"accuracy": 64.6}),
    "qnli": ({"accuracy": 52.8}, {"accuracy": 49.5}, {"accuracy": 84.4}),
    "mnli": ({"accuracy": 31.7}, {"accuracy": 61.0}, {"accuracy": 78.6}),
}
_CONSTANT = {
    ("mrpc", "untrained"),
    ("sst2", "untrained"),
    ("rte", "untrained"),
    ("mrpc", "random"),
    ("qqp", "random"),
    ("rte", "random"),
    ("qnli", "random"),
}
# task: the report's columns ND, PT and FT; only FT is clearly one of ours (pre-trained, fine-tuned)
_REPLICATION = {
    "mrpc": (0.38, 0.59, 0.65),
    "stsb": (5.88, 8.72, 0.86),
    "sst2": (0.50, 0.61, 0.75),
    "qqp": (0.57, 0.51, 0.67),
    "rte": (0.45, 0.46, 0.58),
    "qnli": (0.20, 0.49, 0.53),
    "mnli": (0.25, 0.267, 0.36),
}


def printed(task: str) -> list[Printed]:
    """Every printed cell of a task."""
    columns = ("untrained", "random", "pretrained")
    found = [
        Printed(PAPER, task, column, {name: value / 100 for name, value in values.items()}, (task, column) in _CONSTANT)
        for column, values in zip(columns, _PAPER[task], strict=True)
    ]
    name = "mse" if task == "stsb" else "accuracy"
    for column, value in zip(("ND", "PT", "pretrained"), _REPLICATION[task], strict=True):
        found.append(Printed(REPLICATION, task, column, {name: value}))
    return found


# Kovaleva et al. 2019, Fig 5, QQP: layer means of the cosine, recovered from the picture's colours (error 0.01). Their
# maps are padded to 200 x 200, so these lie higher than cropped ones.
QQP_CHANGE = (0.94, 0.91, 0.87, 0.83, 0.76, 0.80, 0.78, 0.77, 0.71, 0.67, 0.64, 0.71)
