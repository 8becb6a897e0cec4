"""The pages in the order of the sidebar, and the views of each page. A new view needs one line here and its module."""

from pathlib import Path
from typing import NamedTuple

from core import config
from core.config import CLASSIFIER, DECODER, ENCODER

PAGES_FOLDER = Path(__file__).resolve().parents[2]
VIEWS_ROOM = f"{__package__.rpartition('.')[0]}.views"


class View(NamedTuple):
    """One view of a page.

    Attributes:
        name: in the URL (`view=`).
        module: in pages/parts/views; its `show(tools)` draws the view. It is imported when the view is opened.
        uses: fields of the context that it reads (pages/parts/shell/context.py); empty: no context is shown.
        starts: default values of the context, as pairs of a field and its value.
        ready: whether it needs no model, so that it does not wait while models load.
        bundled: whether it opens with the bundled encoder even if a real model is installed, which has no bundled
            results.
        compares: a study of two checkpoints and the parameter of its run; the bar names the second of the shown result.
        mode_starts: other default values in some of its modes, as pairs of a mode and its `starts`.
        mode_uses: modes that read only some fields of `uses`, as pairs of a mode ("" for the first) and these fields.
    """

    name: str
    title: str
    module: str
    uses: tuple[str, ...] = ()
    starts: tuple[tuple[str, str], ...] = ()
    ready: bool = False
    bundled: bool = False
    compares: tuple[str, str] | None = None
    mode_starts: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()
    mode_uses: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def starts_in(self, mode: str | None) -> dict[str, str]:
        """Return the default values of the context in a mode; None is the first mode."""
        return dict(self.starts) | dict(dict(self.mode_starts).get(mode or "", ()))

    def uses_in(self, mode: str | None) -> tuple[str, ...]:
        """Return the fields of the context that a mode reads; None is the first mode."""
        return dict(self.mode_uses).get(mode or "", self.uses)


class Page(NamedTuple):
    """One entry of the sidebar. `name` is that of pages/<name>.py and of its URL."""

    name: str
    title: str
    icon: str
    views: tuple[View, ...]

    def view(self, name: str | None) -> View:
        """Return the view with this name, otherwise the first."""
        return next((view for view in self.views if view.name == name), self.views[0])


_WEIGHTS, _RESULT = ("checkpoint", "input"), ("checkpoint", "rows")
PROMPT = "The small engine ran all night without a pause. Nobody in the village"
_TUNED = (("checkpoint", CLASSIFIER), ("rows", "sst2"))  # a model above chance
_FINE_TUNES = (("checkpoint", ENCODER),)  # of modes that fine-tune a pre-trained checkpoint
_PAIR = (("text", config.EXAMPLE_TEXT), ("pair", config.EXAMPLE_PAIR))

