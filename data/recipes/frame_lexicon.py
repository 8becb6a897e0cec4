"""Derive data/samples/frames/lexicon.json from a FrameNet release: names of frames, elements and lexical units.

    python -m data.recipes.frame_lexicon FOLDER [--least 5]

Only names and counts are taken, no sentence and no definition. For each frame: its core elements, its FEcoreSets, and
which element its annotations most often put in the subject (FrameNet's external argument), the object, and after each
preposition, so that a parser's spans can be given a proposed name. A unit's frames come by how many lexicographic
annotations each has, the commonest first.
"""

import argparse
import json
import re
from collections import Counter, defaultdict
from pathlib import Path

from defusedxml import ElementTree

from core.config import SAMPLES
from core.frames.release import open_release
from core.frames.rows import read_sentences

FN = "{http://framenet.icsi.berkeley.edu}"
LEAST_PREPOSITION = 5  # annotations, before a preposition is taken to say something


def roles_of(file: Path) -> Counter[tuple[str, str, str]]:
    """How often each (place, preposition, element) is annotated in a lexical unit's file."""
    counts = Counter[tuple[str, str, str]]()
    for pattern in ElementTree.parse(file).iter(f"{FN}pattern"):
        units = pattern.findall(f"{FN}valenceUnit")
        if len(units) != 1:
            continue  # group patterns repeat the single ones
        place, phrase = units[0].get("GF", ""), units[0].get("PT", "")
        preposition = (re.search(r"^PP(?:ing)?\[(\w+)\]", phrase) or ["", ""])[1]
        counts[place, preposition, units[0].get("FE", "")] += int(pattern.get("total", 0))
    return counts


def annotated(file: Path) -> tuple[int, int]:
    """Annotations of this unit: all, and those that lexicographers made (full texts are not among them)."""
    text = file.read_text(encoding="utf-8")
    total = re.search(r'totalAnnotated="(\d+)"', text[:1500])
    return int(total[1]) if total else 0, len(re.findall(r'<annotationSet [^>]*status="MANUAL"', text))


def best(counts: Counter[str]) -> str:
    return min(counts, key=lambda name: (-counts[name], name))


def by_count(counts: Counter[str]) -> list[str]:
    return sorted(counts, key=lambda name: (-counts[name], name))


def roles(counts: Counter[tuple[str, str, str]], core: list[str]) -> dict[str, object]:
    """The commonest core element in each place."""
    subject, direct, after = Counter[str](), Counter[str](), defaultdict(Counter[str])
    for (place, preposition, element), number in counts.items():
        if element not in core:
            continue
        if place == "Ext":
            subject[element] += number
        elif place == "Obj":
            direct[element] += number
        elif preposition:
            after[preposition][element] += number
    named: dict[str, object] = {}
    if subject:
        named["subject"] = best(subject)
    if direct:
        named["object"] = best(direct)
    common = {word: best(counter) for word, counter in sorted(after.items()) if counter.total() >= LEAST_PREPOSITION}
    return named | ({"prepositions": common} if common else {})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--least", type=int, default=5, help="annotated sentences a unit of one word must have")
    options = parser.parse_args()
    release = open_release(options.folder)
    annotated = read_sentences(SAMPLES / "frames/sentences.jsonl").sentences
    kept = {(sentence.lexical_unit, sentence.frame) for sentence in annotated}
    units, counts = defaultdict(Counter), defaultdict(Counter)
    for unit in release.lexical_units:
        file = release.folder / "lu" / f"lu{unit.number}.xml"
        if not file.is_file():
            continue
        counts[unit.frame] += roles_of(file)
        number, of_lexicographers = annotated(file)
        if number >= options.least or (unit.name, unit.frame) in kept or " " in unit.name:
            units[unit.name][unit.frame] = max(of_lexicographers, units[unit.name][unit.frame])
    frames = {}
    for name in sorted(set().union(*units.values())):
        facts = release.frame(name)
        core = [element for element, kind in facts.elements.items() if kind.startswith("Core")]
        core_sets = [list(core_set) for core_set in facts.core_sets]
        frames[name] = {"core": core, "core_sets": core_sets} | roles(counts[name], core)
    out = {
        "source": f"FrameNet {release.name.removeprefix('fndata-')}, names only, CC BY 3.0, ICSI Berkeley",
        "frames": frames,
        "lexical_units": {name: by_count(units[name]) for name in sorted(units)},
    }
    (SAMPLES / "frames/lexicon.json").write_text(
        json.dumps(out, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8"
    )
    print(f"{len(out['lexical_units'])} lexical units of {len(frames)} frames")


if __name__ == "__main__":
    main()
