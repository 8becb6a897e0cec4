"""Atomic file writes: a file is written next to its target and then renamed. All files of the program are written like
this."""

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
    """Return a context manager that yields the path of a temporary file. This file replaces `file` at the end, or is
    removed after an error.

    The previous file remains until the new file is completely on disk. Links are followed, and missing folders are
    created.

    Raises:
        AtlasError: an error of the given class, if the disk is full or the target cannot be written.
    """
    part = None
    try:
        target = _target(Path(file).expanduser(), error)
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f".{uuid.uuid4().hex[:12]}.part")  # a short name, in case the target's name is long
        yield part
        # Sync the file to disk, copy the previous file's permissions, and rename it
        with part.open("rb+") as stream:
            os.fsync(stream.fileno())
        if target.exists():
            with contextlib.suppress(PermissionError):  # network folders without permissions refuse to set any
                part.chmod(stat.S_IMODE(target.stat().st_mode))
        part.replace(target)
    except (OSError, RuntimeError, ValueError) as problem:
        system = _system_error(problem)
        if system is None:
            raise
        why = {
            errno.EISDIR: "it is a folder",
            errno.ENAMETOOLONG: "its name is too long",
            errno.ELOOP: "its links form a loop",
            errno.EINVAL: "it is not a valid path",
        }.get(system.errno or 0, "the disk is full" if system.errno in _FULL else system.strerror or str(system))
        raise error(
            f"A file must be writable; {str(file)[:200]} is not ({why}), and its previous content is unchanged. Free "
            "space, or choose another file."
        ) from problem
    finally:
        if part is not None:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)


def write_whole(file: str | Path, content: str | bytes, error: type[AtlasError] = InputError) -> None:
    """Write text (as UTF-8) or bytes to a file atomically. Raises the errors of `replacing`."""
    data = content.encode("utf-8", "replace") if isinstance(content, str) else content
    with replacing(file, error) as part:
        part.write_bytes(data)


def _target(place: Path, error: type[AtlasError]) -> Path:
    """Return the target with links resolved. Raises OSError, ValueError, RuntimeError, or `error`."""
    target = place.resolve()
    if target.is_symlink():  # only a loop remains a link
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    try:
        mode = target.lstat().st_mode
    except FileNotFoundError:
        return target
    if stat.S_ISDIR(mode):
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(mode):
        raise error(
            f"The target must be a regular file; got {str(place)[:120]}, a device or pipe. Choose another file."
        )
    if not os.access(target, os.W_OK):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))
    return target


def _system_error(problem: Exception) -> OSError | None:
    """Return the system error behind an error of Python or torch, or None."""
    if isinstance(problem, OSError):
        return problem
    text = str(problem)
    if "embedded null" in text or "Symlink loop" in text:
        return OSError(errno.ELOOP if "loop" in text else errno.EINVAL, text)
    torn = "file write failed" in text or "PytorchStreamWriter" in text or "unexpected pos" in text
    return OSError(errno.ENOSPC, text) if torn else None
