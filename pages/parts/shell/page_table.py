"""The pages, in the order of the sidebar."""

from pathlib import Path
from typing import NamedTuple

PAGES_FOLDER = Path(__file__).resolve().parents[2]


class Page(NamedTuple):
    """One entry of the sidebar. name: of pages/<name>.py and of its URL."""

    section: str
    name: str
    title: str
    icon: str


PAGES = (
    Page("Look", "atlas", "Atlas", ":material/map:"),
    Page("Look", "head", "One head", ":material/pin_drop:"),
    Page("Look", "values", "Beyond weights", ":material/functions:"),
    Page("Look", "maps", "Attention maps", ":material/grid_on:"),
    Page("Look", "generation", "Generation", ":material/edit_note:"),
    Page("Look", "frames", "Frames", ":material/account_tree:"),
    Page("Look", "features", "What heads attend to", ":material/center_focus_strong:"),
    Page("Look", "relations", "Token to token", ":material/swap_horiz:"),
    Page("Look", "statistics", "Head statistics", ":material/query_stats:"),
    Page("Look", "probes", "Probes", ":material/biotech:"),
    Page("Label", "label", "Label maps", ":material/stylus:"),
    Page("Label", "patterns", "Pattern classifier", ":material/model_training:"),
    Page("Label", "shares", "Class shares", ":material/stacked_bar_chart:"),
    Page("Label", "agreement", "Agreement", ":material/group:"),
    Page("Label", "truth", "Truth", ":material/balance:"),
    Page("Label", "adjudication", "Adjudication", ":material/gavel:"),
    Page("Label", "projects", "Projects", ":material/groups:"),
    Page("Label", "dashboard", "Dashboard", ":material/monitoring:"),
    Page("Train", "finetune", "Fine-tune", ":material/school:"),
    Page("Train", "change", "Change", ":material/compare:"),
    Page("Test", "disable", "Disable heads", ":material/block:"),
    Page("Test", "perturb", "Perturb", ":material/shuffle:"),
    Page("Test", "prune", "Prune", ":material/content_cut:"),
    Page("Test", "subnetworks", "Subnetworks", ":material/filter_alt:"),
    Page("Papers", "reproduction", "Reproduction", ":material/menu_book:"),
    Page("Keep", "findings", "Findings", ":material/push_pin:"),
    Page("Keep", "jobs", "Jobs", ":material/pending_actions:"),
)
