"""The figures, tables and sentences of the sources that a report puts beside our numbers, in their order.

An exhibit's published numbers are in `published`, ours in `measures`; a claim's test is in `claims`. Sections are
those of the sources. Known errors of the sources are told with the exhibit they touch.
"""

from dataclasses import dataclass

from core.report.claims import maps, scores
from core.report.claims.outcomes import Test
from core.report.published import BERT, CLARK, GPT2, MICHEL, PAPER, PRASANNA, REPLICATION

BRUNNER = "Brunner et al. 2020"
ENCODERS, DECODERS = (False,), (True,)
BOTH = (False, True)


@dataclass(frozen=True)
class Exhibit:
    """A figure or table. parts: of the plan, that measure it; chart: how it is drawn; measured: how ours came about;
    errors: known ones of the sources; causal: which checkpoints it is about."""

    id: str
    title: str
    source: str
    section: str
    parts: tuple[str, ...]
    chart: str
    measured: str
    errors: tuple[str, ...] = ()
    causal: tuple[bool, ...] = BOTH


@dataclass(frozen=True)
class Claim:
    """A sentence of a source. test: on the evidence of one checkpoint; error: what is known to be wrong with it."""

    id: str
    sentence: str
    source: str
    section: str
    exhibit: str
    test: Test
    causal: tuple[bool, ...] = BOTH
    error: str = ""


