"""Browser sessions that label at once: every label stored, in order, and how soon it is acknowledged."""

import tempfile
from pathlib import Path

import numpy as np

from core.store import labels
from core.store.database import Database
from tests.pages.browsing import PATIENCE, browsing, serving
from tests.pages.test_label_browser import fill, open_sheet

TYPE = """
([root, count, pause]) => {
  const canvas = root.querySelector("canvas"), sent = [], latency = [];
  window.atlasLatency = latency;
  const seen = () => {
    const saved = Number(root.dataset.saved || 0);
    while (latency.length < Math.min(saved, sent.length)) latency.push(performance.now() - sent[latency.length]);
  };
  new MutationObserver(seen).observe(root, { attributes: true });
  const type = () => {
    if (sent.length >= count) return;
    sent.push(performance.now());
    canvas.dispatchEvent(new KeyboardEvent("keydown", { key: String(1 + (sent.length % 5)), bubbles: true }));
    setTimeout(type, pause);
  };
  type();
}
"""


def main(sessions: int = 8, each: int = 100, pause: int = 500) -> dict[str, object]:
    """`sessions` people label `each` maps, one in `pause` ms; rows stored, their order, and how soon acknowledged."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fill(folder, each + 10)
        with serving(folder) as address, browsing() as browser:
            pages = [browser.new_context().new_page() for _ in range(sessions)]
            roots = [open_sheet(page, address, f"person{k}") for k, page in enumerate(pages)]
            for page, root in zip(pages, roots, strict=True):
                page.evaluate(TYPE, [root.element_handle(), each, pause])
            patience = PATIENCE + each * pause * 3
            for page in pages:
                page.wait_for_function(f"window.atlasLatency.length >= {each}", timeout=patience)
            waited = np.concatenate([page.evaluate("window.atlasLatency") for page in pages])
        db = Database(folder / "atlas.duckdb")
        events = labels.all_events(db)
        db.close()
    people = {row["annotator"] for row in events}
    ordered = all(
        [row["sequence"] for row in events if row["annotator"] == one] == list(range(1, each + 1)) for one in people
    )
    return {
        "sessions": sessions,
        "labels typed": sessions * each,
        "labels stored": len(events),
        "in each annotator's order": ordered,
        "acknowledged, median ms": float(np.median(waited)),
        "acknowledged, p95 ms": float(np.quantile(waited, 0.95)),
        "p95 within 250 ms": bool(np.quantile(waited, 0.95) <= 250),
        "passed": len(events) == sessions * each and len(people) == sessions and ordered,
    }