PAGES = (
    Page("start", "Start", ":material/home:", (
        View("start", "Start", "start", ("checkpoint", "sentence"), ready=True),
        View("path", "Guided path", "guided_path", ready=True),
    )),
    Page("maps", "Attention maps", ":material/grid_on:", (
        View("maps", "Maps", "workbench", ("checkpoint", "beside", "input", "head in its picture"), _PAIR),
        View("why", "Why", "why", ("checkpoint", "input", "head"), (*_PAIR, ("head", "L2H5"))),
        View("generation", "Generation", "generation", ("checkpoint", "sentence"), (
            ("checkpoint", DECODER), ("text", PROMPT))),
        View("norms", "Norms, rollout and flow", "norms", _WEIGHTS, _PAIR),
    )),
    Page("heads", "Heads", ":material/map:", (
        View("overview", "Overview", "overview", ("checkpoint", "beside", "rows"), (("rows", "sst2"),), ready=True),
        View("one", "One head", "one_head", ("checkpoint", "beside", "rows", "head"),
             (("rows", "sst2"), ("head", "L1H1")), ready=True),
        View("similar", "Similar heads", "similar", _RESULT, (("rows", "sst2"),), ready=True),
        View("counterparts", "Counterparts", "counterparts", ("checkpoint", "beside", "rows", "head in its picture"),
             (("rows", "sst2"),), compares=("counterparts", "run")),
        View("development", "Development", "development", ("checkpoint",), bundled=True),
    )),
    Page("linguistics", "Linguistics", ":material/account_tree:", (
        View("tokens", "Token types", "token_types", ("checkpoint", "beside", "rows"), (("rows", "sst2"),)),
        View("relations", "Syntactic relations", "relations", ("checkpoint", "beside", "rows"), (("rows", "sst2"),)),
        View("frames", "Frame relations", "frame_relations", ("checkpoint", "beside", "sentence", "head"),
             (("text", "He was becoming agitated about the noise."),)),
        View("probes", "Probes", "probes", _RESULT, (("rows", "sst2"),)),
    )),
    Page("statistics", "Statistics", ":material/query_stats:", (
        View("heads", "Head statistics", "head_statistics", ("checkpoint", "beside", "rows"), (("rows", "sst2"),)),
        View("effective", "Effective attention", "effective_attention", ("checkpoint", "input", "rows"),
             (("rows", "sst2"),)),
        View("shares", "Pattern shares", "pattern_shares", ("checkpoint", "beside", "rows"), (("rows", "sst2"),),
             compares=("pattern-shares", "shares_run")),
        View("discovered", "Discovered patterns", "discovered_patterns", _RESULT, (("rows", "sst2"),)),
    )),
    Page("finetuning", "Fine-tuning", ":material/school:", (
        View("train", "Train", "training", _RESULT, (("rows", "sst2"),)),
        View("change", "Change in attention", "change", ("checkpoint", "rows")),
        View("seeds", "Seed variance", "seed_variance", _RESULT, (("rows", "sst2"),), bundled=True),
    )),
    Page("interventions", "Interventions", ":material/block:", (
        View("ablation", "Ablation", "ablation", ("checkpoint", "rows", "input", "head"),
             (*_TUNED, ("text", "The film is warm and funny, though far too long."), ("head", "L2H2")),
             mode_starts=(("All train rows", _FINE_TUNES), ("Training without", _FINE_TUNES)),
             mode_uses=(*((mode, _WEIGHTS) for mode in ("", "One sentence")),
                        *((mode, _RESULT) for mode in ("A task's rows", "All train rows", "Operators",
                                                       "Training without")))),
        View("sequential", "Sequential test", "sequential_test", _RESULT, _TUNED),
        View("pruning", "Pruning", "pruning", _RESULT, _TUNED),
        View("patching", "Patching and perturbation", "patching", ("checkpoint", "rows", "input"), (
            *_TUNED, ("text", "The film is warm and funny, though far too long.")),
             mode_uses=(*((mode, _WEIGHTS) for mode in ("", "Two inputs", "Patching", "Cut edges")),
                        ("A task's rows", _RESULT))),
        View("subnetworks", "Subnetworks", "subnetworks", _RESULT, (("rows", "sst2"),), bundled=True),
        View("together", "Gates and pairs", "gates_pairs", _RESULT, _TUNED),
        View("circuit", "Circuit", "circuit", _RESULT, _TUNED),
    )),
    Page("reproduction", "Reproduction", ":material/menu_book:", (
        View("report", "Report", "reproduction"),
    )),
    Page("annotate", "Annotate", ":material/stylus:", (
        View("label", "Label", "labelling", ready=True),
        View("codebook", "Codebook", "codebook", ready=True),
        View("classifier", "Classifier", "classifier", ready=True),
        View("classes", "Class sets", "class_sets", ready=True),
    )),
    Page("projects", "Projects", ":material/groups:", (
        View("setup", "Setup", "project_setup", ready=True),
        View("progress", "Progress", "project_progress", ready=True),
        View("agreement", "Agreement", "agreement", ready=True),
        View("adjudication", "Adjudication", "adjudication", ready=True),
        View("aggregated", "Aggregated labels", "aggregated_labels", ready=True),
    )),
    Page("results", "Results", ":material/inventory_2:", (
        View("all", "All", "all_results", ready=True),
        View("pinned", "Pinned", "findings", ready=True),
        View("jobs", "Jobs", "jobs", ready=True),
    )),
)  # fmt: skip
ANNOTATOR = {"annotate": ("label", "codebook")}  # the pages and views of who only labels


