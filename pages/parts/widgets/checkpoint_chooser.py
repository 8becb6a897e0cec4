"""The checkpoints on this machine, the field that chooses one, and the line that confirms and follows a download."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

import streamlit as st

from core import config
from core.errors import CheckpointError
from core.models import fetching
from core.models.config_files import read_config
from core.models.present import downloaded_names
from core.tuning.saved_checkpoints import shown_folder
from pages.parts.shell import people, resources
from pages.parts.shell.messages import plain, short_names


def checkpoint_names() -> list[str]:
    """Return the checkpoints on this machine: bundled and packaged ones by name, then folders from jobs, then the hub
    cache."""
    bundled = [folder.name for folder in _checkpoints_under(config.BUNDLED_MODELS)]
    return [*bundled, *config.packaged_checkpoints(), *tuned_folders(), *downloaded_names()]


def tuned_folders() -> list[str]:
    return [shown_folder(folder) for folder in _checkpoints_under(config.settings().runs)]


def _checkpoints_under(folder: Path) -> list[Path]:
    return sorted(
        file.parent
        for file in folder.glob("**/config.json")
        if file.parent.suffix not in {".part", ".old"} and _names_a_model(file, file.stat().st_mtime_ns)
    )


@lru_cache(maxsize=256)
def _names_a_model(file: Path, modified: int) -> bool:
    try:
        return bool(read_config(file.parent, file.parent.name))
    except CheckpointError:
        return False


# ---------------------------------------------------------------- the field


OTHER = "another model"
OTHER_LABEL = "another model · type a hub name or the path of a folder"
SEP = " · "
HELP = (
    "A bundled checkpoint, one on this machine, or a published model. You can also type a hub name "
    "(owner/name or owner/name@revision) or the path of a folder with config.json and safetensors, and press Enter."
)
SECONDS = 0.5  # between two looks at a download


def labels_of(names: Sequence[str], current: str | None) -> dict[str, str]:
    """Return the label of each name in the list: kind, layers x heads, licence and download size."""
    shorts, known = short_names(names), {choice.name: choice for choice in fetching.choices(tuned_folders())}
    labels = {OTHER: OTHER_LABEL}
    for name in names:
        choice, called = known.get(name), shorts[name]
        if choice is not None and choice.kind == fetching.REAL:
            called = _called(name)
        told = [] if choice is None or name == current else [choice.kind, choice.detail]
        labels[name] = SEP.join([called, *filter(None, told)])
    return labels


def meant(value: str | None, names: Sequence[str]) -> str | None:
    """Return the name that a user typed or chose; browsers may send its earlier label."""
    if not value or value in names or value == OTHER:
        return value
    first = value.partition(SEP)[0].strip()
    if first == OTHER:
        return OTHER
    shorts = short_names(names)
    known = next((name for name in names if shorts[name] == first), None) or fetching.resolved(first)
    if known in names or not fetching.can_download(known):
        return known
    begun = {name for name in names for called in (shorts[name], _called(name)) if called.startswith(first)}
    return begun.pop() if len(begun) == 1 else known  # "bert-base" and Enter is the only one that begins so


def _called(name: str) -> str:
    model = fetching.real_model(name)
    return model.name if model is not None else name


def pick(
    label: str,
    key: str,
    usual: str,
    names: Sequence[str],
    *,
    help: str = HELP,
    width: Callable[[str], int],
    called: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Show a field with `names`, the published models and an entry for others; the session has a value for `key`.

    `called` has other labels of some names.
    """
    every = list(dict.fromkeys([*names, *(model.chosen for model in fetching.REAL_MODELS)]))
    value = meant(st.session_state.get(key), every)
    if value != st.session_state.get(key):
        st.session_state[key] = value
    every = list(dict.fromkeys([*every, *([value] if value else []), OTHER]))
    labels = labels_of([name for name in every if name != OTHER], value or usual) | dict(called)
    chosen = st.selectbox(
        label, every, key=key, help=help, accept_new_options=True, label_visibility="collapsed",
        format_func=lambda name: labels.get(name, name), width=width(labels.get(value or usual, usual)),
    )  # fmt: skip
    return meant(chosen, every) or usual


# ---------------------------------------------------------------- a checkpoint that is not on this machine


