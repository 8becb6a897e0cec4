"""The sources' sentences on scores and on what other papers measured, as tests."""

from scipy.stats import spearmanr

from core.report.claims.outcomes import (
    FAILS,
    HOLDS,
    UNDECIDED,
    UNTESTED,
    Outcome,
    apart,
    decided,
    no_loss,
    number,
    of_each,
    of_each_loss,
    points,
    said,
    untested,
)
from core.report.evidence import Estimate, Evidence, Found, by_layer, mean_over, metric_of, picked
from core.report.measures.scores import constant_score, removable, scored
from core.report.published import PAPER, printed
from core.studies.study import Row
from core.tasks.glue import TASKS

# ---------------------------------------------------------------- Table 1


def pretraining_helps(evidence: Evidence) -> list[Outcome]:
    """A pre-trained checkpoint, fine-tuned, scores higher than a random one."""

    def test(one: Found) -> Outcome | None:
        rows = {row["initialisation"]: row for row in picked(one.rows, kind="mean")}
        metric = one.rows[0]["metric"]
        if not {"pretrained", "random"} <= rows.keys() or rows["pretrained"].get(metric) is None:
            return None
        n = picked(one.rows, kind="run")[0]["dev_rows"]
        best = scored(rows["pretrained"], metric, n)
        if rows["random"].get(metric) is None:  # constant scores have no correlation
            return Outcome(decided(best), f"{metric} {said(best)}; random undefined", one.step.task, n, one.run)
        other = scored(rows["random"], metric, n)
        sentence = f"{metric} {said(best)} against {said(other)} from random weights"
        return Outcome(apart([best], [other]), sentence, one.step.task, n, one.run)

    return of_each(evidence, "tuning", test)


def random_learns(evidence: Evidence) -> list[Outcome]:
    """A randomly initialised model, fine-tuned, is better than the best constant predictor."""

    def test(one: Found) -> Outcome | None:
        row = next(iter(picked(one.rows, kind="mean", initialisation="random")), None)
        floor = constant_score(one)
        metric, n = one.rows[0]["metric"], picked(one.rows, kind="run")[0]["dev_rows"]
        if row is None or floor is None:
            return None
        if row.get(metric) is None:
            return Outcome(FAILS, "its predictions are constant", one.step.task, n, one.run)
        score = scored(row, metric, n)
        note = f"; {row['note']}" if row["note"] else ""
        sentence = f"{metric} {said(score)}, the constant predictor {floor:.3f}{note}"
        outcome = FAILS if row["constant"] else decided(score, floor)
        return Outcome(outcome, sentence, one.step.task, n, one.run)

    return of_each(evidence, "tuning", test)


def constant_cells(evidence: Evidence) -> list[Outcome]:
    """The cells of Table 1 that are named so equal a constant predictor on these rows, to the printed digit."""

    def test(one: Found) -> Outcome | None:
        cells = [cell for cell in printed(one.step.task or "") if cell.source == PAPER and cell.constant]
        constant = next(iter(picked(one.rows, kind="baseline")), None)
        if not cells or constant is None:
            return None
        n = picked(one.rows, kind="run")[0]["dev_rows"]
        if one.step.task not in evidence.official or n != TASKS[one.step.task].dev_rows:
            return Outcome(UNTESTED, "these are not all of GLUE's own dev rows", one.step.task)
        share = constant["accuracy"]
        both = (share, 1 - share)
        found = [min(abs(cell.values["accuracy"] - other) for other in both) < 0.001 for cell in cells]
        numbers = ", ".join(f"{100 * cell.values['accuracy']:.1f}" for cell in cells)
        sentence = f"printed {numbers}; constant predictors score {100 * share:.2f} and {100 * (1 - share):.2f}"
        return Outcome(HOLDS if all(found) else FAILS, sentence, one.step.task, n, one.run)

    return of_each(evidence, "tuning", test)


# ---------------------------------------------------------------- disabling


def _changes(one: Found) -> tuple[list[Row], str]:
    metric = metric_of(one.rows)
    return [row for row in picked(one.rows, kind="variant") if row[f"{metric}_change"] is not None], metric


def _mean_change(rows: list[Row], metric: str) -> Estimate | None:
    return mean_over(rows, *(f"{metric}_{end}" for end in ("change", "low", "high")))


