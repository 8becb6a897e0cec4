"""The docs as pages: built strictly, every link leads somewhere, nothing is fetched from elsewhere, commands exist."""

import os
import re
import shlex
import subprocess
import sys
import textwrap
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
from PIL import Image
from typer.testing import CliRunner

import core.__main__
from core.report.exhibits import exhibits
from core.store.database import Database
from core.store.findings import Finding, pin
from data.recipes import site
from tests.screenshots import DOCS, for_docs
from tests.test_readme import COMMANDS

PROJECT = Path(__file__).resolve().parents[1]
TEXTS = [PROJECT / "README.md", PROJECT / "CONTRIBUTING.md", *sorted((PROJECT / "docs").rglob("*.md"))]


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
        if (
            tag == "img"
            or (tag == "script" and given.get("src"))
            or (tag == "link" and given.get("rel") == "stylesheet")
        ):
            self.fetched.append(given.get("src") or given.get("href"))


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {file: Links(file) for file in folder.rglob("*.html") if file.name != "404.html"}


def test_every_doc_is_a_page_and_every_link_between_pages_holds(built):
    (folder,) = {file.parent for file in built if file.name == "share.html"}
    pages = {file.relative_to(folder).with_suffix(".md").as_posix() for file in built}
    docs = {file.relative_to(PROJECT / "docs").as_posix() for file in (PROJECT / "docs").rglob("*.md")}
    assert docs | set(site.OUTSIDE) == pages
    broken = []
    for file, page in built.items():
        for link in [*page.links, *page.fetched]:
            if re.match(r"[a-z]+:", link):
                continue
            path, _, anchor = unquote(link).partition("#")
            target = (file.parent / path).resolve() if path else file
            if not target.exists():
                broken.append(f"{file.name}: {link}")
            elif anchor and target in built and anchor not in built[target].anchors | {"__skip"}:
                broken.append(f"{file.name}: {link} has no such part")
    assert broken == []


def test_a_page_fetches_nothing_from_elsewhere(built):
    for file, page in built.items():
        assert not [one for one in page.fetched if re.match(r"(https?:)?//", one or "")], file.name


def test_links_out_of_docs_become_pages_of_the_site_or_plain_names():
    assert site.rewritten("[a](docs/share.md#cite)", "README.md", "index.md") == "[a](share.md#cite)"
    assert site.rewritten("[a](../data/README.md)", "docs/patterns.md", "patterns.md") == "[a](data.md)"
    assert site.rewritten("[a](../frame-heads.md)", "docs/decisions/x.md", "decisions/x.md") == "[a](../frame-heads.md)"
    assert site.rewritten("[MIT](LICENSE)", "README.md", "index.md") == "MIT (`LICENSE`)"
    assert site.rewritten("[a](https://x.org/b)", "README.md", "index.md") == "[a](https://x.org/b)"


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


def test_every_drawing_in_the_docs_is_an_exhibit_of_the_report_or_of_a_race():
    used = {name for file in TEXTS for name in re.findall(r"images/([\w-]+)\.svg\)", file.read_text())}
    assert used <= {item.id for item in exhibits()} | {"race"}
    assert {f"{name}.svg" for name in used} == {file.name for file in (PROJECT / "docs" / "images").glob("*.svg")}


def typed(text: str) -> list[list[str]]:
    """What a text says to type after `python -m core`: lines of code, and between backticks; comments go."""
    joined = re.sub(r" \\\n\s*", " ", text)
    lines = re.findall(r"^(?:    |\$ )? *python -m core (.+)$", joined, re.MULTILINE)
    return [shlex.split(line, comments=True) for line in lines]


@pytest.mark.parametrize("file", TEXTS, ids=lambda file: file.name)
def test_what_the_docs_say_to_type_is_taken_with_its_values(file):
    """Every word: the command is there, has these options, and takes what is given to them."""
    for words in typed(file.read_text()):
        path = next((path for path in COMMANDS if tuple(words[: len(path)]) == path), None)
        assert path, words
        COMMANDS[path].make_context(" ".join(path), words[len(path) :])  # click's own error where it is not taken


@pytest.mark.parametrize("file", TEXTS, ids=lambda file: file.name)
def test_programs_targets_and_benchmarks_that_the_docs_name_are_there(file):
    text = file.read_text()
    for name in re.findall(r"python -m ((?:data|tests)(?:\.\w+)+)", text):
        place = PROJECT / name.replace(".", "/")
        assert place.with_suffix(".py").is_file() or (place / "__main__.py").is_file(), name
    for name in re.findall(r"python -m tests\.benchmarks (\w+)", text):
        assert (PROJECT / "tests" / "benchmarks" / f"{name}.py").is_file(), name
    targets = re.findall(r"^(\w+):", (PROJECT / "Makefile").read_text(), re.MULTILINE)
    assert set(re.findall(r"`make (\w+)", text)) <= set(targets)
    for name in re.findall(r"`(\.ci/\w+)", text):
        assert (PROJECT / name).is_file(), name


SENTENCE = "The cat sat."
RUN = ("README.md", "docs/families.md", "docs/share.md", "docs/deploy.md")
QUICK = ("check", "maps", "heads", "atlas", "findings", "backup")  # of these files; the others train or sweep


def test_the_quick_commands_of_the_guide_run_as_they_are_written(tmp_path, monkeypatch):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "data" / "atlas.duckdb"))
    with Database(tmp_path / "data" / "atlas.duckdb") as db:
        pin(db, Finding("run", "A result", "a note", "of a study", "python -m core check atlas-encoder"))
    monkeypatch.chdir(tmp_path)
    ran = []
    for words in [words for name in RUN for words in typed((PROJECT / name).read_text())]:
        if words[0] in QUICK and "all-MiniLM-L6-v2" not in words and words not in ran:
            done = CliRunner().invoke(core.__main__.app, words)
            assert done.exit_code == 0, (words, done.output, done.exception)
            ran.append(words)
    assert {words[0] for words in ran} == set(QUICK) - {"atlas"}
    (tmp_path / "data" / "atlas.duckdb").rename(tmp_path / "away.duckdb")
    (restored,) = [words for words in typed((PROJECT / "docs" / "deploy.md").read_text()) if words[0] == "restore"]
    done = CliRunner().invoke(core.__main__.app, restored)
    assert done.exit_code == 0, (done.output, done.exception)
    for name in ("maps.npz", "maps.html", "findings.html", "findings.md", "findings.bib", "data/atlas.duckdb"):
        assert (tmp_path / name).is_file(), name


def test_the_notebook_lines_of_the_guide_run_as_they_are_written(monkeypatch):
    monkeypatch.chdir(PROJECT)
    text = (PROJECT / "docs" / "share.md").read_text()
    blocks = re.findall(r"((?:^    .*\n|^\n)+)", text, re.MULTILINE)
    lines = [textwrap.dedent(block) for block in blocks if re.search(r"^    .*(import|show)", block, re.MULTILINE)]
    assert len(lines) == 2
    names: dict = {}
    for block in lines:
        exec(block, names)  # noqa: S102 - our own docs
    assert names["widget"].payload
    assert len(names["heads"]("atlas-encoder", SENTENCE)) == 36 * 5
