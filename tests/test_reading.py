"""Files that people name: links that lead out, files that are exchanged after the check, and what is no file."""

import io
import json
import os

import numpy as np
import pytest

from core import config
from core.errors import CheckpointError, InputError
from core.frames.papers import read_list
from core.frames.rows import read_sentences
from core.models.adapters import adapter_in
from core.models.config_files import read_config
from core.patterns import snapshot
from core.reading import encoding_of, read_text
from core.studies.ablation.translation import read_translations
from core.studies.circuits.circuit import columns_of
from core.studies.patterns import pattern_shares
from core.tasks.conllu import read_part
from core.tasks.glue import read_rows
from core.tasks.own import read_own, stretches


@pytest.fixture
def given(tmp_path, monkeypatch):
    """A folder that people may name, and beside it a secret."""
    folder = tmp_path / "given"
    folder.mkdir()
    (tmp_path / "secret").write_text("sentence,label\nsecret,a\n", "utf-8")
    monkeypatch.setenv("ATLAS_FOLDERS", str(folder))
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "other" / "a.duckdb"))
    return folder


def snapshot_bytes() -> bytes:
    """A snapshot of one map of one token."""
    about = json.dumps({"class_set": "bert", "classes": ["a"], "facts": []})
    stream = io.BytesIO()
    np.savez(stream, about=np.array(about), weights=np.ones(1, "<f2"), lengths=np.array([1]))
    return stream.getvalue()


READERS = {
    "rows.csv": lambda folder: read_own(str(folder / "rows.csv")),
    "SST-2/dev.tsv": lambda folder: read_rows("sst2", "dev", folder=folder),
    "x-dev.conllu": lambda folder: read_part(str(folder), "dev"),
    "rows.tsv": lambda folder: read_translations(folder / "rows.tsv"),
    "pairs.tsv": lambda folder: columns_of(str(folder / "pairs.tsv")),
    "story.txt": lambda folder: stretches(str(folder / "story.txt")),
    "frames.jsonl": lambda folder: read_sentences(folder / "frames.jsonl"),
    "list.json": lambda folder: read_list(folder / "list.json"),
    "labels.npz": lambda folder: snapshot.read(folder / "labels.npz"),
    "classifier.safetensors": lambda folder: pattern_shares._bytes(str(folder / "classifier.safetensors")),
    "config.json": lambda folder: read_config(folder, "given"),
    "adapter_config.json": lambda folder: adapter_in(folder, "given"),
}
HOLDS = {  # what a file must hold that its reader reads
    "rows.csv": b"sentence\na\n",
    "SST-2/dev.tsv": b"sentence\tlabel\na\t1\n",
    "rows.tsv": b"a\tb\n",
    "x-dev.conllu": b"1\ta\ta\tNOUN\tNN\t_\t0\troot\t_\t_\n2\tb\tb\tNOUN\tNN\t_\t1\tobj\t_\t_\n\n",
    "pairs.tsv": b"a\tb\n",
    "story.txt": b"a b c",
    "frames.jsonl": b'{"id": "1", "text": "a b", "target": [0, 1], "frame": "F", "elements": []}\n',
    "list.json": b'[{"sentence": "a b", "target": "a", "fes": ["b"]}]',
    "labels.npz": snapshot_bytes(),
    "classifier.safetensors": b"1",
    "config.json": b'{"model_type": "bert"}',
    "adapter_config.json": b'{"peft_type": "LORA", "lora_alpha": 1, "base_model_name_or_path": "x"}',
}


