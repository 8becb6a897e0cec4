"""What people type by mistake, or stop: one sentence and exit status 2, or 130 after Ctrl-C, from every command."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from core.__main__ import app
from core.config import settings
from core.errors import InputError
from core.frames.records import place
from core.studies.attention.statistics import STUDY as STATISTICS
from core.studies.contract import read_options
from core.studies.tuning.finetune import STUDY as FINETUNE
from core.tasks.own import read_own
from tests.spread import one_in

ROOT = Path(__file__).resolve().parents[2]


def commands(group=None, path=()):
    """Every command with its words: (words, click command)."""
    for name, one in (group or typer.main.get_command(app)).commands.items():
        if hasattr(one, "commands"):
            yield from commands(one, (*path, name))
        else:
            yield (*path, name), one


SEEDED = [words for words, one in commands() if "--seed" in {opt for p in one.params for opt in p.opts}]


def test_there_are_commands_with_a_seed():
    assert len(SEEDED) > 15


# One wrong seed a command; that all of them are wrong is the type's, which the next test tries with a job.
WRONG = ["-1", *(pytest.param(seed, marks=pytest.mark.slow) for seed in (str(2**63), "1e3", "9" * 5000))]


@pytest.mark.parametrize("seed", WRONG)
@pytest.mark.parametrize("words", one_in(4, SEEDED), ids=" ".join)
def test_a_seed_that_cannot_be_is_refused_by_every_command_before_it_starts(words, seed):
    done = CliRunner().invoke(app, [*words, "--seed", seed])
    assert done.exit_code == 2
    assert "seed" in done.output.lower() or "Missing argument" in done.output
    assert not isinstance(done.exception, (ValueError, OverflowError))


@pytest.mark.parametrize("seed", [-1, 2**63, 10**400])
@pytest.mark.parametrize(
    ("study", "given"),
    [(STATISTICS, {"checkpoint": "atlas-encoder", "tasks": ["mrpc"]}), (FINETUNE, {"checkpoint": "atlas-encoder"})],
)
def test_neither_does_a_job_take_it(study, given, seed):
    name = "seeds" if study is FINETUNE else "seed"
    value = [seed] if study is FINETUNE else seed
    with pytest.raises(InputError, match=f"The option {name} of"):
        read_options(study.options, study.name, given | {"tasks": ["mrpc"], name: value})


def test_seeds_by_number_have_a_bound():
    with pytest.raises(InputError, match="at most 1000"):
        read_options(FINETUNE.options, "finetune", {"checkpoint": "atlas-encoder", "tasks": ["mrpc"], "seeds": 10**15})


@pytest.mark.parametrize("phrase", ["cat#²", "cat#①", "cat#٣", "cat#" + "9" * 5000, "cat#-1", "#", "cat#0"])
def test_an_occurrence_that_is_no_number_is_one_sentence(phrase):
    with pytest.raises(InputError, match=r"must be whole words of the sentence|must be from 1 to 2"):
        place("A cat saw a cat.", phrase)


def test_a_home_of_nobody_among_the_folders_is_one_sentence(monkeypatch):
    monkeypatch.setenv("ATLAS_FOLDERS", "~nobody-here")
    with pytest.raises(InputError, match="ATLAS_FOLDERS must list folders"):
        settings()


def test_a_task_file_that_loses_its_ending_through_a_link_is_one_sentence(tmp_path):
    (tmp_path / "rows").write_text("sentence,label\na,x\n")
    (tmp_path / "task.csv").symlink_to(tmp_path / "rows")
    with pytest.raises(InputError, match=r"must end in \.csv, \.tsv or \.jsonl; got rows"):
        read_own(str(tmp_path / "task.csv"))


def core(*arguments, **other):
    return subprocess.run(
        [sys.executable, "-m", "core", *arguments], cwd=ROOT, stderr=subprocess.PIPE, check=False, **other
    )


@pytest.mark.thorough
def test_half_characters_and_a_full_disk_are_one_sentence(tmp_path):
    half = core("jobs", "show", b"\xff\xfe", stdout=subprocess.PIPE)
    assert half.returncode == 2
    assert half.stderr.count(b"\n") == 1
    with open("/dev/full", "wb") as full:  # noqa: PTH123 - a device
        printed = core("jobs", "list", "--json", stdout=full, env=os.environ | {"ATLAS_DB": str(tmp_path / "a.duckdb")})
    assert printed.returncode == 2
    assert b"The output could not be written (No space left on device)" in printed.stderr
    assert b"Traceback" not in printed.stderr


def test_ctrl_c_while_modules_are_imported_is_one_sentence(tmp_path):
    """The first module that takes long stands for all: it interrupts its own process while it is imported."""
    (tmp_path / "typer.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nraise SystemExit(9)\n")
    done = core("jobs", "list", stdout=subprocess.PIPE, env=os.environ | {"PYTHONPATH": str(tmp_path)})
    assert done.returncode == 130
    assert done.stderr.count(b"\n") == 1
    assert done.stderr.startswith(b"Stopped")


@pytest.mark.slow  # 4 CPU seconds, a process; Ctrl-C of a job is in test_output.py
def test_ctrl_c_in_a_command_is_one_sentence_too(tmp_path):
    """`check` interrupts its own process where it would open the checkpoint."""
    script = (
        "import core.__main__ as m, core.models.opening as o, os, signal, sys\n"
        "o.open_checkpoint = lambda *a, **k: os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.argv = ['core', 'check', 'atlas-encoder']\n"
        "m.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 130
    assert done.stderr.count(b"\n") == 1
    assert b"Stopped" in done.stderr
