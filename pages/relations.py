"""Token to token: which heads look along links between words, and how well they predict dependencies."""

import pandas as pd
import streamlit as st

from core.jobs import api
from core.store import runs as store
from core.tasks.relations import RELATIONS
from pages.parts.frame import resources
from pages.parts.frame.messages import clear_errors, plain
from pages.parts.reports import attending
from pages.parts.reports.stored_runs import pick_run
from pages.parts.widgets import job_progress, pickers
from pages.parts.widgets.files import show_files

VALUES = {"value": "weight", "effect": "excess", "accuracy": "accuracy"}
WAYS = {"forward": "from the first end to the second", "backward": "from the second end to the first"}


def pick_relations() -> list[str]:
    """Relations to look for: the paper's, and any dependency."""
    return st.multiselect(
        "Relations",
        list(RELATIONS),
        default=list(RELATIONS),
        format_func=lambda name: RELATIONS[name].label if name in RELATIONS else name,
        accept_new_options=True,
        key="relations",
        help="Type dep:amod for any dependency label; a link then goes from the dependent to its governor.",
    )


def say_baselines(rows: pd.DataFrame) -> None:
    """Accuracies of fixed distances, beside which the accuracy of a head stands; one line a checkpoint and task."""
    for (checkpoint, task), some in rows.groupby(["checkpoint", "task"], sort=False):
        row = some.iloc[0]
        if pd.isna(row.get("best_distance_accuracy")):
            st.caption("Across sentences the baseline is the mean weight on the other words of the other sentence.")
            return
        st.caption(
            f"{plain(checkpoint)} · {plain(task)} · always guessing the word at distance "
            f"{int(row['best_distance']):+d} is right for {row['best_distance_accuracy']:.3f} of the links; the "
            f"previous word {row['previous_accuracy']:.3f}, the next word {row['next_accuracy']:.3f}."
        )


def say_shared(rows: pd.DataFrame) -> None:
    """Heads that stand out in every task (the paper: STS-B and RTE share a pair that finds words of both sentences)."""
    for checkpoint, some in rows.groupby("checkpoint", sort=False):
        if some["task"].nunique() > 1:
            shared = ", ".join(map(str, attending.shared_heads(some))) or "none"
            st.caption(f"{plain(checkpoint)} · heads above their baseline in all these tasks: {shared}.")


def dependencies() -> None:
    """Accuracy on gold trees: heads chosen on dev, reported on test (Clark et al., Table 1)."""
    db = resources.database()
    with st.expander("Run on a treebank", icon=":material/account_tree:"):
        name = pickers.pick_checkpoint(key="tree_checkpoint")
        folder = st.text_input("Universal Dependencies folder", key="treebank", placeholder="UD_English-EWT")
        st.caption("A folder with one *-dev.conllu and one *-test.conllu.")
        if st.button("Run", key="start_trees", disabled=not (name and folder)):
            wanted = {"checkpoint": name, "treebank": folder}
            title = f"dependencies of {name}"
            st.session_state["job_dependencies"] = api.start(db, "dependencies", wanted, title)
            st.rerun()
    if job := st.session_state.get("job_dependencies"):
        job_progress.show_job(job, rows=False)
    picked = pick_run(
        "dependencies", "No accuracy on gold trees is stored yet: name a treebank above.", "trees_run",
        icon=":material/account_tree:",
    )  # fmt: skip
    if picked is None:
        return
    run = picked[0]
    facts, rows = store.one_run(db, run), attending.notes(store.study_rows(db, run))
    rows = rows.assign(task=rows["feature"], over=rows["value"] - rows["baseline"])
    best = rows[rows["chosen"]] if "chosen" in rows else rows
    columns = ["statistic", "value", "low", "high", "n", "baseline", "distance", "dev", "over"]
    about = attending.Found(best, "", facts["options"]["checkpoint"], "", "")
    attending.table(about, best, columns, by="over", key="trees")
    show_files(rows, [], "dependencies")
    st.caption(
        f"{plain(facts['checkpoint'])} · {facts['created']:%d %B %Y} · head, direction and fixed distance chosen on "
        "dev, reported on test (the file has both directions); value: accuracy with its 95% interval over sentences; "
        "baseline: the fixed distance; forward: the dependent looks at its governor, backward: the governor at its "
        "dependent."
    )


st.title("Token to token")
relations = pick_relations()
found = attending.rows_of("relations", task="mrpc", options={"relations": relations})
if found is not None:
    rows = found.rows
    if rows.empty:
        st.info("No input has any of these links: choose other relations, or give more text.")
    else:
        places = st.columns(3)
        names = list(dict.fromkeys(rows["feature"]))
        label_of = {name: RELATIONS[name].label if name in RELATIONS else name for name in names}
        relation = places[0].selectbox("Relation", names, format_func=label_of.__getitem__, key="relation")
        ends = RELATIONS.get(relation)
        ways = [way for way in WAYS if way in set(rows.loc[rows["feature"] == relation, "statistic"])]
        said = {
            "forward": f"{ends.source} looks at {ends.target}" if ends else "dependent looks at governor",
            "backward": f"{ends.target} looks at {ends.source}" if ends else "governor looks at dependent",
        }
        way = places[1].selectbox("Direction", ways, format_func=said.__getitem__)
        value = places[2].segmented_control(
            "Shown", list(VALUES), default="value", required=True, format_func=VALUES.__getitem__, key="shown"
        )
        chosen = rows[(rows["feature"] == relation) & (rows["statistic"] == way)]
        drawn = attending.pictures(chosen, value, VALUES[value], diverging=value == "effect")
        st.caption(
            f"{found.caption} · n = {int(chosen['n'].max())} links · {said[way]} · excess and outlined heads: above "
            f"the same distance elsewhere, q < {attending.SURE} over all heads (from 8 inputs on)"
        )
        say_baselines(chosen)
        say_shared(chosen)
        st.subheader(f"Heads above their baseline: {len(attending.above_null(chosen))}")
        columns = ["value", "low", "high", "n", "baseline", "effect", "p", "q", "accuracy"]
        attending.table(found, chosen, columns, by="effect", key="heads")
        show_files(rows, drawn, "relations")
st.subheader("Dependencies on gold trees")
with clear_errors():
    dependencies()