ONE_BLOCK = (
    "The replication's forward pass gave every block the embeddings instead of the block below, so only the last of "
    "twelve blocks reached the output: its shares, changes and ablations say nothing about GPT-2."
)
EXHIBITS = (
    Exhibit(
        "shares", "Shares of the attention patterns", f"{PAPER}, {PRASANNA}, {REPLICATION}", "4.1, Figs 1 and 2",
        ("shares",), "stacked",
        "every head's map of dev rows, classified by the stored classifier, before and after fine-tuning; 95% "
        "bootstrap over inputs",
        ("The prose's Heterogeneous range of 32 to 61 % is Heterogeneous plus Block of its own figure (27.8 to 58.0).",
         "The same network trained again gave shares up to 30 points away (Prasanna et al.): shares depend on it.",
         ONE_BLOCK),
    ),
    Exhibit(
        "frames", "Heads on frame-semantic links", PAPER, "4.2, Fig 3", ("frames",), "heads",
        "mean over sentences of the largest weight from frame element to target (a decoder: from the later to the "
        "earlier one); two permutation nulls, Holm's correction over heads",
        ("The prose has the direction the other way round from the code, which reads the row of the frame element.",
         "The 99th percentile of 144 heads always leaves two above it.",
         "Only 319 of FrameNet's 1,221 frames have the core sets that the code filters by."),
    ),
    Exhibit(
        "sink", "The replication's links, and the first token", REPLICATION, "linguistic knowledge",
        ("sink", "sinkless"), "dots",
        "its 32 links of 23 sentences, then the same without the first position, rows renormalised",
        ("22 of its 32 links end at the first token, where every head rests: the map shows the sink, not frames.",
         "Its links join two frame elements, not a frame element and its target; one is wrong, half are unannotated."),
        DECODERS,
    ),
    Exhibit(
        "table-1", "Fine-tuned scores", f"{PAPER}, {REPLICATION}", "4.3, Table 1", ("tuning",), "dots",
        "means over seeds on the dev rows; Wilson's interval of an accuracy, Fisher's of a correlation, over dev rows",
        ("Seven cells equal a constant predictor to the printed digit: the pre-trained column is an untrained head, "
         "and random weights learned nothing on MRPC, QQP, RTE and QNLI.",
         "The STS-B column is headed Acc; it can only be a correlation x 100.", ONE_BLOCK,
         "The replication's MRPC run trained on the validation split from random weights."),
    ),
    Exhibit(
        "change", "Change of attention with fine-tuning", f"{PAPER}, {REPLICATION}", "4.3, Fig 5",
        ("change",), "layers",
        "cosine of a head's flattened maps before and after, cropped to real tokens; layer means with 95% bootstrap",
        ("The paper's notebook compares maps padded to 200 x 200, where padding queries have rows too: on 30 tokens "
         "they are 85 % of the rows.",
         "The replication compares the whole model with its one-block pass and feeds the first sentence twice."),
    ),
    Exhibit(
        "features", "Attention to linguistic features, [CLS] and [SEP]", PAPER, "4.4, Fig 6", ("features",), "layers",
        "mean over queries of the weight on the feature's token, the largest where there are several; mean over inputs "
        "that have one; interval: mean of the heads' intervals",
        ("The code matches words by string, anywhere in the input, negation even inside words ('nor' in 'minor').",
         "For all features but negation an input without one counts as 0 instead of being left out.",
         "The replication reads the row of the token instead of its column, and tags word pieces one by one."),
    ),
    Exhibit(
        "tokens", "Token to token, and the classifying token", PAPER, "4.5, Fig 7", ("relations", "features"), "dots",
        "mean weight along links, beside the same head at the same distance elsewhere; right, the last layer's row of "
        "[CLS] (a decoder: of the last token)",
        ("Relations are zipped from two sorted lists, so subjects are paired with verbs of other clauses.",
         "There is no public code for noun and pronoun."),
    ),
    Exhibit(
        "heads", "Disabling one head", PAPER, "4.6, Fig 8", ("heads",), "heads",
        "every head in turn uniform over the keys it sees; paired bootstrap over dev rows; p corrected over all heads "
        "(max-T); the best head's gain also on rows that did not choose it",
        ("+1.2 points on MRPC are 5 of 408 rows, the best of 144 tries; no test was made.", ONE_BLOCK,
         "The replication zeroed values, in blocks that could not reach the output, of a head it had not trained."),
    ),
    Exhibit(
        "layers", "Disabling one layer", PAPER, "4.6, Fig 9", ("layers",), "layers",
        "all heads of a layer uniform; paired bootstrap over dev rows", ("+3.2 points on RTE are 9 of 277 rows.",),
    ),
    Exhibit(
        "alone", "One head of a layer alone", MICHEL, "3.3, Table 2", ("alone",), "layers",
        "all heads of a layer but one zeroed; the best of each layer, chosen on the same rows",
    ),
    Exhibit(
        "importance", "Importance against what zeroing does", MICHEL, "4.1", ("importance",), "dots",
        "gradient of the loss with respect to a head's gate on train rows, per example; Spearman over heads",
        ("Its code takes the absolute value per token, the formula per example.",),
    ),
    Exhibit(
        "prune", "Removing heads for good", MICHEL, "4.2, Fig 3", ("prune",), "dots",
        "order found on train rows, curve on dev rows; the largest share before the paired interval falls below 0, and "
        "the next step: with few rows a loss goes unseen, so this is an upper bound",
    ),
    Exhibit(
        "statistics", "What heads do whatever the words are", CLARK, "3.1 to 3.3, Figs 2 and 3",
        ("statistics",), "dots",
        "means over dev rows of each task; counts with the counts of the intervals' lower and upper ends",
        ("In the notebook's third plot the legends of next and previous are swapped.",),
    ),
    Exhibit(
        "dependencies", "Single heads on dependencies", CLARK, "4.2, Table 1", ("dependencies",), "dots",
        "head, direction and distance chosen on the treebank's dev part, scored on its test part",
        ("The auxpass row of the paper looks shifted: its notebook prints 94.1 (baseline 82.5).",),
    ),
    Exhibit(
        "effective", "Effective attention", BRUNNER, "3, Figs 2 and 3", ("effective",), "lengths",
        "attention less its part in the left null space of the values, row by row, in float64; decoders per query",
    ),
)  # fmt: skip