def page_of(name: str) -> Page:
    """Return a page by name. Raises KeyError for an unknown name."""
    return {page.name: page for page in PAGES}[name]


class ResultView(NamedTuple):
    """The view that shows stored results of a study. `key` is the parameter that names the run ("" if the view shows
    all results of a checkpoint), and `query` has further parameters of the link."""

    view: str
    key: str
    query: tuple[tuple[str, str], ...] = ()


_ROWS = ("mode", "A task's rows")
RESULTS = {
    "features": ResultView("linguistics/tokens", "run_features"),
    "norms": ResultView("linguistics/tokens", "run_norms", (("by", "norms"),)),
    "relations": ResultView("linguistics/relations", "run_relations"),
    "dependencies": ResultView("linguistics/relations", "trees_run", (("inputs", "trees"),)),
    "frame-heads": ResultView("linguistics/frames", "frame_runs", (("mode", "A set of sentences"),)),
    "syntax": ResultView("linguistics/probes", "parsed", (("mode", "Syntax in attention"),)),
    "probe": ResultView("linguistics/probes", "probed", (("mode", "Layers"),)),
    "representation": ResultView("linguistics/probes", "represented", (("mode", "Representation"),)),
    "transfer": ResultView("linguistics/probes", "transferred", (("mode", "Transfer"),)),
    "roles": ResultView("heads/overview", "", (("colour", "roles/previous"),)),
    "statistics": ResultView("statistics/heads", "run_statistics"),
    "budget": ResultView("heads/overview", ""),
    "redundancy": ResultView("heads/similar", "run_redundancy", (("mode", "Groups"),)),
    "counterparts": ResultView("heads/counterparts", "run"),
    "why": ResultView("heads/overview", "", (("colour", "why/score share/earlier heads"),)),
    "development": ResultView("heads/development", "run", (("snapshots_of", "your snapshots"),)),
    "effective": ResultView("statistics/effective", "effective_run"),
    "pattern-shares": ResultView("statistics/shares", "shares_run"),
    "discover": ResultView("statistics/discovered", "discovered"),
    "finetune": ResultView("finetuning/train", "run"),
    "change": ResultView("finetuning/change", "run"),
    "seeds": ResultView("finetuning/seeds", "seeds"),
    "disable": ResultView("interventions/ablation", "run", (_ROWS,)),
    "cross-fitted": ResultView("interventions/ablation", "crossed", (("mode", "All train rows"),)),
    "cross-fitted-scores": ResultView("interventions/ablation", "crossed_scores", (("mode", "All train rows"),)),
    "cross-fitted-prune": ResultView("interventions/ablation", "crossed_prune", (("mode", "All train rows"),)),
    "operators": ResultView("interventions/ablation", "run", (("mode", "Operators"),)),
    "fixed-pattern": ResultView("interventions/ablation", "held", (("mode", "Training without"),)),
    "sequential-test": ResultView("interventions/sequential", "race_run"),
    "importance": ResultView("interventions/pruning", "weighed"),
    "prune": ResultView("interventions/pruning", "curve", (("mode", "Curve"),)),
    "perturb": ResultView("interventions/patching", "run", (_ROWS, ("study", "perturb"))),
    "patch": ResultView("interventions/patching", "run", (_ROWS, ("study", "patch"))),
    "knockout": ResultView("interventions/patching", "run", (_ROWS, ("study", "knockout"))),
    "separators": ResultView("interventions/patching", "run", (_ROWS, ("study", "separators"))),
    "writes": ResultView("heads/one", ""),
    "sinks": ResultView("interventions/patching", "run", (_ROWS, ("study", "sinks"))),
    "subnetworks": ResultView("interventions/subnetworks", "pruned"),
    "gates": ResultView("interventions/together", "run_gates"),
    "pairs": ResultView("interventions/together", "run_pairs", (("mode", "Pairs of heads"),)),
    "shapley": ResultView("interventions/together", "run_shapley", (("mode", "Shapley values"),)),
    "circuit": ResultView("interventions/circuit", "circuit_run"),
    "reproduce": ResultView("reproduction", "run"),
}
