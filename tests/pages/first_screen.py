"""What a view asks of its reader at first sight: the words to read and the controls on the first screen.

`python -m tests.pages.first_screen [VIEW ...]` prints both for every view.
"""

import json
import sys
import tempfile
from pathlib import Path

SCREEN = {"width": 1440, "height": 1000}
MOST_WORDS, MOST_CONTROLS = 150, 12
# Words: sentences, not those of figures, tables, headings, links and controls. Controls: a field is one with its arrow,
# its stepper and its help; the tabs that choose the view of a page are navigation.
COUNTED = """() => {
  const style = { opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true };
  const onScreen = ({ top, bottom, left, width, height }) =>
    width > 2 && height > 2 && top < innerHeight && bottom > 0 && left >= 0;
  const UNREAD = "svg, canvas, table, button, label, summary, select, h1, h2, style, script, "
    + "[role=listbox], [role=grid], [role=tab], [role=slider], [role=img], [data-testid=stDataFrame], "
    + "[data-testid=stIconMaterial]";
  const CONTROL = "button, input:not([type=hidden]), select, textarea, [role=slider], [role=tab]";
  const PARTS = "[aria-label=Open], [aria-label='Clear value'], [aria-label=Increment], [aria-label=Decrement], "
    + "[aria-label=Help], [aria-label^='Help for'], [class*=st-key-views_] *";
  const said = [], controls = [];
  const read = (node, parent, range) => {
    range.selectNodeContents(node);
    if (!parent || parent.closest(UNREAD) || !parent.checkVisibility(style)) return;
    if (node.textContent.trim() && onScreen(range.getBoundingClientRect())) said.push(node.textContent.trim());
  };
  const count = (node) => {
    if (!node.matches(CONTROL) || node.matches(PARTS) || !node.checkVisibility(style)) return;
    if (!onScreen(node.getBoundingClientRect())) return;
    const label = node.getAttribute("aria-label") || node.innerText || node.labels?.[0]?.innerText || node.title;
    controls.push((label || node.tagName).trim().slice(0, 40));
  };
  const walk = (node) => {
    if (node.nodeType === Node.TEXT_NODE) return read(node, node.parentElement, document.createRange());
    if (node.nodeType === Node.ELEMENT_NODE) {
      count(node);
      if (node.shadowRoot) node.shadowRoot.childNodes.forEach(walk);
    }
    node.childNodes.forEach(walk);
  };
  walk(document.querySelector("[data-testid=stMain]"));
  return { words: said.join(" ").split(/\\s+/).filter(Boolean).length, said, controls };
}"""


def main() -> None:
    from tests.pages.browsing import browsing, serving, visit
    from tests.pages.opening import VIEWS, address_of

    with (
        tempfile.TemporaryDirectory() as folder,
        serving(Path(folder), ATLAS_RECORD="") as address,
        browsing() as browser,
    ):
        page = browser.new_page(viewport=SCREEN)
        for name in sys.argv[1:] or VIEWS:
            visit(page, f"{address}/{address_of(name)}")
            page.wait_for_timeout(1500)
            found = page.evaluate(COUNTED)
            print(name, found["words"], len(found["controls"]), json.dumps(found["controls"]), sep="\t", flush=True)


if __name__ == "__main__":
    main()
