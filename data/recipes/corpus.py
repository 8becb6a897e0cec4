"""Turn folders of plain text into one corpus file: a document a block, a sentence a line.

    python -m data.recipes.corpus --out corpus.txt FOLDER_OR_FILE[:REPEATS] ...

Blocks are separated by an empty line, which is what `pretrain` reads. Any UTF-8 text file will do; a
folder is searched for files (`.txt`, `.mrg`, `.pos` or without an ending). `REPEATS` writes a source
several times, so that a small modern source is not drowned by a large old one.
"""

import argparse
import random
import re
from collections.abc import Iterator
from pathlib import Path

SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]*[A-Z])")
TAGGED = re.compile(r"^\S+_[A-Z$.,:'`()-]+$")
PASSAGE_CHARACTERS = 4000  # a book is cut into documents of about this length
ROMAN_OR_NUMBER = re.compile(r"^[\sIVXLC0-9.]+$")


def text_files(source: Path) -> list[Path]:
    """The files under `source` that hold running text, in a fixed order."""
    if source.is_file():
        return [source]
    return sorted(
        p
        for p in source.rglob("*")
        if p.is_file()
        and p.suffix in {".txt", ".pos", ".mrg", ""}
        and p.name.upper() != "README"
        and "README" not in p.name
        and p.name != "categories.txt"
    )


def without_tags(text: str) -> str:
    """Drop the tags of a word_TAG file; other text comes back as it is."""
    words = text.split()
    tagged = sum(bool(TAGGED.match(word)) for word in words[:200])
    if not words or tagged < 0.8 * len(words[:200]):
        return text
    return "\n\n".join(" ".join(word.rsplit("_", 1)[0] for word in line.split()) for line in text.splitlines())


def joined_punctuation(text: str) -> str:
    """Undo the spaces that tokenised corpora put round punctuation."""
    text = re.sub(r"\s+([.,!?;:%)\]])", r"\1", text)
    text = re.sub(r"([(\[$])\s+", r"\1", text)
    text = re.sub(r"(\w) ?(n't|'s|'re|'ve|'ll|'d|'m)\b", r"\1\2", text)
    return re.sub(r"``\s*|\s*''", '"', text)


def sentences(paragraph: str) -> list[str]:
    """Sentences of a paragraph; lower-case corpora are split at ` . ` instead."""
    line = " ".join(paragraph.replace("_", "").split())
    if not line or ROMAN_OR_NUMBER.match(line) or len(line) < 20:
        return []
    parts = re.split(r"(?<= [.!?])\s+", line) if line == line.lower() else SENTENCE_END.split(line)
    return [joined_punctuation(part).strip() for part in parts if sum(c.isalpha() for c in part) > 0.6 * len(part)]


def documents(text: str) -> Iterator[list[str]]:
    """Documents of about PASSAGE_CHARACTERS, each a list of sentences."""
    document: list[str] = []
    size = 0
    for paragraph in re.split(r"\n\s*\n", without_tags(text)):
        for sentence in sentences(paragraph):
            document.append(sentence)
            size += len(sentence)
        if size >= PASSAGE_CHARACTERS:
            yield document
            document, size = [], 0
    if len(document) > 1:
        yield document


def sources(arguments: list[str]) -> Iterator[tuple[Path, int]]:
    for argument in arguments:
        path, _, repeats = argument.partition(":")
        if not Path(path).exists():
            raise SystemExit(f"corpus: no file or folder at {path}")
        yield Path(path), int(repeats or 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sources", nargs="+", help="file or folder, :N to write it N times")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--characters", type=int, default=160_000_000, help="stop after about this much")
    options = parser.parse_args()
    blocks = [
        block
        for path, repeats in sources(options.sources)
        for file in text_files(path)
        for block in documents(file.read_text(encoding="utf-8", errors="replace"))
        for _ in range(repeats)
    ]
    random.Random(options.seed).shuffle(blocks)
    written = 0
    with options.out.open("w", encoding="utf-8") as out:
        for block in blocks:
            if written > options.characters:
                break
            written += out.write("\n".join(block) + "\n\n")
    print(f"{written:,} characters in {options.out}")


if __name__ == "__main__":
    main()
