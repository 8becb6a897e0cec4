"""A release: what was unreleased gets its number, and the citation says the same."""

import pytest
import yaml

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
    ],
)
def test_what_cannot_be_released_is_said(changelog, version, sentence):
    with pytest.raises(SystemExit, match=sentence):
        release.released(changelog, version, "2026-02-03")


def test_the_citation_is_whole_and_follows_the_release():
    text = (release.PROJECT / "CITATION.cff").read_text()
    citation = yaml.safe_load(release.cited(text, "9.8.7", "2026-02-03"))
    assert citation["version"] == "9.8.7"
    assert citation["date-released"] == "2026-02-03"
    assert {"cff-version", "message", "title", "authors", "license"} <= citation.keys()
    assert all(author.keys() in ({"name"}, {"family-names", "given-names"}) for author in citation["authors"])
