"""Table 1 as text and as bars: means over seeds with the constant prediction and published scores."""

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from core.report.published_values import PAPER, REPLICATION, printed
from core.studies.tuning.finetune import better_constant, not_shown
from core.studies.tuning.records import TunedScore
from core.tasks.glue import Task, sampled, task_of
from core.tasks.metrics import shown
from core.tasks.own import is_own
from core.tuning.recipe import INITIALISATIONS
from pages.parts.charts.curves import values_with_intervals
from pages.parts.charts.encoding import Axes

ORDER = ("untrained", "frozen", "random", "pretrained", "free", "held")
NAMES = INITIALISATIONS | {"free": "with learned attention", "held": "with fixed patterns"}
UNTRAINED = "pre-trained"  # the paper's column, probably of a classifier that was never trained
PAPER_COLUMNS = {"untrained": UNTRAINED, "random": "random + FT", "pretrained": "pre-trained + FT"}
REPLICATION_COLUMNS = {"ND": "ND", "PT": "PT", "pretrained": "FT"}
PRINTED_METRICS = {"mrpc": ("f1", "accuracy"), "qqp": ("f1", "accuracy")}  # F1/Acc in the papers' order


def cell(task: Task, row: TunedScore) -> str:
    """Return "81.2/68.4 ± 1.3" (x 100), with a dagger if runs were constant; "undefined" for an undefined
    correlation."""
    names = PRINTED_METRICS.get(task.key, task.metrics)
    spread = row.spread(task.metric)
    return (
        "/".join(shown(row.of_metric(name)) for name in names)
        + (f" ± {100 * spread:.1f}" if spread is not None else "")
        + (f", MSE {row.mse:.2f}" if row.mse is not None else "")  # what the replication printed for STS-B
        + (" †" if row.constant else "")
    )


def table_one(scores: Sequence[TunedScore], *, beside_printed: bool = False) -> pd.DataFrame:
    """Return one row per task: scores by initialisation, the constant prediction and, with `beside_printed`, published
    scores."""
    lines = []
    for key in dict.fromkeys(score.task for score in scores):
        task, task_scores = task_of(key), [score for score in scores if score.task == key]
        baseline = next((score for score in task_scores if score.kind == "baseline"), None)
        line = {
            "task": f"{task.name} ({'/'.join(PRINTED_METRICS.get(key, task.metrics))})",
            "rows": next((f"{run.train_rows} / {run.dev_rows}" for run in task_scores if run.kind == "run"), ""),
            "constant": _constant_cell(task, task_scores, baseline) if baseline else "",
        }
        for name in ORDER:
            mean = next((score for score in task_scores if score.kind == "mean" and score.initialisation == name), None)
            if mean is not None:
                line[NAMES[name]] = f"{cell(task, mean)} (n = {mean.n})"
        line |= _printed(task) if beside_printed and not is_own(key) else {}
        lines.append(line)
    return pd.DataFrame(lines).fillna("")


def named(table: pd.DataFrame) -> pd.DataFrame:
    """Return `table_one` with one column per task, so that all of it is in sight, and with names for readers."""
    names = {"constant": "best constant prediction", "rows": "examples for training / dev"}
    return table.set_index("task").T.rename(index=names)


def _constant_cell(task: Task, scores: Sequence[TunedScore], baseline: TunedScore) -> str:
    """Return the score of the constant prediction that is best on dev, as the answer above the table has it.

    The stored one predicts the most frequent label of the training examples, which can be the worse of two.
    """
    better, stored = better_constant(scores, task.key), f"{cell(task, baseline)} ({baseline.initialisation})"
    if task.metrics != ("accuracy",) or better is None or better == baseline.accuracy:
        return stored
    label = next(name for name in task.labels if baseline.initialisation != f"always {name}")
    return f"{100 * better:.1f} (always {label})"


def _printed(task: Task) -> dict[str, str]:
    line = {}
    for source, short, columns in (
        (PAPER, "BERT paper", PAPER_COLUMNS),
        (REPLICATION, "GPT-2 replication", REPLICATION_COLUMNS),
    ):
        cells = {cell.initialisation: cell for cell in printed(task.key) if cell.source == source}
        for name, column in columns.items():
            values, error = cells[name].values, cells[name].values.get("mse")
            names = [metric for metric in PRINTED_METRICS.get(task.key, task.metrics) if metric in values]
            text = "/".join(shown(values[name]) for name in names) if error is None else f"MSE {error:.2f}"
            line[f"{short}: {column}"] = text + (" ‡" if cells[name].constant else "")
    return line


