"""A FrameNet release unpacked once, where the real data lies beside the checkout."""

import os
import tarfile
from pathlib import Path

import pytest

from core.frames.release import Release, open_release


def unpack(archive: Path, where: Path, wanted: tuple[str, ...]) -> Path:
    """Members whose path below the release starts with one of `wanted`."""
    with tarfile.open(archive) as tar:
        top = archive.name.split(".tar")[0].removesuffix("-partial")
        chosen = [one for one in tar if one.name.removeprefix(f"{top}/").startswith(wanted)]
        tar.extractall(where, members=chosen, filter="data")
    for path in [where / top, *(where / top).rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    return where / top


_INDEXES = ("frameIndex", "luIndex", "fulltextIndex", "frRelation", "semTypes", "frame/")


@pytest.fixture(scope="session")
def release_folder(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Release 1.5 with all frames, a few lexical units and two documents, one of which NLTK rejects."""
    units = tuple(f"lu/lu{number}.xml" for number in (7141, 8776, 7291, 1022))
    os.umask(0o022)
    return unpack(
        shared_data / "framenet/fndata-1.5.tar.xz",
        tmp_path_factory.mktemp("framenet"),
        (*_INDEXES, *units, "lu/lu72", "fulltext/PropBank__T", "fulltext/PropBank__BellRinging"),
    )


@pytest.fixture(scope="session")
def release(release_folder: Path) -> Release:
    return open_release(release_folder)
