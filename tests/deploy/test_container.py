"""The image is what docs/deploy.md says; built and run where a container engine is there, else the test says so."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.pages.browsing import answers, free_port, until

PROJECT = Path(__file__).resolve().parents[2]
DOCKERFILE = (PROJECT / "Dockerfile").read_text()


def working_engine() -> str | None:
    """docker or podman, where its service answers; the command alone may be there without it."""
    for name in filter(shutil.which, ("docker", "podman")):
        if subprocess.run([name, "info"], capture_output=True, check=False, timeout=60).returncode == 0:
            return name
    return None


def test_the_image_runs_without_rights_checks_its_health_and_keeps_data_in_a_volume():
    lines = DOCKERFILE.splitlines()
    assert lines.index("USER atlas") < next(k for k, line in enumerate(lines) if line.startswith("CMD"))
    assert "VOLUME /data" in lines
    assert "HEALTHCHECK" in DOCKERFILE
    assert "/_stcore/health" in DOCKERFILE
    assert "ATLAS_DB=/data/atlas.duckdb" in DOCKERFILE


def test_the_head_of_a_space_names_the_port_that_the_image_serves():
    """Hugging Face reads it from the README of the Space."""
    deploy = (PROJECT / "docs" / "deploy.md").read_text()
    head = yaml.safe_load(re.search(r"```yaml\n---\n(.*?)---\n```", deploy, re.DOTALL)[1])
    port = re.search(r"^EXPOSE (\d+)$", DOCKERFILE, re.MULTILINE)[1]
    assert head == {"title": "Attention Atlas", "sdk": "docker", "app_port": int(port)}
    assert f"--server.port={port}" in DOCKERFILE


def test_the_development_container_installs_what_the_tests_need():
    made = json.loads((PROJECT / ".devcontainer" / "devcontainer.json").read_text())
    assert "python:3.11" in made["image"]
    assert "pip install -r requirements.txt -r tests/requirements.txt" in made["postCreateCommand"]
    assert "chromium" in made["postCreateCommand"]


@pytest.mark.slow  # builds an image: minutes, and gigabytes of downloads
def test_the_image_is_built_and_answers():
    engine = working_engine()
    if engine is None:
        pytest.skip("no container engine answers on this machine: neither docker nor podman")
    subprocess.run([engine, "build", "-t", "attention-atlas-test", "."], cwd=PROJECT, check=True)
    port = free_port()
    run = [engine, "run", "-d", "--rm", "-p", f"127.0.0.1:{port}:8501", "attention-atlas-test"]
    name = subprocess.run(run, capture_output=True, text=True, check=True).stdout.strip()
    try:
        until(lambda: answers(f"http://127.0.0.1:{port}"), seconds=180)
        who = subprocess.run([engine, "exec", name, "id", "-u"], capture_output=True, text=True, check=True).stdout
        assert who.strip() == "1000"
    finally:
        subprocess.run([engine, "stop", name], check=True)
