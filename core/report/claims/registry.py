"""The sentences of the sources that a report tests, in their order; sections are those of the sources."""

from dataclasses import dataclass

from core.report.claims import maps, missed, scores, separators
from core.report.claims.outcomes import Test
from core.report.exhibits import BOTH, BRUNNER, DECODERS, ENCODERS
from core.report.ids import ExhibitId
from core.report.published import CLARK, MICHEL, PAPER, PRASANNA, REPLICATION

SUMMARIES = f"summaries of {PAPER}"


@dataclass(frozen=True)
class Claim:
    """A sentence of a source. test: on the evidence of one checkpoint; error: what is known to be wrong with it."""

    id: str
    sentence: str
    source: str
    section: str
    exhibit: ExhibitId
    test: Test
    causal: tuple[bool, ...] = BOTH
    error: str = ""


CLAIMS = (
    Claim(
        "last-two-layers",
        "The last two layers change most (on all tasks but QQP).",
        PAPER,
        "4.3",
        ExhibitId.CHANGE,
        maps.last_two_layers,
    ),
    Claim(
        "gpt2-changes",
        "GPT-2 changes in all layers but the first two.",
        REPLICATION,
        "change",
        ExhibitId.CHANGE,
        maps.all_but_first_two,
        DECODERS,
        "Its reference is the whole model, its fine-tuned one the one-block pass.",
    ),
    Claim(
        "99th-percentile",
        "Two heads exceed the 99th percentile.",
        PAPER,
        "4.2",
        ExhibitId.FRAMES,
        maps.percentile,
        BOTH,
        "Two of 144 numbers always do.",
    ),
    Claim(
        "frame-heads",
        "There are heads that carry frame-semantic relations.",
        PAPER,
        "4.2",
        ExhibitId.FRAMES,
        maps.survivors,
    ),
    Claim(
        "element-first",
        "(The code's data:) frame elements stand before their targets, 441 of 481.",
        PAPER,
        "4.2",
        ExhibitId.FRAMES,
        maps.element_first,
    ),
    Claim(
        "all-heads-carry",
        "Almost all heads of GPT-2 have high weight on frame links.",
        REPLICATION,
        "linguistic knowledge",
        ExhibitId.SINK,
        maps.only_the_sink,
        DECODERS,
        "The links end at the first token.",
    ),
    Claim(
        "harmless",
        "Disabling the frame heads lowers no task's score.",
        PAPER,
        "4.6",
        ExhibitId.HEADS,
        maps.harmless_frame_heads,
    ),
    Claim(
        "cls-early",
        "Early layers attend to [CLS], later ones to [SEP].",
        PAPER,
        "4.4",
        ExhibitId.FEATURES,
        maps.early_and_late,
    ),
    Claim(
        "not-linguistic",
        "Vertical stripes are [CLS] and [SEP], not linguistic features.",
        PAPER,
        "4.4",
        ExhibitId.FEATURES,
        maps.not_linguistic,
        ENCODERS,
    ),
    Claim(
        "one-separator",
        "SST-2 has the most weight on [SEP], having only one.",
        PAPER,
        "4.4",
        ExhibitId.FEATURES,
        maps.single_separator,
        ENCODERS,
    ),
    Claim(
        "more-to-nouns",
        "Fine-tuning raises attention to nouns and objects on MRPC, RTE and QQP.",
        PAPER,
        "4.4",
        ExhibitId.FEATURES,
        maps.more_to_nouns,
    ),
    Claim(
        "noun-pronoun",
        "The best noun-pronoun heads are diagonal heads.",
        PAPER,
        "4.5",
        ExhibitId.TOKENS,
        maps.diagonal_heads,
    ),
    Claim(
        "cls-row",
        "In the last layer [CLS] attends to [SEP], but to punctuation on STS-B, RTE and QNLI.",
        PAPER,
        "4.5",
        ExhibitId.TOKENS,
        maps.separator_or_punctuation,
    ),
    Claim(
        "shares-stay",
        "Class shares barely change with fine-tuning.",
        PRASANNA,
        "notebook",
        ExhibitId.SHARES,
        scores.shares_stay,
        ENCODERS,
    ),
    Claim(
        "pretraining",
        "Pre-training, fine-tuned, beats random weights, fine-tuned, on every task.",
        PAPER,
        "4.3",
        ExhibitId.TABLE_1,
        scores.pretraining_helps,
    ),
    Claim(
        "random-learns",
        "Random weights, fine-tuned, do disturbingly well.",
        "a later blog on the paper",
        "",
        ExhibitId.TABLE_1,
        scores.random_learns,
        BOTH,
        "Four of the seven cells equal a constant predictor.",
    ),
    Claim(
        "constant-cells",
        "(Known error:) printed cells equal a constant predictor.",
        PAPER,
        "4.3",
        ExhibitId.TABLE_1,
        scores.constant_cells,
    ),
    Claim(
        "random-head",
        "Disabling a random head on average helps on MRPC and RTE.",
        PAPER,
        "4.6",
        ExhibitId.HEADS,
        scores.random_head_helps,
    ),
    Claim(
        "some-head",
        "On every task disabling some head helps.",
        PAPER,
        "4.6",
        ExhibitId.HEADS,
        scores.some_head_helps,
        BOTH,
        "The best of 144 tries is a gain by chance alone; the test is on rows that did not choose it.",
    ),
    Claim(
        "first-layer",
        "Disabling the first layer helps on RTE.",
        PAPER,
        "4.6",
        ExhibitId.LAYERS,
        scores.first_layer_helps,
    ),
    Claim(
        "shared-heads", "STS-B and RTE share their important heads.", PAPER, "4.6", ExhibitId.HEADS, scores.shared_heads
    ),
    Claim(
        "nothing-changes",
        "GPT-2's results are the same before and after disabling heads.",
        REPLICATION,
        "ablation",
        ExhibitId.HEADS,
        scores.nothing_changes,
        DECODERS,
        "The disabled blocks could not reach the output.",
    ),
    Claim(
        "prunable",
        "A fifth to two fifths of all heads can be removed without a noticeable loss.",
        MICHEL,
        "4.2",
        ExhibitId.PRUNE,
        scores.many_heads_go,
    ),
    Claim(
        "one-is-enough", "In most layers one head is enough.", MICHEL, "3.3", ExhibitId.ALONE, scores.one_head_is_enough
    ),
    Claim(
        "neighbours",
        "Some heads put more than half of their weight on the previous token, some on the next.",
        CLARK,
        "3.1",
        ExhibitId.STATISTICS,
        scores.neighbours,
    ),
    Claim(
        "separators",
        "Layers 6 to 10 put more than half of their weight on [SEP].",
        CLARK,
        "3.2",
        ExhibitId.STATISTICS,
        scores.separators_in_the_middle,
        ENCODERS,
    ),
    Claim(
        "separator-gradients",
        "Attention to [SEP] is a no-op: from layer 5 up the loss hardly moves with it.",
        CLARK,
        "3.2, Fig 5",
        ExhibitId.STATISTICS,
        separators.no_op,
        ENCODERS,
        "The paper's loss is that of masked words before fine-tuning; ours is that of the fine-tuned task.",
    ),
    Claim(
        "dependencies",
        "Single heads beat fixed distances on most dependencies.",
        CLARK,
        "4.2",
        ExhibitId.DEPENDENCIES,
        scores.heads_beat_distances,
    ),
    Claim(
        "effective-drops",
        "Raw and effective attention part as inputs grow longer than a head is wide.",
        BRUNNER,
        "3",
        ExhibitId.EFFECTIVE,
        scores.effective_drops,
    ),
    Claim(
        "dominance",
        "In effective attention [CLS], [SEP] and punctuation dominate less.",
        BRUNNER,
        "3",
        ExhibitId.EFFECTIVE,
        scores.dominance_shrinks,
    ),
    Claim(
        "special-tokens",
        "A third or more of the heads attend simply to [SEP] and [CLS].",
        SUMMARIES,
        "",
        ExhibitId.STATISTICS,
        missed.special_tokens,
        ENCODERS,
    ),
    Claim(
        "few-meaningful",
        "Less than half of the heads show patterns that could be meaningful.",
        SUMMARIES,
        "",
        ExhibitId.SHARES,
        missed.few_meaningful,
        ENCODERS,
        "By the paper's own figure Heterogeneous and Block maps are 59 to 61 % on STS-B, QQP and MNLI.",
    ),
    Claim(
        "more-vertical",
        "Fine-tuning relies more on vertical attention.",
        SUMMARIES,
        "",
        ExhibitId.SHARES,
        missed.more_vertical,
        ENCODERS,
    ),
    Claim(
        "no-stripes",
        "GPT-2 has no vertical maps at sentence borders.",
        REPLICATION,
        "patterns",
        ExhibitId.FEATURES,
        missed.no_stripes_at_borders,
        DECODERS,
        "Only its last block reached the output of the pass that was looked at.",
    ),
    Claim(
        "rise-and-fall",
        "Weight on nouns and verbs rises with depth, and falls after fine-tuning.",
        REPLICATION,
        "linguistic features",
        ExhibitId.FEATURES,
        missed.rise_and_fall,
        BOTH,
        "It reads the row of the token instead of its column.",
    ),
    Claim(
        "negation-qnli",
        "Fine-tuning raises attention to negation on QNLI.",
        PAPER,
        "4.4",
        ExhibitId.FEATURES,
        missed.more_to_negation,
    ),
    Claim(
        "layer-costs",
        "Disabling a whole layer lowers the score on QNLI and MNLI (by up to 0.2 points).",
        PAPER,
        "4.6",
        ExhibitId.LAYERS,
        missed.some_layer_costs,
    ),
    Claim(
        "tuned-beats-untuned",
        "Fine-tuned BERT beats pre-trained BERT on every task.",
        PAPER,
        "4.3",
        ExhibitId.TABLE_1,
        missed.tuning_beats_untuned,
        BOTH,
        "The pre-trained column is a head that was never trained: three of its cells equal a constant predictor.",
    ),
    Claim(
        "keeps-its-role",
        "What a head does on one task is rarely what it does over the whole distribution.",
        SUMMARIES,
        "",
        ExhibitId.STATISTICS,
        missed.keeps_its_role,
    ),
)


def claim(id: str) -> Claim | None:
    """The claim of an id, or None."""
    return next((one for one in CLAIMS if one.id == id), None)
