"""The wheel and the source distribution, installed into fresh environments outside the clone, and used as people do.

The environments see the packages of this one through a .pth file, because torch and its libraries alone are gigabytes;
that every requirement is declared is checked against requirements.txt in test_layout.py.
"""

import contextlib
import csv
import os
import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from core import __version__, config
from core.store import labels
from core.store.database import Database
from tests.pages.browsing import answers, browsing, free_port, named, until, visit
from tests.pages.test_label_browser import all_saved, fill, open_sheet

pytestmark = [pytest.mark.slow, pytest.mark.browser]
PROJECT = config.PROJECT
MOST_BYTES = 60_000_000
PATIENCE = 400  # seconds for a process that imports torch on a busy machine
FOREIGN = "raise RuntimeError('a module of the working folder was imported')\n"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder with the wheel and the source distribution, built by `python -m build` without a network."""
    folder = tmp_path_factory.mktemp("dist")
    for kind in ("--sdist", "--wheel"):
        command = [sys.executable, "-m", "build", "--no-isolation", kind, "--outdir", str(folder), str(PROJECT)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return folder


def distribution(built, ending):
    (found,) = built.glob(f"attention_atlas-{__version__}*{ending}")
    return found


class Installed:
    """An environment with the package, and a user's home and working folder with a foreign `core.py` and `pages.py`."""

    def __init__(self, folder, file):
        self.folder, self.file = folder, file
        self.work, self.home = folder / "work", folder / "home"
        self.work.mkdir()
        self.home.mkdir()
        for name in ("core.py", "pages.py"):
            (self.work / name).write_text(FOREIGN)
        venv.create(folder / "venv", with_pip=False, symlinks=True)
        self.bin = folder / "venv" / "bin"
        self.packages = next((folder / "venv" / "lib").glob("python3*/site-packages"))
        (self.packages / "of_the_tests.pth").write_text(sysconfig.get_path("purelib") + "\n")
        left_out = ("ATLAS_", "XDG_", "PYTHON")
        self.settings = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
        self.settings |= {"HOME": str(self.home), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
        self.install()

    @property
    def package(self):
        return self.packages / "attention_atlas"

    @property
    def database(self):
        return self.home / ".local" / "share" / "attention-atlas" / "atlas.duckdb"

    def install(self):
        command = [str(self.bin / "python"), "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation",
                   "--no-index", "--force-reinstall", "--ignore-installed", str(self.file)]  # fmt: skip
        subprocess.run(command, check=True, env=self.settings, cwd=self.work)

    def run(self, *words, program="attention-atlas"):
        done = subprocess.run(
            [str(self.bin / program), *words], capture_output=True, text=True, check=False, env=self.settings,
            cwd=self.work, timeout=PATIENCE,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        return done.stdout

    def files(self):
        every = (file for file in self.package.rglob("*") if "__pycache__" not in file.parts and file.is_file())
        return {str(file.relative_to(self.package)): file.stat().st_mtime_ns for file in every}

    @contextlib.contextmanager
    def app(self, *command, **environment):
        """The address of the app, started by `command`; `{port}` in it is a free port."""
        port, log = free_port(), self.folder / "app.log"
        words = [word.replace("{port}", str(port)) for word in command]
        with log.open("w") as output:
            settings = self.settings | environment
            server = subprocess.Popen(words, cwd=self.work, env=settings, stdout=output, stderr=output)
        address = f"http://127.0.0.1:{port}"
        try:
            until(lambda: answers(address) or server.poll() is not None, seconds=PATIENCE)
            assert server.poll() is None, log.read_text()[-2000:]
            yield address
        finally:
            server.terminate()
            server.wait(60)


@pytest.fixture(scope="module", params=["whl", "tar.gz"])
def installed(request, built, tmp_path_factory):
    return Installed(tmp_path_factory.mktemp("installed"), distribution(built, request.param))


def test_the_wheel_adds_one_name_and_is_small(built):
    wheel = distribution(built, ".whl")
    assert wheel.stat().st_size <= MOST_BYTES
    with zipfile.ZipFile(wheel) as archive:
        about = f"attention_atlas-{__version__}.dist-info"
        record = list(csv.reader(archive.read(f"{about}/RECORD").decode().splitlines()))
        assert {Path(name).parts[0] for name, *_ in record} == {"attention_atlas", about}
        names = {name.removeprefix("attention_atlas/") for name, *_ in record}
    assert {"__init__.py", "__init__.pyi", "app.py", "py.typed", ".streamlit/config.toml"} <= names
    assert not any(name.startswith(("data/recipes", "tests")) for name in names)


def test_the_source_distribution_has_what_a_build_and_a_reader_need(built):
    names = subprocess.run(
        ["tar", "tzf", distribution(built, ".tar.gz")], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    inside = {name.partition("/")[2] for name in names}
    assert {"pyproject.toml", "README.md", "LICENSE", "SECURITY.md", "docs/index.md", "tests/conftest.py"} <= inside


def test_commands_notebook_and_worker_processes_beside_a_foreign_core(installed):
    before = installed.files()
    assert installed.run("--version") == f"attention-atlas {__version__}\n"
    assert "--install-completion" in installed.run("--help")
    assert installed.run("check", "atlas-encoder").count("passed") == 6
    readme = re.search(r"```python\n(.+?)```", (PROJECT / "README.md").read_text(), re.DOTALL)[1]
    code = re.sub(r"^from core import notebook as atlas\b[^\n]*", "import attention_atlas as atlas", readme)
    assert code != readme
    code += "\nimport sys\nassert not {'core', 'pages', 'streamlit'} & set(sys.modules)\nprint(scores.shape)\n"
    code += "print(atlas.study('statistics', model, task='sst2', limit=4, progress=False).shape)\n"
    first, second = installed.run("-c", code, program="python").splitlines()[-2:]
    assert first == "(180, 9)"
    assert second.startswith("(")
    said = installed.run("study", "statistics", "atlas-encoder", "--limit", "4", "--workers", "2", "--csv")
    assert said.startswith("checkpoint,") or "checkpoint" in said.splitlines()[0]
    assert installed.database.is_file()
    assert installed.files() == before  # nothing is written beside the program


def test_the_app_runs_as_a_process_of_its_own_and_labels_outlive_a_reinstallation(installed):
    before = installed.files()
    if not installed.database.is_file():
        installed.database.parent.mkdir(parents=True, exist_ok=True)
    fill(installed.database.parent)
    code = "from attention_atlas.core.commands.app import app_command; print(*app_command(8501, None), sep='\\n')"
    command = installed.run("-c", code, program="python").splitlines()
    assert command[0] == str(installed.bin / "python")
    command = [word.replace("8501", "{port}") for word in command]
    with installed.app(*command, PYTHONPROFILEIMPORTTIME="1") as address, browsing() as browser:
        page = browser.new_page()
        visit(page, address)
        named(page)
        root = open_sheet(page, address)
        page.keyboard.press("1")
        all_saved(root, 1)
    imports = (installed.folder / "app.log").read_text()
    assert "core.config" in imports
    assert "attention_atlas" not in imports
    installed.install()
    with installed.app(str(installed.bin / "attention-atlas"), "app", "--port", "{port}") as address:
        assert answers(address)
    with Database(installed.database) as db:
        assert labels.labels(db, "bert")["annotator"].tolist() == ["ada"]
    assert installed.files().keys() == before.keys()


def test_a_clone_starts_by_python_too_with_the_limits_of_the_server(tmp_path):
    port, log = free_port(), tmp_path / "app.log"
    settings = os.environ | {"STREAMLIT_SERVER_PORT": str(port), "ATLAS_DB": str(tmp_path / "atlas.duckdb")}
    with log.open("w") as output:
        server = subprocess.Popen([sys.executable, "app.py"], cwd=PROJECT, env=settings, stdout=output, stderr=output)
    try:
        until(lambda: answers(f"http://127.0.0.1:{port}") or server.poll() is not None, seconds=PATIENCE)
        assert server.poll() is None, log.read_text()[-2000:]
        assert "Limits: " in log.read_text()
    finally:
        server.terminate()
        server.wait(60)
