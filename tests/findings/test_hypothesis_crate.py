"""A crate of hypotheses: read back, computed again, and refused in a sentence where it cannot be trusted."""

import json
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

import core.__main__
from core import config
from core.attention import Head
from core.errors import InputError
from core.findings import hypothesis_crate as crate
from core.store.database import Database
from core.studies.hypotheses.hypothesis import STUDY, RowChoice
from core.studies.hypotheses.registering import Proposal, batch_of, options_of, register

SHIPPED = config.DATA / "hypotheses"


def content_of(folder):
    """The hash of all that a crate says, which a citation may carry."""
    return json.loads((folder / crate.FILE).read_text(encoding="utf-8"))[crate.CONTENT]


@pytest.fixture(scope="module")
def tested(tmp_path_factory):
    """One hypothesis, tested on few rows, and its crate."""
    folder = tmp_path_factory.mktemp("crate")
    with Database(folder / "a.duckdb") as db:
        batch, _ = register(
            db,
            "atlas-encoder",
            [Proposal(Head(0, 0), "offset", {"offset": "first", "control": "next"})],
            thought=RowChoice("sst2", "train", 14),
            judged=RowChoice("sst2", "dev", 14),
        )
        options = options_of(*batch_of(db, batch))
        STUDY.keep(
            db, SimpleNamespace(options=options, rows=crate.computed(options), run="r", partials=lambda: iter(()))
        )
        return crate.export(db, "atlas-encoder", folder / "crate")


@pytest.fixture
def copied(tested, tmp_path):
    """A crate that may be changed."""
    import shutil

    return shutil.copytree(tested, tmp_path / "copied")


def changed(folder, name, change):
    """Change a JSON file of a crate."""
    body = json.loads((folder / name).read_text(encoding="utf-8"))
    change(body)
    (folder / name).write_text(json.dumps(body), encoding="utf-8")


def verified(folder):
    """Exit status and everything that is printed."""
    done = CliRunner().invoke(core.__main__.app, ["hypothesis", "verify", str(folder)])
    return done.exit_code, done.output


@pytest.mark.thorough
def test_a_crate_is_one_that_others_read_and_names_licence_version_and_hashes(tested):
    from rocrate.rocrate import ROCrate

    read = ROCrate(tested)
    assert read.root_dataset["license"].id == crate.LICENCE
    files = {entity.id: entity for entity in read.get_entities() if entity.type == "File"}
    assert len(files) == 3
    for name, entity in files.items():
        assert entity["sha256"] == crate._hash((tested / name).read_text(encoding="utf-8"))


@pytest.mark.thorough
def test_every_number_is_as_it_was_and_a_changed_one_is_named(copied):
    assert verified(copied) == (0, "copied: 7 criteria are unchanged (tolerance 0.0001).\n")

    def change(body):
        body["batches"][0]["hypotheses"][0]["criteria"][1]["amount"] += 0.001

    changed(copied, crate.FILE, change)
    status, said = verified(copied)
    assert status == 2
    assert "(L1H1), held out, amount was" in said


ALTERED = {
    "a sentence": lambda body: body["batches"][0]["hypotheses"][0].update(sentence="L1H1 reads minds"),
    "a date": lambda body: body["batches"][0].update(stored="2020-01-01T00:00:00"),
    "an author": lambda body: body["batches"][0].update(annotator="somebody else"),
    "the code's version": lambda body: body.update(code_version="9.9.9"),
    "the level": lambda body: body["batches"][0].update(level=0.05),
    "the number of the batch": lambda body: body["batches"][0].update(number=2),
    "the runs before": lambda body: body["batches"][0].update(runs=[]),
    "how many were registered": lambda body: body["batches"][0].update(hypotheses_ever_registered_on_these_weights=0),
    "a withdrawal": lambda body: body["batches"][0]["hypotheses"][0].update(withdrawn="2020-01-01T00:00:00"),
    "the run": lambda body: body["batches"][0]["hypotheses"][0].update(run="other"),
    "what is controlled": lambda body: body.update(controlled="everything"),
    "a field more": lambda body: body.update(note="peer reviewed"),
    "a note": lambda body: body["batches"][0]["hypotheses"][0]["criteria"][3].update(note="causal"),
    "a measure": lambda body: body["batches"][0]["hypotheses"][0]["criteria"][1].update(measure="proof"),
    "one criterion less": lambda body: body["batches"][0]["hypotheses"][0]["criteria"].pop(3),
    "no criteria": lambda body: body["batches"][0]["hypotheses"][0].update(criteria=[]),
    "no batches": lambda body: body.update(batches=[]),
}


