"""Pages and views in Streamlit's AppTest, by name ("heads/one")."""

from streamlit.testing.v1 import AppTest

from pages.parts.shell import shell
from pages.parts.shell.page_table import PAGES

VIEWS = [f"{page.name}/{view.name}" for page in PAGES for view in page.views]
WITHOUT_RESULTS = {"start/start", "results/all", "annotate/codebook", "annotate/classes", "statistics/effective",
                   "projects/setup"}  # fmt: skip
MODES = {
    "interventions/ablation": ["One sentence", "A task's rows"],
    "interventions/patching": ["Two inputs", "A task's rows"],
}
OPENINGS = [(name, mode) for name in VIEWS if name not in WITHOUT_RESULTS for mode in MODES.get(name, [""])]
# By default a view is opened once: every second one with what ships, the others with an empty database and no torch.
# The slow tests open each in both ways.
WITH_RESULTS = OPENINGS[::2]


def address_of(name: str) -> str:
    """The address of a page and view below the app's own; the first page is at the app's own."""
    page, _, view = name.partition("/")
    return f"{'' if page == PAGES[0].name else page}?view={view}"


def switched(app: AppTest, name: str, **query: str) -> AppTest:
    """The app about to run this page and view with this query and its own; `.run()` runs it."""
    page, _, view = name.partition("/")
    of_app = {key: value for key, value in app.query_params.items() if key != "view"}
    asked = of_app | query | ({"view": view} if view else {})
    app.query_params.clear()
    for key, value in asked.items():
        app.query_params[key] = value
    return app.switch_page(f"../../{page}.py")


def opened(name: str, *, timeout: float = 120, **query: str) -> AppTest:
    """The page and view as a link opens them: nothing else has run before."""
    return switched(AppTest.from_file(shell.__file__, default_timeout=timeout), name, **query).run()
