"""Old addresses lead to where their pages went, with what they asked for."""

import pytest

from pages.parts.shell.addresses import MOVED, RENAMED, Redirects, moved
from pages.parts.shell.page_table import PAGES
from tests.event_loops import finished

VIEWS = {page.name: {view.name for view in page.views} for page in PAGES}


@pytest.mark.parametrize(
    ("name", "query", "address"),
    [
        ("atlas", "", "heads"),
        (
            "head",
            "checkpoint=atlas-decoder&head=L2H3&task=sst2",
            "heads?view=one&checkpoint=atlas-decoder&head=L2H3&rows=sst2",
        ),
        (
            "frames",
            "view=A+set+of+sentences&beside=atlas-decoder",
            "linguistics?view=frames&mode=A+set+of+sentences&beside=atlas-decoder",
        ),
        ("disable", "view=Race", "interventions?view=sequential"),
        ("disable", "view=One+sentence&heads=L2H2%2CL6H1", "interventions?mode=One+sentence&heads=L2H2%2CL6H1"),
        ("finetune", "view=Seeds+apart", "finetuning?view=seeds"),
        ("generation", "decoder=d&prompt=The+dog", "maps?view=generation&checkpoint=d&text=The+dog"),
        ("statistics", "effective_text=A+long+one", "statistics?view=effective&text=A+long+one"),
        ("features", "features=noun&features=verb", "linguistics?features=noun&features=verb"),
        ("jobs", "job=1f", "results?view=jobs&job=1f"),
        ("start", "", ""),
    ],
)
def test_an_old_address_leads_to_its_view_with_its_parameters(name, query, address):
    assert moved(name, query) == address


@pytest.mark.parametrize(
    ("name", "query"),
    [("maps", "text=a"), ("statistics", "statistic=entropy"), ("projects", ""), ("heads", "view=one"), ("nowhere", "")],
)
def test_an_address_of_today_stays(name, query):
    assert moved(name, query) is None


def test_all_27_pages_of_before_lead_to_views_that_are_there():
    assert len(MOVED) == 27
    for move in MOVED.values():
        page, _, view = move.to.partition("/")
        assert {view or next(iter(VIEWS[page])), *move.views.values()} <= VIEWS[page]
    assert RENAMED.keys() <= MOVED.keys()


@pytest.mark.parametrize(
    ("base", "path", "place"),
    [
        ("", "/head", "/heads?view=one&head=L1H2"),
        ("atlas", "/atlas/head", "/atlas/heads?view=one&head=L1H2"),
    ],
)
def test_the_server_redirects_also_behind_a_prefix(base, path, place):
    answers = []

    async def send(message):
        answers.append(message)

    async def app(scope, receive, send):
        answers.append("the app")

    scope = {"type": "http", "method": "GET", "path": path, "query_string": b"head=L1H2"}
    finished(Redirects(app, base)(scope, None, send))
    assert (answers[0]["status"], dict(answers[0]["headers"])) == (307, {b"location": place.encode()})
    answers.clear()
    finished(Redirects(app, base)(scope | {"path": path + "s"}, None, send))
    assert answers == ["the app"]


def test_a_redirect_never_leaves_this_server():
    for name in ("/evil.example/head", "//evil.example", "head/../x"):
        assert moved(name, "") is None
