"""The docs: links lead somewhere, commands are taken, the site builds without a warning and fetches nothing."""

import os
import re
import shlex
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
from PIL import Image
from typer.testing import CliRunner

import core.__main__
from core.store.database import Database
from core.store.findings import Finding, pin
from data.recipes import gallery, site
from tests.screenshots import DOCS, for_docs
from tests.test_readme import COMMANDS

PROJECT = Path(__file__).resolve().parents[1]
PAGES = sorted(
    file for file in (PROJECT / "docs").rglob("*.md") if file.relative_to(PROJECT / "docs").as_posix() not in site.PAGES
)
TEXTS = [PROJECT / "README.md", PROJECT / "CONTRIBUTING.md", *PAGES]
MOST_PROSE = 200_000  # bytes of hand-written text


def test_hand_written_prose_stays_short():
    sizes = site.prose()
    assert sum(sizes.values()) <= MOST_PROSE, sorted(sizes.items(), key=lambda item: -item[1])[:10]


def test_the_four_kinds_of_pages_are_apart():
    kinds = {file.relative_to(PROJECT / "docs").parts[0] for file in PAGES if file.parent != PROJECT / "docs"}
    assert kinds == {"tutorials", "how-to", "reference", "explanation", "results", "decisions"}


DATED = re.compile(r"\b\d{1,2} (?:January|February|March|April|May|June|July|August|September|October|November) ?\d*")
KINDS = [file for file in PAGES if file.parent != PROJECT / "docs"]


@pytest.mark.thorough
@pytest.mark.parametrize("file", KINDS, ids=lambda file: file.relative_to(PROJECT / "docs").as_posix())
def test_a_page_has_no_dates(file):
    assert DATED.findall(file.read_text(encoding="utf-8")) == []


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as MyST makes them."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\s-]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.thorough
@pytest.mark.parametrize("file", TEXTS, ids=lambda file: file.relative_to(PROJECT).as_posix())
def test_links_lead_to_files_and_headings(file):
    text = re.sub(r"```.*?```", "", file.read_text(encoding="utf-8"), flags=re.DOTALL)
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = unquote(link).partition("#")
        target = (file.parent / path).resolve() if path else file
        page = os.path.relpath(target, PROJECT / "docs")
        if page in site.PAGES:
            continue
        if not target.exists() or (anchor and anchor not in anchors(target.read_text(encoding="utf-8"))):
            broken.append(link)
    assert broken == []


