"""Sweeps as jobs, and their pictures: every head, layer, lone head or group disabled on a task's rows."""

from typing import Any

import pandas as pd
import streamlit as st

from core import config
from core.attention import Head, parse_heads
from core.jobs import running
from core.scoring.effects import rank_agreement
from core.store.jobs import jobs
from core.store.runs import runs, study_rows
from core.tasks.glue import TASKS
from pages.parts import charts, job_progress, pickers, resources
from pages.parts.disable_live import OPERATORS
from pages.parts.shell import PAGES_FOLDER, clear_errors, plain

WHAT = {"heads": "every head", "layers": "every layer", "all-but-one": "every head left alone", "groups": "groups"}


def show_sweeps() -> None:
    """Start a sweep; see what is running; look at results."""
    _start()
    active_jobs("disable")
    with clear_errors():
        _results()


def active_jobs(*studies: str) -> None:
    """Progress of the jobs of these studies that run, wait or failed."""
    found = jobs(resources.database())
    if len(found):
        wanted = found["study"].isin(studies) & found["state"].isin(["queued", "running", "failed"])
        for job in found[wanted].head(3)["job"]:
            job_progress.show_job(job, rows=False)


def shared_options() -> dict[str, Any] | None:
    """The choices that sweeps and pruning share: checkpoint, task, rows, data; None until there is a checkpoint."""
    left, middle, right = st.columns([3, 2, 1])
    with left:
        name = pickers.pick_checkpoint("Fine-tuned checkpoint")
    task = middle.selectbox(
        "Task", list(TASKS), format_func=lambda key: TASKS[key].name, key="task", bind="query-params"
    )
    limit = right.number_input("Rows", 0, 100_000, 500, help="Dev rows, drawn with a fixed seed; 0 for all.")
    folder = st.text_input(
        "Data",
        value=str(config.settings().glue or ""),
        placeholder="a folder in GLUE's TSV form; empty for the bundled samples",
    )
    if not name:
        return None
    return {"checkpoint": name, "task": task, "limit": limit or None, "data": folder or None}


def _start() -> None:
    shared = shared_options()
    left, middle, right, last = st.columns([2, 2, 2, 1], vertical_alignment="bottom")
    what = left.selectbox("Change", list(WHAT), format_func=WHAT.__getitem__, key="what", bind="query-params")
    operator = middle.selectbox(
        "Instead of its attention",
        list(OPERATORS),
        format_func=OPERATORS.__getitem__,
        key="operator",
        bind="query-params",
    )
    rough = right.checkbox("bfloat16", help="Twice as fast; predictions near a tie may differ.")
    groups = ""
    if what == "groups":
        groups = st.text_input("Groups", key="head", bind="query-params", placeholder="L1H2,L7H6; L4H1") or ""
    if last.button("Sweep", type="primary", width="stretch", disabled=shared is None) and shared:
        with clear_errors():
            dtype = "bfloat16" if rough else "float32"
            options = shared | {"what": what, "operator": operator, "heads": groups, "dtype": dtype}
            title = f"{operator}: {WHAT[what]}, {TASKS[shared['task']].name}"
            running.start(resources.database(), "disable", options, title)
            st.rerun()
    st.caption("Sweeps need a checkpoint with a classifier for the task: the Fine-tune page makes one.")


def pick_run(study: str, empty: str, key: str = "run") -> tuple[str, pd.Series] | None:
    """One of the stored runs of a study and what is known of it, or a hint what to do first."""
    known = runs(resources.database(), study)
    if known.empty:
        st.info(empty, icon=":material/block:")
        return None
    about = known.set_index("run")
    run = st.selectbox(
        "Results of",
        list(about.index),
        format_func=lambda one: _title(about.loc[one]),
        key=key,
        bind="query-params",
    )
    return run, about.loc[run]


def _results() -> None:
    picked = pick_run("disable", "Nothing has been swept yet: choose a fine-tuned checkpoint and press Sweep.")
    if picked is None:
        return
    run, about = picked
    rows = study_rows(resources.database(), run)
    variants, baseline = rows[rows["kind"] == "variant"], rows[rows["kind"] == "baseline"].iloc[0]
    metric = next(name for name in ("accuracy", "f1", "pearson") if name in rows)
    names = [name for name in ("accuracy", "f1", "pearson") if name in rows]
    if len(names) > 1:
        metric = st.segmented_control("Metric", names, default=metric, required=True) or metric
    _headline(variants, baseline, metric, rows[rows["kind"] == "split half"])
    if baseline["what"] == "layers" or baseline["what"] == "groups":
        _bars(variants, baseline, metric)
    else:
        _heads(variants, baseline, metric)
        _beside_another(run, variants, metric)
    _table(variants, metric)
    said_so = (
        f"{about['checkpoint']} · {TASKS[baseline['task']].name} {about['split']} · n = {int(baseline['n'])} rows",
        f"operator {baseline['operator']} · {about['dtype']} · {about['created']:%d %B %Y}",
        "intervals: paired bootstrap, 95%, one at a time; p: max-T permutation, corrected over all",
    )
    st.caption(plain(" · ".join(said_so)))
    if baseline["what"] in ("heads", "all-but-one"):
        _one_head(str(about["checkpoint"]), variants)


