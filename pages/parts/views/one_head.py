"""One head: all known facts with their sources, similar heads, and its gallery."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core import capture, studies
from core.atlas.example import example_grid
from core.atlas.head import Gallery, Shelved, command_of, facts, head_page, scores_beside, sentence
from core.attention import Head
from core.drawing.packing import Grid
from core.drawing.page import MapsSource
from core.errors import AtlasError
from core.findings.pinning import HeadFacts, Remark, pin_head
from core.models.present import present_weights
from core.scoring.definitions import QUERY_CLASSES
from core.store.findings import Number
from core.studies.attention import norms, statistics
from core.studies.circuits.records import CircuitEdge
from core.studies.explanation import writes
from core.studies.explanation.writes import Written
from core.studies.headline import percent
from core.studies.lookup import find_score, label_of, section_of
from core.tasks.glue import drawn
from pages.parts.atlas import choices
from pages.parts.atlas.choices import is_task, pick_score
from pages.parts.atlas.head_hypotheses import judged_of, show_hypotheses
from pages.parts.atlas.head_pictures import (
    SmallMap,
    input_of,
    matched_with,
    ordered_inputs,
    show_counterparts,
    show_maps,
    show_nearest,
    show_small_maps,
    show_three_maps,
    show_where_it_looks,
    thumbnail,
)
from pages.parts.atlas.measuring import offer_missing, offer_to_measure
from pages.parts.charts.curves import values_with_intervals
from pages.parts.charts.encoding import Axes
from pages.parts.charts.heads import budget_bars, budget_parts
from pages.parts.maps.score_decomposition import show_cells
from pages.parts.reports import attending
from pages.parts.reports.stored_runs import present_runs
from pages.parts.reports.study_view import details
from pages.parts.shell import context, links, resources, url
from pages.parts.shell.links import is_missing, say_missing, show_links
from pages.parts.shell.messages import clear_errors, plain
from pages.parts.widgets import pickers
from pages.parts.widgets.files import show_files
from pages.parts.widgets.result_actions import offer_pin
from pages.parts.widgets.tables import show_table

if TYPE_CHECKING:
    from core.models.checkpoint import Checkpoint


# ---------------------------------------------------------------- the dossier of a head out of the app


@dataclass(frozen=True)
class Dossier:
    """The content of the page. `scores` are those of all heads on the task, `rows` those of this head in the table."""

    head: Head
    checkpoint: str
    task: str | None
    scores: pd.DataFrame
    rows: pd.DataFrame
    gallery: Gallery

    def page(self) -> str:
        return head_page(
            self.head, self.checkpoint, self.scores, self.rows, task=self.task, gallery=self.gallery,
            maps=self._maps(), hypotheses=judged_of(self.checkpoint, self.head),
        )  # fmt: skip

    def pin(self, title: str, note: str, who: str) -> str:
        """Pin the head as a finding, and return its ID."""
        rows = self.rows.astype(object).where(self.rows.notna(), None).to_dict("records")
        numbers = [
            Number(str(self.head), row["what"], row["value"], row["low"], row["high"], row["q"], row["n"])
            for row in rows
        ]
        weights = present_weights(self.checkpoint) or ""
        source = MapsSource(self.checkpoint, "", weights_hash=weights, command=command_of(self.checkpoint, self.task))
        facts_sentence, judged = sentence(facts(self.scores, self.head)), judged_of(self.checkpoint, self.head)
        return pin_head(
            resources.database(),
            self.head,
            source,
            HeadFacts(facts_sentence, numbers, judged),
            Remark(note, title, who),
        )

    def _maps(self) -> Grid | str:
        """Return all heads on the example pair, or why they are left out."""
        try:
            return example_grid(self.checkpoint, head=str(self.head))
        except AtlasError as error:
            return str(error)


# -------------------- One head beside its counterpart in the checkpoint that it is compared with, or the head of


def show_beside(checkpoint: str, head: Head, task_scores: pd.DataFrame, task: str | None) -> None:
    """Show the maps of two heads for one input and their common scores, if another checkpoint is chosen."""
    beside = context.now().beside
    if beside in (None, checkpoint):
        return
    other_checkpoint = str(beside)
    st.subheader(plain(f"Beside {other_checkpoint}"), anchor=False)
    partner = _partner(checkpoint, head, other_checkpoint)
    shown_input = input_of(checkpoint, head, task_scores, task)
    if shown_input is not None:
        maps = [
            thumbnail(checkpoint, head, shown_input, f"{head}, here"),
            thumbnail(other_checkpoint, partner, shown_input, f"{partner} of {other_checkpoint}"),
        ]
        show_maps(maps, "beside_maps")
    scores = choices.scores_of(other_checkpoint)
    if scores.empty:
        st.caption(plain(f"No scores of {other_checkpoint} are stored yet. Open its page to measure them."))
        if not say_missing(other_checkpoint):
            links.link("heads/one", f"{partner} of {other_checkpoint}", checkpoint=other_checkpoint, head=str(partner))
        return
    _show_scores(scores_beside(task_scores, head, choices.on_task(scores, task), partner), partner, other_checkpoint)


def _partner(checkpoint: str, head: Head, other_checkpoint: str) -> Head:
    """Return the counterpart of the head if requested and available, otherwise the head of the same number."""
    counterparts = matched_with(checkpoint, other_checkpoint)
    matches = [
        record for record in counterparts if (record.layer, record.head) == (head.layer, head.head) and record.match
    ]
    explained = (
        "If on, this head is compared with its counterpart, which is the most similar head (see “Heads > "
        "Counterparts”). If off, it is compared with the head of the same number."
    )
    if matches and url.switch(st.toggle, "By matched heads", key="by_counterpart", default=True, help=explained):
        record = matches[0]
        st.caption(
            plain(f"{head} is matched with {record.match}, similarity {record.similarity:.2f}, n = {record.n} inputs.")
        )
        return Head.parse(record.match)
    if not matches:
        why = (
            f"{head} has no significant counterpart there"
            if counterparts
            else "The heads of the two checkpoints have not been matched yet"
        )
        st.caption(plain(f"{why}, so the head of the same number is shown. It may behave differently."))
        links.link("heads/counterparts", checkpoint=checkpoint, beside=other_checkpoint, head=str(head))
    return head


def _show_scores(differences: pd.DataFrame, partner: Head, other_checkpoint: str) -> None:
    differences = differences[~differences["score"].isin(choices.HIDDEN)]
    if differences.empty:
        st.caption(
            plain(f"No score has been measured for both heads on the same examples ({partner} of {other_checkpoint}).")
        )
        return
    sure, tested = int(differences["sure"].eq(True).sum()), int(differences["sure"].notna().sum())
    st.markdown(
        f"**{sure} of {tested} scores** differ significantly between the two heads (5 % level, corrected "
        "for the number of scores)."
    )
    shown = pd.DataFrame(
        {
            "what": [label_of(key) for key in differences["score"]],
            "here": [
                _number(*row) for row in differences[["first", "first_low", "first_high"]].itertuples(index=False)
            ],
            "there": [
                _number(*row) for row in differences[["second", "second_low", "second_high"]].itertuples(index=False)
            ],
            "there minus here": differences["difference"],
            "significant": differences["sure"].map({True: "yes", False: "no"}),
        }
    )
    show_table(shown, height=260, column_config={"there minus here": st.column_config.NumberColumn(format="%+.3g")})
    st.caption(
        "The brackets contain 95 % CIs over inputs. Each difference is tested by a z-test that treats the inputs "
        "of both heads as independent (Bonferroni-corrected for the number of scores). The most significant "
        "differences come first."
    )


def _number(value: float, low: float, high: float) -> str:
    return f"{value:.3g}" if pd.isna(low) else f"{value:.3g} [{low:.3g}, {high:.3g}]"


# ---------------------------------------------------------------- what one head does, as pictures


MEASURED_AS = {  # what scores of effects begin with: the unit of their axis, and the view that shows them, if any
    "operators/": ("increase of the loss, nats", "interventions/ablation"),
    "sequential-test/": ("increase of the loss, nats", "interventions/sequential"),
    "disable/": ("change of the metric", "interventions/ablation"),
    "sinks/sink re": ("change of the output", "interventions/patching"),  # not its attention to the sink
    "sinks/whole": ("change of the output", "interventions/patching"),
    "importance/importance": ("importance", "interventions/pruning"),
}
MOST_EDGES = 10


def effects(scores: pd.DataFrame, head: Head) -> dict[str, pd.DataFrame]:
    """Return the effects of ablating the head by unit, with the mean over the other heads: what, of, value, low and
    high."""
    drawn: dict[str, list[pd.DataFrame]] = {}
    is_head = (scores["layer"] == head.layer) & (scores["head"] == head.head)
    for start, (unit, _) in MEASURED_AS.items():
        for score in scores.loc[is_head & scores["score"].str.startswith(start), "score"].drop_duplicates():
            is_score = scores["score"] == score
            row = scores[is_head & is_score].iloc[0]
            value, low, high = (float(row[name]) for name in ("value", "low", "high"))
            usual = float(scores.loc[is_score & ~is_head, "value"].mean())
            drawn.setdefault(unit, []).append(pd.DataFrame({
                "what": label_of(score), "of": ["this head", "other heads, mean"], "value": [value, usual],
                "low": [low, np.nan], "high": [high, np.nan],
            }))  # fmt: skip
    return {unit: pd.concat(frames, ignore_index=True).dropna(subset=["value"]) for unit, frames in drawn.items()}


def edges_of(checkpoint: str, head: Head) -> list[CircuitEdge]:
    """Return the edges of this head in the newest circuit of this checkpoint, the strongest first."""
    for stored in present_runs("circuit"):
        if stored.checkpoint == checkpoint:
            edges = stored.among(CircuitEdge)
            head_edges = [edge for edge in edges if str(head) in (edge.sender, edge.receiver)]
            return sorted(head_edges, key=lambda edge: edge.rank)[:MOST_EDGES]
    return []


def show_what_it_does(checkpoint: str, scores: pd.DataFrame, head: Head) -> None:
    """Show one chart per unit of effects, and one of edges, if they were measured."""
    effects_by_unit, edges = effects(scores, head), edges_of(checkpoint, head)
    if not effects_by_unit and not edges:
        st.info("No effect of this head is stored yet. Run an ablation or a circuit search.", icon=":material/info:")
        links.link("interventions/ablation", checkpoint=checkpoint, head=str(head))
        return
    for unit, frame in effects_by_unit.items():
        axes = Axes(x="what", y="value", x_title="", y_title=unit, colour="of", low="low", high="high")
        own, others = frame[frame["of"] == "this head"], frame[frame["of"] != "this head"].set_index("what")["value"]
        if len(own):
            most = own.loc[own["value"].abs().idxmax()]
            interval = "" if pd.isna(most["low"]) else f" ({percent(most['low'], most['high'], '{:.2g}', 1)})"
            beside = f"; mean of the other heads: {others[most['what']]:.2g}" if most["what"] in others else ""
            st.markdown(
                plain(
                    f"Largest effect: {most['what']}, {most['value']:.2g}{interval}{beside}. "
                    "This head is not tested against the other heads."
                )
            )
        st.altair_chart(values_with_intervals(frame, axes, title=f"Effects and importance of this head: {unit}"))
    if edges:
        frame = pd.DataFrame(
            [
                {"edge": edge.name, "effect": edge.effect, "low": edge.low, "high": edge.high, "verdict": edge.verdict}
                for edge in edges
            ]
        ).astype({"low": "float64", "high": "float64"})
        axes = Axes(x="edge", y="effect", x_title="", y_title="decrease of the logit difference", colour="verdict",
                    low="low", high="high")  # fmt: skip
        st.altair_chart(values_with_intervals(frame, axes, title="Strongest edges of this head"))
        st.caption(
            plain(f"Measured effects in the newest circuit (n = {edges[0].n} pairs); verdicts by the sequential test.")
        )
    with st.container(horizontal=True):
        starts = [
            page
            for start, (unit, page) in MEASURED_AS.items()
            if page and unit in effects_by_unit and scores["score"].str.startswith(start).any()
        ]
        for page in dict.fromkeys([*starts, *(["interventions/circuit"] if edges else [])]):
            links.link(page, checkpoint=checkpoint, head=str(head))


# ---------------------------------------------------------------- the gallery of a head


MOST_ROWS = 300  # as many as the bundled samples have
LONGEST = 48  # pieces of a small map
TASK_ROWS, OWN = "task rows", "own sentences"
OFFERED = [
    f"{study.name}/{score.name}" for study in (statistics.STUDY, norms.STUDY) for score in study.head_scores if score.of
]


def show_gallery(checkpoint: str, head: Head, task: str | None) -> Gallery:
    """Ask for a score and inputs, and show the chosen maps; return them for a file.

    Raises CheckpointError or InputError.
    """
    with st.container(horizontal=True, vertical_alignment="bottom"):
        key = pick_score("Score", OFFERED, OFFERED[3], key="gallery_score")
        source = url.pick(st.segmented_control, "Inputs", [TASK_ROWS, OWN], key="gallery_inputs", required=True)
        is_on = url.switch(
            st.toggle,
            "Show the gallery",
            key="gallery",
            help="Runs the checkpoint once on every input to compute this score.",
        )
    texts: tuple[tuple[str, str | None], ...] = ()
    if is_on:
        texts = _own_sentences() if source == OWN else _rows(task if task and is_task(task) else "sst2")
    if not texts:
        hint = (
            "Enter at least one sentence."
            if is_on
            else "Switch on the gallery to see inputs with the highest and lowest scores, and one input per decile."
        )
        st.info(hint, icon=":material/gallery_thumbnail:")
        return Gallery()

    values = resources.input_scores(checkpoint, texts, key)[:, head.layer, head.head]
    shelf = studies.attention.gallery.chosen(values)
    if not shelf:
        st.info("This score is undefined on all inputs. Choose another score.", icon=":material/info:")
        return Gallery()
    shelved = []
    for example in shelf:
        shown = resources.shown(checkpoint, *texts[example.input], most=LONGEST)
        text = " | ".join(filter(None, texts[example.input]))
        weights = _weights(checkpoint, shown, key, head)
        shelved.append(Shelved(example.where, example.value, text, shown.maps.tokens, weights, shown.maps.causal))
    score = find_score(key)
    definition = f"{score.label}: {score.formula}"
    summary = f"n = {int((~np.isnan(values)).sum())} inputs · mean {np.nanmean(values):.3f}"
    maps = [SmallMap(f"{example.where}: {example.value:.3f}", example.weights, example.tokens) for example in shelved]
    show_small_maps(maps, key="gallery_maps")
    st.caption(plain(f"{checkpoint} · {head} · {definition} · {summary} · rows are queries, columns keys"))
    said_of_each = [{"where": example.where, "value": example.value, "text": example.text} for example in shelved]
    show_table(pd.DataFrame(said_of_each), height=200)
    return Gallery(shelved, f"{definition} · {summary}")


def _weights(checkpoint: str, shown: resources.Shown, key: str, head: Head) -> np.ndarray:
    if not key.startswith("norms/"):
        return shown.maps.weights[head.layer, head.head]

    maps = capture.norms.norm_maps(resources.checkpoint(checkpoint), shown.encoding).heads[head.layer, head.head]
    return maps / np.maximum(maps.sum(-1, keepdims=True), 1e-12)


def _rows(task: str) -> tuple[tuple[str, str | None], ...]:
    rows = drawn(pickers.task_rows(task, "dev", pickers.data_folder()), MOST_ROWS, seed=0)
    return tuple((row.text, row.pair) for row in rows)


def _own_sentences() -> tuple[tuple[str, str | None], ...]:
    text = pickers.pick_text("Sentences, one per line", key="gallery_texts", default=attending.EXAMPLES, height=110)
    texts = attending.typed_texts(text)[: attending.MOST_SENTENCES]
    return tuple((given, None) if isinstance(given, str) else given for given in texts)


EVERYTHING = "everything"
ABOUT = {  # what a head's scores are about, as their studies say, and the views that show those
    "pattern class": ("statistics/shares",),
    "where it looks": ("statistics", "linguistics/tokens"),
    "relations and frames": ("linguistics/relations", "linguistics/frames"),
    "why it looks there": ("maps/why",),
    "beyond weights": ("linguistics/tokens", "statistics/effective", "maps/norms"),
    "effect": ("interventions/ablation", "interventions/pruning", "interventions/patching"),
    "fine-tuning": ("finetuning/change",),
    "likeness": ("heads/similar",),
    "hypotheses": ("heads/one",),
}


TABS = ["Effect of ablation", "Why it attends there", "Similar heads", "Hypotheses", "Gallery", "All scores"]


def head_here(scores: pd.DataFrame) -> Head:
    """Return the head of the context; with a notice, the first head with scores if the checkpoint has no such head."""
    heads = [Head(int(a), int(b)) for a, b in sorted(set(zip(scores["layer"], scores["head"], strict=True)))]
    named_heads = context.heads_named(context.now().head or "")
    if named_heads and named_heads[0] in heads:
        return named_heads[0]
    if named_heads:
        st.caption(f"No results about {named_heads[0]} are stored, so {heads[0]} is shown.")
    return heads[0]


def show_facts(scores: pd.DataFrame, head: Head) -> None:
    """Show the main finding about the head: its attention budget, otherwise its first stored fact."""
    head_facts = facts(scores, head)
    sentence, sure = budget_sentence(scores, head)
    if not sentence:
        sentence = f"{head}: {head_facts[0].text if head_facts else 'No results about this head are stored yet.'}"
    st.markdown(f"**{plain(sentence)}**")
    if sure:
        st.caption(plain(sure))


def show_other_facts(scores: pd.DataFrame, head: Head) -> None:
    """Show every stored fact about the head, one per line."""
    if head_facts := facts(scores, head):
        sources = "; ".join(f"{fact.about}: {fact.source}" for fact in head_facts)
        with details("Other findings about this head"):
            st.markdown("\n".join(f"- {plain(fact.text)}" for fact in head_facts),
                        help=plain(f"Brackets: 95 % CI. Sources: {sources}"))  # fmt: skip


def show_scores(scores: pd.DataFrame, head: Head) -> pd.DataFrame:
    """Show every score with interval, baseline and source, and links to their pages; return what is shown."""
    head_scores = choices.of_head(scores, head)
    head_scores = head_scores[~head_scores["score"].isin(choices.HIDDEN)]
    sections = head_scores["score"].str.partition("/")[0].map(section_of)
    offered = [name for name in ABOUT if (sections == name).any()]
    chosen = url.pick(st.segmented_control, "About", [EVERYTHING, *offered], key="about", required=True)
    pages: tuple[str, ...] = ()
    if chosen != EVERYTHING:
        pages = ABOUT[chosen]
        head_scores = head_scores[sections == chosen]
    head_scores = head_scores.set_index("score").loc[choices.keys_of(head_scores)].reset_index()
    head_scores.insert(0, "what", [label_of(key) for key in head_scores["score"]])
    columns = ["what", "value", "low", "high", "baseline", "q", "n", "task", "source"]
    numbers = ["value", "low", "high", "baseline", "q"]
    shown = head_scores[columns].assign(n=head_scores["n"].astype("Int64"), task=head_scores["task"].fillna(""))
    shown = shown.style.format("{:.3g}", subset=numbers, na_rep="").format("{:d}", subset=["n"], na_rep="")
    show_table(shown, height=360)
    if pages:
        with st.container(horizontal=True):
            st.caption("Inputs")
            for page in pages:
                links.link(page)
    return head_scores[columns]


def show(tools: DeltaGenerator) -> None:
    with clear_errors():
        checkpoint = str(context.now().checkpoint)
        scores = choices.scores_of(checkpoint)
        choices.say_left_out(checkpoint)
        if len(scores):
            task, head = choices.task_here(scores), head_here(scores)
            task_scores = choices.on_task(scores, task)
            missing = is_missing(checkpoint)
            st.subheader(plain(f"What does {head} do?"), anchor=False)
            show_facts(task_scores, head)
            show_budget(task_scores, head)
            show_writes(checkpoint, head)
            if not missing:
                with clear_errors():
                    show_three_maps(checkpoint, head, task_scores, task)
            show_other_facts(task_scores, head)
            effect, why, others, hypotheses, inputs, every = st.tabs(TABS)
            with effect:
                show_what_it_does(checkpoint, task_scores, head)
            with why:
                if missing:
                    st.info(
                        "The weights of this checkpoint are not on this machine, so its maps cannot be drawn.",
                        icon=":material/info:",
                    )
                else:
                    with clear_errors():
                        show_why(checkpoint, head, task_scores, task)
            with others:
                show_beside(checkpoint, head, task_scores, task)
                show_nearest(task_scores, head, checkpoint, task)
                show_counterparts(checkpoint, head, task_scores, task)
                show_links(checkpoint, head, current_view="heads/one")
            with hypotheses:
                show_hypotheses(checkpoint, head, task_scores, task)
            gallery = Gallery()
            if not missing:
                with inputs, clear_errors():
                    gallery = show_gallery(checkpoint, head, task)
            with every:
                show_where_it_looks(task_scores, head)
                rows = show_scores(task_scores, head)
                if not missing:
                    causal = resources.checkpoint(checkpoint).causal
                    offer_missing(checkpoint, task, task_scores=task_scores, causal=causal)
            dossier = Dossier(head, checkpoint, task, task_scores, rows, gallery)
            show_files(rows, [], f"head-{head}", page=dossier.page)
            offer_pin(dossier.pin, key="pin_head")
        else:
            offer_to_measure(checkpoint, scores=scores)


# ---------------------------------------------------------------- attention budget


BARS = {"budget": "queries: tokens of the text", "classifying budget": "query: the token that is classified"}


def show_budget(scores: pd.DataFrame, head: Head) -> None:
    """Show the attention budgets of the head, if stored. `scores` are those of all heads on one task."""
    own = choices.of_head(scores, head)
    bars = {name: parts for key, name in BARS.items() if len(parts := budget_parts(own, key))}
    if not bars:
        return
    st.markdown(
        "**Share of attention by kind of query and kind of key**",
        help="The start token is [CLS] or the first token. A separate bar is for the query from which "
        "the model predicts ([CLS] in encoders, the last token in decoders). A key that fits several "
        "categories is counted in the first one. Hover over a part of a bar to see its category.",
    )
    st.altair_chart(budget_bars(bars))
    classes = {name: parts for name in QUERY_CLASSES if len(parts := budget_parts(own, f"budget of {name}"))}
    if classes:
        with st.expander("Share of attention by part of speech of the query"):
            st.altair_chart(budget_bars(classes))
            apart = own[own["score"].str.startswith("budget/distance of a part of speech/")].sort_values("value")
            for row in apart.tail(1).itertuples():
                st.caption(
                    plain(
                        f"The budget of {row.score.rpartition('/')[2]} differs most from that of other words: "
                        f"Jensen-Shannon distance {row.value:.2f}, under uniform attention {row.baseline:.2f} "
                        f"(q {row.q:.2g}, permutation test, n = {int(row.n)} tokens)."
                    )
                )


def show_writes(checkpoint: str, head: Head) -> None:
    """The tokens that the head promotes and suppresses, by the newest result of this checkpoint, if there is one."""
    stored = next((run for run in present_runs("writes") if run.checkpoint == checkpoint), None)
    if stored is None:
        return
    written = [one for one in stored.among(Written) if (one.layer, one.head) == (head.layer, head.head)]
    if not written:
        return
    st.subheader("What does this head write to the output?", anchor=False)
    names = {"source": "attends most to", "times": "examples", "promoted": "promoted tokens",
             "suppressed": "suppressed tokens", "agreement": "agreement with removal",
             "by_weights": "promoted by weights alone"}  # fmt: skip
    show_table(pd.DataFrame([{name: getattr(one, field) for field, name in names.items()} for one in written]))
    read = writes.READS[written[0].reads]
    st.caption(
        plain(
            f"At one position of each example (n = {written[0].n}), the head adds to the logits of the promoted tokens "
            "and subtracts from those of the suppressed tokens."
        ),
        help=plain(f"Hidden states are read by {read}. The agreement is a cosine similarity."),
    )


def budget_sentence(scores: pd.DataFrame, head: Head) -> tuple[str, str]:
    """Return what most attention of a head goes to, with its interval; "" without a stored budget."""
    own = choices.of_head(scores, head)
    parts = budget_parts(own)
    if parts.empty:
        return "", ""
    largest = parts.loc[parts["value"].idxmax()]
    sentence = (
        f"From the tokens of the text, {head} gives {largest['value']:.1%} of its attention to {largest['keys']}. "
        f"Uniform attention would give {largest['baseline']:.1%}."
    )
    sure = f"95 % CI {largest['interval']}, n = {int(largest['n'])} inputs."
    rest = budget_parts(own, "classifying budget")
    if not rest.empty:
        other = rest.groupby("group", sort=False)["value"].sum().sort_values(ascending=False)
        others = {"all other tokens": "tokens of no other category (grey)"}
        sure += (
            f" The token that is classified gives most of its attention ({other.iloc[0]:.0%}) to "
            f"{others.get(str(other.index[0]), other.index[0])}."
        )
    return sentence, sure


# ---------------------------------------------------------------- why


AT_ONCE = 48  # heads of a checkpoint whose scores are taken apart unasked: larger ones take seconds


def show_why(name: str, head: Head, scores: pd.DataFrame, task: str | None) -> None:
    """Show the decomposition of clicked cells for the chosen sentence, or the input of the head's strongest role."""
    checkpoint = resources.checkpoint(name)
    view_context = context.now()
    text, pair = (
        (view_context.text, view_context.pair_or_none) if view_context.text else _strongest(name, head, scores, task)
    )
    if text is None or not capture.reach.is_interceptable(checkpoint):
        return
    if url.switch(st.toggle, "Explain its scores", key="why", default=_is_small(checkpoint)):
        show_cells(name, text, pair, head)
        links.link("maps/why", checkpoint=name, head=str(head), text=text, pair=pair)


def _strongest(name: str, head: Head, scores: pd.DataFrame, task: str | None) -> tuple[str | None, str | None]:
    ordered = ordered_inputs(name, head, scores, task).inputs
    return ordered[0] if ordered else (None, None)


def _is_small(checkpoint: "Checkpoint") -> bool:
    return checkpoint.layers * checkpoint.heads <= AT_ONCE
