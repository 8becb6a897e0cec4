"""Every path that an option of a study holds is checked before anything runs, whoever stored the options."""

import contextlib
import json
import os
import shutil
from functools import partial
from pathlib import Path
from typing import Annotated, get_args, get_origin

import pytest

from core import config
from core.atlas import scores
from core.errors import AtlasError, InputError, StoreError
from core.jobs import api, duration_estimate, worker
from core.models import present
from core.models.opening import open_checkpoint, weights_taken
from core.models.present import parts_of, present_weights, stamp_of
from core.patterns import classifier_registry
from core.report.data import facts_of
from core.store import exchange, label_files, runs
from core.store.database import Database
from core.store.people import Person, RightsError
from core.studies import preflight
from core.studies.comparison.development import snapshots_of
from core.studies.contract import READ_FROM, WRITTEN_TO, as_json, declared
from core.studies.hypotheses.hypothesis import HypothesisOptions, RowChoice
from core.studies.hypotheses.measure_heads import Asked, MeasureHeadsOptions
from core.studies.hypotheses.predicates import Hypothesis
from core.studies.lookup import find_study, study_modules
from core.studies.tuning.change import task_tuned_on
from pages.parts.shell.links import is_missing
from pages.parts.shell.resources import split_revision
from pages.parts.widgets.context_bar import heads_of
from tests.robustness.doors import refused
from tests.store.test_database import run_python

PATHS = {*READ_FROM, *WRITTEN_TO}
OPENED = {  # by functions that check what they open: tests/robustness/test_inside.py
    "checkpoint", "checkpoints", "before", "after", "compare", "also", "pipeline", "task", "tasks",
}  # fmt: skip
WORDS = {  # which no function opens
    "annotator", "answers", "average", "batch", "class_set", "control", "core", "direction", "distance", "dtype",
    "edges", "features", "heads", "initialisations", "kind", "kinds", "mean_by", "moments", "name", "operator",
    "operators", "order", "orders", "pairing", "patterns", "preset", "properties", "reading", "relations", "revision",
    "rows", "samples", "scopes", "scores", "settings", "split", "structured", "sweep", "texts", "weights", "what",
    "precision", "studies", "hypotheses", "thought", "judged", "confusions",
}  # fmt: skip
OUTSIDE = [(study, name) for study in study_modules() for name in declared(find_study(study).options) if name in PATHS]


