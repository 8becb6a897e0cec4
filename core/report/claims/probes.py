"""Claims on what probes find and on what is left when weights go; each is tested on rows that chose nothing."""

from core.report.claims.outcomes import (
    FAILS,
    HOLDS,
    UNDECIDED,
    UNTESTED,
    Decision,
    Outcome,
    all_of,
    apart,
    decided,
    found_by,
    no_loss,
    of_each,
    points,
    said,
)
from core.report.estimates import mean_over
from core.report.evidence import Evidence, StepResult
from core.report.ids import Part
from core.report.measures.probes import LINEAR, estimate_of, of_kind
from core.store.rows import Row

LIN, LIU, GORDON, HTUT = "Lin et al. 2019", "Liu et al. 2019", "Gordon et al. 2020", "Htut et al. 2019"
PRUNED = 0.3  # the lower end of "30 to 40 %"
MIDDLE = (1 / 3, 2 / 3)  # of the depth


def no_whole_tree(evidence: Evidence) -> list[Outcome]:
    """The spanning tree of the best head (chosen on dev) joins fewer words with their governor than all heads do."""

    def test(result: StepResult) -> Outcome | None:
        best, more = (next(iter(of_kind(result.rows, kind)), None) for kind in ("best head", "difference"))
        if best is None or more is None:
            return None
        sentence = (
            f"undirected UAS of {best['name']}, chosen on dev, {said(estimate_of(best), 2)}, its tree whole in "
            f"{100 * best['whole_trees']:.1f} % of sentences; all heads together {points(estimate_of(more))} more"
        )
        return found_by(result, decided(estimate_of(more)), sentence, best["n"])

    return of_each(evidence, Part.SYNTAX, test)


def attention_knows_syntax(evidence: Evidence) -> list[Outcome]:
    """The probe of attention alone scores above branching, the best fixed distance and the probe of random weights."""

    def test(result: StepResult) -> Outcome | None:
        rows = {row["name"]: row for row in of_kind(result.rows, "probe", "baseline")}
        names = ("right-branching", "left-branching", "one fixed offset", "attention, random weights")
        if not {"attention", *names} <= set(rows):
            return None
        own = estimate_of(rows["attention"])
        decision = apart([own], [estimate_of(rows[name]) for name in names])
        others = "; ".join(f"{name} {rows[name]['value']:.2f}" for name in names)
        return found_by(result, decision, f"UAS {said(own, 2)}; {others}", rows["attention"]["n"])

    return of_each(evidence, Part.SYNTAX, test)


def hierarchical(evidence: Evidence) -> list[Outcome]:
    """In the second half of the layers a probe that learnt where both rules agree follows the hierarchical one, more
    than in the embeddings."""

    def test(result: StepResult) -> Outcome | None:
        rows = [row for row in of_kind(result.rows, "probe")
                if row["probe"] == LINEAR and row["property"] == "main auxiliary, rules part"]  # fmt: skip
        if len(rows) < 3:
            return None
        ordered = sorted(rows, key=lambda row: row["layer"])
        late, first = mean_over(map(estimate_of, ordered[-(len(ordered) // 2) :])), estimate_of(ordered[0])
        if late is None:
            return None
        sentence = (
            f"main auxiliary where the rules part (0 linear, 1 hierarchical): {said(late, 2)} in the second half of "
            f"the layers, {said(first, 2)} in the embeddings"
        )
        return found_by(result, all_of([decided(late, 0.5), apart([late], [first])]), sentence, rows[0]["n"])

    return of_each(evidence, Part.PROBE, test)


def middle_transfers(evidence: Evidence) -> list[Outcome]:
    """The layer that is best on one half of the dev rows lies in the middle third, and beats the last on the other."""

    def test(result: StepResult) -> Outcome | None:
        rows = [row for row in of_kind(result.rows, "best layer") if row["reading"] == "mean over tokens"]
        if not rows:
            return None
        best, more = rows[0], estimate_of(rows[0])
        middle = MIDDLE[0] <= best["layer"] / best["layers"] <= MIDDLE[1]
        sentence = f"layer {int(best['layer'])} of {int(best['layers'])} is best, {points(more)} above the last"
        gain = decided(more)
        word = gain.word if middle else FAILS if gain.word == HOLDS or best["layer"] == best["layers"] else UNDECIDED
        return found_by(result, Decision(word, gain.times if word == UNDECIDED else None), sentence, best["n"])

    return of_each(evidence, Part.TRANSFER, test)


def _nothing_to_lose(result: StepResult) -> Outcome | None:
    """UNTESTED where the unpruned checkpoint, fine-tuned, is not above the constant predictor; else None."""
    whole = [row for row in of_kind(result.rows, "subnetwork", "curve")
             if row["name"] == "full" or (row["kind"] == "curve" and not row["share"])]  # fmt: skip
    for row in whole[:1]:
        if row.get("constant") is not None and (row["low"] is None or row["low"] <= row["constant"]):
            seen = f"{said(estimate_of(row))} is not above the constant predictor's {_shown(row)}"
            return Outcome(UNTESTED, f"nothing can be lost: the unpruned checkpoint's {seen}", result.task)
    return None


def a_third_can_go(evidence: Evidence) -> list[Outcome]:
    """Fine-tuned without 30 % of its weights, the smallest of all layers, a checkpoint loses no point."""

    def test(result: StepResult) -> Outcome | None:
        rows = [row for row in of_kind(result.rows, "curve") if _is_point(row)]
        if not rows or (nothing := _nothing_to_lose(result)):
            return nothing if rows else None
        change = estimate_of(rows[0], "change")
        sentence = f"without {PRUNED:.0%} of weights {points(change)}; constant predictor {_shown(rows[0])}"
        return found_by(result, no_loss([change]), sentence, rows[0]["n"])

    return of_each(evidence, Part.SUBNETWORKS, test)


def _is_point(row: Row) -> bool:
    return (row["scope"], row["moment"]) == ("global", "before") and abs(row["share"] - PRUNED) < 1e-6


def _shown(row: Row) -> str:
    return "undefined" if row.get("constant") is None else f"{row['constant']:.3f}"


def good_and_bad(evidence: Evidence) -> list[Outcome]:
    """What survives pruning by importance, retrained, scores above as many components of those that went."""

    def test(result: StepResult) -> Outcome | None:
        rows = {row["name"]: row for row in of_kind(result.rows, "subnetwork", "difference")}
        if "good less bad" not in rows or (nothing := _nothing_to_lose(result)):
            return nothing if "good less bad" in rows else None
        more = rows["good less bad"]
        scores = "; ".join(f"{name} {rows[name]['value']:.3f}" for name in ("full", "good", "bad", "random"))
        return found_by(result, decided(estimate_of(more)), f"good less bad {points(estimate_of(more))}; {scores}",
                        more["n"])  # fmt: skip

    return of_each(evidence, Part.SUBNETWORKS, test)
