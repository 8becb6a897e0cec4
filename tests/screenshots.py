"""Pictures of every page to look at: `python -m tests.screenshots --out DIR`; those of the docs: `--docs`.

Each page of the page table, light and dark, 1440, 1280 and 800 pixels wide, as it opens and (where a link can say so)
with something on it.
"""

import argparse
import tempfile
from pathlib import Path

from core.atlas.example import PAIR, TEXT
from tests.pages.browsing import PROJECT, browsing, drawn, painted, serving, settled, visit
from tests.pages.opening import VIEWS, address_of

WIDTHS, THEMES, TALLEST = (1440, 1280, 800), ("light", "dark"), 5000
LINKS = {  # view: name of the picture to the rest of its address
    "maps/maps": {
        "pair": f"&text={TEXT}&pair={PAIR}&head=L3H2",
        "two": "&text=The keys to the old cabinet were on the table.&beside=atlas-decoder&head=L2H2&scale=own",
        "sorted": "&text=When Mary met her sister, she smiled at her.&score=previous&show=highest&unit=words",
        "effective": "&text=" + "It was the best of times, it was the worst of times. " * 5 + "&compare=raw, effective",
        "long": "&text=" + "It was the best of times, it was the worst of times. " * 12 + "&head=L4H1&scale=own",
    },
    "linguistics/frames": {"sentence": "&text=He was becoming agitated about the long delay.&beside=atlas-decoder"},
    "interventions/ablation": {"sentence": "&text=The old [MASK] sat in the garden.&heads=L2H2,L1H6"},
    "linguistics/tokens": {"sentences": "&inputs=sentences&measure=true"},
    "linguistics/relations": {"sentences": "&inputs=sentences&measure=true"},
    "statistics/heads": {"sentences": "&inputs=sentences&measure=true"},
    "statistics/effective": {
        "sentence": "&text=" + "The old man sat in the garden and looked at the quiet sea for a long time. " * 4,
    },
}
DOCS = {  # picture in docs/images: what is on it
    "maps.png": "the maps page as it opens",
    "file.png": "the maps of a sentence as one HTML file",
    "head.png": "a head's page as one HTML file",
    "findings.png": "the findings page with a pinned sentence",
    "why-light.png": "a cell taken apart, and the map that one group of contributions would give",
    "why-dark.png": "the same in the dark theme",
}
WHOLE = "!document.querySelector('[data-testid=stSkeleton]')"  # widgets whose script comes late are there
SENTENCE = "The keys to the old cabinet were on the table."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    place = parser.add_mutually_exclusive_group(required=True)
    place.add_argument("--out", type=Path, help="folder to write into")
    place.add_argument("--docs", action="store_true", help="only the pictures of the docs, into docs/images")
    parser.add_argument("--pages", nargs="*", default=VIEWS, help="only these views")
    parser.add_argument("--db", type=Path, help="a database with results to show (default: an empty one)")
    options = parser.parse_args()
    if options.docs:
        for_docs(PROJECT / "docs" / "images")
        return
    options.out.mkdir(parents=True, exist_ok=True)
    chosen = {"ATLAS_RECORD": ""} | ({"ATLAS_DB": str(options.db.resolve())} if options.db else {})
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder), **chosen) as address, browsing() as browser:
        for theme in THEMES:
            for width in WIDTHS:
                for page in options.pages:
                    for name, link in {"": "", **LINKS.get(page, {})}.items():
                        place, _, view = page.partition("/")
                        file = options.out / "-".join(filter(None, [place, view, name, theme, f"{width}.png"]))
                        take(browser, f"{address}/{address_of(page)}{link}", file, theme=theme, width=width)
                        print(file)


def for_docs(folder: Path) -> None:
    """The pictures of DOCS, light, 1280 pixels wide; the findings page with what its own code pinned before."""
    with tempfile.TemporaryDirectory() as place:
        files = files_for_docs(Path(place))
        with serving(Path(place)) as address, browsing() as browser:
            window = browser.new_page(viewport={"width": 1280, "height": 860})
            visit(
                window, f"{address}/results?view=pinned"
            )  # before the maps page, after which the server imports torch
            window.locator(
                '[data-testid="stVegaLiteChart"] svg, [data-testid="stVegaLiteChart"] canvas'
            ).first.wait_for()
            window.locator('[data-testid="stCode"] code span').first.wait_for()  # its highlighter comes late
            window.wait_for_function(WHOLE)
            window.screenshot(path=folder / "findings.png")
            for name, url in files.items():
                window.goto(url)
                drawn(window)
                window.screenshot(path=folder / name)
            window.goto(f"{address}/maps")
            painted(window)
            window.wait_for_function(WHOLE)
            window.screenshot(path=folder / "maps.png")
            for theme in THEMES:
                link = f"{address}/maps?view=why&text={SENTENCE}&head=L2H5&cell=5-4"
                take(browser, link, folder / f"why-{theme}.png", theme=theme, width=1280)


def files_for_docs(place: Path) -> dict[str, str]:
    """Pages in one file by the name of their picture, and a database with the same maps pinned, in `place`."""
    from core.atlas import scores as atlas
    from core.atlas.head import head_page
    from core.attention import Head
    from core.capture.running import capture
    from core.drawing.page import MapsSource, grid_of, maps_page
    from core.drawing.panes import scored_pane, telling_head
    from core.findings.pinning import Remark, pin_maps
    from core.models.opening import open_checkpoint
    from core.store.database import Database

    opened = open_checkpoint("atlas-encoder")
    encoding = opened.encode(SENTENCE)
    maps = capture(opened, encoding)
    pane = scored_pane("atlas-encoder", maps, first=encoding.first, separators=encoding.separators)
    head = Head.parse(telling_head(pane.scores or {}))
    source = MapsSource("atlas-encoder", SENTENCE, weights_hash=opened.weights_hash).with_command()
    grid = grid_of([pane], source, head=str(head), note=f"All heads of atlas-encoder: {SENTENCE}")
    scores = atlas.atlas(None, checkpoint="atlas-encoder", task="sst2", measure=False)
    mine = scores[(scores["layer"] == head.layer) & (scores["head"] == head.head)]
    pages = {
        "file.png": maps_page([pane], source, head=str(head)),
        "head.png": head_page(head, "atlas-encoder", scores, mine[["score", "value"]], task="sst2", maps=grid),
    }
    with Database(place / "atlas.duckdb") as db:
        pin_maps(db, grid, source, maps, Remark("This head looks at the token before."))
    for name, text in pages.items():
        (place / name).with_suffix(".html").write_text(text, encoding="utf-8")
    return {name: (place / name).with_suffix(".html").as_uri() for name in pages}


def take(browser, address: str, file: Path, *, theme: str, width: int) -> None:
    """One full-height picture of an address."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
    window = context.new_page()
    visit(window, address)
    if "/maps?view=maps" in address:
        painted(window)
    window.wait_for_load_state("networkidle")  # charts fetch their script once
    height = window.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight")
    window.set_viewport_size({"width": width, "height": min(max(900, height), TALLEST)})
    settled(window)
    window.wait_for_function(WHOLE)
    window.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    window.screenshot(path=file)
    context.close()


if __name__ == "__main__":
    main()