@pytest.fixture
def given(tmp_path, monkeypatch):
    """The folder that the app was given, beside one that it was not."""
    for name in ("given", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("A row.\tB row.\n" * 9)
    (tmp_path / "given" / "link").symlink_to(tmp_path / "other" / "file")
    monkeypatch.setenv("ATLAS_FOLDERS", str(tmp_path / "given"))
    return tmp_path / "given"


def test_every_option_with_text_is_a_path_a_name_that_is_opened_or_a_word():
    for study in study_modules():
        for name, option in declared(find_study(study).options).items():
            hint = get_args(option.hint)[0] if get_origin(option.hint) is Annotated else option.hint
            if "str" in str(hint):
                assert name in PATHS | OPENED | WORDS, f"{study}: is {name} a path?"


@pytest.mark.thorough
@pytest.mark.parametrize(("study", "name"), OUTSIDE, ids=str)
@pytest.mark.parametrize("way", ["other/file", "given/../other/file", "given/link", "missing"])
def test_no_study_reads_or_writes_elsewhere(given, study, name, way):
    options = {name: str(given.parent / way)}
    if "checkpoint" in declared(find_study(study).options):
        options["checkpoint"] = config.CLASSIFIER
    if "tasks" in declared(find_study(study).options):
        options["tasks"] = ["sst2"]
    for perform in (worker.divide, lambda *told: worker.run_unit(*told, {"key": "k", "size": 1, "arguments": {}})):
        assert "a folder that this app may" in refused(lambda perform=perform: perform(study, options))


def test_results_that_ship_are_never_written_to(given):
    for folder in (config.DATA, config.RECORD, config.BUNDLED_MODELS):
        said = refused(lambda folder=folder: worker.divide("finetune", {"tasks": ["sst2"], "out": str(folder / "x")}))
        assert "a folder that this app may write to" in said


def test_studies_within_studies_are_asked_too(given):
    other = str(given.parent / "other")
    asked = MeasureHeadsOptions(studies=(Asked("statistics", json.dumps({"tasks": ["sst2"], "data": other})),))
    refused(lambda: worker.divide("measure-heads", as_json(asked)))
    thought, judged = RowChoice("sst2", "dev", 20, 0, other), RowChoice("mrpc", "dev", 20)
    one = Hypothesis("h", 0, 0, "offset", (("offset", "previous"),))
    refused(
        lambda: worker.divide(
            "hypothesis", as_json(HypothesisOptions(hypotheses=(one,), thought=thought, judged=judged))
        )
    )


LEADS_OUT = {
    "a treebank": ("x-dev.conllu", lambda folder: find_file_of_treebank(folder)),
    "task rows": ("dev.tsv", lambda folder: find_file_of_task(folder)),
    "a language pipeline": ("meta.json", lambda folder: open_a_pipeline(folder)),
    "a checkpoint": ("config.json", lambda folder: locate_checkpoint(folder)),
    "a part of a checkpoint": ("part/config.json", lambda folder: locate_checkpoint(folder)),
}


def find_file_of_treebank(folder):
    from core.tasks.conllu import file_of

    file_of(folder, "dev")


def find_file_of_task(folder):
    from core.tasks.glue import read_rows

    read_rows("sst2", "dev", folder=folder)


def open_a_pipeline(folder):
    from core.studies.tagging import open_pipeline

    open_pipeline(str(folder))


def locate_checkpoint(folder):
    from core.models.opening import locate

    (folder / "config.json").exists() or (folder / "config.json").write_text("{}")
    locate(str(folder))


@pytest.mark.parametrize("kind", LEADS_OUT)
def test_links_inside_a_given_folder_do_not_lead_out(given, kind):
    name, open_it = LEADS_OUT[kind]
    (given / name).parent.mkdir(exist_ok=True)
    (given / name).symlink_to(given.parent / "other" / "file")
    assert "a folder that this app may" in refused(lambda: open_it(given))


DATABASE = {  # other names of {folder}/atlas.duckdb and of what belongs to it
    "itself": "{folder}/atlas.duckdb", "its log": "{folder}/atlas.duckdb.wal",
    "sign-ins": "{folder}/atlas.duckdb.sign-ins", "its key": "{folder}/atlas.duckdb.key",
    "a link": "{folder}/link.tsv", "a hard link": "{folder}/hard.tsv",
    "a hard link to its log": "{folder}/hard-log.tsv",
    "a link to a hard link": "{folder}/link-hard.tsv", "a linked folder": "{folder}/linked/atlas.duckdb",
    "two slashes": "/{folder}//atlas.duckdb", "a dot": "{folder}/./atlas.duckdb/.",
    "up and down": "{folder}/linked/../{name}/atlas.duckdb", "other letter case": "{folder}/Atlas.DuckDB",
    "a descriptor of its folder": "/proc/self/fd/{descriptor}/atlas.duckdb", "the same as /dev/fd":
    "/dev/fd/{descriptor}/atlas.duckdb", "the process's root": "/proc/self/root{folder}/atlas.duckdb",
    "the thread's root": "/proc/thread-self/root{folder}/atlas.duckdb", "relative": "{relative}/atlas.duckdb",
}  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("where", DATABASE)
@pytest.mark.parametrize("folders", [None, ""])
def test_the_database_is_no_file_of_rows(tmp_path, monkeypatch, where, folders):
    path = tmp_path / "atlas.duckdb"
    monkeypatch.setenv("ATLAS_DB", str(path))
    if folders is not None:
        monkeypatch.setenv("ATLAS_FOLDERS", str(tmp_path))
    Database(path).close()
    (tmp_path / "atlas.duckdb.wal").touch()
    (tmp_path / "link.tsv").symlink_to(path)
    os.link(path, tmp_path / "hard.tsv")
    os.link(tmp_path / "atlas.duckdb.wal", tmp_path / "hard-log.tsv")
    (tmp_path / "link-hard.tsv").symlink_to(tmp_path / "hard.tsv")
    (tmp_path / "linked").symlink_to(tmp_path)
    descriptor = os.open(tmp_path, os.O_RDONLY)
    named = DATABASE[where].format(
        folder=tmp_path, name=tmp_path.name, descriptor=descriptor, relative=os.path.relpath(tmp_path)
    )
    for study in ("circuit", "writes"):
        said = refused(partial(worker.divide, study, {"checkpoint": config.CLASSIFIER, "pairs_file": named}))
        assert "must not be the database" in said
    os.close(descriptor)


@pytest.mark.thorough
@pytest.mark.parametrize("way", ["itself", "a link", "a hard link", "its descriptor"])
def test_nothing_but_duckdb_opens_the_database(tmp_path, way):
    """Closing any other descriptor of it would let go of DuckDB's lock, and a second program could write."""
    path, named = tmp_path / "atlas.duckdb", tmp_path / "other"
    with Database(path) as db:
        named = path if way == "itself" else named
        if way == "a link":
            named.symlink_to(path)
        elif way == "a hard link":
            os.link(path, named)
        elif way == "its descriptor":
            held = (place for place in Path("/proc/self/fd").iterdir() if os.path.realpath(place) == str(path))
            named = next(held)
        for opened in (open, os.open):
            with pytest.raises(StoreError, match="is the database"):
                opened(named, *([os.O_RDONLY] if opened is os.open else []))
        for read in (exchange.read_run, label_files.read_bytes):
            with pytest.raises((StoreError, InputError)):
                read(named)
        code = "import duckdb, sys\ntry: duckdb.connect(sys.argv[1])\nexcept duckdb.IOException: print('held')"
        assert run_python(code, path).stdout.strip() == "held"
        assert runs.runs(db).empty
    with path.open("rb") as stream:
        assert stream.read(1) is not None


READERS_OF_CHECKPOINTS = (
    open_checkpoint, present_weights, stamp_of, duration_estimate._size, weights_taken, parts_of, task_tuned_on,
    facts_of,
)  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name", ["model.safetensors", "config.json", "tokenizer.json", "vocab.txt", "training.json", "adapter_config.json"]
)
@pytest.mark.parametrize("hard", [True, False])
def test_a_checkpoint_that_holds_the_database_opens_no_file_of_it(tmp_path, monkeypatch, name, hard):
    path, folder = tmp_path / "atlas.duckdb", tmp_path / "checkpoint"
    monkeypatch.setenv("ATLAS_DB", str(path))
    shutil.copytree(config.BUNDLED_MODELS / config.ENCODER, folder)
    with Database(path):
        (folder / name).unlink(missing_ok=True)
        os.link(path, folder / name) if hard else (folder / name).symlink_to(path)
        said = refused(lambda: open_checkpoint(str(folder)))
        for read in READERS_OF_CHECKPOINTS:
            with contextlib.suppress(AtlasError):
                read(str(folder))
        code = "import duckdb, sys\ntry: duckdb.connect(sys.argv[1])\nexcept duckdb.IOException: print('held')"
        assert run_python(code, path).stdout.strip() == "held"
    assert "in a folder that this app may read" in said or "must contain either a model or an adapter" in said


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["config.json", "training.json", "tokenizer.json", "adapter_config.json"])
@pytest.mark.parametrize("kind", ["a pipe", "a device without end", "a folder"])
def test_a_pipe_or_device_in_a_checkpoint_is_answered_at_once(tmp_path, name, kind):
    folder = tmp_path / "checkpoint"
    shutil.copytree(config.BUNDLED_MODELS / config.ENCODER, folder)
    (folder / name).unlink(missing_ok=True)
    if kind == "a pipe":
        os.mkfifo(folder / name)
    elif kind == "a folder":
        (folder / name).mkdir()
    else:
        (folder / name).symlink_to("/dev/zero")
    for read in READERS_OF_CHECKPOINTS:
        with contextlib.suppress(AtlasError):  # in time, and with a sentence where it is one that is needed
            read(str(folder))


