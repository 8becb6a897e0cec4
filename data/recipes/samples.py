"""Write the bundled samples: rows for the seven tasks, each in its own TSV form, none of them from GLUE.

    python -m data.recipes.samples            # writes data/samples and its checksums
    python -m data.recipes.samples --out DIR

The same seed gives the same bytes. No sentence stands in both train and dev, and no pair twice. About one row
in ten is long (30 to 60 words), so that batches hold unequal lengths as real ones do.
"""

import argparse
import hashlib
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from data.recipes.sample_pairs import caption, inference, paraphrase, scene
from data.recipes.sample_questions import answer, duplicate
from data.recipes.sample_reviews import review

SEED, TRAIN, DEV, LONG = 2019, 2000, 300, 0.1
Row = tuple[str, str | None, int | float]
ENTAILMENT = ("entailment", "not_entailment")


@dataclass(frozen=True)
class Sample:
    """folder and header of a task's files, who writes a row, and how a row becomes a line.

    least: words of a train row, its full stop among them; shorter phrases ("see it .") are anybody's.
    """

    folder: str
    header: str
    write: Callable[..., Row]
    line: Callable[[int, Row], str]
    dev_file: str = "dev.tsv"
    least: int = 1


def mrpc(number: int, row: Row) -> str:
    return f"{row[2]}\t{2 * number + 1}\t{2 * number + 2}\t{row[0]}\t{row[1]}"


def stsb(number: int, row: Row) -> str:
    return f"{number}\tatlas-captions\tsamples\t2026\t{number:04d}\tnone\tnone\t{row[0]}\t{row[1]}\t{row[2]:.3f}"


def qqp(number: int, row: Row) -> str:
    return f"{number}\t{2 * number + 1}\t{2 * number + 2}\t{row[0]}\t{row[1]}\t{row[2]}"


def entailment(number: int, row: Row) -> str:
    return f"{number}\t{row[0]}\t{row[1]}\t{ENTAILMENT[row[2]]}"


def mnli(number: int, row: Row) -> str:
    label = ("entailment", "neutral", "contradiction")[row[2]]
    return "\t".join([str(number), str(number), f"{number}a", "atlas", *["n/a"] * 4, row[0], row[1], label, label])


SAMPLES = (
    Sample("MRPC", "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String", paraphrase, mrpc),
    Sample(
        "STS-B", "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore", caption, stsb
    ),
    Sample("SST-2", "sentence\tlabel", review, lambda _, row: f"{row[0]}\t{row[2]}", least=5),
    Sample("QQP", "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate", duplicate, qqp),
    Sample("RTE", "index\tsentence1\tsentence2\tlabel", inference, entailment),
    Sample("QNLI", "index\tquestion\tsentence\tlabel", answer, entailment),
    Sample(
        "MNLI",
        "index\tpromptID\tpairID\tgenre\tsentence1_binary_parse\tsentence2_binary_parse\tsentence1_parse\t"
        "sentence2_parse\tsentence1\tsentence2\tlabel1\tgold_label",
        scene,
        mnli,
        "dev_matched.tsv",
    ),
)


def sentences_of(row: Row) -> set[str]:
    """Every sentence of a row."""
    return {part.lower() for text in row[:2] if text for part in re.split(r"(?<=[.?!])\s+", text)}


def draw(sample: Sample, count: int, seed: str, taken: set[str], least: int = 1) -> list[Row]:
    """`count` rows of at least `least` words, none with a sentence in `taken`, no row twice."""
    rng = random.Random(seed)
    rows: dict[tuple[str, str | None], Row] = {}
    tries = 0
    while len(rows) < count:
        tries += 1
        if tries > 200 * count:
            raise SystemExit(f"samples: the grammar of {sample.folder} is too small for {count} rows")
        row = sample.write(rng, long=rng.random() < LONG)
        if len(row[0].split()) >= least and row[0] != row[1] and not sentences_of(row) & taken:
            rows.setdefault(row[:2], row)
    return list(rows.values())


def files(train: int = TRAIN, dev: int = DEV, seed: int = SEED) -> dict[str, str]:
    """Text of every file by its path under data/samples."""
    texts = {}
    for sample in SAMPLES:
        dev_rows = draw(sample, dev, f"{sample.folder}-dev-{seed}", set())
        taken = set().union(*(sentences_of(row) for row in dev_rows))
        train_rows = draw(sample, train, f"{sample.folder}-train-{seed}", taken, sample.least)
        for name, rows in (("train.tsv", train_rows), (sample.dev_file, dev_rows)):
            lines = [sample.header, *(sample.line(number, row) for number, row in enumerate(rows))]
            texts[f"{sample.folder}/{name}"] = "\n".join(lines) + "\n"
    return texts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parents[1] / "samples")
    options = parser.parse_args()
    sums = []
    for name, text in sorted(files().items()):
        place = options.out / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode())
        sums.append(f"{hashlib.sha256(text.encode()).hexdigest()}  {name}\n")
    (options.out / "SHA256SUMS").write_text("".join(sums), encoding="utf-8")
    print(f"{len(sums)} files under {options.out}")


if __name__ == "__main__":
    main()
