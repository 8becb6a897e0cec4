"""More SST-2-like rows than are bundled, of four times as many words: `python -m data.recipes.wide_reviews FOLDER`.

Writes FOLDER/SST-2/train.tsv (10,000 rows unless `--rows` says otherwise); beside it goes the dev.tsv that a checkpoint
trained on them is measured on. With `--held` a fifth of the words of praise and complaint are in no train row, and a
dev.tsv of 600 rows has only those: a setting that does well there has learned more than the words that it saw. All
words are this project's own (review_words.py, wide_words.py); nothing of GLUE's was looked at for them.
"""

import argparse
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from data.recipes import samples, wide_words
from data.recipes.sample_words import WORDS

ROWS, HELD_ROWS, PARTS = 10_000, 600, 5  # one part in five of the words is held out
REVIEWS = next(sample for sample in samples.SAMPLES if sample.folder == "SST-2")


def every_word() -> dict[str, list[str]]:
    """The bundled words of praise and complaint and the wide ones, by list; each once."""
    wide = {f"{kind}_good": words for kind, words in wide_words.GOOD.items()}
    wide |= {f"{kind}_bad": words for kind, words in wide_words.BAD.items()}
    return {
        name: list(dict.fromkeys([*WORDS[name], *(" ".join(word.split()) for word in words.split("|"))]))
        for name, words in wide.items()
    }


def is_held(word: str) -> bool:
    """Whether a word is of the part that `--held` keeps out of the train rows."""
    return hashlib.sha256(word.encode()).digest()[0] % PARTS == 0


@contextmanager
def speaking(words: dict[str, list[str]]) -> Iterator[None]:
    """These lists in place of the bundled ones while rows are drawn."""
    bundled = {name: WORDS[name] for name in words}
    WORDS.update(words)
    try:
        yield
    finally:
        WORDS.update(bundled)


def drawn(words: dict[str, list[str]], count: int, seed: str, taken: set[str], least: int) -> list[samples.Row]:
    """`count` reviews of these words, none with a sentence in `taken`."""
    with speaking(words):
        return samples.draw(REVIEWS, count, seed, taken, least)


def files(rows: int = ROWS, *, held: bool = False) -> dict[str, str]:
    """The text of each file by its name."""
    words = every_word()
    if not held:
        return {"train.tsv": text_of(drawn(words, rows, "wide-train", set(), REVIEWS.least))}
    kept = {name: [word for word in known if not is_held(word)] for name, known in words.items()}
    out = {name: [word for word in known if is_held(word)] for name, known in words.items()}
    dev = drawn(out, HELD_ROWS, "wide-held", set(), 1)
    taken = set().union(*(samples.sentences_of(row) for row in dev))
    return {"train.tsv": text_of(drawn(kept, rows, "wide-train", taken, REVIEWS.least)), "dev.tsv": text_of(dev)}


def text_of(rows: list[samples.Row]) -> str:
    """Rows as SST-2's TSV."""
    return "\n".join([REVIEWS.header, *(REVIEWS.line(number, row) for number, row in enumerate(rows))]) + "\n"


def main() -> None:
    """Write the files."""
    given = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    given.add_argument("out", type=Path)
    given.add_argument("--rows", type=int, default=ROWS)
    given.add_argument("--held", action="store_true", help="hold a fifth of the words out, for a dev.tsv of those")
    chosen = given.parse_args()
    folder = chosen.out / REVIEWS.folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files(chosen.rows, held=chosen.held).items():
        (folder / name).write_text(text, encoding="utf-8")
        print(f"{folder / name}: {text.count(chr(10)) - 1} rows")


if __name__ == "__main__":
    main()
