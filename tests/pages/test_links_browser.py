"""Every page in a real browser: what is chosen stands in the URL, a link opens it again, and Back takes it back."""

import json

import pytest
from playwright.sync_api import TimeoutError, expect

from core.labelling.assignment import Rules
from core.labelling.projects import ProjectRecipe, make_project
from core.store import jobs
from core.store.database import Database
from core.store.projects import Heading
from tests.labelling.test_projects import fill, label_all
from tests.pages import browsing
from tests.pages.browsing import PATIENCE, settled, visit
from tests.pages.opening import VIEWS, address_of

pytestmark = pytest.mark.browser
CHOICES = {  # view: the kind of a widget, its label, and what is chosen in it ("": the last)
    "heads/overview": ("segment", "Show", "two scores as axes"),
    "heads/one": ("select", "Head", "L2H3"),
    "heads/similar": ("segment", "Colour", "layer"),
    "heads/development": ("select", "Score", "to separator"),
    "maps/why": ("segment", "Contributions to", "the query"),
    "maps/norms": ("segment", "Measure", "value zeroing"),  # in no view's name
    "maps/maps": ("segment", "Tokens", "words"),
    "maps/generation": ("text", "Sentence", "The old dog"),
    "linguistics/frames": ("segment", "What is shown", "A set of sentences"),
    "linguistics/tokens": ("segment", "Shown", "attention"),
    "linguistics/relations": ("select", "Direction", ""),
    "linguistics/probes": ("segment", "What is shown", "Layers"),
    "statistics/heads": ("select", "Rows", ""),
    "statistics/effective": ("text", "Sentence", "The old dog"),
    "statistics/shares": ("select", "Class set", ""),
    "annotate/label": ("select", "Class set", ""),
    "annotate/codebook": ("select", "Class set", ""),
    "annotate/classes": ("select", "Class set", ""),
    "annotate/classifier": ("select", "Classifier", "logistic regression"),
    "projects/agreement": ("select", "First annotator", "bob"),
    "projects/aggregated": ("segment", "One class per map by", "Dawid"),
    "projects/adjudication": ("toggle", "Show who voted", ""),
    "projects/setup": ("select", "Project", "First"),
    "projects/progress": ("select", "Project", "First"),
    "finetuning/train": ("select", "Recipe", "replication"),
    "finetuning/change": ("segment", "Statistic", "Jensen-Shannon divergence of the rows, nats"),
    "finetuning/seeds": ("select", "Rows", ""),
    "interventions/ablation": ("segment", "What is run", "Operators"),
    "interventions/sequential": ("select", "Rows", ""),
    "interventions/patching": ("segment", "What is shown", "Cut edges"),
    "interventions/pruning": ("segment", "What is shown", "Curve"),
    "interventions/subnetworks": ("segment", "What is shown", "Good, bad and random"),
    "interventions/together": ("segment", "What is measured", "Pairs of heads"),
    "interventions/circuit": ("select", "Rows", ""),
    "reproduction/report": ("select", "Checkpoints", ""),
    "results/all": ("text", "Search", "mrpc"),
    "results/jobs": ("button", "Details", ""),
}
NOTHING_TO_CHOOSE = {"statistics/discovered", "start/start", "start/path", "results/pinned", "heads/counterparts"}
ALWAYS = ("maps/maps",)  # 6 to 17 CPU seconds a view: the others are with the slow tests
TRIED = [name if name in ALWAYS else pytest.param(name, marks=pytest.mark.slow) for name in CHOICES]
MENUS = {"maps/maps": "Options", "linguistics/tokens": "Options"}
DRAWERS = {"finetuning/train": "Fine-tune a checkpoint", "reproduction/report": "Create a report for your checkpoints"}
CONTROLS = """() => {
  const parts = document.querySelectorAll('[data-testid=stMain], [data-testid=stPopoverBody]');
  const all = (what) => [...parts].flatMap((part) => [...part.querySelectorAll(what)]);
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
        project = make_project(db, Heading(title, "bert", annotator="ada"), ProjectRecipe(count=4), Rules(k=3))
        label_all(db, project, ("ada", "bob", "cyd"))
    jobs.set_state(db, jobs.add_job(db, "statistics", "A job", {}), "cancelled")
    db.close()
    with browsing.serving(folder, ATLAS_RECORD="") as served:
        yield served


def choose(page, kind: str, label: str, value: str) -> None:
    main = page.get_by_test_id("stPopoverBody").or_(page.get_by_test_id("stMain")).last
    if kind == "select":
        main.get_by_role("combobox", name=label).first.click()
        page.get_by_role("option", name=value).last.click()
    elif kind == "segment":
        main.get_by_test_id("stButtonGroup").get_by_text(value, exact=False).first.click()
    elif kind == "toggle":
        main.get_by_text(label, exact=True).click()
    elif kind == "button":
        main.get_by_role("button", name=label).first.click()
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
    if name in MENUS and not page.get_by_test_id("stPopoverBody").count():
        page.get_by_role("button", name=MENUS[name]).click()
    page.wait_for_function("!document.querySelector('[data-testid=stSkeleton]')")
    return page.evaluate(CONTROLS)


def says(page, wanted: list[str]) -> None:
    """Wait until every control says that; else show what differs."""
    try:
        said = json.dumps(wanted, separators=(",", ":"), ensure_ascii=False)
        page.wait_for_function(f"said => JSON.stringify(({CONTROLS})()) === said", arg=said, timeout=PATIENCE)
    except TimeoutError:
        assert page.evaluate(CONTROLS) == wanted


def test_every_view_is_tried():
    assert set(CHOICES) | NOTHING_TO_CHOOSE == set(VIEWS)


@pytest.mark.thorough
@pytest.mark.parametrize("name", TRIED)
def test_a_link_opens_what_was_chosen_and_back_takes_it_back(page, browser, worked_address, name):
    before = opened(page, f"{worked_address}/{address_of(name)}", name)
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