CLAIMS = (
    Claim("last-two-layers", "The last two layers change most (on all tasks but QQP).", PAPER, "4.3", "change",
          maps.last_two_layers),
    Claim("gpt2-changes", "GPT-2 changes in all layers but the first two.", REPLICATION, "change", "change",
          maps.all_but_first_two, DECODERS, "Its reference is the whole model, its fine-tuned one the one-block pass."),
    Claim("99th-percentile", "Two heads exceed the 99th percentile.", PAPER, "4.2", "frames", maps.percentile, BOTH,
          "Two of 144 numbers always do."),
    Claim("frame-heads", "There are heads that carry frame-semantic relations.", PAPER, "4.2", "frames",
          maps.survivors),
    Claim("element-first", "(The code's data:) frame elements stand before their targets, 441 of 481.", PAPER, "4.2",
          "frames", maps.element_first),
    Claim("all-heads-carry", "Almost all heads of GPT-2 have high weight on frame links.", REPLICATION,
          "linguistic knowledge", "sink", maps.only_the_sink, DECODERS, "The links end at the first token."),
    Claim("harmless", "Disabling the frame heads lowers no task's score.", PAPER, "4.6", "heads",
          maps.harmless_frame_heads),
    Claim("cls-early", "Early layers attend to [CLS], later ones to [SEP].", PAPER, "4.4", "features",
          maps.early_and_late),
    Claim("not-linguistic", "Vertical stripes are [CLS] and [SEP], not linguistic features.", PAPER, "4.4", "features",
          maps.not_linguistic, ENCODERS),
    Claim("one-separator", "SST-2 has the most weight on [SEP], having only one.", PAPER, "4.4", "features",
          maps.single_separator, ENCODERS),
    Claim("more-to-nouns", "Fine-tuning raises attention to nouns and objects on MRPC, RTE and QQP.", PAPER, "4.4",
          "features", maps.more_to_nouns),
    Claim("noun-pronoun", "The best noun-pronoun heads are diagonal heads.", PAPER, "4.5", "tokens",
          maps.diagonal_heads),
    Claim("cls-row", "In the last layer [CLS] attends to [SEP], but to punctuation on STS-B, RTE and QNLI.", PAPER,
          "4.5", "tokens", maps.separator_or_punctuation),
    Claim("shares-stay", "Class shares barely change with fine-tuning.", PRASANNA, "notebook", "shares",
          scores.shares_stay, ENCODERS),
    Claim("pretraining", "Pre-training, fine-tuned, beats random weights, fine-tuned, on every task.", PAPER, "4.3",
          "table-1", scores.pretraining_helps),
    Claim("random-learns", "Random weights, fine-tuned, do disturbingly well.", "a later blog on the paper", "",
          "table-1", scores.random_learns, BOTH, "Four of the seven cells equal a constant predictor."),
    Claim("constant-cells", "(Known error:) printed cells equal a constant predictor.", PAPER, "4.3", "table-1",
          scores.constant_cells),
    Claim("random-head", "Disabling a random head on average helps on MRPC and RTE.", PAPER, "4.6", "heads",
          scores.random_head_helps),
    Claim("some-head", "On every task disabling some head helps.", PAPER, "4.6", "heads", scores.some_head_helps, BOTH,
          "The best of 144 tries is a gain by chance alone; the test is on rows that did not choose it."),
    Claim("first-layer", "Disabling the first layer helps on RTE.", PAPER, "4.6", "layers", scores.first_layer_helps),
    Claim("shared-heads", "STS-B and RTE share their important heads.", PAPER, "4.6", "heads", scores.shared_heads),
    Claim("nothing-changes", "GPT-2's results are the same before and after disabling heads.", REPLICATION, "ablation",
          "heads", scores.nothing_changes, DECODERS, "The disabled blocks could not reach the output."),
    Claim("prunable", "A fifth to two fifths of all heads can be removed without a noticeable loss.", MICHEL, "4.2",
          "prune", scores.many_heads_go),
    Claim("one-is-enough", "In most layers one head is enough.", MICHEL, "3.3", "alone", scores.one_head_is_enough),
    Claim("neighbours", "Some heads put more than half of their weight on the previous token, some on the next.", CLARK,
          "3.1", "statistics", scores.neighbours),
    Claim("separators", "Layers 6 to 10 put more than half of their weight on [SEP].", CLARK, "3.2", "statistics",
          scores.separators_in_the_middle, ENCODERS),
    Claim("dependencies", "Single heads beat fixed distances on most dependencies.", CLARK, "4.2", "dependencies",
          scores.heads_beat_distances),
    Claim("effective-drops", "Raw and effective attention part as inputs grow longer than a head is wide.", BRUNNER,
          "3", "effective", scores.effective_drops),
    Claim("dominance", "In effective attention [CLS], [SEP] and punctuation dominate less.", BRUNNER, "3", "effective",
          scores.dominance_shrinks),
)  # fmt: skip

PUBLISHED_ON = {PAPER: BERT, PRASANNA: BERT, CLARK: BERT, MICHEL: BERT, REPLICATION: GPT2}


def exhibit(id: str) -> Exhibit | None:
    """The exhibit of an id, or None."""
    return next((one for one in EXHIBITS if one.id == id), None)


def claim(id: str) -> Claim | None:
    """The claim of an id, or None."""
    return next((one for one in CLAIMS if one.id == id), None)
