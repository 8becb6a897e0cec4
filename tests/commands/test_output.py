"""Rows in every form, and a study from the terminal: as a job, while the app holds the file, stopped and continued."""

import csv as csv_module
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

import core.__main__
from core.commands import output, parameters
from core.errors import InputError, JobError
from core.jobs import api
from core.jobs.executors import JobPlacement
from core.store import exchange, jobs, runs
from core.store.database import Database

ROOT = Path(__file__).resolve().parents[2]
TINY = "tests.jobs.tiny"
SLOW = ("pandas", "scipy", "torch", "transformers", "sklearn")
LOADED = f"import sys; print([name for name in {SLOW} if name in sys.modules])"
ROWS = [
    {"head": "L1H2", "value": 0.123456, "note": 'a & b_c, "d"'},
    {"head": "L2H1", "value": None, "note": "\x1b[31mred"},
]


def command(*arguments, database, **environment):
    return subprocess.run(
        [sys.executable, "-m", "core", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "ATLAS_DB": str(database), "ATLAS_WORKERS": "1", **environment},
    )


def here(*arguments, database):
    """The same in this process: what it printed. Errors meant for people are raised."""
    done = CliRunner().invoke(
        core.__main__.app, [*map(str, arguments)], env={"ATLAS_DB": str(database), "ATLAS_WORKERS": "1"}
    )
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.stdout


def test_json_is_one_object(capsys):
    output.show_rows("heads", {"seed": 3}, ROWS, "json")
    assert json.loads(capsys.readouterr().out) == {"study": "heads", "provenance": {"seed": 3}, "rows": ROWS}


def test_a_table_says_too_few_where_no_p_could_be_given(capsys):
    rows = [
        {"head": "L1H1", "q": 0.02},
        {"head": "L1H2", "q": None},
        {"head": "L1H3", "q": float("nan")},
        {"head": "x"},
    ]
    output.show_rows("features", {}, rows)
    lines = capsys.readouterr().out.splitlines()
    said = {name: next(line for line in lines if name in line) for name in ("L1H1", "L1H2", "L1H3", "x ")}
    assert ["too few" in said[name] for name in ("L1H1", "L1H2", "L1H3", "x ")] == [False, True, True, False]


def test_a_table_has_no_interval_of_few_flips_and_json_keeps_it(capsys):
    ends = {"accuracy_change": 0.25, "accuracy_low": -0.125, "accuracy_high": 0.5, "low": -0.125, "high": 0.5}
    rows = [{"name": "L1H1", **ends, "flipped": 4, "n": 60}, {"name": "L1H2", **ends, "flipped": 5, "n": 60}]
    output.show_rows("disable", {}, rows)
    said = {line.split()[1]: line for line in capsys.readouterr().out.splitlines() if "L1H" in line}
    assert said["L1H1"].count("too few flips") == 4
    assert "-0.125" not in said["L1H1"]
    assert "0.25" in said["L1H1"]
    assert said["L1H2"].count("-0.125") == 2
    output.show_rows("disable", {}, rows, "json")
    assert json.loads(capsys.readouterr().out)["rows"] == rows


def test_csv_reads_back(capsys):
    output.show_rows("heads", {}, ROWS, "csv")
    first, second = csv_module.DictReader(io.StringIO(capsys.readouterr().out))
    assert first == {"head": "L1H2", "value": "0.123456", "note": 'a & b_c, "d"'}
    assert second["value"] == ""


def test_latex_escapes_what_latex_would_read(capsys):
    output.show_rows("heads", {}, ROWS, "latex")
    said = capsys.readouterr().out
    assert r"\toprule" in said
    assert r"a \& b\_c" in said
    assert "0.1235" in said


def test_a_table_spells_out_what_would_steer_a_terminal_and_is_not_cut_when_piped(capsys):
    wide = [{f"column_{k}": "x" * 20 for k in range(12)}]
    output.show_rows("heads", {"seed": 3, "task": "sst2"}, [*ROWS], "table")
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert r"\x1b[31mred" in said
    assert "task sst2 · seed 3" in said
    output.show_rows("wide", {}, wide, "table")
    assert ("x" * 20) in capsys.readouterr().out


def test_one_form_at_a_time():
    assert parameters.form_typed({"latex": True}) == "latex"
    with pytest.raises(InputError, match="Only one output format can be given; got --json and --csv"):
        parameters.form_typed({"as_json": True, "csv": True})


