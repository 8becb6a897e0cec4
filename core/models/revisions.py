"""Snapshots of a training run: folders, hub IDs, or `owner/name@a..b` for a range of revisions, in order.

Revisions are resolved once to commits, so that what is opened later is what was listed.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from .. import config
from ..errors import CheckpointError, InputError
from .present import bundled_names

_RANGE = re.compile(r"(?P<name>[\w.-]+/[\w.-]+)@(?P<first>[\w.-]*?\d[\w-]*)\.\.(?P<last>[\w.-]+)")
_HUB_ID = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*/[\w.-]+)(?:@(?P<revision>[\w./-]+))?")
_NUMBERED = re.compile(r"(?P<before>\D*)(?P<number>\d+)(?P<after>.*)")


@dataclass(frozen=True)
class Snapshot:
    """One checkpoint of a training run. name: opens it; a hub ID includes its commit."""

    label: str
    name: str


def snapshots_of(names: tuple[str, ...]) -> list[Snapshot]:
    """Return the named snapshots in order.

    Raises:
        InputError: there are fewer than two, or duplicates.
        CheckpointError: a revision or repository does not exist.
    """
    found = [snapshot for name in names for snapshot in _snapshots(name.strip())]
    if len(found) < 2:
        raise InputError(
            f"Development needs at least two snapshots; got {len(found)}. Name at least two, or owner/name@a..b."
        )
    twice = [snapshot.label for k, snapshot in enumerate(found) if snapshot.name in {one.name for one in found[:k]}]
    if twice:
        raise InputError(f"Snapshots must be different; got {twice[0]} twice. Leave one out.")
    return found


def _snapshots(name: str) -> list[Snapshot]:
    if _is_here(name):
        return [Snapshot(name, name)]
    if between := _RANGE.fullmatch(name):
        return _between(between["name"], between["first"], between["last"])
    hub_id = _HUB_ID.fullmatch(name)
    if hub_id is None or config.settings().offline:
        return [Snapshot(name, name)]  # opening it says what is wrong
    return [Snapshot(name, f"{hub_id['name']}@{_commit(hub_id['name'], hub_id['revision'])}")]


def _is_here(name: str) -> bool:
    try:
        return name in bundled_names() or name in config.packaged_checkpoints() or Path(name).expanduser().is_dir()
    except (OSError, ValueError, RuntimeError):
        return False


def _commit(name: str, revision: str | None) -> str:
    import huggingface_hub  # half a second that folders need not wait for

    from .hub import said_of  # it needs the former

    try:
        return str(huggingface_hub.HfApi().model_info(name, revision=revision).sha)
    except Exception as error:  # every transport has its own classes of failure
        raise CheckpointError(said_of(error, name, revision)) from error


def _between(name: str, first: str, last: str) -> list[Snapshot]:
    """Revisions whose names differ from these only in their number, sorted by it."""
    ends = [_NUMBERED.fullmatch(end) for end in (first, last)]
    if ends[0] is None or ends[1] is None or _frame(ends[0]) != _frame(ends[1]):
        raise InputError(
            "The ends of a range of revisions must differ only by their number, like step0..step1000; got "
            f"{first} and {last}. Name the revisions one by one."
        )
    low, high = int(ends[0]["number"]), int(ends[1]["number"])
    numbered = []
    for revision, commit in _revisions(name).items():
        match = _NUMBERED.fullmatch(revision)
        if match and _frame(match) == _frame(ends[0]) and low <= int(match["number"]) <= high:
            numbered.append((int(match["number"]), revision, commit))
    there = {revision for _, revision, _ in numbered}
    lacking = [end for end in (first, last) if end not in there]
    if lacking:
        raise CheckpointError(f'The revision "{lacking[0]}" does not exist in "{name}". Name revisions that exist.')
    return [Snapshot(f"{name}@{revision}", f"{name}@{commit}") for _, revision, commit in sorted(numbered)]


def _frame(match: re.Match[str]) -> tuple[str, str]:
    return match["before"], match["after"]


def _revisions(name: str) -> dict[str, str]:
    """Branches and tags of a repository with their commits; offline, the downloaded ones."""
    import huggingface_hub  # half a second that folders need not wait for

    from .hub import said_of  # it needs the former

    if config.settings().offline:
        refs = Path(huggingface_hub.constants.HF_HUB_CACHE) / f"models--{name.replace('/', '--')}" / "refs"
        files = sorted(refs.rglob("*")) if refs.is_dir() else []
        return {
            str(file.relative_to(refs)): file.read_text(encoding="utf-8").strip() for file in files if file.is_file()
        }
    try:
        refs_of = huggingface_hub.HfApi().list_repo_refs(name)
    except Exception as error:
        raise CheckpointError(said_of(error, name, None)) from error
    return {ref.name: ref.target_commit for ref in (*refs_of.branches, *refs_of.tags)}
