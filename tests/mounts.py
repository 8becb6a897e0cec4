"""A folder on a file system that is mounted read-only, for a process in a mount namespace of its own (Linux)."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
_NEW = ("unshare", "--map-root-user", "--mount")
_MOUNT = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
needs_mounts = pytest.mark.skipif(
    shutil.which("unshare") is None or subprocess.run([*_NEW, "true"], capture_output=True, check=False).returncode > 0,
    reason="this system lets no user make a mount namespace",
)


def with_read_only(folder: Path, code: str, *arguments: object, **environment: str) -> str:
    """What Python code prints while `folder` is mounted read-only for it."""
    done = subprocess.run(
        [*_NEW, "sh", "-c", _MOUNT, str(folder), sys.executable, "-c", code, *map(str, arguments)],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