class Links(HTMLParser):
    """What a page links to, what it fetches by itself, and the anchors it has."""

    def __init__(self, file: Path):
        super().__init__()
        self.links, self.fetched, self.anchors = [], [], set()
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if tag in ("img", "script", "iframe", "source") and given.get("src"):
            self.fetched.append(given["src"])
        if tag == "link" and given.get("rel") in ("stylesheet", "preload", "icon", "preconnect"):
            self.fetched.append(given.get("href"))


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
    done = subprocess.run(
        [*command, "-d", str(tmp_path_factory.mktemp("doctrees")), "docs", str(folder)],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    own = {"gallery", "_static"}  # exported maps, and templates that the theme copies
    return folder, {file: Links(file) for file in folder.rglob("*.html") if not own & set(file.parts)}


@pytest.mark.slow  # a minute: the site with its notebooks
def test_the_site_builds_without_a_warning_and_every_link_holds(built):
    folder, pages = built
    docs = {file.relative_to(PROJECT / "docs").with_suffix(".html") for file in (PROJECT / "docs").rglob("*.md")}
    assert docs <= {file.relative_to(folder) for file in pages}
    broken = []
    for file, page in pages.items():
        for link in [*page.links, *page.fetched]:
            if re.match(r"[a-z]+:", link):
                continue
            path, _, anchor = unquote(link).partition("#")
            target = (file.parent / path.partition("?")[0]).resolve() if path else file
            if not target.exists():
                broken.append(f"{file.name}: {link}")
            elif anchor and target in pages and anchor not in pages[target].anchors:
                broken.append(f"{file.name}: {link} has no such part")
    assert broken == []


@pytest.mark.slow  # the same site
def test_a_page_fetches_nothing_from_elsewhere(built):
    for file, page in built[1].items():
        assert not [one for one in page.fetched if re.match(r"(https?:)?//", one or "")], file.name


@pytest.mark.slow  # the same site
def test_tutorials_have_their_outputs(built):
    folder, pages = built
    tutorials = [file for file in pages if file.parent == folder / "tutorials" and file.stem != "index"]
    assert len(tutorials) == 4
    for file in tutorials:
        text = file.read_text(encoding="utf-8")
        assert text.count('class="cell_output') >= 4, file.name
        assert "Traceback (most recent call last)" not in text, file.name


def test_links_out_of_docs_become_pages_of_the_site_or_plain_names():
    assert site.rewritten("[a](docs/gallery.md#b)", "README.md", "index.md") == "[a](gallery.md#b)"
    assert site.rewritten("[a](../data/README.md)", "docs/gallery.md", "gallery.md") == "[a](project/data.md)"
    assert site.rewritten("[a](../gallery.md)", "docs/decisions/x.md", "decisions/x.md") == "[a](../gallery.md)"
    assert site.rewritten("[MIT](LICENSE)", "README.md", "index.md") == "MIT (`LICENSE`)"
    assert site.rewritten("[a](https://x.org/b)", "README.md", "index.md") == "[a](https://x.org/b)"


def test_generated_pages_are_not_committed():
    listed = subprocess.run(["git", "ls-files", "docs"], cwd=PROJECT, capture_output=True, text=True, check=True)
    assert not {f"docs/{name}" for name in site.PAGES} & set(listed.stdout.split())


def test_generated_reference_has_every_command_and_every_public_name():
    text = site.commands()
    for path in COMMANDS:
        assert f"# {' '.join(path)}\n" in text, path
    assert "| `--limit` | `500` |" in text
    public = sys.modules.get("core.notebook") or __import__("core.notebook", fromlist=["core"])
    named = re.findall(r"auto\w+:: \S+\.(\w+)\n", site.interface())
    assert sorted(named) == sorted(public.__all__)


def test_columns_of_results_have_every_kind_of_row():
    from core.studies.lookup import find_study, study_modules

    text = site.columns()
    for name in study_modules():
        assert f"\n## {name}\n" in text
        for kind in find_study(name).kinds:
            assert all(f"`{said}`" in text for said in kind.KINDS), (name, kind)


def test_the_gallery_has_four_small_self_contained_files():
    files = {file.name: file.read_text(encoding="utf-8") for file in gallery.FOLDER.glob("*.html")}
    assert set(files) == set(gallery.FILES)
    page = (PROJECT / "docs" / "gallery.md").read_text(encoding="utf-8")
    for name, text in files.items():
        assert len(text.encode()) <= gallery.MOST, name
        assert "default-src &#39;none&#39;" in text or "default-src 'none'" in text, name
        assert f"gallery/{name}" in page
    assert gallery.TOY in files["decoder.html"]


@pytest.mark.slow  # opens three checkpoints
@pytest.mark.shipped
def test_the_gallery_is_what_its_command_writes():
    """Scripts, styles and weights; the day on which a page was written is left out."""
    made = {"decoder.html": gallery.maps([gallery.config.DECODER], gallery.SENTENCE, lead=gallery.TOY)}
    made |= {"comparison.html": gallery.maps([gallery.config.ENCODER, gallery.config.CLASSIFIER], gallery.SENTENCE)}
    for name, text in made.items():
        kept = (gallery.FOLDER / name).read_text(encoding="utf-8")
        assert undated(text) == undated(kept), f"{name}: make gallery writes it anew"


def undated(text: str) -> str:
    return re.sub(r"\d{1,2} \w+ \d{4}", "", text)


def test_every_picture_of_the_app_in_the_docs_is_one_that_the_screenshots_make():
    used = {
        name
        for file in TEXTS
        for name in re.findall(r"\]\((?:docs/)?(?:\.\./)?images/([\w-]+\.png)\)", file.read_text())
    }
    assert used == set(DOCS)
    assert all((PROJECT / "docs" / "images" / name).stat().st_size > 5000 for name in used)


@pytest.mark.slow
@pytest.mark.browser  # a server, and all pictures of the docs
def test_the_screenshots_make_every_picture_of_the_app_in_the_docs(tmp_path):
    for_docs(tmp_path)
    for name in DOCS:
        made, shown = (Image.open(folder / name) for folder in (tmp_path, PROJECT / "docs" / "images"))
        assert made.size == shown.size, name
        assert len(set(made.convert("L").tobytes())) > 20, f"{name} is blank"


def typed(text: str) -> list[list[str]]:
    """What a text says to type after `python -m core`: lines of code, and between backticks; comments go."""
    joined = re.sub(r" \\\n\s*", " ", text)
    lines = re.findall(r"^(?:    |\$ |!)? *python -m core (.+)$", joined, re.MULTILINE)
    return [shlex.split(line, comments=True) for line in lines]


@pytest.mark.thorough
@pytest.mark.parametrize("file", TEXTS, ids=lambda file: file.name)
def test_what_the_docs_say_to_type_is_taken_with_its_values(file):
    """Every word: the command is there, has these options, and takes what is given to them."""
    for words in typed(file.read_text()):
        words = words[: words.index(">")] if ">" in words else words
        path = next((path for path in COMMANDS if tuple(words[: len(path)]) == path), None)
        assert path, words
        COMMANDS[path].make_context(" ".join(path), words[len(path) :])  # click's own error where it is not taken


@pytest.mark.thorough
@pytest.mark.parametrize("file", TEXTS, ids=lambda file: file.name)
def test_programs_targets_and_benchmarks_that_the_docs_name_are_there(file):
    text = file.read_text()
    for name in re.findall(r"python -m ((?:data|tests)(?:\.\w+)+)", text):
        place = PROJECT / name.replace(".", "/")
        assert place.with_suffix(".py").is_file() or (place / "__main__.py").is_file(), name
    for name in re.findall(r"python -m tests\.benchmarks ([a-z_]+)", text):
        assert (PROJECT / "tests" / "benchmarks" / f"{name}.py").is_file(), name
    targets = re.findall(r"^(\w+):", (PROJECT / "Makefile").read_text(), re.MULTILINE)
    assert set(re.findall(r"`make (\w+)", text)) <= set(targets)
    for name in re.findall(r"`(\.ci/\w+)", text):
        assert (PROJECT / name).is_file(), name
    for name in re.findall(r"`((?:core|pages|tests|data)/[\w./-]+\.(?:py|js|toml|csv|json))`", text):
        assert (PROJECT / name).is_file(), name


RUN = (
    "README.md",
    "docs/how-to/own-checkpoint.md",
    "docs/how-to/share.md",
    "docs/how-to/terminal.md",
    "docs/how-to/deploy.md",
)
QUICK = ("check", "maps", "heads", "atlas", "findings", "backup")  # of these files; the others train or sweep


@pytest.mark.thorough
def test_the_quick_commands_of_the_guide_run_as_they_are_written(tmp_path, monkeypatch):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "data" / "atlas.duckdb"))
    with Database(tmp_path / "data" / "atlas.duckdb") as db:
        pin(db, Finding("run", "A result", "a note", "of a study", "python -m core check atlas-encoder"))
    monkeypatch.chdir(tmp_path)
    ran = []
    for words in [words for name in RUN for words in typed((PROJECT / name).read_text())]:
        if words[0] in QUICK and not {"CHECKPOINT", "all-MiniLM-L6-v2"} & set(words) and words not in ran:
            done = CliRunner().invoke(core.__main__.app, words)
            assert done.exit_code == 0, (words, done.output, done.exception)
            ran.append(words)
    assert {words[0] for words in ran} == set(QUICK)
    (tmp_path / "data" / "atlas.duckdb").rename(tmp_path / "away.duckdb")
    guide = (PROJECT / "docs" / "how-to" / "deploy.md").read_text()
    (restored,) = [words for words in typed(guide) if words[0] == "restore"]
    done = CliRunner().invoke(core.__main__.app, restored)
    assert done.exit_code == 0, (done.output, done.exception)
    for name in ("maps.npz", "maps.html", "findings.html", "findings.md", "findings.bib", "data/atlas.duckdb"):
        assert (tmp_path / name).is_file(), name


@pytest.mark.thorough
def test_the_notebook_lines_of_the_readme_and_the_guide_run_as_they_are_written(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    readme = re.findall(r"```python\n(.*?)```", (PROJECT / "README.md").read_text(), re.DOTALL)
    guide = re.findall(r"```python\n(.*?)```", (PROJECT / "docs" / "how-to" / "notebook.md").read_text(), re.DOTALL)
    assert len(readme) == 1
    assert len([line for line in readme[0].splitlines() if line]) <= 5
    names: dict = {}
    for block in [*readme, *guide]:
        exec(block, names)  # noqa: S102 - our own docs
    assert names["widget"].payload
    assert (tmp_path / "maps.html").is_file()