def random_head_helps(evidence: Evidence) -> list[Outcome]:
    """Disabling a head drawn at random raises the score on MRPC and RTE."""

    def test(one: Found) -> Outcome | None:
        rows, metric = _changes(one)
        mean = _mean_change(rows, metric)
        if mean is None:
            return None
        up = sum(row[f"{metric}_change"] > 0 for row in rows)
        sentence = f"{metric} {points(mean)} on average; {up} of {len(rows)} heads raise it"
        return Outcome(decided(mean), sentence, one.step.task, rows[0]["n"], one.run)

    return of_each(evidence, "heads", test, ("mrpc", "rte"))


def some_head_helps(evidence: Evidence) -> list[Outcome]:
    """On every task there is a head whose disabling raises the score, also on rows that did not choose it."""

    def test(one: Found) -> Outcome | None:
        held = next(iter(picked(one.rows, kind="split half")), None)
        rows, metric = _changes(one)
        if held is None or not rows:
            return None
        best = max(rows, key=lambda row: row[f"{metric}_change"])
        estimate = Estimate(held["held_out"], held["low"], held["high"])
        sentence = (
            f"best of {len(rows)} on the rows that choose it: {best['name']} {points(number(best, metric))}; on the "
            f"other half of the rows {points(estimate)}; p {best['p']:.2g} corrected"
        )
        return Outcome(decided(estimate), sentence, one.step.task, held["n"], one.run)

    return of_each(evidence, "heads", test)


def first_layer_helps(evidence: Evidence) -> list[Outcome]:
    """Disabling the whole first layer raises the score on RTE."""

    def test(one: Found) -> Outcome | None:
        rows, metric = _changes(one)
        first = next((row for row in rows if row["layer"] == 0), None)
        if first is None:
            return None
        change = number(first, metric)
        sentence = f"{metric} {points(change)}; p {first['p']:.2g} corrected over {len(rows)} layers"
        return Outcome(decided(change), sentence, one.step.task, first["n"], one.run)

    return of_each(evidence, "layers", test, ("rte",))


def shared_heads(evidence: Evidence) -> list[Outcome]:
    """STS-B and RTE rely on the same heads: the ranks of their losses agree."""
    one, other = evidence.one("heads", "stsb"), evidence.one("heads", "rte")
    if one is None or other is None:
        return untested(evidence, "heads", "stsb" if one is None else "rte")
    changes = []
    for found in (one, other):
        rows, metric = _changes(found)
        changes.append({row["name"]: row[f"{metric}_change"] for row in rows})
    names = [name for name in changes[0] if name in changes[1]]
    test = spearmanr(*([some[name] for name in names] for some in changes))
    rho, p = float(test.statistic), float(test.pvalue)
    worst = [min(some, key=lambda name: some[name]) for some in changes]
    sentence = (
        f"Spearman {rho:.2f} over {len(names)} heads, p {p:.2g}; the head that costs most: {worst[0]} and {worst[1]}"
    )
    outcome = UNDECIDED if not p < 0.05 else HOLDS if rho > 0 else FAILS
    return [Outcome(outcome, sentence, None, len(names), one.run)]


def nothing_changes(evidence: Evidence) -> list[Outcome]:
    """Disabling heads of GPT-2 leaves every prediction as it was."""

    def test(one: Found) -> Outcome | None:
        rows, metric = _changes(one)
        flipped = [row["flipped"] for row in rows if row["flipped"] is not None]
        moved = sum(flips > 0 for flips in flipped) if flipped else sum(row[f"{metric}_change"] != 0 for row in rows)
        most = f", up to {max(flipped)} of {rows[0]['n']} predictions" if flipped else ""
        sentence = f"{moved} of {len(rows)} heads change something{most}"
        return Outcome(FAILS if moved else HOLDS, sentence, one.step.task, rows[0]["n"], one.run)

    return of_each(evidence, "heads", test)


# ---------------------------------------------------------------- Michel et al.


