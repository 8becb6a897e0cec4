"""How often the Frames page proposes what annotators marked: frames of given targets, spans of elements.

On the bundled sentences, and on full texts of a FrameNet release where ATLAS_FRAMENET names its folder (a seeded
sample of MOST annotations). The baseline of a frame is the commonest one that the lexicon has for the lexical unit that
was marked. Spans are compared without punctuation. These are shares of what was marked, not times; one thing is
generous: which element a place usually is was counted over the whole release, these texts among it (names, not spans).
"""

import random
from collections.abc import Iterable, Sequence
from typing import Any

from core import config
from core.frames.lexicon import Lexicon, bundled_lexicon, head_of, propose_elements
from core.frames.records import AnnotatedSentence, covered
from core.frames.release import open_release
from core.frames.rows import read_sentences
from core.studies.frames.frame_lookup import propose_targets
from core.studies.tagging import open_pipeline, tag

MOST = 1500


def main() -> dict[str, object]:
    lexicon = bundled_lexicon()
    figures = measure("bundled", read_sentences(config.SAMPLES / "frames" / "sentences.jsonl").sentences, lexicon)
    folder = config.settings().framenet
    if folder:
        figures |= measure("full_texts", sample(full_texts(open_release(folder))), lexicon)
    return figures


def full_texts(release: Any) -> Iterable[AnnotatedSentence]:
    for document in release.documents:
        yield from release.full_text(document).sentences


def sample(sentences: Iterable[AnnotatedSentence]) -> list[AnnotatedSentence]:
    marked = [sentence for sentence in sentences if sentence.target and sentence.frame]
    return random.Random(0).sample(marked, min(MOST, len(marked)))  # noqa: S311 - a sample, no secret


def measure(name: str, sentences: Sequence[AnnotatedSentence], lexicon: Lexicon) -> dict[str, object]:
    pipeline = open_pipeline(None)
    counts = dict.fromkeys(("targets", "proposed", "known", "right", "baseline", "elements", "exact", "by_head"), 0)
    for sentence, words in zip(sentences, tag([one.text for one in sentences], pipeline), strict=True):
        count_frame(sentence, words, lexicon, counts)
        count_elements(sentence, words, lexicon, counts)
    known, elements = max(1, counts["known"]), max(1, counts["elements"])
    return {
        f"{name}_targets": counts["targets"],
        f"{name}_targets_with_a_proposal": counts["proposed"] / max(1, counts["targets"]),
        f"{name}_frame_right_where_the_unit_is_known": counts["right"] / known,
        f"{name}_frame_baseline": counts["baseline"] / known,
        f"{name}_elements": counts["elements"],
        f"{name}_span_exact": counts["exact"] / elements,
        f"{name}_span_by_head_word": counts["by_head"] / elements,
    }


def count_frame(sentence: AnnotatedSentence, words: Any, lexicon: Lexicon, counts: dict[str, int]) -> None:
    target = set(covered(sentence.target, words.spans))
    proposals = [one for one in propose_targets(words, lexicon) if set(one.words) == target]
    counts["targets"] += 1
    counts["proposed"] += bool(proposals)
    if sentence.lexical_unit in lexicon.units and proposals:
        counts["known"] += 1
        counts["right"] += proposals[0].frame == sentence.frame
        counts["baseline"] += lexicon.units[sentence.lexical_unit][0] == sentence.frame


def count_elements(sentence: AnnotatedSentence, words: Any, lexicon: Lexicon, counts: dict[str, int]) -> None:
    target = covered(sentence.target, words.spans)
    if not target or sentence.frame not in lexicon.roles:
        return
    elements = propose_elements(words, head_of(words.words, target), lexicon.of(sentence.frame))
    proposed = [{k for k in each.words if words.words[k].pos != "PUNCT"} for each in elements]
    for element in sentence.elements:
        marked = {k for k in covered(element.spans, words.spans) if words.words[k].pos != "PUNCT"}
        if not marked or marked & set(target) or not (element.coreness or "Core").startswith("Core"):
            continue
        head = next((k for k in sorted(marked) if words.words[k].head not in marked), min(marked))
        counts["elements"] += 1
        counts["exact"] += marked in proposed
        counts["by_head"] += any(head in span for span in proposed)
