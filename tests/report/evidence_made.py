"""Evidence made by hand, so that a test knows what a report must say of it."""

from core.report.evidence import Evidence, StepResult
from core.report.ids import Part
from core.report.plan import ReportStep
from core.studies.attention import features
from core.studies.patterns import pattern_shares
from core.studies.tuning import change, finetune

CHECKPOINT = "one/of-ours"
KINDS = {
    "tuning": finetune.FinetuneOptions,
    "features": features.FeaturesOptions,
    "features-seeds": features.FeaturesOptions,
    "change": change.ChangeOptions,
    "change-seeds": change.ChangeOptions,
    "shares": pattern_shares.PatternSharesOptions,
}


def found(part, rows, task=None, *, options=None, error=""):
    kind = KINDS.get(part, dict)
    step = ReportStep(Part(part), part, kind(**(options or {})), CHECKPOINT, part, task)
    return StepResult(step, None if error else f"run of {part}", tuple(rows), error)


def evidence(*some, causal=False, official=(), checkpoint=CHECKPOINT):
    return Evidence(checkpoint, causal, tuple(official), tuple(some))


def layer_rows(values, half=0.01, **more):
    """Rows of a study's layers: a value and an interval of +- half."""
    return [
        {
            "kind": "layer",
            "statistic": "cosine",
            "layer": k,
            "value": value,
            "low": value - half,
            "high": value + half,
            "n": 50,
        }
        | more
        for k, value in enumerate(values)
    ]


def head_rows(table, half=0.01, **more):
    """Rows of heads from a layer x head table."""
    return [
        {"layer": k, "head": j, "value": value, "low": value - half, "high": value + half, "n": 50} | more
        for k, row in enumerate(table)
        for j, value in enumerate(row)
    ]


def sweep_rows(changes, half=0.01, n=100, metric="accuracy"):
    """A sweep's rows: {name: change of the metric}."""
    rows = [{"kind": "baseline", "name": "untouched", metric: 0.7, "n": n}]
    for k, (name, gain) in enumerate(changes.items()):
        ends = {f"{metric}_change": gain, f"{metric}_low": gain - half, f"{metric}_high": gain + half}
        row = {"kind": "variant", "name": name, "layer": k // 2, "head": k % 2, "p": 0.5, "n": n, "flipped": k}
        rows.append(row | ends)
    return rows
