"""The sentences on trees, layers and subnetworks."""

from core.report.claims import probes
from core.report.claims.claim import Claim
from core.report.ids import ExhibitId
from core.report.published_values import CLARK, PRASANNA

PROBING = (
    Claim(
        "no-whole-tree",
        "No head has the complete syntactic tree information.",
        f"{probes.HTUT}, {CLARK}",
        "5",
        ExhibitId.PROBES,
        probes.no_whole_tree,
    ),
    Claim(
        "attention-syntax",
        "Attention knows more of dependency trees than branching, a fixed distance or random weights do.",
        CLARK,
        "5",
        ExhibitId.PROBES,
        probes.attention_knows_syntax,
    ),
    Claim(
        "hierarchical",
        "From layer to layer BERT switches to a hierarchically-oriented encoding.",
        probes.LIN,
        "",
        ExhibitId.PROBES,
        probes.hierarchical,
    ),
    Claim(
        "middle-transfers",
        "Middle layers are the most transferable.",
        probes.LIU,
        "",
        ExhibitId.PROBES,
        probes.middle_transfers,
    ),
    Claim(
        "a-third-can-go",
        "30 to 40 % of weights can be pruned before fine-tuning without loss.",
        probes.GORDON,
        "",
        ExhibitId.SUBNETWORKS,
        probes.a_third_can_go,
    ),
    Claim(
        "good-and-bad",
        "Some subnetworks are good and some are bad.",
        PRASANNA,
        "4",
        ExhibitId.SUBNETWORKS,
        probes.good_and_bad,
    ),
)
