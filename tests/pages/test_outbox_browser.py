"""The outbox of the labelling sheet as a machine, in a real browser: two tabs, outages, reloads, a full storage.

The sheet's own script runs in chromium, with its real storage; the server is a model of what `project_sheet.take` does.
"""

from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

pytestmark = pytest.mark.browser
SCRIPT = Path(__file__).resolve().parents[2] / "pages" / "parts" / "label" / "label_outbox.js"
ADDRESS = "http://sheet.test/"
HELPERS = """
const showStatus = () => {}, fillBar = () => {}, send = (_, value) => { window.sent = value; };
const newSheet = (database) => {
  const sheet = { database: null, batch: "", sequence: 0, outbox: [], left: [], older: [], adopted: [],
    parked: new Map(), saved: 0, last: 0, scale: "own", mode: "single",
    header: { class_set: "bert", annotator: "ada", pass: 1 } };
  openOutbox(sheet, database);
  flush(sheet);
  return sheet;
};
window.sent = null;
window.sheet = newSheet("db");
window.label = () => {
  emit(sheet, { id: "m1" }, { kind: "label", class: "block" });
  return [sheet.batch, sheet.sequence];
};
window.fillStorage = () => {
  let count = localStorage.length;
  for (let size = 4e6; size >= 1; size = Math.floor(size / 2)) {
    try { for (;;) localStorage.setItem(`junk${count++}`, "x".repeat(size)); } catch { /* a smaller piece, then */ }
  }
};
window.emptyStorage = () => {
  for (const key of Object.keys(localStorage)) if (key.startsWith("junk")) localStorage.removeItem(key);
};
window.asks = () => !window.dispatchEvent(new Event("beforeunload", { cancelable: true }));
"""


def open_context(browser):
    context = browser.new_context()
    body = f"<title>sheet</title><script>{SCRIPT.read_text()}\n{HELPERS}</script>"
    context.route(f"{ADDRESS}**", lambda route: route.fulfill(body=body, content_type="text/html"))
    return context


def open_tab(context):
    tab = context.new_page()
    tab.goto(ADDRESS)
    return tab


class Server:
    """What the store holds, by batch, and what each session has acknowledged of it."""

    def __init__(self):
        self.stored: dict[str, set[int]] = {}
        self.sessions: dict[object, dict[str, int]] = {}

    def take(self, tab, *, answer: bool = True) -> None:
        """Store what the tab sent last, as `project_sheet.take` does, and acknowledge it unless the answer is lost."""
        sent, acknowledged = tab.evaluate("window.sent"), self.sessions.setdefault(tab, {})
        for box in sent["boxes"] if sent else []:
            batch, sequences = box["batch"], [event["sequence"] for event in box["events"]]
            new = [number for number in sequences if number > acknowledged.get(batch, 0)]
            if new:
                self.stored.setdefault(batch, set()).update(new)
                acknowledged[batch] = max(new)
        if answer:
            tab.evaluate("(saved) => acknowledged(sheet, saved)", acknowledged)

    def has(self, label: tuple[str, int]) -> bool:
        return label[1] in self.stored.get(label[0], set())