def is_wanted(name: str) -> bool:
    """Return whether something must be typed or downloaded before the checkpoint can be opened."""
    return name == OTHER or fetching.can_download(name)


def offer(name: str, key: str, former: str | None) -> None:
    """Ask before a download, show its progress, or why it failed. "Not now" returns to `former`."""
    with st.container(border=True, horizontal=True, vertical_alignment="center", key=f"fetch_{key}"):
        if name == OTHER:
            _type_other(key, former)
            return
        fetch = fetching.fetch_of(name)
        if fetch is not None and fetch.active:
            st.fragment(_watch, run_every=SECONDS)(name)
        elif config.settings().offline:
            st.markdown(f":material/cloud_off: {plain(resources.hub().without_network(name))}")
            _back(key, former)
        elif not people.person().may("admin"):
            st.markdown(
                f":material/cloud_download: **{plain(name)}** is not on this machine. Only an administrator of this "
                "app may download it."
            )
            _back(key, former)
        else:
            model = fetching.real_model(name)
            called = f"**{plain(_called(name))}**"
            facts = f" ({plain(model.licence)}, {fetching.megabytes(model.size)})" if model else ""
            verb = "Download"
            if fetch is not None and fetch.state == "failed":
                st.markdown(f":material/info: {plain(fetch.error)}")
                verb = "Try again"
            elif fetch is not None and fetch.state == "stopped":
                arrived = f" at {plain(fetch.doing)}" if fetch.doing else ""
                st.markdown(f":material/pause_circle: The download of {called} has been stopped{arrived}.")
                verb = "Continue"
            else:
                st.markdown(
                    f":material/cloud_download: {called}{facts} is not on this machine. Download it from the hub?"
                )
            st.button(verb, key=f"fetch_start_{key}", type="primary", on_click=_start, args=(name,))
            _back(key, former)


def _start(name: str) -> None:
    resources.database().person.must("admin", "download a checkpoint")
    resources.hub()
    fetching.start(name)


def _back(key: str, former: str | None) -> None:
    if former:
        st.button("Not now", key=f"fetch_back_{key}", on_click=_return_to, args=(key, former))


def _return_to(key: str, former: str) -> None:
    st.session_state[key] = former


def _type_other(key: str, former: str | None) -> None:
    typed = st.text_input(
        "Name of a checkpoint on the hub, or its folder", key=f"fetch_other_{key}", label_visibility="collapsed",
        placeholder="owner/name, owner/name@revision, or the path of a folder; press Enter",
    )  # fmt: skip
    if typed and typed.strip():
        del st.session_state[f"fetch_other_{key}"]
        st.session_state[f"_typed_{key}"] = fetching.resolved(typed.strip())
        st.rerun()
    _back(key, former)


def take_typed(key: str) -> None:
    """Choose a typed name as another model; called before the field is drawn."""
    if typed := st.session_state.pop(f"_typed_{key}", None):
        st.session_state[key] = typed


def _watch(name: str) -> None:
    fetch = fetching.fetch_of(name)
    if fetch is None or not fetch.active:
        st.rerun()
        return
    called = plain(_called(name))
    with st.container(horizontal=True, vertical_alignment="center"):
        doing = f"Downloading {called}: {plain(fetch.doing)}" if fetch.doing else f"Downloading {called} ..."
        st.progress(min(fetch.share, 1.0), text=doing if fetch.state == "running" else "Stopping ...")
        st.button(
            "Stop the download", key=f"fetch_stop_{name}", icon=":material/stop:", on_click=fetching.stop, args=(name,)
        )


def held(picked: Mapping[str, str], key: str, *, needs_weights: bool, none: str | None = None) -> str | None:
    """Return the checkpoint of the view: the chosen one or, until it is downloaded, the previous one.

    `needs_weights`: whether the view computes; views of stored results use the chosen name at once. `none` is the label
    of no checkpoint. None if the view cannot be drawn yet.
    """
    name, remembered = picked[key], f"_{key}_shown"
    former = st.session_state.get(remembered, none)
    if not is_wanted(name):
        st.session_state[remembered] = name
        fetching.forget(name)
        return name
    offer(name, key, former)
    if name != OTHER and not needs_weights:
        return name
    if former and former != none:
        st.caption(plain(f"Shown until then: {former}."))
    return former
