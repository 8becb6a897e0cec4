"""Fetch a checkpoint from the hub, with progress, or say in one sentence why that is not possible."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from core import config
from core.errors import CheckpointError

WANTED = ("*.json", "*.safetensors", "*.txt", "*.model", "tokenizer*")


def download(name: str, revision: str | None, on_progress: Callable[[float, str], None] | None = None) -> Path:
    """The local snapshot of a hub id. Only configs, tokenizer files and safetensors are fetched."""
    from huggingface_hub import errors as hub
    from huggingface_hub import snapshot_download

    offline = config.settings().offline
    try:
        return Path(
            snapshot_download(
                name,
                revision=revision,
                allow_patterns=list(WANTED),
                local_files_only=offline,
                tqdm_class=_reporting(on_progress),
            )
        )
    except (hub.GatedRepoError, hub.RepositoryNotFoundError) as error:
        raise CheckpointError(
            f'The hub has no public checkpoint "{name}"; check the spelling, or open a bundled one: {_bundled()}.'
        ) from error
    except hub.RevisionNotFoundError as error:
        raise CheckpointError(
            f'"{name}" has no revision "{revision}"; leave the revision empty for the newest.'
        ) from error
    except Exception as error:  # every transport has its own classes of failure; all mean "not reachable"
        raise CheckpointError(
            f'"{name}" is no bundled name or folder, and the hub cannot be reached from here; '
            f"connect to a network, give a local folder, or open a bundled checkpoint: {_bundled()}."
        ) from error


def _bundled() -> str:
    from core.models.opening import bundled_names

    return ", ".join(bundled_names()) or "none"


def _reporting(on_progress: Callable[[float, str], None] | None) -> Any:
    """A tqdm class that tells `on_progress` the share of bytes done; quiet on the terminal's own stream."""
    from tqdm.auto import tqdm

    class Reporting(tqdm):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            options.pop("name", None)
            options["disable"] = on_progress is None
            super().__init__(*arguments, **options)

        def display(self, *arguments: Any, **options: Any) -> None:
            if on_progress is not None and self.total:
                on_progress(min(1.0, self.n / self.total), str(self.desc or "downloading"))

    return Reporting
