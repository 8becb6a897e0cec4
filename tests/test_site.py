"""The docs as pages: built strictly, every link leads somewhere, nothing is fetched from elsewhere, commands exist."""

import os
import re
import shlex
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

from data.recipes import site
from tests.screenshots import DOCS
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


@pytest.mark.parametrize("file", TEXTS, ids=lambda file: file.name)
def test_what_the_docs_say_to_type_exists(file):
    shown = re.findall(r"^(?:    |\$ )? *python -m core (.+)$", file.read_text(), re.MULTILINE)
    for line in shown:
        words = shlex.split(re.sub(r" \\$", "", line), comments=True)
        path = next((path for path in COMMANDS if tuple(words[: len(path)]) == path), None)
        assert path, line
        known = {name for one in COMMANDS[path].params for name in (*one.opts, *one.secondary_opts)}
        assert {word.partition("=")[0] for word in words if word.startswith("--")} <= known, line
