"""The last sentences of the sources: GPT-2's first and last token, words of both sentences, and what no rows can test
yet."""

from core.report.claims.claim import Claim
from core.report.claims.disabling import MOST_HEADS, clear_losses
from core.report.claims.maps import gain, over
from core.report.claims.outcomes import (
    FAILS,
    HOLDS,
    UNTESTED,
    Outcome,
    all_of,
    decided,
    found_by,
    of_each,
    said,
    untested,
)
from core.report.estimates import among
from core.report.evidence import Evidence, StepResult
from core.report.exhibits import BOTH, DECODERS, ENCODERS
from core.report.ids import ExhibitId, Part
from core.report.published import PAPER, REPLICATION
from core.report.readings import sweep
from core.studies.attention.records import Score
from core.studies.estimate import Estimate
from core.studies.records import picked
from core.tasks.relations import SAME_WORD

SUMMARIES, BLOG = f"summaries of {PAPER}", "a later blog on the paper"
NO_LAST = "the features were measured without the last token of the first sentence: run that step anew"


def first_and_last(evidence: Evidence) -> list[Outcome]:
    """Heads look more at the first token, and at the last one of the first sentence, than at other tokens nearby, and
    less after fine-tuning than before: means over heads."""

    def test(result: StepResult) -> Outcome | None:
        decisions, sentences = [], []
        for feature in ("first", "last"):
            scores = picked(result.scores, statistic="max", feature=feature, checkpoint=evidence.checkpoint)
            beyond = [score.effect_estimate for score in scores if score.effect is not None]
            change = gain(result, feature)
            if not beyond or change is None:
                return Outcome(UNTESTED, NO_LAST, result.task) if feature == "last" else None
            decisions += [decided(over(beyond)), decided(change.turned)]
            sentences.append(f"{feature} token {said(over(beyond), 2)} beyond others nearby, {said(change, 2)} after")
        return found_by(result, all_of(decisions), "; ".join(sentences), result.n)

    return of_each(evidence, Part.FEATURES, test)


def words_of_both(evidence: Evidence) -> list[Outcome]:
    """Of the heads whose loss is clear on both STS-B and RTE, corrected over heads, more than half look at the same
    word in the other sentence, beyond the same distance elsewhere: in some direction, corrected over these heads."""
    swept = {task: evidence.one(Part.HEADS, task) for task in ("stsb", "rte")}
    lacking = [task for task, result in swept.items() if result is None]
    if lacking:
        return untested(evidence, Part.HEADS, lacking[0])
    first, other = (clear_losses(sweep(result.rows).known) for result in swept.values() if result is not None)
    relations = {task: result for task, result in evidence.by_task(Part.RELATIONS).items() if task in swept}
    if not relations:
        return untested(evidence, Part.RELATIONS)
    if not first & other:
        return [Outcome(UNTESTED, "no head has a clear loss on both tasks")]
    return [_of_the_same_word(result, task, first & other) for task, result in relations.items()]


def _of_the_same_word(result: StepResult, task: str, heads: set[str]) -> Outcome:
    """How many of these heads look at the same word in the other sentence."""
    every = picked(result.scores, task=task, feature=SAME_WORD)
    scores = [score for score in every if score.name in heads and score.effect is not None]
    words: dict[str, list[str]] = {}
    for score in scores:
        words.setdefault(score.name, []).append(decided(among(score.effect_estimate, len(scores))).word)
    sure = sum(HOLDS in mine for mine in words.values())
    never = sum(all(word == FAILS for word in mine) for mine in words.values())
    above = sum(any(_above(score) for score in picked(scores, name=name)) for name in words)
    if not words:
        return Outcome(UNTESTED, "no row has a word twice", task)
    share = Estimate(above / len(words), sure / len(words), 1 - never / len(words))
    sentence = f"{sure} of the {len(words)} heads that both tasks share ({', '.join(sorted(words))}) look there, "
    sentence += f"{len(words) - sure - never} may"
    return found_by(result, decided(share, MOST_HEADS), sentence, len(words), task)


def _above(score: Score) -> bool:
    return score.effect is not None and score.effect > 0


# ---------------------------------------------------------------- without rows


def repeated_patterns(evidence: Evidence) -> list[Outcome]:
    """More heads are more like another head than like themselves on other inputs: no study has rows of it."""
    alike = "how alike each head's maps are to other heads' on the same inputs and to its own on other inputs"
    return _needs(f"{alike}, beside random weights", evidence)


def adjectives_matter(evidence: Evidence) -> list[Outcome]:
    """Cutting links between nouns and adjectives changes sentiment more than cutting as many between nouns and
    prepositions at the same distance: no study has rows of it."""
    return _needs("a knockout of single links by parts of speech, paired by row and distance, on SST-2", evidence)


def frames_help(evidence: Evidence) -> list[Outcome]:
    """Scores rise with the weight that heads are made to put on frame links, and fall beyond some weight: no study has
    rows of it."""
    return _needs("scores with heads held at growing weights on frame links, some seeds of each weight", evidence)


def _needs(rows: str, evidence: Evidence) -> list[Outcome]:
    return [Outcome(UNTESTED, f"needs rows that no study makes yet: {rows} ({evidence.checkpoint})")]


REMAINING = (
    Claim("first-and-last", "GPT-2 looks at the first and the last token before fine-tuning, and not after.",
          REPLICATION, "attention", ExhibitId.FEATURES, first_and_last, DECODERS,
          "Its fine-tuned passes have one block of twelve, so what they show is not GPT-2's."),
    Claim("words-of-both", "The heads that STS-B and RTE share look at words of both sentences.", BLOG, "",
          ExhibitId.HEADS, words_of_both, ENCODERS),
    Claim("repeated-patterns", "Patterns are repeated in different heads.", REPLICATION, "patterns",
          ExhibitId.SHARES, repeated_patterns, BOTH),
    Claim("adjectives-matter", "Nouns and adjectives matter more for sentiment than nouns and prepositions.", SUMMARIES,
          "", ExhibitId.FEATURES, adjectives_matter, BOTH),
    Claim("frames-help", "Attention to frames helps up to a threshold.", REPLICATION, "linguistic knowledge",
          ExhibitId.FRAMES, frames_help, BOTH),
)  # fmt: skip
