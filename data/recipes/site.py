"""A hook of mkdocs: the project's own pages that lie outside docs/, its decisions in order, and links between all.

`make site` builds the docs into build/site; what a page shows of the app is made by `python -m tests.screenshots`.
"""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

PROJECT = Path(__file__).resolve().parents[2]
OUTSIDE = {  # page of the site: file of the project
    "index.md": "README.md",
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
    "data.md": "data/README.md",
    "annotations.md": "data/annotations/README.md",
}
GUIDE = (
    *("questions.md", "terminal.md", "own-rows.md", "share.md", "why.md", "across.md", "dossier.md", "circuits.md"),
    "frame-heads.md",
    *("patterns.md", "racing.md", "fine-tuning.md", "reproduction.md"),
)
NAMES = {"index.md": "Start", "changelog.md": "Changelog", "contributing.md": "Contributing", "data.md": "What ships"}
LINK = re.compile(r"(\]\()([^)#:\s]+)(#[^)\s]*)?(\))")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from outside docs/, and put all pages into the menu."""
    for page, source in OUTSIDE.items():
        text = (PROJECT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=rewritten(text, source, page)))
    pages = sorted(file.src_uri for file in files.documentation_pages())
    config.nav = menu(pages)
    return files


def on_page_markdown(markdown: str, page: object, **_: object) -> str:
    """Links of the pages in docs/ that lead out of it."""
    source = page.file.src_uri  # type: ignore[attr-defined]
    return markdown if source in OUTSIDE else rewritten(markdown, f"docs/{source}", source)


def menu(pages: list[str]) -> list[dict[str, object]]:
    """The start, the guide, what else there is, and decisions. pages: of the site, by their addresses."""
    decisions = [page for page in pages if page.startswith("decisions/")]
    rest = [page for page in pages if page not in (*OUTSIDE, *GUIDE, *decisions)]
    guide = [page for page in GUIDE if page in pages]
    project = [page for page in OUTSIDE if page != "index.md"]
    parts = {"Guide": guide, "Reference": rest, "Decisions": decisions, "Project": project}
    return [{"Start": "index.md"}, *({name: [_entry(page) for page in some]} for name, some in parts.items())]


def _entry(page: str) -> object:
    return {NAMES[page]: page} if page in NAMES else page


def rewritten(text: str, source: str, page: str) -> str:
    """`text` of the project's file `source` with its links as the site's `page` needs them.

    What has no page on the site (a licence, a folder) is named without a link.
    """
    at = Path(source).parent
    pages = {file: page for page, file in OUTSIDE.items()}
    up = "../" * page.count("/")

    def link(found: re.Match) -> str:
        target = _normal(at / found[2])
        if target in pages:
            return f"{found[1]}{up}{pages[target]}{found[3] or ''}{found[4]}"
        if target.startswith("docs/") and (PROJECT / target).is_file():
            return f"{found[1]}{up}{target.removeprefix('docs/')}{found[3] or ''}{found[4]}"
        return f"] (`{target}`)" if (PROJECT / target).exists() else found[0]

    return re.sub(r"\[([^\]]+)\] \(`", r"\1 (`", LINK.sub(link, text))


def _normal(path: Path) -> str:
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            parts = parts[:-1]
        elif part != ".":
            parts.append(part)
    return "/".join(parts)