def _headline(variants: pd.DataFrame, baseline: pd.Series, metric: str, halves: pd.DataFrame) -> None:
    kept = variants[variants["p"] < 0.05]
    best = variants.loc[variants[f"{metric}_change"].astype(float).idxmax()]
    left, middle, right = st.columns(3)
    left.metric(f"{metric}, untouched", f"{100 * baseline[metric]:.1f}")
    middle.metric(f"best: {best['name']}", f"{100 * best[metric]:.1f}", f"{100 * best[f'{metric}_change']:+.1f}")
    right.metric("change beyond luck", f"{len(kept)} of {len(variants)}", help="p < 0.05 after correction over all")
    if len(halves):
        half = halves.iloc[0]
        st.markdown(
            f"Chosen on one half of the rows, the best gains **{100 * half['chosen']:+.1f}** there and "
            f"**{100 * half['held_out']:+.1f}** on the other half (95% of splits: {100 * half['low']:+.1f} to "
            f"{100 * half['high']:+.1f}); {half['name']} is chosen in {half['same']:.0%} of the splits."
        )


def _heads(variants: pd.DataFrame, baseline: pd.Series, metric: str) -> None:
    left, right = st.columns([3, 2])
    drawn = variants.astype({"layer": int, "head": int}).assign(change=100 * variants[f"{metric}_change"].astype(float))
    marked = [
        Head(int(a), int(b)) for a, b, p in zip(drawn["layer"], drawn["head"], drawn["p"], strict=True) if p < 0.05
    ]
    asked = parse_heads(st.query_params.get("head", ""))
    with left:
        st.altair_chart(
            charts.head_picture(
                drawn,
                value="change",
                label=f"{metric}, points",
                title=f"Change of {metric} from {100 * baseline[metric]:.1f} (Fig 8); outlined: beyond luck or asked",
                diverging=True,
                highlight=[*marked, *asked],
                tooltip=("flipped", "p", metric),
            ),
            width="content",
        )
    with right:
        values = (100 * drawn[metric].astype(float)).round(1).value_counts().sort_index()
        counts = pd.DataFrame({metric: [f"{one:.1f}" for one in values.index], "heads": values.to_numpy()})
        st.altair_chart(
            charts.bars_with_intervals(
                counts, x=metric, y="heads", title="Heads by the score without them (Michel et al., Fig 1)"
            )
        )
    for head in asked:
        mine = drawn[(drawn["layer"] == head.layer) & (drawn["head"] == head.head)]
        for _, row in mine.iterrows():
            st.markdown(f"**{head}**: {said(row, metric)}.")


def said(row: pd.Series, metric: str) -> str:
    """One variant in words."""
    ends = f"{100 * row[f'{metric}_low']:+.1f} to {100 * row[f'{metric}_high']:+.1f}"
    flips = f", {int(row['flipped'])} predictions change" if pd.notna(row["flipped"]) else ""
    return f"{metric} {100 * row[f'{metric}_change']:+.1f} points (95%: {ends}){flips}, corrected p {row['p']:.3f}"


def _bars(variants: pd.DataFrame, baseline: pd.Series, metric: str) -> None:
    shown = variants.assign(
        score=100 * variants[metric].astype(float),
        low=100 * (baseline[metric] + variants[f"{metric}_low"].astype(float)),
        high=100 * (baseline[metric] + variants[f"{metric}_high"].astype(float)),
    )
    st.altair_chart(
        charts.bars_with_intervals(
            shown, x="name", y="score", low="low", high="high", y_title=f"{metric} x 100", x_title="disabled",
            rule=100 * baseline[metric], title="Score without each; dashed: untouched (Fig 9)",
            tooltip=("flipped", "p"), sort=list(shown["name"]),
        )
    )  # fmt: skip


def _beside_another(run: str, variants: pd.DataFrame, metric: str) -> None:
    """Which heads do two tasks share? Another sweep's changes against this one's."""
    known = runs(resources.database(), "disable")
    others = known[(known["run"] != run)].set_index("run")
    if others.empty:
        return
    other = st.selectbox(
        "Beside another sweep", [None, *others.index],
        format_func=lambda one: "none" if one is None else _title(others.loc[one]),
    )  # fmt: skip
    if other is None:
        return
    found = study_rows(resources.database(), other)
    found = found[found["kind"] == "variant"]
    second = next(name for name in ("accuracy", "f1", "pearson") if f"{name}_change" in found)
    joined = variants.merge(found, on="name", suffixes=("", "_other"))
    if joined.empty:
        st.info("The two sweeps share no head of the same name: choose one of the same kind.")
        return
    second_change = f"{second}_change_other" if f"{second}_change_other" in joined else f"{second}_change"
    both = pd.DataFrame(
        {"head": joined["name"], "this": 100 * joined[f"{metric}_change"].astype(float),
         "other": 100 * joined[second_change].astype(float)}
    )  # fmt: skip
    agreement = rank_agreement(both["this"].to_numpy(), both["other"].to_numpy())
    rho = "undefined" if agreement.spearman is None else f"{agreement.spearman:.2f} (p {agreement.p:.3f})"
    title = f"Changes of two sweeps; Spearman {rho}, n = {agreement.n} heads"
    st.altair_chart(charts.points(both, x="this", y="other", title=title, label="head"))


def _title(about: pd.Series) -> str:
    return f"{about['title']} · {about['checkpoint']} · {about['created']:%d %B %Y %H:%M}"


def _table(variants: pd.DataFrame, metric: str) -> None:
    with st.expander(f"All {len(variants)}"):
        columns = [
            "name",
            metric,
            f"{metric}_change",
            f"{metric}_low",
            f"{metric}_high",
            "flipped",
            "mcnemar",
            "p",
            "heads",
        ]
        st.dataframe(variants[columns], hide_index=True)


def _one_head(checkpoint: str, variants: pd.DataFrame) -> None:
    name = st.selectbox("Go on with", sorted(variants["name"], key=str), index=None, placeholder="a head")
    if name:
        asked = {"checkpoint": checkpoint, "head": name}
        st.page_link(PAGES_FOLDER / "maps.py", label=f"Maps of {name}", query_params=asked)
        st.page_link(PAGES_FOLDER / "frames.py", label=f"Frame relations of {name}", query_params=asked)