def many_heads_go(evidence: Evidence) -> list[Outcome]:
    """A fifth of the heads can be removed, least important first, for no more than a point of the score."""

    def test(one: Found) -> Outcome | None:
        curves = {
            order: sorted(picked(one.rows, order=order), key=lambda row: row["removed"])
            for order in dict.fromkeys(row["order"] for row in one.rows)
        }
        if "importance" not in curves:
            return None
        fifth = min(curves["importance"], key=lambda row: abs(row["share"] - 0.2))
        ends = [None if fifth[end] is None else fifth[end] - fifth["baseline"] for end in ("low", "high")]
        change = Estimate(fifth["change"], *ends)
        shares = {order: removable(steps)[0] for order, steps in curves.items()}
        chance = [share for order, share in shares.items() if order.startswith("random")]
        sentence = (
            f"{fifth['metric']} {points(change)} without {fifth['share']:.0%} of the heads; no loss beyond luck up to "
        )
        sentence += f"{shares['importance']:.0%}, in random orders up to {min(chance, default=0):.0%} to "
        sentence += f"{max(chance, default=0):.0%} ({fifth['baseline']:.3f} with all)"
        return Outcome(no_loss([change]), sentence, one.step.task, fifth["n"], one.run)

    return of_each_loss(evidence, "prune", test)


def one_head_is_enough(evidence: Evidence) -> list[Outcome]:
    """In most layers the best head alone costs no more than a point of the score."""

    def test(one: Found) -> Outcome | None:
        rows, metric = _changes(one)
        layers = [[row for row in rows if row["layer"] == k] for k in sorted({row["layer"] for row in rows})]
        best = [number(max(some, key=lambda row: row[f"{metric}_change"]), metric) for some in layers]
        outcomes = [no_loss([change]) for change in best]
        enough, lost = outcomes.count(HOLDS), outcomes.count(FAILS)
        sentence = (
            f"{metric}: enough in {enough} of {len(best)} layers, a loss in {lost}, undecided in the others; mean "
        )
        sentence += (
            f"change {100 * sum(change.value for change in best) / max(1, len(best)):+.1f} points; the best head of "
        )
        sentence += "a layer is chosen on the same rows"
        outcome = HOLDS if 2 * enough > len(best) else FAILS if 2 * lost >= len(best) else UNDECIDED
        return Outcome(outcome, sentence, one.step.task, rows[0]["n"], one.run)

    return of_each_loss(evidence, "alone", test)


# ---------------------------------------------------------------- Clark et al., Brunner et al.


def neighbours(evidence: Evidence) -> list[Outcome]:
    """Some heads put more than half of their weight on the previous token, and some on the next."""
    one = evidence.one("statistics")
    if one is None:
        return untested(evidence, "statistics")
    found = []
    for task in dict.fromkeys(row["task"] for row in one.rows):
        counts = {}
        for name in ("previous", "next"):
            rows = [row for row in picked(one.rows, task=task, statistic=name) if row.get("low") is not None]
            counts[name] = sum(row["low"] > 0.5 for row in rows)
        wanted = ("previous",) if evidence.causal else ("previous", "next")
        sentence = (
            f"{counts['previous']} heads on the previous, {counts['next']} on the next token (lower end above half)"
        )
        outcome = HOLDS if all(counts[name] for name in wanted) else FAILS
        found.append(Outcome(outcome, sentence, task, one.rows[0]["n"], one.run))
    return found


def separators_in_the_middle(evidence: Evidence) -> list[Outcome]:
    """Layers 6 to 10 of 12 (here: at that depth) put more than half of their weight on separators."""
    one = evidence.one("statistics")
    if one is None or evidence.causal:
        why = "a decoder has no [SEP]" if evidence.causal else evidence.missing("statistics")
        return [Outcome(UNTESTED, why)]
    found = []
    for task in dict.fromkeys(row["task"] for row in one.rows):
        rows = [row for row in picked(one.rows, task=task, statistic="separator") if row.get("layer") is not None]
        layers = by_layer(rows)
        middle = [row for row in rows if 5 / 12 <= row["layer"] / len(layers) < 10 / 12] if layers else []
        mean = mean_over(middle)
        if mean is not None:
            names = sorted({row["layer"] + 1 for row in middle})
            sentence = f"mean over layers {names[0]} to {names[-1]}: {said(mean, 2)}"
            found.append(Outcome(decided(mean, 0.5), sentence, task, rows[0]["n"], one.run))
    return found or [Outcome(UNTESTED, "no task has a separator")]


