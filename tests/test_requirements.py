"""What is imported is pinned, and the second file of requirements has those very versions with their hashes."""

import ast
import re
import sys
from importlib import metadata

import pytest

from core import config
from tests.sources import files_of, nodes_of

PINNED = dict(re.findall(r"^([\w.-]+)==(\S+)", (config.PROJECT / "requirements.txt").read_text(), re.MULTILINE))
HASHED = re.split(r"\n(?=[A-Za-z0-9])", (config.PROJECT / "requirements-hashed.txt").read_text(encoding="utf-8"))
OPTIONAL = {"torchao"}  # for --dtype int8, which says so
SIGN_IN = ("starlette", "uvicorn", "itsdangerous", "joserfc", "cryptography", "python-multipart", "Authlib", "httpx")


def plain(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_pin_stands_in_the_file_with_hashes_and_everything_there_has_some():
    hashed = {}
    for entry in HASHED:
        if found := re.match(r"([\w.-]+)(?:\[[\w,-]+\])?==(\S+) ", entry):
            assert re.findall(r"--hash=sha256:[0-9a-f]{64}\b", entry), entry
            hashed[plain(found[1])] = found[2]
    assert len(hashed) > len(PINNED)
    assert {name: hashed.get(plain(name)) for name in PINNED} == PINNED


@pytest.mark.thorough
def test_what_is_imported_is_pinned():
    rooms = set()
    for file in (*files_of("core", "pages"), config.PROJECT / "app.py"):
        for node in nodes_of(file):
            if isinstance(node, ast.Import):
                rooms |= {name.name.split(".")[0] for name in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                rooms.add(node.module.split(".")[0])
    others = rooms - set(sys.stdlib_module_names) - {"core", "pages"} - OPTIONAL
    packages, pinned = metadata.packages_distributions(), set(map(plain, PINNED))
    assert [room for room in sorted(others) if not pinned & set(map(plain, packages.get(room, [room])))] == []


@pytest.mark.parametrize("name", SIGN_IN)
def test_what_sign_in_rests_on_is_pinned_and_here(name):
    assert metadata.version(name) == PINNED[name]
