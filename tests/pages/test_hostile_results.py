"""Names in results of counterparts and probes that mean harm are text on their pages."""

from typing import Any

import pytest
from markdown_it import MarkdownIt

from pages.parts.shell.page_table import RESULTS
from tests.pages.opening import opened
from tests.pages.spoiled import store_run, whole_runs
from tests.spread import one_in

EVIL = "evil.example"
HOSTILE = {
    "an image": f"![c](https://{EVIL}/c.png)",
    "a link": f"[click](https://{EVIL}/x)",
    "script": f"<script src=https://{EVIL}/x.js></script>",
    "an address": f"https://{EVIL}/x",
    "an escape of a terminal": f"\x1b]8;;https://{EVIL}\x07click\x1b[2K",
    "the other direction": f"a\u202e[b](https://{EVIL})\u2066",
    "a table": f"a |\n|---|\n![c](https://{EVIL}/c.png)",
}
RUNS = whole_runs()  # before a test replaces the record
NAMED = {"counterparts": ("compare",), "probe": ("property", "name")}  # what a row names freely
RENDERED = ("title", "header", "subheader", "markdown", "caption", "error", "warning", "info", "success")
LABELLED = (
    "button",
    "checkbox",
    "toggle",
    "selectbox",
    "multiselect",
    "radio",
    "metric",
    "text_input",
    "expander",
    "tabs",
)


def shown(app: Any) -> list[str]:
    """Every text of a page that Streamlit reads as Markdown, options of lists among them."""
    texts = [part.value for kind in RENDERED for part in getattr(app, kind)]
    for part in (part for kind in LABELLED for part in getattr(app, kind, ())):
        texts += [str(getattr(part, name, "") or "") for name in ("label", "help")]
        if part.type in ("radio", "multiselect"):
            texts += [str(option) for option in part.options]
    return [text for text in texts if text]


def leads_away(text: str) -> list[str]:
    """Images, links and HTML in a text that lead to the other site."""
    tokens = MarkdownIt("gfm-like", {"linkify": True}).parse(text)
    every = [inner for token in tokens for inner in (token, *(token.children or ()))]
    kinds = ("image", "link_open", "html_block", "html_inline")
    return [text for token in every if token.type in kinds and EVIL in f"{token.attrs}{token.content}"]


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_what_leads_away_is_found(text):
    assert leads_away(text)


@pytest.mark.thorough
@pytest.mark.parametrize("shift", one_in(4, range(4)))
@pytest.mark.parametrize("study", NAMED)
def test_names_in_a_result_are_text(study, shift, db):
    """Every name that a row may have freely is another of the texts; a shift exchanges which has which."""
    run, texts = RUNS[study], list(HOSTILE.values())
    names = {row[name] for row in run["rows"] for name in NAMED[study] if isinstance(row.get(name), str)}
    harm = {name: f"{texts[(k + 2 * shift) % len(texts)]} harm{k}" for k, name in enumerate(sorted(names))}
    rows = [row | {name: harm[row[name]] for name in NAMED[study] if row.get(name) in harm} for row in run["rows"]]
    place, about = RESULTS[study], run | {"title": f"{texts[shift]} {texts[-1 - shift]}"}
    app = opened(
        place.view, **dict(place.query), **{place.key: store_run(db, about, rows)}, checkpoint=run["checkpoint"]
    )
    assert not app.exception
    assert not [error.value for error in app.error]
    assert [found for part in shown(app) for found in leads_away(part)] == []
    seen = [*shown(app), *(str(frame.value) for frame in app.dataframe), *(str(box.options) for box in app.selectbox)]
    assert any("harm" in part for part in seen), seen