def heads_beat_distances(evidence: Evidence) -> list[Outcome]:
    """For most dependencies the best single head beats the best fixed distance, and none does over all of them."""

    def test(one: Found) -> Outcome | None:
        found: dict[str, list[str]] = {HOLDS: [], FAILS: [], UNDECIDED: []}
        for label in dict.fromkeys(row["feature"] for row in one.rows):
            rows = [row for row in picked(one.rows, feature=label) if row.get("value") is not None and row["baseline"]]
            if not rows or label == "all":
                continue
            best = max(rows, key=lambda row: row["dev"])
            found[decided(number(best), best["baseline"])].append(label)
        better, worse, unclear = found.values()
        total = len(better) + len(worse) + len(unclear)
        sentence = f"better on {len(better)} of {total} ({', '.join(better[:8]) or 'none'}), worse on {len(worse)}, "
        sentence += f"undecided {len(unclear)}"
        n = sum(int(row["n"]) for row in picked(one.rows, feature="all")[:1])
        outcome = HOLDS if len(better) > total / 2 else FAILS if len(worse) > total / 2 else UNDECIDED
        return Outcome(outcome, sentence, None, n, one.run)

    return of_each(evidence, "dependencies", test)


def effective_drops(evidence: Evidence) -> list[Outcome]:
    """Raw and effective attention are the same for short inputs and part for long ones."""
    return of_each(evidence, "effective", _drops)


def _drops(one: Found) -> Outcome | None:
    rows = sorted(picked(one.rows, statistic="correlation by length"), key=lambda row: row["length_from"])
    if not rows:
        return None
    shortest, longest = rows[0], max(rows, key=lambda row: row["length_from"])
    lengths = dict.fromkeys((row["length_from"], row["length_to"]) for row in rows)
    by_length = ", ".join(
        f"{low}-{high}: {_mean_r(rows, low):.2f}" for low, high in list(lengths)[:: max(1, len(lengths) // 5)]
    )
    short, long = _mean_r(rows, shortest["length_from"]), _mean_r(rows, longest["length_from"])
    outcome = HOLDS if short > 0.999 and long < 0.99 else UNDECIDED if long > 0.99 else FAILS
    return Outcome(outcome, f"Pearson r by pieces {by_length}", None, sum(row["n"] for row in rows), one.run)


def _mean_r(rows: list[Row], low: int) -> float:
    some = [row for row in rows if row["length_from"] == low]
    return sum(row["mean"] * row["n"] for row in some) / sum(row["n"] for row in some)


def dominance_shrinks(evidence: Evidence) -> list[Outcome]:
    """Effective attention gives less to [CLS], [SEP] and punctuation than raw attention."""
    one = evidence.one("effective")
    if one is None:
        return untested(evidence, "effective")
    found = []
    for task in dict.fromkeys(row["task"] for row in one.rows if row.get("task")):
        means = {}
        for kind in ("raw", "effective"):
            rows = [row for name in ("start", "separator", "punctuation")
                    for row in picked(one.rows, task=task, statistic=kind, feature=name)]  # fmt: skip
            means[kind] = mean_over(rows)
        if means["raw"] is None or means["effective"] is None:
            continue
        sentence = f"mean over heads and types: raw {said(means['raw'], 2)}, effective {said(means['effective'], 2)}"
        outcome = apart([means["raw"]], [means["effective"]])
        found.append(Outcome(outcome, sentence, task, one.rows[0]["n"], one.run))
    return found or untested(evidence, "effective")


def shares_stay(evidence: Evidence) -> list[Outcome]:
    """Fine-tuning moves no class's share by more than five points."""

    def test(one: Found) -> Outcome | None:
        before = {
            row["class"]: row for row in picked(one.rows, part="share") if row["checkpoint"] == evidence.checkpoint
        }
        after = {
            row["class"]: row for row in picked(one.rows, part="share") if row["checkpoint"] != evidence.checkpoint
        }
        if not before or not after:
            return None
        moved = {name: after[name]["share"] - before[name]["share"] for name in before}
        most = max(moved, key=lambda name: abs(moved[name]))
        sentence = f"{most} moves most, {100 * before[most]['share']:.1f} to {100 * after[most]['share']:.1f} %"
        ends = [number(rows[most] | {"value": rows[most]["share"]}) for rows in (before, after)]
        lower, upper = sorted(ends, key=lambda share: share.value)
        outcome = HOLDS if abs(moved[most]) <= 0.05 else FAILS if apart([upper], [lower]) == HOLDS else UNDECIDED
        return Outcome(outcome, sentence, one.step.task, before[most]["inputs"], one.run)

    return of_each(evidence, "shares", test)
