"""A kill after any system call of a fold, a label, an opening, a migration, an import, a backup or a restore.

What plain DuckDB reads of the files that it leaves, the app opens, and no acknowledged label is missing in it.
"""

import random
import shutil
import subprocess
import sys

import pytest

from core.store import database
from core.store.database import Database
from tests.pages.browsing import PROJECT
from tests.spread import one_in
from tests.survival.crash_states import COUNT, CrashState, crash_states, faults, plain_labels
from tests.survival.episodes import DATABASE, EPISODES, prepare
from tests.survival.file_calls import Folder, traced

pytestmark = pytest.mark.skipif(
    shutil.which("strace") is None, reason="strace (Debian's package) says which system calls a program makes"
)
SAMPLE = 4  # states of each episode in the quick form
LABELS = {  # what may be read after a kill: before the step, or after it
    "a killed one opens": [[1, 2, 3, 1]],
    "an earlier version opens": [[1, 2, 3, 1, 4]],
    "an import": [[], [1, 2, 3]],
    "a backup": [[1, 2, 3, 1], [1, 2, 3, 1, 4]],
    "a restore": [[], [1, 2, 3]],
}


@pytest.fixture(scope="module")
def states(tmp_path_factory) -> dict[str, list[CrashState]]:
    folder = tmp_path_factory.mktemp("episodes") / "here"
    with pytest.MonkeyPatch.context() as patch:  # files as a user's app makes them, no copies of a template
        patch.setattr(database, "_connect", getattr(database._connect, "connect", database._connect))
        prepare(folder)
    before = Folder.read(folder)
    calls = traced(["-m", "tests.survival.episodes", str(folder)], folder)
    found = {}
    for name in EPISODES:
        own = [inside for call in calls if (inside := call.below(name))]
        found[name] = crash_states(before.below(name), own)
    return found


def held(name: str, state: CrashState, folder) -> None:
    assert not faults(state, folder)
    if name in LABELS and not (state.torn and plain_labels(folder / DATABASE) is None):
        with Database(folder / DATABASE) as db:
            assert [number for (number,) in db.cursor().execute(COUNT).fetchall()] in LABELS[name]


@pytest.mark.thorough
@pytest.mark.parametrize("share", one_in(3, range(SAMPLE)))
@pytest.mark.parametrize("name", EPISODES)
def test_a_kill_loses_nothing_and_the_app_opens_what_it_leaves(states, name, share, tmp_path):
    """The quick form: some states of each episode, drawn from as many parts of it."""
    part = len(states[name]) / SAMPLE
    draw = random.Random(f"{name} {share}")  # noqa: S311 - a moment, no secret
    held(name, states[name][int((share + draw.random()) * part)], tmp_path / "state")


@pytest.mark.slow  # all of some 300 states, a fifth of a second each
@pytest.mark.parametrize("name", EPISODES)
def test_a_kill_at_every_call(states, name, tmp_path):
    for state in states[name]:
        held(name, state, tmp_path / "state")


@pytest.mark.slow  # a dozen lives of a process
@pytest.mark.parametrize(
    ("call", "number"),
    [*(("pwrite64", n) for n in (1, 3, 5, 11, 12, 15)), *(("fdatasync", n) for n in (1, 9, 20)), ("unlink", 1)],
)
def test_a_kill_that_strace_sends(tmp_path, call, number):
    """The kernel's own kills: what is reconstructed above is what they leave."""
    folder, name = tmp_path / "here", "labels and folds"
    prepare(folder)
    inject = ["-e", f"inject={call}:signal=SIGKILL:when={number}"]
    command = ["strace", "-f", "-o", "/dev/null", "-e", f"trace={call}", *inject, sys.executable]
    done = subprocess.run(
        [*command, "-m", "tests.survival.episodes", str(folder), name],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    acknowledged = frozenset(int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("ack"))
    held(name, CrashState(f"{call} {number}", False, Folder.read(folder).below(name), acknowledged), tmp_path / "state")