def note(scores: Sequence[TunedScore], *, beside_printed: bool = False) -> str:
    """Return a description of the columns and signs that occur in a table."""
    table = table_one(scores, beside_printed=beside_printed)
    text = "\n".join(table.astype(str).to_numpy().ravel())
    notes = [
        "x 100",
        "ours: mean ± standard deviation over n seeds",
        "constant: the best prediction of one label for all examples (label in brackets)",
    ]
    if "†" in text:
        notes.append("† predictions were constant in at least one run")
    if "‡" in text:
        notes.append("‡ the published number equals that of a constant prediction")
    untrained = f"BERT paper: {UNTRAINED}"
    if untrained in table:
        notes.append(f"“{untrained}” is probably a classifier that was never trained, as in “{NAMES[ORDER[0]]}”")
    if "MSE" in text:
        notes.append("MSE: mean squared error of scores from 0 to 5, not x 100")
    return " · ".join(notes)


def at_chance(scores: Sequence[TunedScore]) -> list[str]:
    """Return a sentence for each task whose fine-tuned checkpoints are not significantly above the better constant
    prediction, or are below untrained ones."""
    sentences = []
    for key in dict.fromkeys(score.task for score in scores):
        task_scores = [score for score in scores if score.task == key]
        means = {score.initialisation: score for score in task_scores if score.kind == "mean"}
        if "pretrained" not in means:
            continue
        tuned = means["pretrained"].accuracy
        untrained = (means["untrained"].accuracy or 0.0) if "untrained" in means else 0.0
        reason = not_shown(scores, means["pretrained"])
        below = (
            f"; the untrained classifier has {100 * untrained:.1f}" if tuned is not None and untrained > tuned else ""
        )
        if reason or below:
            about = reason or f"accuracy is {100 * (tuned or 0):.1f}"
            sentences.append(
                f"{task_of(key).name}: {about}{below}. So the model did not learn the task, and changes "
                f"with fine-tuning are not informative."
            )
    return sentences


def runs_table(scores: Sequence[TunedScore], columns: Sequence[str]) -> pd.DataFrame:
    """Return one row per run, with those of these columns that any run has."""
    table = pd.DataFrame([score for score in scores if score.kind == "run"], columns=list(columns))
    filled_columns = [name for name in table.columns if any(value not in ("", None) for value in table[name].dropna())]
    return table[filled_columns]


def constant_scores(scores: Sequence[TunedScore]) -> list[float]:
    """Return the score of the constant prediction on each task by the metric of the chart (x 100)."""
    metrics = {score.task: score.metric for score in scores if score.kind == "mean"}
    values = [
        better_constant(scores, score.task)
        if metrics[score.task] == "accuracy"
        else score.of_metric(metrics[score.task])
        for score in scores
        if score.kind == "baseline" and score.task in metrics
    ]
    return [100 * value for value in values if value is not None]


def bars(scores: Sequence[TunedScore]) -> pd.DataFrame:
    """Return means with one standard deviation if there are several seeds: task initialisation value low high n."""
    means = []
    for mean in scores:
        value = mean.of_metric(mean.metric) if mean.kind == "mean" else None
        if value is None:
            continue
        spread = (mean.spread(mean.metric) or 0.0) if (mean.n or 0) > 1 else float("nan")
        means.append(
            {
                "task": task_of(mean.task).name,
                "initialisation": NAMES[str(mean.initialisation)],
                "metric": mean.metric,
                "value": 100 * value,
                "low": 100 * (value - spread),
                "high": 100 * (value + spread),
                "n": mean.n,
            }
        )
    return pd.DataFrame(means)


def _metrics_of(means: pd.DataFrame) -> str:
    """Return the metric of the bars: the one that ranks each task."""
    metric_of_task = dict(zip(means["task"], means["metric"], strict=True))
    metrics = set(metric_of_task.values())
    metric_names = (
        metrics.pop() if len(metrics) == 1 else ", ".join(f"{task} {metric}" for task, metric in metric_of_task.items())
    )
    return f"{metric_names} x 100"


def show_bars(scores: Sequence[TunedScore], *, bundled: bool = False) -> None:
    """Show the chart of `bars`, with the constant prediction for a single task. `bundled`: the examples only imitate
    the tasks."""
    means = bars(scores)
    if len(means):
        if bundled:
            means = means.assign(task=means["task"].map(sampled))
        constants = constant_scores(scores)
        several = (means["n"] > 1).any()
        title = "Mean over seeds ± one standard deviation" if several else "One seed, so no standard deviation"
        title += "; dashed: best constant prediction" if len(constants) == 1 else ""
        st.altair_chart(
            values_with_intervals(
                means,
                Axes(x="task", y="value", low="low", high="high", colour="initialisation", y_title=_metrics_of(means)),
                title=title,
                tooltip=("n",),
                rule=constants[0] if len(constants) == 1 else None,
            )
        )
