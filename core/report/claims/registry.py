"""The sentences of the sources that a report tests: claims.toml has them in their order, here is the test of each."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from ..ids import ExhibitId
from . import (
    beside,
    changes,
    class_shares,
    disabling,
    further,
    heads_and_layers,
    maps,
    probes,
    remaining,
    scores,
    separators,
    together,
)
from .claim import Claim, Correction
from .outcomes import Test

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
    "separator-gradients": separators.no_op,
    "separator-origin": separators.made_by_blocks,
    "dependencies": scores.heads_beat_distances,
    "effective-drops": scores.effective_drops,
    "dominance": scores.dominance_shrinks,
    "special-tokens": heads_and_layers.special_tokens,
    "few-meaningful": class_shares.few_meaningful,
    "more-vertical": class_shares.more_vertical,
    "no-stripes": heads_and_layers.no_stripes_at_borders,
    "rise-and-fall": heads_and_layers.rise_and_fall,
    "negation-qnli": heads_and_layers.more_to_negation,
    "layer-costs": heads_and_layers.some_layer_costs,
    "tuned-beats-untuned": heads_and_layers.tuning_beats_untuned,
    "keeps-its-role": heads_and_layers.keeps_its_role,
    "no-whole-tree": probes.no_whole_tree,
    "attention-syntax": probes.attention_knows_syntax,
    "hierarchical": probes.hierarchical,
    "middle-transfers": probes.middle_transfers,
    "a-third-can-go": probes.a_third_can_go,
    "good-and-bad": probes.good_and_bad,
    "random-below-untuned": further.tuned_random_below_untuned,
    "keeps-its-heads": further.fine_tuning_keeps_heads,
    "mean-gain": further.mean_gain,
    "sixteen-layers": further.sixteen_layers,
    "fifth-layer": further.fifth_layer_helps,
    "little-change": changes.most_change_little,
    "late-stripes": further.late_stripes,
    "classified-by-separator": beside.by_separator,
    "fresh-last-layers": beside.fresh_last_layers,
    "gradient-and-effect": together.gradient_and_effect,
    "gradient-and-shapley": together.gradient_and_shapley,
    "gradient-and-gate": together.gradient_and_gate,
    "greedy-by-gradient": together.greedy_by_gradient,
    "all-combinations": together.all_combinations,
    "first-and-last": remaining.first_and_last,
    "words-of-both": remaining.words_of_both,
    "repeated-patterns": remaining.repeated_patterns,
    "adjectives-matter": remaining.adjectives_matter,
    "frames-help": remaining.frames_help,
}


@cache
def claims() -> tuple[Claim, ...]:
    """All claims, in the report's order."""
    declared = tomllib.loads(Path(__file__).with_name("claims.toml").read_text(encoding="utf-8"))
    corrections = {name: Correction(**correction) for name, correction in declared["correction"].items()}
    return tuple(Claim(**claim_table | _objects(claim_table, corrections)) for claim_table in declared["claim"])


def _objects(claim_table: dict[str, Any], corrections: dict[str, Correction]) -> dict[str, Any]:
    """What a claim's names lead to."""
    return {
        "exhibit": ExhibitId(claim_table["exhibit"]),
        "test": TESTS[claim_table["id"]],
        "correction": corrections[claim_table["correction"]],
    }


def claim(id: str) -> Claim | None:
    """The claim of an id, or None."""
    return next((registered for registered in claims() if registered.id == id), None)
