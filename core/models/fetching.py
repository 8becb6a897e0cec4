"""Checkpoints that can be chosen, and background downloads of those that are not on this machine.

Text from an address never starts a download: a page asks first and then calls `start`.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from .. import config
from ..errors import AtlasError
from .config_files import heads_in, layers_in, read_config
from .present import HUB_ID, bundled_names, downloaded_names, is_here, located

# ---------------------------------------------------------------- real models that are offered by name


@dataclass(frozen=True)
class RealModel:
    """A published model on the Hugging Face Hub, with its short name, hub ID and download size in bytes."""

    name: str
    hub: str
    layers: int
    heads: int
    size: int
    licence: str

    @property
    def chosen(self) -> str:
        """Return the name with which the model can be opened. This is the short name if the model is packaged or on
        this machine under that name, otherwise the hub ID."""
        return self.name if self.name in config.PACKAGED or is_here(self.name) else self.hub


REAL_MODELS = (
    RealModel("bert-base-uncased", "google-bert/bert-base-uncased", 12, 12, 441_000_000, "Apache-2.0"),
    RealModel("distilbert-base-uncased", "distilbert/distilbert-base-uncased", 6, 12, 269_000_000, "Apache-2.0"),
    RealModel("roberta-base", "FacebookAI/roberta-base", 12, 12, 502_000_000, "MIT"),
    RealModel("gpt2", "openai-community/gpt2", 12, 12, 551_000_000, "MIT"),
    RealModel("all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2", 6, 12, 92_000_000, "Apache-2.0"),
)


def real_model(name: str) -> RealModel | None:
    """Return the suggested published model with the given short name or hub ID; None if there is no such model."""
    return next((model for model in REAL_MODELS if name in (model.name, model.hub)), None)


def resolved(name: str) -> str:
    """Return the checkpoint name to open for user input. Short names of published models may become hub IDs."""
    model = real_model(name)
    return model.chosen if model is not None and (model.name in config.PACKAGED or not is_here(name)) else name


# ---------------------------------------------------------------- what a list of checkpoints shows


BUNDLED, HERE, REAL = "bundled", "on this machine", "real model"


@dataclass(frozen=True)
class Choice:
    """A checkpoint that users can select. `detail` describes it, for example by its numbers of layers and heads."""

    name: str
    kind: str
    detail: str


def choices(own: Sequence[str] = ()) -> list[Choice]:
    """Return all checkpoints that a user can select: bundled, on this machine, and published."""
    packaged = config.packaged_checkpoints()
    real = {model.chosen: model for model in REAL_MODELS}
    found = [Choice(name, BUNDLED, _sizes(name)) for name in bundled_names() if name not in packaged]
    here = dict.fromkeys([*own, *packaged, *downloaded_names()])
    found += [Choice(name, HERE, _sizes(name)) for name in here if name not in real]
    return found + [Choice(name, REAL, _told(model, name)) for name, model in real.items()]


def _told(model: RealModel, name: str) -> str:
    there = "downloaded" if is_here(name) else f"download {megabytes(model.size)}"
    return f"{model.layers} x {model.heads} · {model.licence} · {there}"


def megabytes(size: int) -> str:
    """Format a number of bytes in MB with two significant digits, such as "440 MB"."""
    return f"{round(size / 1e6, -1 if size >= 1e8 else 0):.0f} MB"


def _sizes(name: str) -> str:
    """Layers x heads of a checkpoint on this machine; "" if its config cannot be read."""
    try:
        folder = located(name)
        file = None if folder is None else folder / "config.json"
        return "" if file is None else _sizes_in(file, file.stat().st_mtime_ns)
    except (OSError, ValueError, RuntimeError, AtlasError):
        return ""


@lru_cache(maxsize=256)
def _sizes_in(file: Path, modified: int) -> str:
    told = read_config(file.parent, file.parent.name)
    return f"{layers_in(told)} x {heads_in(told)}" if layers_in(told) and heads_in(told) else ""


# ---------------------------------------------------------------- downloads in the background


@dataclass
class Fetch:
    """The state of a model download in this process. `state` is "running", "stopping", "stopped", "failed" or "done".
    `share` is the completed fraction, and `doing` is the current step. `error` is the message of a failed download."""

    name: str
    state: str = "running"
    share: float = 0.0
    doing: str = ""
    error: str = ""
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def active(self) -> bool:
        return self.state in ("running", "stopping")


_FETCHES: dict[str, Fetch] = {}
_GUARD = threading.Lock()


def can_download(name: str) -> bool:
    """Return whether a checkpoint name is a hub ID that has not been downloaded to this machine."""
    return HUB_ID.fullmatch(name) is not None and ".." not in name and not is_here(name)


def fetch_of(name: str) -> Fetch | None:
    """Return the state of the latest download of a checkpoint in this process; None if there was no download."""
    return _FETCHES.get(name)


def start(name: str) -> Fetch:
    """Start downloading a checkpoint in a background thread, and return the state, which the download updates.

    A running download is returned; a stopped one continues where it stopped.
    """
    with _GUARD:
        before = _FETCHES.get(name)
        if before is not None and before.state == "running":
            return before
        state = _FETCHES[name] = Fetch(name)
    threading.Thread(target=_work, args=(state, before), name=f"download {name}", daemon=True).start()
    return state


def stop(name: str) -> None:
    """Stop the download of a checkpoint. Downloaded data remain, and a later download continues from there."""
    state = _FETCHES.get(name)
    if state is not None and state.state == "running":
        state.state = "stopping"


def forget(name: str) -> None:
    """Remove the state of a finished or failed download, so that users can start the download again."""
    state = _FETCHES.get(name)
    if state is not None and not state.active:
        _FETCHES.pop(name, None)


def _work(state: Fetch, before: Fetch | None) -> None:
    from . import hub, weights  # 0.5 s at start

    def tell(share: float, doing: str) -> None:
        state.share, state.doing = share, doing
        if state.state == "stopping":
            raise hub.DownloadStoppedError

    try:
        if before is not None:
            before.ended.wait()
        found = HUB_ID.fullmatch(config.ON_HUB.get(state.name, state.name))
        assert found is not None  # noqa: S101 - can_download was asked
        folder = hub.download(found["name"], found["revision"], tell)
        weights.weight_files(folder, state.name)
        config.packaged_checkpoints.cache_clear()
        state.state = "done"
    except hub.DownloadStoppedError:
        state.state = "stopped"
    except AtlasError as error:
        state.error, state.state = str(error), "failed"
    except Exception as error:  # an unexpected error is shown as well
        state.error, state.state = f"The download failed ({type(error).__name__}: {error}). Try again.", "failed"
    finally:
        state.ended.set()
