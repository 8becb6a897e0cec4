"""Comparison of ablation methods on one head, and their agreement on which heads matter."""

from dataclasses import asdict

import pandas as pd
import streamlit as st

from core.attention import Head
from core.scoring.effects import RARE, rows_to_see, unseen_share
from core.store.rows import Row
from core.studies.ablation import operators
from core.studies.ablation.records import OperatorAgreement, OperatorEffect, Unmodified
from pages.parts.charts.curves import values_with_intervals
from pages.parts.charts.encoding import Axes, Shade
from pages.parts.charts.heads import head_picture
from pages.parts.disable.settings import SWEPT, mean_by, shared_options
from pages.parts.reports.caveats import warn_of_tuning
from pages.parts.reports.stored_runs import StoredRun
from pages.parts.reports.study_view import drawer, shown_result
from pages.parts.shell import context, url
from pages.parts.shell.links import pick_and_link
from pages.parts.shell.messages import clear_errors, plain
from pages.parts.widgets import job_progress
from pages.parts.widgets.files import together
from pages.parts.widgets.tables import show_table

COLUMNS = ["name", "operator", "value", "low", "high", "p"]
MOST_ROWS = 200  # examples of a comparison
AGREEMENT = ["name", "kendall", "low", "high", "itself", "same_rows"]


def show_operators() -> None:
    with drawer("Measure another checkpoint or task", "operators"):
        _start()
    job_progress.show_jobs("operators")
    empty = (
        "No comparison of ablation methods is stored yet. Choose a fine-tuned checkpoint and press the button above."
    )
    with clear_errors(), shown_result("operators", empty) as stored:
        if stored is not None:
            warn_of_tuning(stored)
            _shown(stored.result_rows, stored)


def _start() -> None:
    shared = shared_options(most=MOST_ROWS)
    chosen = url.pick_many(st.multiselect, "Operators", list(SWEPT), key="operators", default=list(operators.DEFAULT),
                             format_func=SWEPT.__getitem__)  # fmt: skip
    how = mean_by("mean" if "mean" in chosen else "", key="operators_mean_by")
    settings = how | {"operators": chosen, "limit": min(shared.limit or MOST_ROWS, MOST_ROWS) if shared else MOST_ROWS}
    options = asdict(shared) | settings if shared else None
    title = f"Operators on {context.now().checkpoint}"
    job_progress.offer_start("operators", options, "Compare methods", title=lambda: title)


def _shown(rows: list[Row], stored: StoredRun) -> None:
    effects, baseline = OperatorEffect.among(rows), Unmodified.among(rows)[0]
    names = list(dict.fromkeys(effect.name for effect in effects))
    strongest = max(effects, key=lambda effect: abs(effect.value)).name
    left, right = st.columns([3, 2])
    with left:
        name = url.pick(st.selectbox, "Head", names, key="operators_head", default=strongest)
        head_effects = [effect for effect in effects if effect.name == name]
        chart = values_with_intervals(
            pd.DataFrame(head_effects),
            Axes(x="operator", y="value", low="low", high="high", y_title="change of the loss"),
            rule=0.0,
            title=f"Change in loss if {name} is ablated (95 % CI)",
            tooltip=["p"],
        )
        st.altair_chart(chart)
        under = [effect.operator for effect in head_effects if effect.p < 0.05 and effect.value > 0]
        st.markdown(
            plain(
                f"Without {name} the loss rises significantly (p < 0.05, corrected over all of them) "
                f"under {', '.join(under) or 'no operator'}."
            )
        )
        _fit(head_effects)
    with right:
        _agreement(OperatorAgreement.among(rows))
    st.altair_chart(together(_pictures(effects, name)), width="content")
    show_table(pd.DataFrame(effects, columns=COLUMNS))
    st.caption(
        plain(
            f"{stored.checkpoint} · {stored.task} · n = {baseline.n} rows, loss {baseline.loss:.3f} "
            f"· {stored.date} · CIs over examples; p: max-T over heads and methods; effects that are present in "
            f"fewer than {unseen_share(len(effects), baseline.n):.1%} of all examples may be missed; to detect an "
            f"effect in {RARE:.0%} of the examples, {rows_to_see(RARE, len(effects)):,} examples are needed"
        )
    )
    pick_and_link(stored.of, names, current_view="interventions", key="operators_go_on")


def _pictures(effects: list[OperatorEffect], name: str) -> list:
    largest = max(abs(effect.value) for effect in effects) or 1.0
    return [
        head_picture(
            pd.DataFrame([effect for effect in effects if effect.operator == operator]),
            Shade("value", label="change of loss", diverging=True, domain=(-largest, largest)),
            title=str(operator),
            highlight=[Head.parse(name)],
            tooltip=["low", "high", "p"],
        )
        for operator in dict.fromkeys(effect.operator for effect in effects)
    ]


def _agreement(pairs: list[OperatorAgreement]) -> None:
    if not pairs:
        return
    st.markdown(
        "**Do the ablation methods rank heads in the same order?** Kendall's tau between mean effects is 1 for "
        "the same order and 0 for unrelated orders."
    )
    show_table(pd.DataFrame(pairs, columns=AGREEMENT))
    st.caption(
        "Tau between two ablation methods is computed on different halves of the examples. On the same examples "
        "(column “same_rows”), shared noise would look like agreement."
    )
    st.caption(
        "The column “itself” is the highest tau that can be expected: the tau of a method with itself on two halves of "
        "the examples, as geometric mean over the two methods. The 95 % CI is over heads."
    )


def _fit(effects: list[OperatorEffect]) -> None:
    for effect in effects:
        if effect.fit_constant is None or effect.fit_mean is None or effect.fit_zero is None:
            continue
        note = (
            f"Loss on the examples on which its constant was fitted: mean {effect.fit_mean:.4f}, zero "
            f"{effect.fit_zero:.4f}, "
        )
        note += f"constant {effect.fit_constant:.4f}."
        if effect.fit_constant >= min(effect.fit_mean, effect.fit_zero):
            note += " The optimisation found nothing better than its starting point."
        st.caption(note)
        return
