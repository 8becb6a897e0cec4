"""Pictures of every page to look at: `python -m tests.screenshots --out DIR`.

Each page of the page table, light and dark, 1280 and 800 pixels wide, as it opens and (where a link can say so)
with something on it.
"""

import argparse
import tempfile
from pathlib import Path

from pages.parts.frame.page_table import PAGES
from tests.pages.browsing import browsing, painted, serving, settled, visit

WIDTHS, THEMES, TALLEST = (1280, 800), ("light", "dark"), 5000
LINKS = {  # page: name of the picture to the rest of its address
    "maps": {
        "pair": "?text=The company said profits rose sharply.&pair=Profits went up, the company reported.&head=L3H2",
        "two": "?text=The keys to the old cabinet were on the table.&beside=atlas-decoder&head=L2H2&scale=own",
        "sorted": "?text=When Mary met her sister, she smiled at her.&score=previous&show=highest&unit=words",
        "effective": "?text="
        + "It was the best of times, it was the worst of times. " * 5
        + "&weights=raw and effective",
        "long": "?text=" + "It was the best of times, it was the worst of times. " * 12 + "&head=L4H1&scale=own",
    },
    "frames": {"sentence": "?text=He was becoming agitated about the long delay.&beside=atlas-decoder"},
    "disable": {"sentence": "?text=The old [MASK] sat in the garden.&heads=L2H2,L1H6"},
    "features": {"sentences": "?measure=true", "rows": "?inputs=task rows"},
    "relations": {"sentences": "?measure=true", "rows": "?inputs=task rows"},
    "statistics": {
        "sentences": "?measure=true",
        "rows": "?inputs=task rows",
        "sentence": "?effective_text="
        + "The old man sat in the garden and looked at the quiet sea for a long time. " * 4,
    },
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder to write into")
    parser.add_argument("--pages", nargs="*", default=[page.name for page in PAGES], help="only these pages")
    parser.add_argument("--db", type=Path, help="a database with results to show (default: an empty one)")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    chosen = {"ATLAS_DB": str(options.db.resolve())} if options.db else {}
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder), **chosen) as address, browsing() as browser:
        for theme in THEMES:
            for width in WIDTHS:
                for page in options.pages:
                    for name, link in {"": "", **LINKS.get(page, {})}.items():
                        file = options.out / "-".join(filter(None, [page, name, theme, f"{width}.png"]))
                        take(browser, f"{address}/{page}{link}", file, theme=theme, width=width)
                        print(file)


def take(browser, address: str, file: Path, *, theme: str, width: int) -> None:
    """One full-height picture of an address."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
    window = context.new_page()
    visit(window, address)
    if "/maps?" in address:
        painted(window)
    window.wait_for_load_state("networkidle")  # charts fetch their script once
    height = window.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight")
    window.set_viewport_size({"width": width, "height": min(max(900, height), TALLEST)})
    settled(window)
    window.wait_for_function("!document.querySelector('[data-testid=stSkeleton]')")  # widgets whose script comes late
    window.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    window.screenshot(path=file)
    context.close()


if __name__ == "__main__":
    main()