@pytest.mark.thorough
@pytest.mark.parametrize("what", ALTERED)
@pytest.mark.parametrize("rehashed", [False, True])
def test_every_field_that_is_shown_is_verified(copied, monkeypatch, what, rehashed, tested):
    """Who writes all hashes anew still cannot change what follows from the rest, nor the hash that was cited."""
    monkeypatch.setattr(crate, "computed", lambda options: [c.as_row() for c in crate.read(tested)[0].criteria])
    changed(copied, crate.FILE, ALTERED[what])
    if rehashed:
        body = json.loads((copied / crate.FILE).read_text(encoding="utf-8"))
        places = {name for batch in body["batches"] for name in batch["rows"].values()}
        files = {name: crate._hash((copied / name).read_text(encoding="utf-8")) for name in places}
        changed(copied, crate.FILE, lambda body: body.update({crate.CONTENT: crate.content_hash(body, files)}))
        text = (copied / crate.FILE).read_text(encoding="utf-8")
        changed(copied, crate.METADATA, lambda body: [
            entity.update(sha256=crate._hash(text)) for entity in body["@graph"] if entity["@id"] == crate.FILE
        ])  # fmt: skip
        assert content_of(copied) != content_of(tested)
        if what not in ("a sentence", "the level", "the code's version", "what is controlled", "a note", "a measure",
                        "no criteria", "no batches"):  # fmt: skip
            return
    _, found = crate.verify(copied)
    assert found


@pytest.mark.parametrize("name", ["name", "description", "license", "softwareVersion"])
def test_what_the_metadata_repeat_is_verified(copied, monkeypatch, name, tested):
    monkeypatch.setattr(crate, "computed", lambda options: [c.as_row() for c in crate.read(tested)[0].criteria])
    changed(copied, crate.METADATA, lambda body: [
        entity.update({name: "another"}) for entity in body["@graph"] if entity["@id"] == "./"
    ])  # fmt: skip
    assert len(crate.verify(copied)[1]) == 1


def test_an_altered_row_is_named_and_nothing_is_computed(copied, monkeypatch):
    monkeypatch.setattr(crate, "computed", None)
    file = sorted((copied / "rows").glob("*.jsonl"))[0]
    lines = file.read_text(encoding="utf-8").splitlines()
    row = json.loads(lines[4])
    file.write_text("\n".join([*lines[:4], json.dumps({**row, "text": row["text"] + " not"}), *lines[5:]]), "utf-8")
    status, said = verified(copied)
    assert status == 2
    assert f"row {row['id']} of sst2:" in said


@pytest.mark.parametrize(
    ("name", "change", "why"),
    [
        (crate.FILE, lambda body: body.update(version=9), "must have version 1 or 2"),
        (crate.FILE, lambda body: body.update(format="x"), "must have the format"),
        (crate.FILE, lambda body: body["batches"][0].pop("level"), "must contain complete hypotheses"),
        (crate.FILE, lambda body: body["batches"][0]["rows"].update(judged="../../a.jsonl"), "must be in its folder"),
        (crate.FILE, lambda body: body["batches"][0].update(annotator="<script>alert(1)</script>"), "has markup"),
        (crate.METADATA, lambda body: body["@graph"].append({"@id": "/etc/passwd", "@type": "File"}), "in its folder"),
        (crate.METADATA, lambda body: body["@graph"].append({"@id": "x", "name": "<img src=x>"}), "has markup"),
        (crate.METADATA, lambda body: body.pop("@graph"), "@graph"),
    ],
)
def test_a_crate_that_cannot_be_trusted_is_refused(copied, name, change, why):
    changed(copied, name, change)
    with pytest.raises(InputError, match=why):
        crate.read(copied)


def test_a_link_out_of_the_crate_is_refused(copied):
    file = sorted((copied / "rows").glob("*.jsonl"))[0]
    outside = copied.parent / "outside.jsonl"
    file.rename(outside)
    file.symlink_to(outside)
    with pytest.raises(InputError, match="must be in its folder"):
        crate.read(copied)


def test_no_crate_is_said_so(tmp_path):
    with pytest.raises(InputError, match="has no such file"):
        crate.crates(tmp_path)


@pytest.mark.parametrize("checkpoint", [config.ENCODER, config.DECODER, config.CLASSIFIER])
def test_what_ships_says_something_of_every_head_of_these_weights(checkpoint):
    from core.models.present import present_weights

    (batch,) = crate.read(SHIPPED / checkpoint)
    assert {one.subject for one in batch.options.hypotheses} == {Head(a, b) for a in range(6) for b in range(6)}
    assert batch.options.weights == present_weights(checkpoint)
    assert len(batch.criteria) == 7 * len(batch.options.hypotheses)
    assert not crate.altered_rows(batch)


@pytest.mark.slow
def test_what_ships_is_computed_again_to_the_same_numbers():
    assert verified(SHIPPED)[0] == 0
