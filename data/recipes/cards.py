"""Write the model card of a bundled checkpoint, with the figures it rests on.

    python -m data.recipes.cards atlas-encoder

Counts the heads that put more than half of their weight on one place, on the bundled MRPC-like dev pairs (mean over
rows, `core.scoring.heads`), and takes data, recipe and held-out loss from training.json.
"""

import argparse
import json
from typing import Any

import numpy as np
import pandas as pd

from core import config
from core.attention import Head
from core.capture.running import capture
from core.models.checkpoint import Checkpoint
from core.models.opening import open_checkpoint
from core.scoring.registry import head_scores
from core.tasks.glue import read_rows
from data.recipes.curve import said

PLACES = {"previous": "the previous token", "next": "the next token", "first": "", "separator": ""}
CORPUS = """\
777 books whose authors died 70 years ago and more (public domain), inaugural and state-of-the-union addresses (public
domain), MASC (ANC open licence, any use), movie reviews 2.0 and the plot sentences of the subjectivity corpus (CC BY
4.0, Pang and Lee 2004). The film-review snippets from which SST-2 was drawn are left out."""


def mean_scores(checkpoint: Checkpoint, rows: int = 80) -> dict[str, np.ndarray]:
    """Mean over pairs of each head's scores, [layer, head]."""
    scores_of: dict[str, list[np.ndarray]] = {}
    for row in read_rows("mrpc", "dev")[:rows]:
        encoding = checkpoint.encode(row.text, row.pair)
        maps = capture(checkpoint, encoding)
        scores = head_scores(
            maps.weights, first=encoding.first, separators=encoding.separators, causal=checkpoint.causal
        )
        for name, score in scores.items():
            scores_of.setdefault(name, []).append(np.asarray(score))
    return {name: np.nanmean(scores, axis=0) for name, scores in scores_of.items()}


def table(checkpoint: Checkpoint, scores: dict[str, np.ndarray]) -> str:
    """How many heads put more than half of their weight on each place, and the strongest of them."""
    names = PLACES | {
        "first": "the start token" if checkpoint.causal else "[CLS]",
        "separator": "the end of text between sentences" if checkpoint.causal else "[SEP]",
    }
    lines = ["| more than half of the weight on | heads | strongest |", "|---|---|---|"]
    for name, place in names.items():
        score = scores[name]
        if np.isnan(score).all():
            lines.append(f"| {place} | not visible to a causal query | |")
            continue
        best = Head(*(int(k) for k in np.unravel_index(np.nanargmax(score), score.shape)))
        lines.append(f"| {place} | {int((score > 0.5).sum())} of {score.size} | {best} {score[best]:.2f} |")
    return "\n".join(lines)


def command(checkpoint: Checkpoint, recipe: dict[str, Any]) -> str:
    """What pretrains the checkpoint again, with every argument that the recipe's program asks for."""
    kind = "decoder" if checkpoint.causal else "encoder"
    return (
        f"python -m data.recipes.pretrain {kind} --text CORPUS.txt --work WORK --out {checkpoint.name} "
        f"--tokens {recipe['tokens']} --seed {recipe['seed']}"
    )


def optimizer(recipe: dict[str, Any]) -> str:
    """What stepped, at which peak rate."""
    adam = f"AdamW at {recipe['peak_rate']:g}"
    rate = recipe.get("matrix_rate", 0)
    return f"Muon at {rate:g} for the matrices of the layers and {adam} for the rest" if rate else adam


def curve_of(name: str) -> str:
    """The paragraph about when heads found their places; empty where no snapshots were kept."""
    file = config.BUNDLED_MODELS / name / "curve.csv"
    if not file.is_file():
        return ""
    return f"""
The next table shows when the heads acquired these behaviours: the number of heads with more than half of their weight
on each kind of token, and for each layer the median over heads of the mean row maximum. `curve.csv` has every head; an
earlier version of `python -m data.recipes.curve {name} --snapshots WORK/snapshots` wrote it after the recipe above.

{said(pd.read_csv(file))}
"""


def card(checkpoint: Checkpoint, training: dict[str, Any]) -> str:
    """The README of the checkpoint's folder."""
    recipe, last = training["recipe"], training["log"][-1]
    kind = (
        "GPT-2-like decoder (next token; `<|endoftext|>` first and between documents)"
        if checkpoint.causal
        else "BERT-like encoder (pre-trained on masked tokens and next sentences, so it uses [CLS], [SEP] and segments)"
    )
    losses = f"{last['token']:.2f} nats per {'next' if checkpoint.causal else 'masked'} token"
    if "next_sentence" in last:
        losses += f", {last['next_sentence']:.2f} for the next sentence (chance level: 0.69)"
    return f"""# {checkpoint.name}

A small {kind}: {recipe["layers"]} layers x {recipe["heads"]} heads, width {recipe["hidden"]}, {recipe["vocabulary"]:,}
tokens in the vocabulary, {recipe["positions"]} positions; stored in float16 and opened in float32. Made by this project
so that Attention Atlas works without a network. The model is for studying attention; it has little knowledge of
language.

- **Data.** {CORPUS}
- **Recipe.** `{command(checkpoint, recipe)}`, with the corpus above as CORPUS.txt: \
{last["step"] * recipe["batch_tokens"]:,} tokens in batches of {recipe["batch_tokens"]:,}, \
{optimizer(recipe)}, with {recipe["warm_up_steps"]} warm-up steps, falling to zero over the last fifth; seed \
{recipe["seed"]}; bfloat16 autocast on one CPU core. `training.json` has every option and the loss during training;
docs/decisions/004 explains the choices.
- **Held-out loss** (on the last 0.5 % of the corpus, which was not used for training): {losses}.
- **Licence.** MIT for the weights.

On 80 of the bundled MRPC-like pairs (`python -m data.recipes.cards {checkpoint.name}` prints this table):

{table(checkpoint, mean_scores(checkpoint))}
{curve_of(checkpoint.name)}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=[config.ENCODER, config.DECODER])
    name = parser.parse_args().name
    folder = config.BUNDLED_MODELS / name
    training = json.loads((folder / "training.json").read_text(encoding="utf-8"))
    text = card(open_checkpoint(name), training)
    (folder / "README.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
