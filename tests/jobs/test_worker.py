"""What a worker does, called here: names, options, units, provenance, errors."""

import os
import pickle
import signal
import socket
import subprocess
import sys

import pytest

from core.config import code_version
from core.errors import JobError
from core.jobs import worker
from core.jobs.executors import JobPlacement, Pool
from core.jobs.remote import ByValue, perform_there
from core.studies import lookup
from core.studies.transport import decode
from tests.jobs.tiny import Squares, Tiny

TINY = "tests.jobs.tiny"


def test_names_lead_to_modules_and_to_nothing_else():
    assert lookup.module_of("draw-maps") == "core.studies.patterns.draw_maps"
    assert lookup.module_of(TINY) == TINY
    for name in ("", "a b", "../x", "os;x", "-a", "a..b", "a.", "a\nb", "a/b"):
        with pytest.raises(JobError, match="letters, digits and dashes"):
            lookup.module_of(name)


def test_a_missing_study_and_a_module_without_one_are_named():
    with pytest.raises(JobError, match="got 'no-such'"):
        lookup.find_study("no-such")
    with pytest.raises(JobError, match=r"core\.errors does not"):
        lookup.find_study("core.errors")


def test_a_study_whose_own_import_is_missing_is_not_called_missing(monkeypatch, tmp_path):
    (tmp_path / "needy_study.py").write_text("import nothing_of_this_name\n")
    (tmp_path / "needy").mkdir()
    (tmp_path / "needy" / "__init__.py").write_text("")
    (tmp_path / "needy" / "study.py").write_text("import nothing_of_this_name\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="nothing_of_this_name"):
        lookup.find_study("needy.study")


def test_dividing_completes_the_options_and_keeps_the_order():
    divided = worker.divide(TINY, {"count": 3})
    assert divided["options"]["seed"] == 3
    assert [unit["key"] for unit in divided["units"]] == ["square-0", "square-1", "square-2"]
    assert divided["units"][1] == {"key": "square-1", "size": 10, "arguments": {"k": 1}}


def test_every_unit_says_which_code_it_ran_on():
    options = worker.divide(TINY, {})["options"]
    done = worker.perform("unit", None, TINY, options, {"key": "square-2", "size": 10, "arguments": {"k": 2}})
    (row,) = done["rows"]
    squares = decode(Squares, row["partial"])
    assert (squares.k.tolist(), squares.square.tolist(), squares.third.tolist()) == ([2], [4], [2 / 3])
    assert done["provenance"] == {"weights_hash": "w7", "row_ids": ["r2"], "code_version": code_version()}
    assert done["seconds"] >= 0
    assert ":" in done["worker"]


def test_a_unit_knows_its_key_and_size(monkeypatch):
    given, run = [], Tiny.run
    monkeypatch.setattr(Tiny, "run", lambda self, options, unit: given.append(unit) or run(self, options, unit))
    worker.run_unit(TINY, {}, {"key": "square-2", "size": 10, "arguments": {"k": 2}})
    assert [(unit.key, unit.size, unit.arguments.k) for unit in given] == [("square-2", 10, 2)]


def test_a_machine_of_a_cluster_does_the_same_or_says_that_it_lacks_the_repository(monkeypatch):
    asked = ("divide", code_version(), TINY, {"count": 2})
    assert perform_there(*asked)["units"] == worker.perform(*asked)["units"]
    assert ByValue(perform_there)(*asked)["units"] == worker.perform(*asked)["units"]
    assert "Workers must run the same version of the code" in perform_there("divide", "0.0+other", TINY, {})["error"]
    travelled = pickle.loads(pickle.dumps(ByValue(perform_there)))  # noqa: S301 - our own
    monkeypatch.setitem(sys.modules, "core.jobs.worker", None)
    for perform in (perform_there, travelled):
        said = perform(*asked)
        assert said["error"].startswith(f"Workers need this program and its requirements; {socket.gethostname()} lacks")
        assert (said["seconds"], said["worker"]) == (0.0, socket.gethostname())


def test_a_worker_has_low_priority_and_is_deaf_to_ctrl_c(monkeypatch):
    niced, heard = [], []
    monkeypatch.setattr(os, "nice", niced.append)
    monkeypatch.setattr(signal, "signal", lambda *given: heard.append(given))
    monkeypatch.setattr(worker, "_watch", lambda parent: None)
    worker.prepare(os.getppid())
    assert niced == [10]
    assert heard == [(signal.SIGINT, signal.SIG_IGN)]


def test_an_exception_becomes_one_line(monkeypatch):
    monkeypatch.setattr(Tiny, "run", lambda self, options, unit: 1 / 0)
    done = worker.perform("unit", None, TINY, {}, {"key": "a", "size": 1, "arguments": {"k": 1}})
    assert done["error"] == "ZeroDivisionError: division by zero"


@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        ([], {}),
        ([{"device": "cpu"}, {"device": "cpu"}], {"device": "cpu"}),
        ([{"device": "cpu"}, {"device": "cuda"}], {"device": "cpu, cuda"}),
        ([{"row_ids": [1, 2]}, {"row_ids": [2, 3]}], {"row_ids": [1, 2, 3]}),
        ([{"seed": 1}, {"seed": 2}], {"seed": None}),
    ],
)
def test_provenance_of_many_units_becomes_one(parts, whole):
    assert worker.merged(parts) == whole


@pytest.mark.processes
def test_the_threads_of_a_worker_do_not_spin_for_each_other():
    pool = Pool(JobPlacement(workers=1, threads=2))
    try:
        names = ("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "TOKENIZERS_PARALLELISM", "LOKY_MAX_MEMORY_LEAK_SIZE")
        told = [pool.executor.submit(os.getenv, name) for name in names]
        assert [future.result(60) for future in told] == ["2", "PASSIVE", "false", "1e15"]
    finally:
        pool.end()


def test_a_prepared_process_ends_while_its_parent_lives_and_leaves_the_processor_to_pages():
    code = (
        "import os, signal; from core.jobs import worker; before = os.nice(0); worker.prepare(os.getppid())\n"
        "print(min(before + 10, 19) - os.nice(0), signal.getsignal(signal.SIGINT) == signal.SIG_IGN)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout.split() == ["0", "True"]
