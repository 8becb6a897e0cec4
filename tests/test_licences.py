"""Every pinned package stands in docs/reference/licences.md, and every requirement is pinned and explained."""

import re
from email.message import EmailMessage
from pathlib import Path

import pytest

from data.recipes import licences

PROJECT = Path(__file__).resolve().parents[1]
LISTED = (PROJECT / "docs" / "reference" / "licences.md").read_text()


@pytest.mark.parametrize("file", ["requirements.txt", "tests/requirements.txt"])
def test_every_requirement_is_pinned_explained_and_its_licence_listed(file):
    for line in (PROJECT / file).read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        found = re.fullmatch(r"([\w.-]+)==(\S+)\s+# \S.*", line)
        assert found, f"{line!r} is not pinned with a reason"
        assert re.search(rf"[| ]{re.escape(found[1])}[,* |]", LISTED), f"{found[1]} has no licence listed"


@pytest.mark.parametrize("folder", ["models", "samples", "annotations"])
def test_every_bundled_folder_has_a_licence_listed(folder):
    assert f"data/{folder}" in LISTED


@pytest.mark.thorough
def test_the_list_is_as_the_command_writes_it():
    assert licences.written(LISTED) == LISTED


def test_a_package_without_a_known_licence_or_with_one_that_does_not_fit_is_refused(monkeypatch):
    with pytest.raises(SystemExit, match="must be installed"):
        licences.licence_of("no-such-package-here")
    monkeypatch.setattr(licences.metadata, "metadata", lambda _: EmailMessage())
    monkeypatch.setattr(licences.metadata, "files", lambda _: [])
    with pytest.raises(SystemExit, match="states no licence"):
        licences.licence_of("silent")
    stated = EmailMessage()
    stated["License-Expression"] = "GPL-3.0-or-later"
    monkeypatch.setattr(licences.metadata, "metadata", lambda _: stated)
    with pytest.raises(SystemExit, match="does not fit"):
        licences.licence_of("strict")
