"""Parse sentences of this project with the bundled English pipeline: a small treebank for first tries, by machine.

    python -m data.recipes.treebank

Writes data/treebank/atlas-{train,dev,test}.conllu. The sentences are those of data/samples (CC0); nobody checked the
trees, so a score on them says how well a probe agrees with the pipeline.
"""

import random

from core.studies.tagging import open_pipeline, tag
from core.tasks.conllu import BUNDLED, unusable
from core.tasks.features import TaggedSentence
from core.tasks.glue import TASKS, read_rows

SIZES = {"train": 1000, "dev": 200, "test": 200}
SEED, MOST_WORDS = 21, 40


def texts(split: str) -> list[str]:
    every = [text for key in TASKS for row in read_rows(key, split) for text in (row.text, row.pair) if text]
    known = sorted({text for text in every if len(text.split()) > 3})
    random.Random(SEED).shuffle(known)
    return known


def lines(number: int, part: str, sentence: TaggedSentence) -> list[str]:
    written = [f"# sent_id = {part}-{number}", f"# text = {sentence.text}"]
    for k, word in enumerate(sentence.words):
        head = 0 if word.head == k else word.head + 1
        follows = sentence.words[k + 1].start if k + 1 < len(sentence.words) else None
        space = "SpaceAfter=No" if follows == word.end else "_"
        written.append(f"{k + 1}\t{word.text}\t_\t{word.pos}\t{word.tag}\t_\t{head}\t{word.dep}\t_\t{space}")
    return [*written, ""]


def main() -> None:
    pipeline, used = open_pipeline(), set()
    BUNDLED.mkdir(parents=True, exist_ok=True)
    for part, size in SIZES.items():
        fresh = [text for text in texts("train" if part == "train" else "dev") if text not in used]
        tagged = tag(fresh[: 2 * size], pipeline)
        usable = [sentence for sentence in tagged if unusable(sentence.words) is None]
        good = [sentence for sentence in usable if len(sentence.words) <= MOST_WORDS][:size]
        used |= {sentence.text for sentence in good}
        written = [line for number, sentence in enumerate(good, start=1) for line in lines(number, part, sentence)]
        (BUNDLED / f"atlas-{part}.conllu").write_text("\n".join(written) + "\n", encoding="utf-8")
        print(f"{part}: {len(good)} sentences, {sum(len(sentence.words) for sentence in good)} words")


if __name__ == "__main__":
    main()
