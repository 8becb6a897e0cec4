"""Temporary files of the tests lie in memory, where there is enough of it.

A database asks the disk to have its pages before it answers, ten times a test: 4 ms each on a virtual disk, while
nothing is computed. What a killed process leaves is the same in memory: no test cuts the power.
`TMPDIR` or `--basetemp` say another place. Files of a test that passed are removed after it.
"""

import os
import re
import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")  # noqa: S108 - the folder that is made in it is this user's alone
ENOUGH = 4 << 30  # bytes that are free


def room() -> int:
    """Bytes that files in memory may take here; 0 where there is no such place."""
    try:
        place = os.statvfs(MEMORY)
        free = re.search(r"MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text(encoding="ascii"))
    except OSError:
        return 0
    return min(place.f_bavail * place.f_frsize, int(free[1]) << 10 if free else 0)


def in_memory() -> None:
    """From now on, also in processes that begin here."""
    if os.environ.get("TMPDIR") or room() < ENOUGH:
        return
    folder = MEMORY / f"attention-atlas-tests-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        if folder.is_symlink() or folder.stat().st_uid != os.getuid():
            return  # somebody else's
    except OSError:
        return
    os.environ["TMPDIR"], tempfile.tempdir = str(folder), None


in_memory()
