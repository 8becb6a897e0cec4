"""The frames page: from Enter to the painted pictures, in a real browser; and a search of 150,000 annotations.

Typing is timed on a warm server (median of several sentences nobody has typed before). The searched table has
the size of a FrameNet release, with made-up sentences.
"""

import random
import statistics
import tempfile
import time
from pathlib import Path

from core.store.database import Database
from core.store.frames import Search, find_annotations, replace_release
from tests.pages import browsing

ANNOTATIONS, FRAMES, SEARCHES, SENTENCES = 150_000, 1_000, 30, 12
PEOPLE = (
    "teacher",
    "nurse",
    "pilot",
    "baker",
    "judge",
    "clerk",
    "farmer",
    "singer",
    "driver",
    "doctor",
    "sailor",
    "cook",
)


def main() -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        return typing(Path(folder)) | searching(Path(folder))


def typing(folder: Path) -> dict[str, object]:
    """Milliseconds from Enter until the picture of the new sentence is on the screen."""
    took = []
    with browsing.serving(folder) as address, browsing.browsing() as browser:
        page = browser.new_context(viewport={"width": 1280, "height": 1600}).new_page()
        browsing.visit(page, f"{address}/linguistics?view=frames&text=The old man was getting sad about the end.")
        page.get_by_test_id("stVegaLiteChart").nth(2).wait_for(timeout=browsing.PATIENCE)
        for number, person in enumerate(PEOPLE[:SENTENCES]):
            box = page.get_by_label("Sentence", exact=True)
            box.fill(f"The old {person} was getting angry about noise {number}.")
            page.evaluate(WATCH)
            box.press("Enter")
            page.wait_for_function("window.painted !== undefined", timeout=browsing.PATIENCE)
            took.append(page.evaluate("window.painted"))
            browsing.settled(page)
    warm = took[2:]
    return {
        "Enter to picture, median ms": statistics.median(warm),
        "Enter to picture, slowest ms": max(warm),
        "sentences": len(warm),
    }


WATCH = """() => {
  window.painted = undefined;
  const seen = () => [...document.querySelectorAll('[data-testid="stVegaLiteChart"]')].slice(0, 2);
  const before = new Set(seen().map(chart => chart.querySelector('svg, canvas')));
  document.addEventListener('keydown', () => {
    const start = performance.now();
    const ask = () => {
      const now = seen();
      const fresh = now.length > 1 && now.every(one => one.querySelector('svg, canvas') &&
                                                        !before.has(one.querySelector('svg, canvas')));
      if (fresh) { window.painted = performance.now() - start; } else { requestAnimationFrame(ask); }
    };
    ask();
  }, { once: true, capture: true });
}"""


def searching(folder: Path) -> dict[str, object]:
    """Milliseconds of searches by frame, lexical unit, element and words, each another."""
    chance = random.Random(0)  # noqa: S311
    db = Database(folder / "search.duckdb")
    start = time.perf_counter()
    replace_release(
        db, "fndata-1.7", (annotation(k, chance) for k in range(ANNOTATIONS)), folder="x", run="r", skipped=[]
    )
    stored = time.perf_counter() - start
    took: dict[str, list[float]] = {"frame": [], "unit": [], "element": [], "text": []}
    for k in range(SEARCHES):
        asked = {
            "frame": f"Frame_{k * 7}",
            "unit": f"word{k * 31}.v",
            "element": f"Element_{k % 9}",
            "text": f"w{k * 3} w",
        }
        for name, value in asked.items():
            start = time.perf_counter()
            find_annotations(db, Search(**{name: value}), limit=100)
            took[name].append(1000 * (time.perf_counter() - start))
    db.close()
    return {f"search by {name}, median ms": statistics.median(times) for name, times in took.items()} | {
        "slowest search, ms": max(max(times) for times in took.values()),
        "annotations": ANNOTATIONS,
        "storing the index, s": stored,
    }


def annotation(number: int, chance: random.Random) -> dict[str, object]:
    frame = chance.randrange(FRAMES)
    text = " ".join(f"w{chance.randrange(5000)}" for _ in range(chance.randrange(6, 30)))
    elements = [{"name": f"Element_{chance.randrange(9)}", "spans": [[0, 2]], "core_set": True} for _ in range(2)]
    return {
        "id": f"fndata-1.7:{number}",
        "text": text,
        "target": [[3, 5]],
        "frame": f"Frame_{frame}",
        "lexical_unit": f"word{frame * 11 + chance.randrange(11)}.v",
        "elements": elements,
    }
