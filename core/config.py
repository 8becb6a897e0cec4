"""Where things are and what the environment says: the only place that reads `ATLAS_*` variables."""

import os
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
DATA = PROJECT / "data"
BUNDLED_MODELS = DATA / "models"
SAMPLES = DATA / "samples"
ANNOTATIONS = DATA / "annotations"

ENCODER, DECODER, ENGLISH = "atlas-encoder", "atlas-decoder", "atlas-english"


@dataclass(frozen=True)
class Settings:
    """What the environment chose.

    database: the DuckDB file. glue: a folder with GLUE's TSV folders, or None. framenet: a FrameNet
    release folder, or None. device: "auto", "cpu", "cuda" or "mps". workers: processes of local jobs.
    cluster: address of a Dask scheduler, or None. offline: never ask the hub.
    """

    database: Path
    glue: Path | None
    framenet: Path | None
    device: str
    workers: int
    cluster: str | None
    offline: bool


def _path(name: str) -> Path | None:
    value = os.environ.get(name)
    return Path(value).expanduser() if value else None


def settings() -> Settings:
    """Read the environment afresh, so that tests and the terminal's options can set it."""
    return Settings(
        database=_path("ATLAS_DB") or DATA / "atlas.duckdb",
        glue=_path("ATLAS_GLUE"),
        framenet=_path("ATLAS_FRAMENET"),
        device=os.environ.get("ATLAS_DEVICE", "auto"),
        workers=int(os.environ.get("ATLAS_WORKERS") or max(1, (os.cpu_count() or 2) // 2)),
        cluster=os.environ.get("ATLAS_CLUSTER") or None,
        offline=os.environ.get("HF_HUB_OFFLINE", "0") not in {"", "0"},
    )