@pytest.mark.thorough
def test_a_study_run_from_the_terminal_is_stored_and_quiet_when_piped(tmp_path):
    database = tmp_path / "atlas.duckdb"
    done = command("jobs", "start", TINY, "--set", "count=3", "--json", database=database)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    said = json.loads(done.stdout)
    assert said["rows"] == [{"n": 3, "total": 5, "thirds": 1.0}]
    db = Database(database)
    assert runs.one_run(db, said["provenance"]["run"])["weights_hash"] == "w7"
    db.close()


@pytest.mark.slow  # 3 CPU seconds, a process; in this process in test_terminal_inputs.py
def test_a_wrong_option_is_one_sentence_and_status_2(tmp_path):
    done = command("jobs", "start", TINY, "--set", "conut=3", database=tmp_path / "atlas.duckdb")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.strip().count("\n") == 0
    assert "got 'conut'" in done.stderr


@pytest.mark.thorough
def test_while_the_app_holds_the_file_the_work_is_done_and_can_be_imported(tmp_path):
    db = Database(tmp_path / "atlas.duckdb")
    done = command("jobs", "start", TINY, "--set", "count=3", "--csv", database=db.path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["n,total,thirds", "3,5,1.0"]
    assert f"process {os.getpid()}" in done.stderr
    (file,) = exchange.waiting_runs(db)["file"]
    assert file in done.stderr
    run = exchange.import_run(db, Path(file))
    assert runs.run_rows(db, run) == [{"n": 3, "total": 5, "thirds": 1.0}]
    assert [path.suffix for path in exchange.runs_folder(db.path).iterdir()] == [".jsonl"]  # its own file is gone
    db.close()


@pytest.mark.slow  # 4 and 6 CPU seconds; tests/jobs resumes stopped jobs
@pytest.mark.parametrize("held", [False, True])
def test_a_command_stopped_by_ctrl_c_goes_on_when_given_again(tmp_path, held):
    folder, database = tmp_path / "marks", tmp_path / "atlas.duckdb"
    folder.mkdir()
    holder = Database(database) if held else None
    arguments = ["jobs", "start", TINY, "--set", "count=8", "--set", "seconds=0.2", "--set", f"folder={folder}"]
    process = subprocess.Popen(
        [sys.executable, "-m", "core", *arguments],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "ATLAS_DB": str(database), "ATLAS_WORKERS": "1"},
    )
    end = time.monotonic() + 60
    while len(list(folder.glob("ran-*"))) < 4:
        assert time.monotonic() < end
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "same command again" in said
    again = command(*arguments, "--json", database=database)
    assert "Resuming job" in again.stderr
    assert json.loads(again.stdout)["rows"][0]["n"] == 8
    assert sum(len(mark.read_text().split()) for mark in folder.glob("ran-*")) <= 9  # only the one in the middle twice
    if holder:
        holder.close()


@pytest.mark.thorough
def test_jobs_are_listed_shown_cancelled_and_resumed(tmp_path):
    database = tmp_path / "atlas.duckdb"
    with Database(database) as db:
        job = jobs.add_job(db, TINY, "Squares", {"count": 2})
    listed = json.loads(here("jobs", "list", "--json", database=database))
    assert [(row["job"], row["state"]) for row in listed["rows"]] == [(job, "interrupted")]
    assert "resume" in here("jobs", "cancel", job, database=database)
    done = here("jobs", "resume", job, "--json", database=database)
    assert json.loads(done)["rows"] == [{"n": 2, "total": 1, "thirds": pytest.approx(1 / 3)}]
    shown = json.loads(here("jobs", "show", job, "--json", database=database))
    assert [row["state"] for row in shown["rows"]] == ["done", "done"]
    for verb in ("resume", "cancel", "show"):
        with pytest.raises(JobError, match="must be listed on the Jobs page; got 'nope'"):
            here("jobs", verb, "nope", database=database)
    with pytest.raises(JobError, match="this job is done"):
        here("jobs", "cancel", job, database=database)


@pytest.mark.thorough
def test_a_job_that_runs_in_the_app_is_cancelled_from_the_terminal(tmp_path):
    with Database(tmp_path / "atlas.duckdb") as db:
        keeper = api.runner(db, JobPlacement(workers=1))
        job = api.start(db, TINY, {"count": 1, "seconds": 600})
        done = command("jobs", "cancel", job, database=db.path)
        assert (done.returncode, done.stderr) == (0, "")
        assert api.wait(db, job, 10).state == "cancelled"
        keeper.close()


