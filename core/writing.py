"""Files that appear whole or not at all: written beside their place, then renamed. We write no other way."""

import contextlib
import errno
import os
import stat
import uuid
from collections.abc import Iterator
from pathlib import Path

from .errors import AtlasError, InputError

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextlib.contextmanager
def replacing(file: str | Path, error: type[AtlasError] = InputError) -> Iterator[Path]:
    """A new file beside `file` to be filled; it takes its place when the block ends well, and is removed otherwise.

    A link is followed and stays one; whatever `file` held before is kept until the new file is whole and on the disk.
    The folder is made where it is missing.

    Args:
        file: the file to write or replace; "~" is the user's home.
        error: the class of what is raised.

    Yields:
        The new file's path, where nothing lies yet.

    Raises:
        AtlasError: of the class `error`, in one sentence, for a full disk, a folder or a device in the place, a name
            too long, links that lead round, and folders that cannot be written.
    """
    part = None
    try:
        target = _target(Path(file).expanduser(), error)
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f".{uuid.uuid4().hex[:12]}.part")  # short, so that a long name has room beside it
        yield part
        _settle(part, target)
    except (OSError, RuntimeError, ValueError) as problem:
        system = _system_error(problem)
        if system is None:
            raise
        raise _sentence(str(file), system, error) from problem
    finally:
        if part is not None:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)


def write_whole(file: str | Path, content: str | bytes, error: type[AtlasError] = InputError) -> None:
    """Put `content` (text as UTF-8) in `file`, all of it or nothing. Raises as `replacing`."""
    data = content.encode("utf-8", "replace") if isinstance(content, str) else content
    with replacing(file, error) as part:
        part.write_bytes(data)


def _target(place: Path, error: type[AtlasError]) -> Path:
    """Where the file will lie: links followed. Raises OSError, ValueError, RuntimeError, or `error` for no file."""
    target = place.resolve()
    if target.is_symlink():  # only a loop is left as a link
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    try:
        mode = target.lstat().st_mode
    except FileNotFoundError:
        return target
    if stat.S_ISDIR(mode):
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(mode):
        raise error(f"A file is written where a file may lie; {str(place)[:120]} is a device or a pipe: name another.")
    if not os.access(target, os.W_OK):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))
    return target


def _settle(part: Path, target: Path) -> None:
    """On the disk, with the rights of the file that was there, then in its place."""
    with part.open("rb+") as stream:
        os.fsync(stream.fileno())
    if target.exists():
        part.chmod(stat.S_IMODE(target.stat().st_mode))
    part.replace(target)


def _system_error(problem: Exception) -> OSError | None:
    """The system's error behind one of Python's or torch's own, or None where it is none."""
    if isinstance(problem, OSError):
        return problem
    text = str(problem)
    if "embedded null" in text or "Symlink loop" in text:
        return OSError(errno.ELOOP if "loop" in text else errno.EINVAL, text)
    torn = "file write failed" in text or "PytorchStreamWriter" in text or "unexpected pos" in text
    return OSError(errno.ENOSPC, text) if torn else None


def _sentence(place: str, problem: OSError, error: type[AtlasError]) -> AtlasError:
    why = {
        errno.EISDIR: "a folder lies there",
        errno.ENAMETOOLONG: "its name is too long",
        errno.ELOOP: "its links lead round in a circle",
        errno.EINVAL: "that is no path",
    }.get(problem.errno or 0, "the disk is full" if problem.errno in _FULL else problem.strerror or str(problem))
    return error(
        f"A file must be writable, but {place[:200]} is not ({why}); what was there before is kept: make room or name "
        "another file."
    )
