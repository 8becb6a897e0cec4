"""Labelling in a real browser: key to paint, sheet to paint, 500 labels at 20 keys a second, and their saving.

A page of one st.button is timed in the same browser between the rounds, because absolute times are this machine's.
"""

import statistics
import tempfile
import textwrap
import time
from pathlib import Path
from typing import Any

import numpy as np

from core.store import labels
from core.store.database import Database
from tests.pages.browsing import PATIENCE, browsing, serving, settled, visit
from tests.pages.test_together_browser import fill as fill_alike

QUEUED, LABELS, RATE = 1000, 500, 20
ONE_BUTTON = """
    import streamlit as st
    if st.button("count"):
        st.session_state["n"] = st.session_state.get("n", 0) + 1
    st.text(f"n={st.session_state.get('n', 0)}")
"""


def fill(folder: Path, count: int) -> None:
    """Maps of 20 to 60 tokens to label."""
    rng = np.random.default_rng(0)
    db = Database(folder / "atlas.duckdb")
    rows = []
    for k in range(count):
        length = int(rng.integers(20, 61))
        weights = rng.dirichlet(np.full(length, 0.1), size=length).astype("<f2")
        rows.append(
            {
                "map_id": f"m{k}",
                "checkpoint": "atlas-encoder",
                "weights_hash": "w",
                "task": "mrpc",
                "split": "dev",
                "row_id": f"dev-{k // 4}",
                "layer": k % 6,
                "head": k % 6,
                "length": length,
                "tokens": ["x"] * length,
                "separators": [length - 1],
                "causal": False,
                "maximum": float(weights.max()),
                "seed": 0,
                "weights": weights.tobytes(),
            }
        )
    labels.store_maps(db, rows)
    db.close()


def open_sheet(page: Any, address: str, at: str = "annotate") -> Any:
    """The labelling sheet, with its canvas focused."""
    visit(page, f"{address}/{at}")
    box = page.get_by_label("Your name")
    box.fill("ada")
    box.press("Enter")
    root = page.locator(".root[data-cursor]")
    root.wait_for(timeout=PATIENCE)
    settled(page)
    root.locator("canvas").focus()
    return root


def paints(page: Any, root: Any, keys: int) -> list[float]:
    """Milliseconds from a key to the second animation frame after it, as the page measured them."""
    found = []
    for k in range(keys):
        before = int(root.get_attribute("data-paints") or 0)
        page.keyboard.press("12345"[k % 5])
        page.wait_for_function(
            "([root, before]) => Number(root.dataset.paints || 0) > before", arg=[root.element_handle(), before]
        )
        found.append(float(root.get_attribute("data-paint-milliseconds")))
    return found


def saved_after(page: Any, root: Any, keys: int) -> list[float]:
    """Milliseconds from a key until the store has acknowledged its label."""
    found = []
    for k in range(keys):
        began = time.perf_counter()
        page.keyboard.press("12345"[k % 5])
        page.wait_for_function("root => root.dataset.waiting === '0'", arg=root.element_handle(), polling="raf")
        found.append(1000 * (time.perf_counter() - began))
    return found


def clicks(page: Any, count: int) -> list[float]:
    """Milliseconds from a click on a one-button page until the page shows it."""
    found = []
    for _ in range(count):
        number = int(page.get_by_text("n=").inner_text().removeprefix("n="))
        began = time.perf_counter()
        page.get_by_role("button", name="count").click()
        page.wait_for_function("n => document.body.innerText.includes('n=' + n)", arg=number + 1, polling="raf")
        found.append(1000 * (time.perf_counter() - began))
    return found


def burst(page: Any, root: Any, count: int) -> float:
    """Label `count` maps at RATE keys a second; seconds from the last key until all are acknowledged."""
    start = time.perf_counter()
    for k in range(count):
        page.keyboard.press("12345"[k % 5])
        page.wait_for_timeout(max(0.0, 1000 * (start + (k + 1) / RATE - time.perf_counter())))
    last = time.perf_counter()
    page.wait_for_function("root => root.dataset.waiting === '0'", arg=root.element_handle(), timeout=PATIENCE)
    return time.perf_counter() - last


def together(browser: Any) -> tuple[list[float], float]:
    """Milliseconds from a key that labels a group of alike maps to its paint, and the median size of a group."""
    with tempfile.TemporaryDirectory() as folder:
        fill_alike(Path(folder), 14, copies=24)
        with serving(Path(folder)) as address:
            page = browser.new_page(viewport={"width": 1440, "height": 1100})
            root = open_sheet(page, address, "annotate?order=clusters")
            sizes, found = [], []
            for _ in range(40):
                sizes.append(int(root.get_attribute("data-marked")))
                found += paints(page, root, 1)
            page.close()
    return found, statistics.median(sizes)


def main() -> dict[str, object]:
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second, browsing() as browser:
        folder, script = Path(first), Path(second) / "one_button.py"
        script.write_text(textwrap.dedent(ONE_BUTTON))
        fill(folder, QUEUED)
        with serving(folder) as address, serving(Path(second), str(script)) as plain:
            sheet, button = browser.new_page(), browser.new_page()
            button.goto(plain)
            button.get_by_text("n=").wait_for(timeout=PATIENCE)
            root = open_sheet(sheet, address)
            painted = float(root.get_attribute("data-sheet-milliseconds"))
            saving, clicking = [], []
            for _ in range(4):
                sheet.bring_to_front()
                root.locator("canvas").focus()
                saving += saved_after(sheet, root, 10)
                button.bring_to_front()
                clicking += clicks(button, 10)
            sheet.bring_to_front()
            root.locator("canvas").focus()
            single = paints(sheet, root, 40)
            sheet.keyboard.press("m")
            single += paints(sheet, root, 40)
            late = burst(sheet, root, LABELS)
            sheet.close()
            button.close()
        grouped, size = together(browser)
        db = Database(folder / "atlas.duckdb")
        rows = len(labels.all_events(db))
        db.close()
    pressed = len(saving) + len(single) + LABELS
    return {
        "key to paint, median ms": statistics.median(single),
        "key to paint, p95 ms": float(np.quantile(single, 0.95)),
        "alike maps together: key to paint, median ms": statistics.median(grouped),
        "alike maps together: key to paint, p95 ms": float(np.quantile(grouped, 0.95)),
        "alike maps together: maps per key, median": size,
        "sheet painted, ms": painted,
        "key to saved, median ms": statistics.median(saving),
        "one-button page, click to shown, median ms": statistics.median(clicking),
        "saved over one-button click": statistics.median(saving) / statistics.median(clicking),
        "labels pressed": pressed,
        "rows in the store": rows,
        "lost": pressed - rows,
        "last label saved after the burst, s": late,
    }