def test_a_job_that_fails_raises_its_own_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    with pytest.raises(
        JobError, match=r"1 of 2 units of work failed\. The first error is: ValueError: unit 1 is unlucky"
    ):
        output.ran(TINY, {"count": 2, "fail": [1], "folder": str(tmp_path)}, where=JobPlacement(1))


def test_export_and_import_from_the_terminal(tmp_path):
    database, folder = tmp_path / "atlas.duckdb", tmp_path / "out"
    with Database(database) as db:
        runs.record_run(db, "heads", {}, runs.Provenance(task="sst2"))
    here("export", folder, database=database)
    done = here("import", folder, "--json", database=tmp_path / "new.duckdb")
    assert {"table": "run", "rows": 1} in json.loads(done)["rows"]
    with pytest.raises(InputError, match="new or empty"):
        here("export", folder, database=database)


def test_a_command_starts_without_what_only_some_of_them_need():
    script = (
        "import sys, core.__main__\n"
        "slow = {'torch', 'transformers', 'spacy', 'sklearn', 'scipy.stats', 'statsmodels'} & set(sys.modules)\n"
        "assert not slow, f'{sorted(slow)} came in with the start'\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "form", ["--json", *(pytest.param(form, marks=pytest.mark.slow) for form in ("--csv", "--latex", None))]
)  # a process each
def test_a_reader_that_leaves_early_is_a_status_of_its_own(tmp_path, form):
    Database(tmp_path / "atlas.duckdb").close()
    read, write = os.pipe()
    os.close(read)  # as `| head` does once it has its lines
    words = [sys.executable, "-m", "core", "jobs", "list", *([form] if form else [])]
    environment = os.environ | {"ATLAS_DB": str(tmp_path / "atlas.duckdb")}
    done = subprocess.run(
        words, cwd=ROOT, env=environment, stdout=write, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")
    guide = (ROOT / "docs" / "how-to" / "terminal.md").read_text(encoding="utf-8")
    assert f" {done.returncode} " in guide.replace("\n", " ")


def test_memory_that_is_not_there_is_a_sentence(monkeypatch, capsys):
    def run():
        raise MemoryError

    monkeypatch.setattr(core.__main__, "app", run)
    monkeypatch.setattr(sys, "argv", ["core"])
    with pytest.raises(SystemExit) as end:
        core.__main__.main()
    assert end.value.code == 2
    assert "more memory than is free" in capsys.readouterr().err


def test_ctrl_c_before_a_command_is_imported_imports_nothing_for_its_message():
    code = (
        "import sys, core.__main__ as m\n"
        "m.app, sys.argv = lambda: sys.exit(130), ['core']\n"
        "try:\n    m.main()\nfinally:\n    print('core.commands.output' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "False\n", f"{core.__main__.STOPPED}\n")


READS = """
import sys, threading, time
from core.store.database import Database

db, has_read = Database(sys.argv[1]), threading.Event()

def read():
    cursor = db.cursor().execute("SELECT 1")
    has_read.set()
    time.sleep(600)

threading.Thread(target=read, daemon=True).start()
has_read.wait()
try:
    print(1, flush=True)  # inside: the key may be pressed before the next line runs
    time.sleep(600)
except KeyboardInterrupt:
    print("a sentence", file=sys.stderr)
"""


def test_ctrl_c_while_a_thread_reads_says_what_we_say_and_nothing_of_the_binding(tmp_path):
    words = [sys.executable, "-c", READS, str(tmp_path / "atlas.duckdb")]
    with subprocess.Popen(words, cwd=ROOT, stdout=-1, stderr=-1, text=True) as process:
        assert process.stdout.readline() == "1\n"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (0, "a sentence\n")


@pytest.mark.thorough
@pytest.mark.parametrize("words", [["--help"], ["--version"], ["nonsense"]])
def test_the_list_of_commands_imports_no_slow_package(words):
    run = f"import sys; sys.argv = ['core', *{words}]\nfrom core.__main__ import main\ntry:\n    main()\nfinally:\n    "
    done = subprocess.run([sys.executable, "-c", run + LOADED], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]", done.stdout + done.stderr


@pytest.mark.thorough
@pytest.mark.parametrize("command", ["heads", "maps"])
def test_a_command_that_opens_a_checkpoint_imports_no_slow_package_of_its_own(command):
    code = f"import core.commands.{command}\n{LOADED}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_the_list_of_commands_has_the_first_sentence_of_each_command():
    commands = get_command(core.__main__.app).commands
    firsts = {name: " ".join((found.help or "").split("\n\n")[0].split()) for name, found in commands.items()}
    assert firsts == {name: sentence for name, (_, sentence) in core.__main__.COMMANDS.items()}
