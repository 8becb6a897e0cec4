"""Hypotheses about one head: which criteria each meets, what the atlas proposes, and a form to register one."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import streamlit as st

from core import config
from core.attention import Head
from core.errors import StoreError
from core.findings import hypothesis_crate
from core.models.present import bundled_names, present_weights
from core.scoring.corrections import CONTROLLED
from core.store import hypotheses as store
from core.store.hypotheses import StoredBatch, StoredHypothesis
from core.studies.hypotheses.hypothesis import RowChoice, usual_rows
from core.studies.hypotheses.predicates import MARGIN, PREDICATES, Hypothesis, predicate_of
from core.studies.hypotheses.records import CRITERIA, SEEN_BEFORE, Criterion, JudgedHypothesis
from core.studies.hypotheses.registering import Proposal, batch_of, hypothesis_of, options_of, proposals, register
from core.tasks.glue import TASKS
from core.tuning.saved_checkpoints import shown_folder
from pages.parts.reports.result_list import show_briefly
from pages.parts.shell import resources, url
from pages.parts.shell.messages import as_code, clear_errors, plain
from pages.parts.widgets import job_progress, pickers
from pages.parts.widgets.tables import show_table

ROWS = 100  # that a proposal is thought of on, and as many that judge it
ICONS = {"met": "✓", "not met": "✗", "not tested": "·", SEEN_BEFORE: "seen before"}


def show_hypotheses(checkpoint: str, head: Head, scores: pd.DataFrame, task: str | None) -> None:
    """Show the registered hypotheses about this head, then proposals."""
    registered = _registered(checkpoint, head)
    if registered:
        _show_registered(registered, checkpoint)
    shipped = [(hypothesis, criteria) for hypothesis, criteria in _shipped(checkpoint) if hypothesis.subject == head]
    if shipped:
        st.markdown("These hypotheses were registered and tested for the bundled results:")
        for hypothesis, criteria in shipped:
            _show_numbers(hypothesis.sentence, criteria)
        command = as_code(
            config.command_line("hypothesis", "verify", shown_folder(config.DATA / "hypotheses" / checkpoint))
        )
        st.caption(f"To recompute the results of these tests, run this command: {command}")
    for job in st.session_state.get("_hypothesis_jobs", [])[-2:]:
        job_progress.show_job(job, rows=False)
    _show_proposals(checkpoint, head, scores, task)
    with st.expander("Register another", icon=":material/edit_note:"):
        _show_form(checkpoint, head)


def judged_of(checkpoint: str, head: Head) -> list[JudgedHypothesis]:
    """Return the hypotheses about this head registered here, then the bundled ones."""
    registered = [
        JudgedHypothesis(
            hypothesis_of(hypothesis).sentence,
            [Criterion.of(row) for row in hypothesis.criteria],
            _standing(hypothesis, batch, present_weights(checkpoint)),
        )
        for hypothesis, batch in _registered(checkpoint, head)
    ]
    return registered + [
        JudgedHypothesis(hypothesis.sentence, criteria)
        for hypothesis, criteria in _shipped(checkpoint)
        if hypothesis.subject == head
    ]


def _registered(checkpoint: str, head: Head) -> list[tuple[StoredHypothesis, StoredBatch]]:
    """Return the hypotheses registered about this head, each with its batch."""
    batches = {batch.batch: batch for batch in store.batches(resources.database()) if batch.checkpoint == checkpoint}
    return [
        (hypothesis, batches[hypothesis.batch])
        for hypothesis in store.hypotheses(resources.database())
        if hypothesis.batch in batches and (hypothesis.layer, hypothesis.head) == (head.layer, head.head)
    ]


def _standing(hypothesis: StoredHypothesis, batch: StoredBatch, now: str | None) -> str:
    if hypothesis.withdrawn:
        return "withdrawn"
    earlier = now not in (None, batch.weights_hash)
    return "imported" if hypothesis.imported else "earlier weights" if earlier else ""


def _show_registered(registered: Sequence[tuple[StoredHypothesis, StoredBatch]], checkpoint: str) -> None:
    now = present_weights(checkpoint)
    rows = []
    for hypothesis, batch in registered:
        states = {row["criterion"]: row["state"] for row in hypothesis.criteria}
        standing = _standing(hypothesis, batch, now)
        criteria = {name: ICONS[states.get(name, "not tested")] for name in CRITERIA}
        stored = f"{batch.stored:%Y-%m-%d}"
        rows.append({"says": hypothesis_of(hypothesis).sentence, **criteria, "": standing, "registered": stored})
    show_table(rows)
    st.caption("✓: the criterion is met; ✗: it is not met; dot: it has not been tested.")
    st.caption("A registered hypothesis cannot be changed, but you can withdraw it in a terminal.")
    if now:
        ever = store.ever_registered(resources.database(), now)
        st.caption(f"So far, {ever} hypotheses have been registered for the weights of this checkpoint. {CONTROLLED}")
    untested = [hypothesis for hypothesis, _ in registered if not hypothesis.criteria and not hypothesis.withdrawn]
    for hypothesis in untested[:1]:
        st.button("Test it", key=f"test_{hypothesis.hypothesis}", on_click=_test, args=(hypothesis.batch,))
    tested = [hypothesis for hypothesis, _ in registered if hypothesis.criteria]
    if tested:
        with st.expander("Measured values for each criterion", icon=":material/table:"):
            for hypothesis in tested:
                judged = [Criterion.of(row) for row in hypothesis.criteria]
                _show_numbers(hypothesis_of(hypothesis).sentence, judged)
                _show_runs(judged)


def _show_runs(criteria: Sequence[Criterion]) -> None:
    """Show links to the runs behind the criteria."""
    for run in dict.fromkeys(criterion.run for criterion in criteria if criterion.run):
        decided = ", ".join(criterion.criterion for criterion in criteria if criterion.run == run)
        st.caption(plain(f"Result of the test for {decided}:"))
        try:
            show_briefly(run)
        except StoreError:
            st.caption("The result of this test is not stored here.")


def _show_numbers(sentence: str, criteria: Sequence[Criterion]) -> None:
    met = ", ".join(criterion.criterion for criterion in criteria if criterion.state == "met")
    st.markdown(f"**{plain(sentence)}**: {plain(met or 'no criterion is met')}")
    show_table([_numbers(criterion) for criterion in criteria])
    if any(criterion.measured_by.startswith("features") for criterion in criteria):
        st.caption(
            "For hypotheses about a token type other than special tokens, p is the larger of two p-values. One comes "
            "from a test over inputs, and the other from a test over word types."
        )


def _shipped(checkpoint: str) -> list[tuple[Hypothesis, list[Criterion]]]:
    """Return the bundled hypotheses about the current weights of a checkpoint."""
    folder = config.DATA / "hypotheses" / checkpoint
    if checkpoint not in bundled_names() or not folder.is_dir():
        return []
    return _read(folder, (folder / hypothesis_crate.FILE).stat().st_mtime_ns, present_weights(checkpoint))


@st.cache_data(show_spinner=False, max_entries=4)
def _read(folder: Path, changed: int, weights: str | None) -> list[tuple[Hypothesis, list[Criterion]]]:
    batches = [batch for batch in hypothesis_crate.read(folder) if batch.options.weights == weights]
    return [
        (hypothesis, [criterion for criterion in batch.criteria if criterion.hypothesis == hypothesis.hypothesis])
        for batch in batches
        for hypothesis in batch.options.hypotheses
    ]


def _numbers(criterion: Criterion) -> dict[str, str]:
    def number(value: float | None) -> str:
        return "" if value is None else f"{value:.3g}"

    between = f"{number(criterion.low)} to {number(criterion.high)}" if criterion.low is not None else ""
    return {
        "criterion": criterion.criterion, "state": criterion.state, "what": criterion.measure,
        "value": number(criterion.amount), "95 % CI": between, "baseline": number(criterion.baseline),
        "n": "" if criterion.n is None else str(criterion.n), "p, Holm": number(criterion.adjusted),
        "level": number(criterion.level), "run": criterion.measured_by, "note": criterion.note,
    }  # fmt: skip


def _show_proposals(checkpoint: str, head: Head, scores: pd.DataFrame, task: str | None) -> None:
    thought = RowChoice(task if task and task in TASKS else "sst2", "dev", ROWS, data=pickers.data_folder())
    judged = RowChoice("mrpc" if thought.task != "mrpc" else "sst2", "dev", ROWS, data=thought.data)
    offered = proposals(scores, head)
    if not offered:
        return
    st.caption(
        plain(f"Proposed from the highest scores of the head on {thought}. The hypotheses would be tested on {judged}.")
    )
    with st.container(horizontal=True):
        for number, proposal in enumerate(offered):
            st.button(
                plain(proposal.hypothesis.sentence),
                key=f"propose_{number}",
                icon=":material/science:",
                help="Registers this hypothesis and then starts its test on the evaluation set.",
                on_click=_register,
                args=(checkpoint, proposal, thought, judged),
            )


def _show_form(checkpoint: str, head: Head) -> None:
    key = url.pick(st.selectbox, "Predicate", list(PREDICATES), key="hypothesis_predicate",
                     format_func=lambda name: predicate_of(name).sentence)  # fmt: skip
    values = {}
    for parameter in predicate_of(key).parameters:
        default = str(MARGIN) if parameter.name == "margin" and key == "needed-for" else parameter.default or ""
        values[parameter.name] = st.text_input(
            parameter.name, value=default, placeholder=parameter.meaning, key=f"hypothesis_{key}_{parameter.name}"
        )
    usual = usual_rows(key, ROWS)
    thought = st.text_input("Examples that suggested the hypothesis", value=usual[0], key=f"hypothesis_thought_{key}")
    judged = st.text_input("Examples on which the hypothesis is tested", value=usual[1], key=f"hypothesis_judged_{key}")
    if st.button("Register and test", key="hypothesis_register", type="primary"):
        with clear_errors():
            proposal = Proposal(head, key, {name: value for name, value in values.items() if value.strip()})
            choices = [
                RowChoice.parse(rows, data=pickers.data_folder() if rows.partition(":")[0] in TASKS else None)
                for rows in (thought, judged)
            ]
            _begin(checkpoint, proposal, *choices)
            st.rerun()


def _register(checkpoint: str, proposal: Proposal, thought: RowChoice, judged: RowChoice) -> None:
    with clear_errors():
        _begin(checkpoint, proposal, thought, judged)


def _begin(checkpoint: str, proposal: Proposal, thought: RowChoice, judged: RowChoice) -> None:
    db = resources.database()
    batch, _ = register(db, checkpoint, [proposal], thought=thought, judged=judged, annotator=db.person.name)
    _test(batch)


def _test(batch: str) -> None:
    with clear_errors():
        options = options_of(*batch_of(resources.database(), batch))
        job = job_progress.begin("hypothesis", options, f"Hypotheses about {options.checkpoint}")
        st.session_state.setdefault("_hypothesis_jobs", []).append(job)
