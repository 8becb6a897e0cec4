"""Fixtures that every part of the tests shares."""

import os
from pathlib import Path

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # no test may reach the hub
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # tests share the cores; tiny products on two threads wait for each other

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real corpora that developers have beside the checkout; a user's clone has none."""
    if not SHARED.is_dir():
        pytest.skip("the folder of real corpora (../shared/data) is not beside this checkout")
    return SHARED
