"""Download of checkpoints from the hub, with progress and one-sentence errors."""

import hashlib
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import huggingface_hub
from tqdm.auto import tqdm

from .. import config
from ..errors import CheckpointError
from .present import bundled_names

WANTED = ("*.json", "*.safetensors", "*.txt", "*.model", "tokenizer*")
BROKEN_OFF = {"ReadTimeout", "RemoteProtocolError", "ReadError"}  # of the library's transport, in the middle of a file
_HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def download(name: str, revision: str | None, on_progress: Callable[[float, str], None] | None = None) -> Path:
    """Return the local folder of a hub ID with its configs, tokenizer files and safetensors only.

    Interrupted downloads are resumed, and hashes are checked. Offline (Settings.offline), only earlier downloads are
    used.

    Args:
        revision: branch, tag or commit; None for the newest.
        on_progress: called with the fraction done.

    Raises:
        CheckpointError: the hub's answer, and what to do.
    """
    offline, begun = config.settings().offline, time.time()
    expected = 0 if offline or on_progress is None else _bytes_to_come(name, revision)
    try:
        folder = Path(
            huggingface_hub.snapshot_download(
                name,
                revision=revision,
                allow_patterns=list(WANTED),
                local_files_only=offline,
                tqdm_class=_reporting(on_progress, expected),
            )
        )
    except Exception as error:  # every transport has its own classes of failure
        raise CheckpointError(said_of(error, name, revision)) from error
    # The library checks lengths only; the hub names each file by its hash.
    for file in sorted(folder.iterdir()):
        blob = file.resolve()
        arrived = blob.is_file() and blob.stat().st_mtime >= begun - 1
        if arrived and _HASH.fullmatch(blob.name) and _hash_of(blob, len(blob.name)) != blob.name:
            file.unlink()
            blob.unlink(missing_ok=True)
            raise CheckpointError(
                f'The downloaded file {file.name} of "{name}" does not have the hash that the hub reports, '
                "so it was deleted. Download it again; if the hash is wrong again, do not use this "
                "checkpoint."
            )
    return folder


def said_of(error: Exception, name: str, revision: str | None) -> str:
    """Return one sentence about the hub's answer and what to do."""
    hub = huggingface_hub.errors
    status = _status(error)
    if isinstance(error, hub.RevisionNotFoundError):
        return f'"{name}" has no revision "{revision}"; leave the revision empty for the newest.'
    if isinstance(error, hub.RemoteEntryNotFoundError):
        file = str(error.response.url).rpartition("/")[2]
        return f'The hub lists {file} of "{name}" and does not have it; try again later, or another revision.'
    if status in (401, 403, 404):
        return f'The hub has no public checkpoint "{name}"; check the spelling, or open a bundled one: {_bundled()}.'
    if status == 429:
        return f'The hub got too many requests from here to give "{name}" now (429); wait some minutes and try again.'
    if status is not None and status >= 500:
        return f'The hub answered with an error of its own when asked for "{name}" ({status}); try again later.'
    if "Consistency check failed" in str(error):
        return f'A file of "{name}" has another length than the hub says; try again, or download it by hand.'
    if type(error).__name__ in BROKEN_OFF:
        return f'The hub stopped sending "{name}" before its end; what came is kept: try again, and it goes on there.'
    return (
        f'"{name}" is no bundled name or folder, and the hub cannot be reached from here; '
        f"connect to a network, give a local folder, or open a bundled checkpoint: {_bundled()}."
    )


def _status(error: BaseException | None) -> int | None:
    """The HTTP status behind an error, if any."""
    while error is not None:
        response = getattr(error, "response", None)
        if response is not None:
            return int(response.status_code)
        error = error.__cause__
    return None


def _hash_of(blob: Path, digits: int) -> str:
    """SHA-256 of a large file; for a small one (40 digits) git's SHA-1 over length and content."""
    digest = hashlib.sha256() if digits == 64 else hashlib.sha1(usedforsecurity=False)
    if digits == 40:
        digest.update(b"blob %d\0" % blob.stat().st_size)
    with blob.open("rb") as bytes_of:
        while some := bytes_of.read(1 << 20):
            digest.update(some)
    return digest.hexdigest()


def _bundled() -> str:
    return ", ".join(bundled_names()) or "none"


def _bytes_to_come(name: str, revision: str | None) -> int:
    """The size of a download; 0 if unknown. The library's own totals grow as files begin."""
    try:
        files = huggingface_hub.snapshot_download(
            name, revision=revision, allow_patterns=list(WANTED), tqdm_class=_reporting(None, 0), dry_run=True
        )
        return sum(file.file_size or 0 for file in files if file.will_download)
    except Exception:  # the download itself says what is wrong
        return 0


def _reporting(on_progress: Callable[[float, str], None] | None, expected: int) -> Any:
    """A tqdm class that calls `on_progress` with the fraction of expected bytes, without output on the terminal."""

    class Reporting(tqdm):  # type: ignore[misc]  # tqdm brings no types
        def __init__(self, *arguments: Any, **options: Any) -> None:
            self.counts = str(options.get("desc", "")).startswith("Reconstructing")  # bytes of all files; not transfers
            options["disable"] = on_progress is None
            super().__init__(*arguments, **options)

        def display(self, *arguments: Any, **options: Any) -> None:
            """Write nothing on the terminal."""

        def update(self, n: Any = 1) -> bool | None:
            drawn = super().update(n)
            if on_progress is not None and self.counts and expected:
                done = min(self.n, expected)
                on_progress(done / expected, f"downloading, {done / 1e6:.1f} of {expected / 1e6:.1f} MB")
            return drawn

    return Reporting
