"""Every page in a real browser: what is chosen stands in the URL, a link opens it again, and Back takes it back."""

import json

import pytest
from playwright.sync_api import TimeoutError, expect

from core.labelling.happenings import Rules
from core.labelling.projects import Recipe, make_project
from core.store import jobs
from core.store.database import Database
from core.store.projects import Heading
from pages.parts.shell.page_table import PAGES
from tests.labelling.test_projects import fill, label_all
from tests.pages import browsing
from tests.pages.browsing import PATIENCE, settled, visit

pytestmark = pytest.mark.browser
CHOICES = {  # page: the kind of a widget, its label, and what is chosen in it ("": the last)
    "atlas": ("select", "Across", "to separator"),
    "head": ("select", "Head", "L2H3"),
    "values": ("segment", "View", "rollout"),
    "maps": ("segment", "Tokens", "words"),
    "generation": ("text", "Prompt", "The old dog"),
    "frames": ("segment", "View", "A set of sentences"),
    "features": ("segment", "Shown", "excess over random tokens"),
    "relations": ("select", "Direction", ""),
    "statistics": ("segment", "Colour", "layer"),
    "probes": ("segment", "View", "Layers"),
    "label": ("select", "Class set", ""),
    "patterns": ("select", "Classifier", "logistic regression"),
    "shares": ("select", "Class set", ""),
    "agreement": ("select", "First rater", "bob"),
    "truth": ("segment", "One class a map by", "Dawid"),
    "adjudication": ("toggle", "Show who voted", ""),
    "projects": ("select", "Project", "First"),
    "dashboard": ("select", "Project", "First"),
    "finetune": ("select", "Recipe", "replication"),
    "change": ("segment", "Statistic", "Jensen-Shannon divergence of the rows, nats"),
    "disable": ("segment", "View", "Race"),
    "perturb": ("segment", "View", "Cut edges"),
    "prune": ("segment", "View", "Curve"),
    "subnetworks": ("segment", "View", "Good, bad and random"),
    "reproduction": ("select", "Checkpoints", ""),
    "jobs": ("row", "", ""),
}
NOTHING_TO_CHOOSE = {"findings"}
ALWAYS = ("maps", "frames", "features")  # 10 s a page, so the others are tried with the slow tests
TRIED = [name if name in ALWAYS else pytest.param(name, marks=pytest.mark.slow) for name in CHOICES]
DRAWERS = {"finetune": "Fine-tune a checkpoint", "reproduction": "Make a report of your own"}  # where the choice lies
CONTROLS = """() => {
  const main = document.querySelector('[data-testid=stMain]'), all = (what) => [...main.querySelectorAll(what)];
  const labelOf = (box) => box.getAttribute('aria-label')
    || box.closest('[data-testid]')?.querySelector('label')?.textContent || '';
  const valueOf = (box) => (['checkbox', 'radio'].includes(box.type) ? box.checked : box.value);
  const chosen = '[aria-checked=true], [aria-selected=true], [data-selected=true]';
  return [
    ...all('input, textarea').map((box) => `${labelOf(box)}: ${valueOf(box)}`),
    ...all('[data-testid=stSelectbox], [data-testid=stMultiSelect]').map((box) => box.textContent),
    ...all(chosen).map((box) => `chosen ${box.textContent}`),
    ...all('[data-testid=stButton] button').map((box) => box.textContent),
  ];
}"""  # what every control of the page says, whatever it is called


@pytest.fixture(scope="module")
def worked_address(tmp_path_factory):
    """The address of an app with the results that ship, labels of three people, two projects and a job."""
    folder = tmp_path_factory.mktemp("worked")
    db = Database(folder / "atlas.duckdb")
    fill(db, 12)
    for title in ("First", "Second"):
        project = make_project(db, Heading(title, "bert", annotator="ada"), Recipe(count=4), Rules(k=3))
        label_all(db, project, ("ada", "bob", "cyd"))
    jobs.set_state(db, jobs.add_job(db, "statistics", "A job", {}), "cancelled")
    db.close()
    with browsing.serving(folder, ATLAS_RECORD="") as served:
        yield served


def choose(page, kind: str, label: str, value: str) -> None:
    main = page.get_by_test_id("stMain")
    if kind == "select":
        main.get_by_role("combobox", name=label).first.click()
        page.get_by_role("option", name=value).last.click()
    elif kind == "segment":
        main.get_by_test_id("stButtonGroup").get_by_text(value, exact=False).first.click()
    elif kind == "toggle":
        main.get_by_text(label, exact=True).click()
    elif kind == "row":
        main.get_by_test_id("stDataFrame").locator("canvas").first.click(position={"x": 14, "y": 52}, force=True)
    else:
        box = main.get_by_label(label, exact=True).first
        box.fill(value)
        box.press("Enter")


def opened(page, address: str, name: str) -> list[str]:
    """Open an address, with the drawer in which something was chosen; returns what its controls say."""
    visit(page, address)
    return controls(page, name)


def controls(page, name: str) -> list[str]:
    settled(page)
    drawer = (
        page.get_by_test_id("stExpander").filter(has_text=DRAWERS.get(name, "")).locator("details:not([open]) summary")
    )
    if name in DRAWERS and drawer.count():
        drawer.first.click()
        expect(page.get_by_role("combobox", name=CHOICES[name][1]).first).to_be_visible()
    page.wait_for_function("!document.querySelector('[data-testid=stSkeleton]')")
    return page.evaluate(CONTROLS)


def says(page, wanted: list[str]) -> None:
    """Wait until every control says that; else show what differs."""
    try:
        said = json.dumps(wanted, separators=(",", ":"), ensure_ascii=False)
        page.wait_for_function(f"said => JSON.stringify(({CONTROLS})()) === said", arg=said, timeout=PATIENCE)
    except TimeoutError:
        assert page.evaluate(CONTROLS) == wanted


def test_every_page_is_tried():
    assert set(CHOICES) | NOTHING_TO_CHOOSE == {page.name for page in PAGES}


@pytest.mark.parametrize("name", TRIED)
def test_a_link_opens_what_was_chosen_and_back_takes_it_back(page, browser, worked_address, name):
    before = opened(page, f"{worked_address}/{name}", name)
    address = page.url
    choose(page, *CHOICES[name])
    expect(page).not_to_have_url(address)
    chosen = controls(page, name)
    assert chosen != before
    other = browser.new_page()
    opened(other, page.url, name)
    says(other, chosen)
    other.close()
    page.go_back()
    expect(page).to_have_url(address)
    says(page, before)
    expect(page.get_by_test_id("stException")).to_have_count(0)
