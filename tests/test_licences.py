"""Every pinned package stands in docs/licences.md, and every requirement is pinned and explained."""

import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[1]
LISTED = (PROJECT / "docs" / "licences.md").read_text()


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
