"""The figures and tables of the sources that a report puts beside our numbers, in their order.

An exhibit's published numbers are in `published`, ours in `measures`; sentences are in `claims`. Sections are those of
the sources. Known errors of the sources are told with the exhibit they touch.
"""

from dataclasses import dataclass

from core.report.ids import ExhibitId, Part
from core.report.published_values import CLARK, MICHEL, PAPER, PRASANNA, REPLICATION

BRUNNER = "Brunner et al. 2020"
ENCODERS, DECODERS = (False,), (True,)
BOTH = (False, True)


@dataclass(frozen=True)
class Exhibit:
    """A figure or table. parts: of the plan, that measure it; chart: how it is drawn; measured: how ours came about;
    errors: known ones of the sources; causal: which checkpoints it is about."""

    id: ExhibitId
    title: str
    source: str
    section: str
    parts: tuple[Part, ...]
    chart: str
    measured: str
    errors: tuple[str, ...] = ()
    causal: tuple[bool, ...] = BOTH


ONE_BLOCK = (
    "The replication's forward pass gave every block the embeddings instead of the block below, so only the last of "
    "twelve blocks reached the output: its shares, changes and ablations say nothing about GPT-2."
)
EXHIBITS = (
    Exhibit(
        ExhibitId.SHARES,
        "Shares of the attention patterns",
        f"{PAPER}, {PRASANNA}, {REPLICATION}",
        "4.1, Figs 1 and 2",
        (Part.SHARES, Part.REDUNDANCY),
        "stacked",
        "every head's map of dev rows, classified by the stored classifier, before and after fine-tuning; 95% "
        "bootstrap over inputs",
        (
            "The prose's Heterogeneous range of 32 to 61 % is Heterogeneous plus Block of its own figure (27.8 to "
            "58.0).",
            "The same network trained again gave shares up to 30 points away (Prasanna et al.): shares depend on it.",
            ONE_BLOCK,
        ),
    ),
    Exhibit(
        ExhibitId.CLASSIFIER,
        "The classifier of patterns and its labels",
        REPLICATION,
        "patterns",
        (Part.SHARES,),
        "dots",
        "the classifier that ships for decoders: F1 on maps of checkpoints that it did not learn from, mean over "
        "classes, 95% bootstrap over inputs; shares of its labels, Wilson's interval",
        (
            "Its maps are 1024 x 1024, about 95 % of it padding, uncropped, and it is split map by map, so "
            "maps of one input may lie in both parts.",
        ),
        DECODERS,
    ),
    Exhibit(
        ExhibitId.FRAMES,
        "Heads on frame-semantic links",
        PAPER,
        "4.2, Fig 3",
        (Part.FRAMES,),
        "heads",
        "mean over sentences of the largest weight from frame element to target (a decoder: from the later to the "
        "earlier one); two permutation nulls, corrected over heads (Benjamini-Hochberg)",
        (
            "The prose has the direction the other way round from the code, which reads the row of the frame element.",
            "The 99th percentile of 144 heads always leaves two above it.",
            "Only 319 of FrameNet's 1,221 frames have the core sets that the code filters by.",
        ),
    ),
    Exhibit(
        ExhibitId.SINK,
        "The replication's links, and the first token",
        REPLICATION,
        "linguistic knowledge",
        (Part.SINK, Part.SINKLESS),
        "dots",
        "its 32 links of 23 sentences, then the same without the first position, rows renormalised",
        (
            "22 of its 32 links end at the first token, where every head rests: the map shows the sink, not frames.",
            "Its links join two frame elements, not a frame element and its target; one is wrong, half are "
            "unannotated.",
        ),
        DECODERS,
    ),
    Exhibit(
        ExhibitId.TABLE_1,
        "Fine-tuned scores",
        f"{PAPER}, {REPLICATION}",
        "4.3, Table 1",
        (Part.TUNING,),
        "dots",
        "means over seeds on the dev rows; over dev rows, Wilson's interval of an accuracy, F1's from its counts, "
        "Fisher's of a correlation, none of a squared error; where the best epoch was kept, the rows that chose it are "
        "the rows it is scored on",
        (
            "Seven cells equal a constant predictor to the printed digit: the column that the paper calls pre-trained "
            "is a head that was never trained (untrained here, where pretrained is its fine-tuned BERT), and random "
            "weights learned nothing on MRPC, QQP, RTE and QNLI.",
            "The STS-B column is headed Acc; it can only be a correlation x 100.",
            ONE_BLOCK,
            "The replication's MRPC run trained on the validation split from random weights.",
        ),
    ),
    Exhibit(
        ExhibitId.CHANGE,
        "Change of attention with fine-tuning",
        f"{PAPER}, {REPLICATION}",
        "4.3, Fig 5",
        (Part.CHANGE, Part.MATCH),
        "layers",
        "cosine of a head's flattened maps before and after, cropped to real tokens; layer means with 95% bootstrap",
        (
            "The paper's notebook compares maps padded to 200 x 200, where padding queries have rows too: on 30 tokens "
            "they are 85 % of the rows.",
            "The replication compares the whole model with its one-block pass and feeds the first sentence twice.",
        ),
    ),
    Exhibit(
        ExhibitId.FEATURES,
        "Attention to linguistic features, [CLS] and [SEP]",
        PAPER,
        "4.4, Fig 6",
        (Part.FEATURES, Part.WORD_LINKS),
        "layers",
        "mean over queries of the weight on the feature's token, the largest where there are several; mean over inputs "
        "that have one; interval: mean of the heads' intervals",
        (
            "The code matches words by string, anywhere in the input, negation even inside words ('nor' in 'minor').",
            "For all features but negation an input without one counts as 0 instead of being left out.",
            "The replication reads the row of the token instead of its column, and tags word pieces one by one.",
        ),
    ),
    Exhibit(
        ExhibitId.TOKENS,
        "Token to token, and the classifying token",
        PAPER,
        "4.5, Fig 7",
        (Part.RELATIONS, Part.FEATURES),
        "dots",
        "mean weight along links, beside the same head at the same distance elsewhere; right, the last layer's row of "
        "[CLS] (a decoder: of the last token)",
        (
            "Relations are zipped from two sorted lists, so subjects are paired with verbs of other clauses.",
            "There is no public code for noun and pronoun.",
        ),
    ),
    Exhibit(
        ExhibitId.HEADS,
        "Disabling one head",
        PAPER,
        "4.6, Fig 8",
        (Part.HEADS, Part.CROSSED),
        "heads",
        "every head in turn uniform over the keys it sees; paired bootstrap over dev rows; p corrected over all heads "
        "(max-T: on classes, predictions before and after change places row by row; on STS-B the signs of what each "
        "row adds to the change of r); the best head's gain also on rows that did not choose it",
        (
            "+1.2 points on MRPC are 5 of 408 rows, the best of 144 tries; no test was made.",
            ONE_BLOCK,
            "The replication zeroed values, in blocks that could not reach the output, of a head it had not trained.",
        ),
    ),
    Exhibit(
        ExhibitId.LAYERS,
        "Disabling one layer",
        PAPER,
        "4.6, Fig 9",
        (Part.LAYERS,),
        "layers",
        "all heads of a layer uniform; paired bootstrap over dev rows",
        ("+3.2 points on RTE are 9 of 277 rows.",),
    ),
    Exhibit(
        ExhibitId.ALONE,
        "One head of a layer alone",
        MICHEL,
        "3.3, Table 2",
        (Part.ALONE,),
        "layers",
        "all heads of a layer but one zeroed; the best of each layer, chosen on the same rows",
    ),
    Exhibit(
        ExhibitId.IMPORTANCE,
        "Importance against what zeroing does",
        MICHEL,
        "4.1",
        (Part.IMPORTANCE, Part.SHAPLEY, Part.GATES, Part.PAIRS),
        "dots",
        "gradient of the loss with respect to a head's gate on train rows, per example; Spearman over heads",
        ("Its code takes the absolute value per token, the formula per example.",),
    ),
    Exhibit(
        ExhibitId.PRUNE,
        "Removing heads for good",
        MICHEL,
        "4.2, Fig 3",
        (Part.PRUNE,),
        "dots",
        "order found on train rows, curve on dev rows; the largest share before the paired interval falls below 0, and "
        "the next step: with few rows a loss goes unseen, so this is an upper bound",
    ),
    Exhibit(
        ExhibitId.STATISTICS,
        "What heads do whatever the words are",
        CLARK,
        "3.1 to 3.3, Figs 2 and 3",
        (Part.STATISTICS, Part.SEPARATORS, Part.WHY),
        "dots",
        "means over dev rows of each task; counts with the counts of the intervals' lower and upper ends",
        ("In the notebook's third plot the legends of next and previous are swapped.",),
    ),
    Exhibit(
        ExhibitId.DEPENDENCIES,
        "Single heads on dependencies",
        CLARK,
        "4.2, Table 1",
        (Part.DEPENDENCIES,),
        "dots",
        "head, direction and distance chosen on the treebank's dev part, scored on its test part",
        ("The auxpass row of the paper looks shifted: its notebook prints 94.1 (baseline 82.5).",),
    ),
    Exhibit(
        ExhibitId.EFFECTIVE,
        "Effective attention",
        BRUNNER,
        "3, Figs 2 and 3",
        (Part.EFFECTIVE,),
        "lengths",
        "attention less its part in the left null space of the values, row by row, in float64; decoders per query",
    ),
    Exhibit(
        ExhibitId.PROBES,
        "What attention and layers know",
        "Clark et al. 2019, Lin et al. 2019, Liu et al. 2019",
        "5",
        (Part.SYNTAX, Part.PROBE, Part.TRANSFER),
        "dots",
        "probes trained on the treebank's train part (or sentences by templates) and scored on its test part, "
        "intervals over sentences; a classifier on each layer's output, the best layer chosen on other dev rows",
        ("Clark et al.'s 61 (attention) and 77 (with GloVe) are on another treebank: in no column here.",),
    ),
    Exhibit(
        ExhibitId.SUBNETWORKS,
        "What is left when weights go",
        f"Gordon et al. 2020, {PRASANNA}",
        "4",
        (Part.SUBNETWORKS,),
        "dots",
        "weights nearest to 0 pruned before or after fine-tuning; heads and feed-forward blocks pruned by importance, "
        "what survives retrained beside what went and a random draw; intervals over dev rows and seeds",
    ),
)
