"""The claims of the sources, declared in claims.toml in their order, and the test of each."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..ids import ExhibitId
from . import changes, class_shares, disabling, heads_and_layers, maps, probes, scores
from .outcomes import Test

# ---------------------------------------------------------------- claims


@dataclass(frozen=True)
class Correction:
    """The correction for multiple testing that a claim uses, and the meaning of each outcome under this correction."""

    says: str
    holds: str
    fails: str
    undecided: str
    counts: bool = False


@dataclass(frozen=True)
class Claim:
    """A claim from a paper or another source, with the test that decides it.

    Attributes:
        causal: checkpoints that it is about: decoders (True) or encoders.
        margin: value that the statistic (or difference of two numbers) is compared with; None without a test, or if
            each task has its own.
        tuned: whether it is about changes by fine-tuning, so that seeds are reported.
        error: known error of the claim, or "".
    """

    id: str
    sentence: str
    source: str
    exhibit: ExhibitId
    test: Test
    correction: Correction
    section: str = ""
    causal: Sequence[bool] = (False, True)
    margin: float | None = None
    tuned: bool = False
    error: str = ""

    @property
    def statistic(self) -> str:
        """Describe in words what the test of the claim measures."""
        return " ".join((self.test.__doc__ or "").split())

    @property
    def meanings(self) -> tuple[str, ...]:
        """Explain what the outcomes "holds", "does not hold" and "undecided" mean for this claim."""
        margin = "the limit for the task" if self.margin is None else f"{self.margin:.3g}"
        templates = (self.correction.holds, self.correction.fails, self.correction.undecided)
        return tuple(meaning.format(margin=margin) for meaning in templates)


TESTS: dict[str, Test] = {
    "last-two-layers": changes.last_two_layers,
    "gpt2-changes": changes.all_but_first_two,
    "99th-percentile": maps.percentile,
    "frame-heads": maps.survivors,
    "element-first": maps.element_first,
    "all-heads-carry": maps.only_the_sink,
    "harmless": maps.harmless_frame_heads,
    "cls-early": maps.early_and_late,
    "not-linguistic": maps.not_linguistic,
    "one-separator": maps.single_separator,
    "more-to-nouns": changes.more_to_nouns,
    "noun-pronoun": maps.diagonal_heads,
    "cls-row": maps.separator_or_punctuation,
    "shares-stay": class_shares.shares_stay,
    "pretraining": scores.pretraining_helps,
    "random-learns": scores.random_learns,
    "constant-cells": scores.constant_cells,
    "random-head": disabling.random_head_helps,
    "some-head": disabling.some_head_helps,
    "first-layer": disabling.first_layer_helps,
    "shared-heads": disabling.shared_heads,
    "nothing-changes": disabling.nothing_changes,
    "prunable": disabling.many_heads_go,
    "one-is-enough": disabling.one_head_is_enough,
    "neighbours": scores.neighbours,
    "separators": scores.separators_in_the_middle,
    "separator-gradients": maps.no_op,
    "separator-effects": maps.no_effect,
    "separator-origin": maps.made_by_blocks,
    "dependencies": scores.heads_beat_distances,
    "effective-drops": scores.effective_drops,
    "dominance": scores.dominance_shrinks,
    "special-tokens": heads_and_layers.special_tokens,
    "few-meaningful": class_shares.few_meaningful,
    "more-vertical": class_shares.more_vertical,
    "no-stripes": heads_and_layers.no_stripes_at_borders,
    "rise-and-fall": heads_and_layers.rise_and_fall,
    "negation-qnli": heads_and_layers.more_to_negation,
    "layer-costs": heads_and_layers.no_layer_costs_more,
    "tuned-beats-untuned": heads_and_layers.tuning_beats_untuned,
    "keeps-its-role": heads_and_layers.keeps_its_role,
    "no-whole-tree": probes.no_whole_tree,
    "attention-syntax": probes.attention_knows_syntax,
    "hierarchical": probes.hierarchical,
    "middle-transfers": probes.middle_transfers,
    "a-third-can-go": probes.a_third_can_go,
    "good-and-bad": probes.good_and_bad,
    "random-below-untuned": scores.tuned_random_below_untuned,
    "keeps-its-heads": changes.fine_tuning_keeps_heads,
    "mean-gain": scores.mean_gain,
    "sixteen-layers": heads_and_layers.sixteen_layers,
    "fifth-layer": heads_and_layers.fifth_layer_helps,
    "little-change": changes.most_change_little,
    "late-stripes": maps.late_stripes,
    "classified-by-separator": scores.by_separator,
    "fresh-last-layers": scores.fresh_last_layers,
    "gradient-and-effect": disabling.gradient_and_effect,
    "gradient-and-shapley": disabling.gradient_and_shapley,
    "gradient-and-gate": disabling.gradient_and_gate,
    "greedy-by-gradient": disabling.greedy_by_gradient,
    "all-combinations": disabling.all_combinations,
    "first-and-last": heads_and_layers.first_and_last,
    "words-of-both": disabling.words_of_both,
    "repeated-patterns": maps.repeated_patterns,
    "adjectives-matter": disabling.adjectives_matter,
    "frames-help": maps.frames_help,
}


NOT_COMPARED = "(the wording of this claim has not been compared with the source)"


@cache
def claims() -> tuple[Claim, ...]:
    """Return all claims that the report tests, in their order in the report."""
    declared = tomllib.loads(Path(__file__).with_name("claims.toml").read_text(encoding="utf-8"))
    corrections = {name: Correction(**correction) for name, correction in declared["correction"].items()}
    made = []
    for claim_table in declared["claim"]:
        if not claim_table.pop("compared", True):
            claim_table["section"] = f"{claim_table.get('section', '')} {NOT_COMPARED}".strip()
        objects = {
            "source": declared["source"].get(claim_table["source"], claim_table["source"]),
            "exhibit": ExhibitId(claim_table["exhibit"]),
            "test": TESTS[claim_table["id"]],
            "correction": corrections[claim_table["correction"]],
        }
        made.append(Claim(**claim_table | objects))
    return tuple(made)


def claim(id: str) -> Claim | None:
    """Return the claim with this ID, or None."""
    return next((registered for registered in claims() if registered.id == id), None)