class Outboxes(RuleBasedStateMachine):
    """labels: what was labelled in any tab, and may not be lost."""

    browser = None

    @initialize()
    def begin(self):
        self.context, self.server, self.labels = open_context(self.browser), Server(), []
        self.tabs, self.full = [open_tab(self.context), open_tab(self.context)], False

    @rule(tab=st.integers(0, 1), count=st.integers(1, 3))
    def label(self, tab, count):
        for _ in range(count):
            self.labels.append(tuple(self.tabs[tab].evaluate("label()")))

    @rule(tab=st.integers(0, 1), answer=st.booleans())
    def deliver(self, tab, answer):
        self.server.take(self.tabs[tab], answer=answer)

    @rule(tab=st.integers(0, 1), how=st.sampled_from(["close", "reload"]))
    def leave(self, tab, how):
        """The browser asks before it goes where anything waits in the tab alone; then the person stays."""
        page = self.tabs[tab]
        if page.evaluate("asks()"):
            assert page.evaluate("window.atlasHeld.size")
            return
        self.server.sessions.pop(page, None)
        if how == "reload":
            page.reload()
        else:
            page.close()
            self.tabs[tab] = open_tab(self.context)

    @precondition(lambda self: not self.full)
    @rule()
    def fill(self):
        self.tabs[0].evaluate("fillStorage()")
        self.full = True

    @precondition(lambda self: self.full)
    @rule()
    def make_room(self):
        self.tabs[1].evaluate("emptyStorage()")
        self.full = False

    def teardown(self):
        if not hasattr(self, "context"):
            return
        self.tabs[0].evaluate("emptyStorage()")
        for tab in [*self.tabs, open_tab(self.context)]:
            for _ in range(3):  # what a tab finds after an answer, it sends then
                self.server.take(tab)
        lost = [label for label in self.labels if not self.server.has(label)]
        left = self.tabs[0].evaluate("Object.keys(localStorage).filter((key) => /^atlas-(event|outbox)/.test(key))")
        self.context.close()
        assert not lost
        assert not left


@pytest.mark.slow  # 2 CPU seconds an example: every rule's step asks the browser; single steps stand below
@pytest.mark.parametrize("examples", [6])
def test_no_label_is_lost_whatever_two_tabs_do(browser, examples):
    class Machine(Outboxes):
        pass

    Machine.browser = browser
    run_state_machine_as_test(
        Machine, settings=settings(max_examples=examples, stateful_step_count=15, deadline=None, derandomize=True)
    )


@pytest.mark.thorough
def test_what_a_tab_adds_after_another_has_read_its_outbox_is_sent_too(browser):
    """Tab A labels in an outage, tab B opens, A labels on and is closed; then B's labels are acknowledged."""
    context, server = open_context(browser), Server()
    first = open_tab(context)
    labels = [tuple(first.evaluate("label()"))]
    second = open_tab(context)
    labels += [tuple(first.evaluate("label()")) for _ in range(2)]
    first.close()
    labels.append(tuple(second.evaluate("label()")))
    server.take(second)
    assert sum(map(server.has, labels)) == 2
    server.take(second)
    assert all(map(server.has, labels))
    assert second.evaluate("Object.keys(localStorage)") == ["atlas-secret"]
    context.close()


@pytest.mark.thorough
def test_a_list_that_a_tab_of_an_earlier_version_still_adds_to_loses_nothing(browser):
    context, server = open_context(browser), Server()
    tab = open_tab(context)
    keep = "(list) => localStorage.setItem('atlas-outbox:db:tab-old', list)"
    tab.evaluate(keep, '[{"sequence": 1}, {"sequence": 2}]')
    second = open_tab(context)
    tab.evaluate(keep, '[{"sequence": 1}, {"sequence": 2}, {"sequence": 3}]')
    server.take(second)
    assert server.stored == {"tab-old": {1, 2}}
    server.take(second)
    assert server.stored == {"tab-old": {1, 2, 3}}
    assert second.evaluate("Object.keys(localStorage)") == ["atlas-secret"]
    context.close()


def test_a_storage_that_is_full_is_said_and_asked_about_and_what_waits_is_stored_when_there_is_room(browser):
    context, server = open_context(browser), Server()
    tab = open_tab(context)
    tab.evaluate("localStorage.setItem('atlas-event:db:tab-x:1', '{')")  # cannot be put aside: there is no room
    tab.evaluate("fillStorage()")
    labels = [tuple(tab.evaluate("label()")) for _ in range(3)]
    assert tab.evaluate("window.atlasHeld.size") == 3
    assert tab.evaluate("asks()")
    tab.evaluate("window.sheet = newSheet('db')")  # the page is drawn anew: the window has them still
    assert tab.evaluate("sheet.left.length") == 1
    tab.evaluate("emptyStorage(), label()")
    assert tab.evaluate("window.atlasHeld.size") == 0
    assert not tab.evaluate("asks()")
    tab.close()
    later = open_tab(context)
    server.take(later)
    assert all(map(server.has, labels))
    context.close()
