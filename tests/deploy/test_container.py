"""The image is what docs/how-to/deploy.md says: its command and health check run here on files that cannot be written.

Built and run where a container engine answers (`.ci/container`); elsewhere that says so.
"""

import json
import os
import re
import shutil
import subprocess
import sys
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
    assert "_stcore/health" in DOCKERFILE
    assert "ATLAS_DB=/data/atlas.duckdb" in DOCKERFILE


def test_the_head_of_a_space_names_the_port_that_the_image_serves():
    """Hugging Face reads it from the README of the Space."""
    deploy = (PROJECT / "docs" / "how-to" / "deploy.md").read_text()
    head = yaml.safe_load(re.search(r"```yaml\n---\n(.*?)---\n```", deploy, re.DOTALL)[1])
    port = re.search(r"^EXPOSE (\d+)$", DOCKERFILE, re.MULTILINE)[1]
    assert head == {"title": "Attention Atlas", "sdk": "docker", "app_port": int(port)}
    assert f"--server.port={port}" in DOCKERFILE


def test_the_development_container_installs_what_the_tests_need():
    made = json.loads((PROJECT / ".devcontainer" / "devcontainer.json").read_text())
    assert "python:3.11" in made["image"]
    assert "pip install -r requirements.txt -r tests/requirements.txt" in made["postCreateCommand"]
    ci = (PROJECT / ".ci" / "run").read_text()
    for package in ("chromium", "fonts-noto-core", "nginx-light"):
        assert package in made["postCreateCommand"]
        assert package in ci
    assert made["forwardPorts"] == [int(re.search(r"^EXPOSE (\d+)$", DOCKERFILE, re.MULTILINE)[1])]


def instruction(name: str) -> str:
    """The last instruction of this name, its lines joined."""
    return re.findall(rf"^{name} (.*)$", DOCKERFILE.replace("\\\n", " "), re.MULTILINE)[-1]


def test_the_commands_of_the_docs_name_what_the_image_has():
    deploy = (PROJECT / "docs" / "how-to" / "deploy.md").read_text()
    run = re.search(r"docker run (.*)", deploy)[1]
    assert f":{instruction('EXPOSE')} " in run
    assert f":{instruction('VOLUME')} " in run
    assert "docker exec atlas python -m core backup /data/" in " ".join(deploy.split())
    assert "--name atlas" in run
    assert "--build-arg TORCH_INDEX=" in " ".join(deploy.split())
    assert "ARG TORCH_INDEX=" in DOCKERFILE
    kept_out = (PROJECT / ".dockerignore").read_text().split()
    assert {".git", "data/runs", "data/atlas.duckdb*", ".streamlit/secrets.toml"} <= set(kept_out)


OPENS = "from core.config import settings; from core.store.database import Database; Database(settings().database)"
READ_ONLY = ["setpriv", "--bounding-set=-dac_override", "--inh-caps=-dac_override"]  # root may otherwise write anywhere


def cannot_be_held_back() -> bool:
    """Whether this is a root that files without the right to write do not stop."""
    if os.geteuid() != 0:
        return False
    return shutil.which("setpriv") is None or subprocess.run([*READ_ONLY, "true"], check=False).returncode != 0


@pytest.mark.thorough
@pytest.mark.skipif(cannot_be_held_back(), reason="this root cannot drop its right to write anywhere (setpriv)")
def test_the_images_command_runs_on_files_it_cannot_write_and_its_health_check_passes(tmp_path):
    """Without an engine: the same command, environment and health check; the volume is a folder."""
    app, data, port = tmp_path / "app", tmp_path / "data", free_port()
    data.mkdir()
    for name in ("core", "pages", "data", ".streamlit"):
        shutil.copytree(PROJECT / name, app / name, ignore=shutil.ignore_patterns("runs", "*.duckdb*"))
    shutil.copy(PROJECT / "app.py", app)
    subprocess.run(["chmod", "-R", "a-w", str(app)], check=True)
    made = dict(one.split("=", 1) for one in instruction("ENV").split())
    environment = os.environ | {name: value.replace("/data", str(data)) for name, value in made.items()}
    environment |= {"STREAMLIT_SERVER_BASE_URL_PATH": "atlas", "HF_HUB_OFFLINE": "1"}
    given = READ_ONLY if os.geteuid() == 0 else []
    command = [re.sub("address=.*", "address=127.0.0.1", word) for word in json.loads(instruction("CMD"))]
    command = [word.replace("8501", str(port)) for word in command]
    check = json.loads(re.search(r"CMD (\[.*\])", instruction("HEALTHCHECK"))[1])
    check = [word.replace("8501", str(port)) for word in check]
    refused = subprocess.run([*given, "touch", str(app / "new")], capture_output=True, check=False)
    assert refused.returncode != 0
    with (
        (tmp_path / "log").open("w") as log,
        subprocess.Popen(
            [*given, sys.executable, "-m", *command], cwd=app, env=environment, stdout=log, stderr=subprocess.STDOUT
        ) as server,
    ):
        try:
            until(lambda: server.poll() is not None or answers(f"http://127.0.0.1:{port}/atlas"))
            assert server.poll() is None, (tmp_path / "log").read_text()
            subprocess.run([sys.executable, *check[1:]], env=environment, check=True)
            opens = [*given, sys.executable, "-c", OPENS]
            opened = subprocess.run(opens, cwd=app, env=environment, capture_output=True, text=True, check=False)
        finally:
            server.terminate()
    assert opened.returncode == 0, opened.stderr
    assert (data / "atlas.duckdb").is_file()
    assert "Traceback" not in (tmp_path / "log").read_text()


@pytest.mark.parametrize(
    ("engine", "said"),
    [
        ("", "was not built or run here"),
        ("exit 1", "its service does not answer"),
        ('[ "$1" = info ]', "python:3.11-slim-bookworm cannot be fetched"),
    ],
    ids=["no engine", "no service", "no base image"],
)
def test_ci_says_where_no_image_can_be_built(tmp_path, engine, said):
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "dirname", "sed", "timeout", "python3"):
        (tools / name).symlink_to(shutil.which(name))
    if engine:
        (tools / "docker").write_text(f"#!/usr/bin/env bash\n{engine}\n")
        (tools / "docker").chmod(0o755)
    done = subprocess.run(
        [str(tools / "bash"), str(PROJECT / ".ci" / "container")],
        env={"PATH": str(tools)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert said in done.stdout
    assert "tests/deploy tries its command" in done.stdout
    assert ".ci/container" in (PROJECT / ".ci" / "run").read_text()


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