@pytest.mark.parametrize("way", ["{}", "{}/", "{}/../other", "{}%2f", "//{}", "{}\x00", "file://{}", "~nobody-here{}"])
def test_a_folder_elsewhere_answers_as_one_that_is_not_there(given, monkeypatch, way):
    """Whatever a page asks of the checkpoint that a link names."""
    name = way.format(given.parent / "other")
    monkeypatch.chdir(given)

    def answers():
        for read in (
            *READERS_OF_CHECKPOINTS, config.is_folder, is_missing, heads_of, split_revision, preflight._folder,
            lambda name: snapshots_of((name,)),
        ):  # fmt: skip
            try:
                yield repr(read(name))
            except AtlasError as error:
                yield str(error)

    other = given.parent / "other"
    shutil.rmtree(other)
    missing = list(answers())
    shutil.copytree(config.BUNDLED_MODELS / config.ENCODER, other)
    (other / "training.json").write_text('{"kind": "fine-tuned", "task": "sst2"}')
    assert list(answers()) == missing


@pytest.mark.parametrize(
    "revision",
    ["{}", "/{}", "../..{}", "../../../../../../../../../..{}", "main/../../{name}", "../snapshots/../../{name}"],
)
def test_a_revision_of_a_hub_id_leads_out_of_no_cache(tmp_path, monkeypatch, revision):
    (tmp_path / "cache" / "models--owner--model" / "refs").mkdir(parents=True)
    (tmp_path / "cache" / "models--owner--model" / "snapshots").mkdir()
    shutil.copytree(config.BUNDLED_MODELS / config.ENCODER, tmp_path / "elsewhere")
    shutil.copytree(tmp_path / "elsewhere", tmp_path / "cache" / "elsewhere")
    monkeypatch.setattr(config, "hub_cache", lambda: tmp_path / "cache")
    name = f"owner/model@{revision.format(tmp_path / 'elsewhere', name='elsewhere')}"
    assert present.located(name) is None
    refs = tmp_path / "cache" / "models--owner--model" / "refs"
    for held in (str(tmp_path / "elsewhere"), "../../../elsewhere", "", "x" * 9999, "a b"):
        (refs / "main").write_text(held, "utf-8")
        assert present.located("owner/model") is None
    (refs / "main").unlink()
    os.mkfifo(refs / "main")
    assert present.located("owner/model") is None


