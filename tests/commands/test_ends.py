"""How a command or the app ends: a reader that leaves, memory that is not there, Ctrl-C while threads read."""

import os
import signal
import subprocess
import sys

import pytest

import core.__main__
from core import config
from core.store.database import Database


@pytest.mark.parametrize("form", ["--json", "--csv", "--latex", None])
def test_a_reader_that_leaves_early_is_a_status_of_its_own(tmp_path, form):
    Database(tmp_path / "atlas.duckdb").close()
    read, write = os.pipe()
    os.close(read)  # as `| head` does once it has its lines
    words = [sys.executable, "-m", "core", "jobs", "list", *([form] if form else [])]
    environment = os.environ | {"ATLAS_DB": str(tmp_path / "atlas.duckdb")}
    done = subprocess.run(
        words, cwd=config.PROJECT, env=environment, stdout=write, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")
    assert f" {done.returncode} " in (config.PROJECT / "README.md").read_text(encoding="utf-8").replace("\n", " ")


def test_memory_that_is_not_there_is_a_sentence(monkeypatch, capsys):
    def run():
        raise MemoryError

    monkeypatch.setattr(core.__main__, "app", run)
    monkeypatch.setattr(sys, "argv", ["core"])
    with pytest.raises(SystemExit) as end:
        core.__main__.main()
    assert end.value.code == 2
    assert "more memory than the machine has free" in capsys.readouterr().err


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
print(1, flush=True)
try:
    time.sleep(600)
except KeyboardInterrupt:
    print("a sentence", file=sys.stderr)
"""


def test_ctrl_c_while_a_thread_reads_says_what_we_say_and_nothing_of_the_binding(tmp_path):
    words = [sys.executable, "-c", READS, str(tmp_path / "atlas.duckdb")]
    with subprocess.Popen(words, cwd=config.PROJECT, stdout=-1, stderr=-1, text=True) as process:
        assert process.stdout.readline() == "1\n"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (0, "a sentence\n")
