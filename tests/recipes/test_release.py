"""A release: what was unreleased gets its number, and the citation says the same."""

import re
import subprocess
import sys

import pytest
import yaml

import core
from data.recipes import release

CHANGELOG = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- Something.\n\n## [0.1.0] - 2026-01-01\n"


def test_what_was_unreleased_gets_its_number():
    changed = release.released(CHANGELOG, "0.2.0", "2026-02-03")
    assert changed.index("[Unreleased]") < changed.index("[0.2.0] - 2026-02-03") < changed.index("Something")
    assert changed.index("Something") < changed.index("[0.1.0]")


@pytest.mark.parametrize(
    ("changelog", "version", "sentence"),
    [
        (CHANGELOG, "two", "three numbers"),
        (CHANGELOG, "0.1.0", "in the changelog already"),
        ("## [Unreleased]\n\n## [0.1.0] - 2026-01-01\n", "0.2.0", "needs something"),
        ("## [Unreleased]\n\n## 0.x\n", "0.2.0", "needs something"),
        ("## [Unreleased]\n\n" + "- One.\n" * 41, "0.2.0", "at most 40 lines; .Unreleased. has 41"),
    ],
)
def test_what_cannot_be_released_is_said(changelog, version, sentence):
    with pytest.raises(SystemExit, match=sentence):
        release.released(changelog, version, "2026-02-03")


@pytest.mark.slow  # 3 CPU seconds to import what checks it
def test_the_citation_holds_the_formats_own_schema(tmp_path):
    """Of the two files of one check the wrong one alone is named."""
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.citation-file-format"]
    file, wrong = release.PROJECT / "CITATION.cff", tmp_path / "CITATION.cff"
    wrong.write_text(file.read_text().replace("authors:", "writers:", 1))
    done = subprocess.run([*check, str(file), str(wrong)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"{wrong}::" in done.stdout
    assert f"{file}::" not in done.stdout, done.stdout


def test_the_version_is_the_same_everywhere():
    citation = yaml.safe_load((release.PROJECT / "CITATION.cff").read_text())
    latest = re.search(r"^## \[(\d[^\]]*)\] - (\S+)$", (release.PROJECT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert citation["version"] == latest[1] == core.__version__
    assert citation["date-released"] == latest[2]


def test_a_dry_run_names_the_tag_and_changes_nothing(tmp_path, monkeypatch, capsys):
    (tmp_path / "core").mkdir()
    files = {
        "CHANGELOG.md": CHANGELOG,
        "CITATION.cff": "version: 0.1.0\n",
        "core/__init__.py": '__version__ = "0.1.0"\n',
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(release, "PROJECT", tmp_path)
    monkeypatch.setattr(sys, "argv", ["release", "0.2.0", "--dry-run"])
    release.main()
    said = capsys.readouterr().out
    assert "+version: 0.2.0" in said
    assert "+## [0.2.0] - " in said
    assert said.endswith("git tag v0.2.0 && git push origin v0.2.0\n")
    assert {name: (tmp_path / name).read_text() for name in files} == files
    monkeypatch.setattr(sys, "argv", ["release", "0.2.0"])
    release.main()
    assert (tmp_path / "core/__init__.py").read_text() == '__version__ = "0.2.0"\n'


def test_every_version_of_the_changelog_is_short():
    parts = re.split(r"^## ", (release.PROJECT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)[1:]
    assert {part.splitlines()[0]: len(part.strip().splitlines()) for part in parts if len(part.splitlines()) > 42} == {}


def test_the_package_gets_the_number_too():
    assert release.numbered('"""Doc."""\n\n__version__ = "0.1.0"\n', "0.2.0").endswith('__version__ = "0.2.0"\n')


def test_the_citation_is_whole_and_follows_the_release():
    text = (release.PROJECT / "CITATION.cff").read_text()
    citation = yaml.safe_load(release.cited(text, "9.8.7", "2026-02-03"))
    assert citation["version"] == "9.8.7"
    assert citation["date-released"] == "2026-02-03"
    assert {"cff-version", "message", "title", "authors", "license"} <= citation.keys()
    assert all(author.keys() in ({"name"}, {"family-names", "given-names"}) for author in citation["authors"])