@pytest.mark.parametrize("way", ["{}", "{}/", "../../..{}", "/..{}"])
@pytest.mark.parametrize("weights", [None, "other"])
def test_a_link_names_no_folder_of_hypotheses_that_ship(tmp_path, way, weights):
    member = {"hypothesis": "h", "layer": 0, "head": 0, "predicate": "offset", "parameters": {"offset": "previous"},
              "criteria": [{"kind": "criterion", "hypothesis": "h", "subject": "L1H1", "sentence": "s",
                            "criterion": name, "state": "met"} for name in ("held out", "causal")]}  # fmt: skip
    crate = {"batches": [{"weights_hash": weights, "hypotheses": [member]}]}
    (tmp_path / "hypotheses.json").write_text(json.dumps(crate), encoding="utf-8")
    assert scores.hypothesis_rows(way.format(tmp_path)).empty


@pytest.mark.parametrize("way", ["{}", "../../..{}"])
def test_a_link_names_no_folder_of_classifiers_that_ship(tmp_path, way):
    (tmp_path / "classifier.json").write_text('{"title": "invented"}', encoding="utf-8")
    assert classifier_registry.bundled_about(way.format(tmp_path)) is None


def test_who_labels_starts_no_study_by_an_imported_run(tmp_path, given):
    """*Run again* is a start like any other."""
    with Database(tmp_path / "atlas.duckdb") as db:
        told = {"tasks": ["sst2"], "out": str(given.parent / "other")}
        run = runs.record_run(db, "finetune", told, runs.Provenance())
        eve = db.acting_as(Person("eve", "annotator"))
        options = runs.one_run(eve, run)["options"]
        with pytest.raises(RightsError, match="role admin is required"):
            api.start(eve, "finetune", options)
        job = api.start(db, "finetune", options)
        assert "a folder that this app may write to" in str(api.wait(db, job, 60).error)
        assert list((given.parent / "other").iterdir()) == [given.parent / "other" / "file"]