@pytest.mark.parametrize("name", READERS)
def test_a_link_that_appears_between_a_check_and_the_reading_is_not_followed(given, monkeypatch, name):
    """After the first, second ... check of its path, until one comes after the file was opened."""
    checked, file = config.inside, given / name
    file.parent.mkdir(exist_ok=True)
    (given / "adapter_model.safetensors").touch()
    (given.parent / "secret").write_bytes(HOLDS[name])  # what would be read without a complaint
    for moment in range(1, 9):
        calls = []
        file.unlink(missing_ok=True)
        file.write_bytes(HOLDS[name])
        os.utime(file, (moment, moment))  # readers that remember a file read it again

        def exchanging(*arguments, calls=calls, moment=moment, **options):
            answer = checked(*arguments, **options)
            calls.append(arguments)
            if len(calls) == moment:
                file.unlink()
                file.symlink_to(given.parent / "secret")
            return answer

        monkeypatch.setattr(config, "inside", exchanging)
        try:
            READERS[name](given)
        except (InputError, CheckpointError, OSError):
            assert calls
        else:
            assert len(calls) < moment, "it was read through the link"
            return
    raise AssertionError("it is never read")


@pytest.mark.parametrize("name", READERS)
def test_a_link_that_leads_out_is_refused(given, name):
    (given / name).parent.mkdir(exist_ok=True)
    (given / name).symlink_to(given.parent / "secret")
    (given / "adapter_model.safetensors").touch()
    with pytest.raises((InputError, CheckpointError), match="must be in a folder that this app may read") as seen:
        READERS[name](given)
    assert "secret," not in str(seen.value)


def test_a_folder_that_is_a_link_that_leads_out_is_refused(given):
    (given.parent / "outside").mkdir()
    (given.parent / "outside" / "rows.csv").write_text("sentence\nsecret\n", "utf-8")
    (given / "in").symlink_to(given.parent / "outside")
    with pytest.raises(InputError, match="must be in a folder that this app may read"):
        read_own(str(given / "in" / "rows.csv"))


def test_a_link_inside_the_folder_is_followed(given):
    (given / "real.csv").write_text("sentence\na\n", "utf-8")
    (given / "rows.csv").symlink_to(given / "real.csv")
    assert [row.text for row in read_own(str(given / "rows.csv")).rows] == ["a"]


@pytest.mark.parametrize("moment", ["inside", "roots"])
@pytest.mark.parametrize("part", ["file", "folder"])
def test_what_is_exchanged_for_a_link_after_the_check_is_not_read(given, monkeypatch, moment, part):
    file = given / "in" / "secret"
    file.parent.mkdir()
    file.write_text("harmless", "utf-8")
    checked = getattr(config, moment)
    calls = []

    def exchanging(*arguments, **options):
        answer = checked(*arguments, **options)
        calls.append(moment)
        if moment == "inside" or len(calls) == 2:  # `inside` asks for the folders before the file is opened
            file.unlink()
            if part == "file":
                file.symlink_to(given.parent / "secret")
            else:
                file.parent.rmdir()
                file.parent.symlink_to(given.parent)
        return answer

    monkeypatch.setattr(config, moment, exchanging)
    with pytest.raises(OSError, match=r"link|symbolic|Not a directory"):
        read_text(file, given=True)
    assert calls, "the file was exchanged"


@pytest.mark.parametrize("restricted", [True, False])
def test_a_pipe_and_a_folder_are_no_files(given, monkeypatch, restricted):
    if not restricted:
        monkeypatch.delenv("ATLAS_FOLDERS")
    os.mkfifo(given / "pipe.csv")
    (given / "folder.csv").mkdir()
    for name in ("pipe.csv", "folder.csv"):
        with pytest.raises(InputError, match=r"a readable .* cannot be read \((Not a regular file|Is a directory)\)"):
            read_own(str(given / name))


@pytest.mark.parametrize(
    ("data", "encoding"),
    [(b"", "utf-8"), (b"a", "utf-8"), ("aé".encode("utf-16-le"), "utf-16-le"), ("aé".encode("utf-16-be"), "utf-16-be"),
     ("我的".encode(), "utf-8"), ("\ufeffa".encode(), "utf-8-sig"), ("a".encode("utf-32"), "utf-32")],
)  # fmt: skip
def test_the_encoding_is_told_by_the_bytes(data, encoding):
    assert encoding_of(data) == encoding
