"""Files with one thing wrong each, by the reader that meets them. Add an entry to add a case."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

BYTES = {  # tried on every reader of files
    "empty": b"",
    "one line break": b"\n",
    "NUL bytes": b"\x00" * 500,
    "noise": bytes(range(256)) * 8,
    "UTF-16": "text\tlabel\n".encode("utf-16"),
    "Latin-1": b"caf\xe9\tna\xefve\n",
    "a ZIP": b"PK\x03\x04" + b"\x00" * 60,
    "HTML": b"<!doctype html><script>alert(1)</script>",
    "JSON cut short": b'{"text": "The cat',
    "JSON nested 100,000 deep": b"[" * 100_000,
    "a number of 5,000 digits": b"9" * 5_000,
    "a Parquet beginning": b"PAR1" + b"\x00" * 40 + b"PAR1",
}

SST2 = {
    "no such column": "phrase\tlabel\ngood\t1\n",
    "a label that is none": "sentence\tlabel\ngood\tgreat\n",
    "a label of the test split": "sentence\tlabel\ngood\t-1\n",
    "too few columns": "sentence\tlabel\ngood\n",
    "an empty sentence": "sentence\tlabel\n \t1\n",
    "only a header": "sentence\tlabel\n",
    "commas": "sentence,label\ngood,1\n",
    "a fraction": "sentence\tlabel\ngood\t0.5\n",
}
STSB = {
    f"a score of {score!r}": f"index\tsentence1\tsentence2\tscore\n0\ta\tb\t{score}\n"
    for score in ("", "5.1", "-0.1", "nan", "inf", "five", "1e400")
}


def frame_row(**changes: Any) -> str:
    row = {
        "id": "a",
        "text": "Paul bought a car.",
        "target": [[5, 11]],
        "elements": [{"name": "Buyer", "spans": [[0, 4]]}],
    }
    return json.dumps({name: value for name, value in (row | changes).items() if value is not ...}) + "\n"


FRAMES = {
    "no text": frame_row(text=...),
    "an empty text": frame_row(text=""),
    "a text that is a number": frame_row(text=7),
    "no target": frame_row(target=...),
    "a target outside": frame_row(target=[[5, 999]]),
    "a target before the start": frame_row(target=[[-3, 2]]),
    "a target backwards": frame_row(target=[[11, 5]]),
    "an empty target": frame_row(target=[[5, 5]]),
    "targets that overlap": frame_row(target=[[5, 9], [7, 11]]),
    "a target of fractions": frame_row(target=[[0.5, 2.5]]),
    "a target of truth values": frame_row(target=[[False, True]]),
    "a target of huge numbers": frame_row(target=[[10**30, 10**31]]),
    "elements that are no list": frame_row(elements="Buyer"),
    "elements that are texts": frame_row(elements=["Buyer"]),
    "an element without a name": frame_row(elements=[{"spans": [[0, 4]]}]),
    "an element without spans": frame_row(elements=[{"name": "Buyer"}]),
    "an element outside": frame_row(elements=[{"name": "Buyer", "spans": [[0, 400]]}]),
    "a core set that is a word": frame_row(elements=[{"name": "Buyer", "spans": [[0, 4]], "core_set": "yes"}]),
    "a frame that is a number": frame_row(frame=3),
    "a list": "[]\n",
}

PAPER = {"sentence": "Paul bought a car .", "target": "bought", "fes": ["Paul"]}
PAPERS = {
    "an object": PAPER | {"fes": {"a": 1}},
    "no sentence": {"target": "bought", "fes": []},
    "a sentence that is a number": PAPER | {"sentence": 7},
    "a target that is a list": PAPER | {"target": ["bought"]},
    "a target elsewhere": PAPER | {"target": "sold"},
    "elements that are numbers": PAPER | {"fes": [1]},
    "links that are none": {"id": "1", "sentence": "Paul bought a car .", "links": []},
    "links that are texts": {"id": "1", "sentence": "Paul bought a car .", "links": ["Paul"]},
    "links without words": {"id": "1", "sentence": "Paul bought a car .", "links": [{}]},
    "an id that is a list": {"id": [1], "sentence": "Paul .", "links": [{"earlier": "Paul", "later": "."}]},
}

LABEL = {"map_id": "m1", "class": "vertical", "class_set": "bert", "annotator": "ada"}
MAP = {
    "checkpoint": "c",
    "weights_hash": "h",
    "task": "mrpc",
    "row_id": "dev-1",
    "layer": 0,
    "head": 0,
    "length": 2,
    "tokens": ["a", "b"],
    "separators": [],
    "causal": False,
    "maximum": 0.5,
    "weights": base64.b64encode(b"\x00\x38" * 4).decode(),
}


def label_row(**changes: Any) -> str:
    return json.dumps({name: value for name, value in (LABEL | changes).items() if value is not ...}) + "\n"


LABELS = {
    "a class that is none": label_row(**{"class": "wavy"}),
    "a class that is a list": label_row(**{"class": ["vertical"]}),
    "a class set that is none": label_row(class_set="none"),
    "a class set that is a list": label_row(class_set=["bert"]),
    "no annotator": label_row(annotator=...),
    "an annotator that is a number": label_row(annotator=5),
    "no map": label_row(map_id=...),
    "a map that is not stored": label_row(map_id="m2"),
    "a map id that is a list": label_row(map_id=["m1"]),
    "a kind that is none": label_row(kind="love"),
    "a kind that is a list": label_row(kind=["label"]),
    "an undo of nothing": label_row(kind="undo"),
    "an undo that undoes a list": label_row(kind="undo", undoes=["x"]),
    "a sequence that is a word": label_row(batch="b", sequence="one"),
    "a sequence below zero": label_row(batch="b", sequence=-5),
    "a sequence past 32 bits": label_row(batch="b", sequence=2**40),
    "a batch that is a list": label_row(batch=["b"], sequence=1),
    "a pass that is a word": label_row(**{"pass": "second"}),
    "a pass past 32 bits": label_row(**{"pass": 2**40}),
    "a pass of zero": label_row(**{"pass": -1}),
    "a time that is none": label_row(happened="yesterday"),
    "a time that is a number": label_row(happened=12),
    "seconds that are a word": label_row(seconds="fast"),
    "a probability that is a list": label_row(probability=[0.5]),
    "a scale that is none": label_row(scale="log"),
    "a scale that is a list": label_row(scale=["own"]),
    "an order that is a map": label_row(queue_order={"a": 1}),
    "a note that is a list": label_row(note=["a"]),
    "weights that are no base64": label_row(**MAP | {"weights": "%%%"}, map_id="m3"),
    "weights of another size": label_row(**MAP | {"length": 3}, map_id="m3"),
    "weights that are a number": label_row(**MAP | {"weights": 7}, map_id="m3"),
    "a length that is a word": label_row(**MAP | {"length": "two"}, map_id="m3"),
    "a length below zero": label_row(**MAP | {"length": -2}, map_id="m3"),
    "weights that are no numbers": label_row(
        **MAP | {"weights": base64.b64encode(b"\xff\xff" * 4).decode()}, map_id="m3"
    ),
    "tokens that are a text": label_row(**MAP | {"tokens": "ab"}, map_id="m3"),
    "too few tokens": label_row(**MAP | {"tokens": ["a"]}, map_id="m3"),
    "a layer below zero": label_row(**MAP | {"layer": -1}, map_id="m3"),
    "a layer past 32 bits": label_row(**MAP | {"layer": 2**40}, map_id="m3"),
    "a separator outside": label_row(**MAP | {"separators": [9]}, map_id="m3"),
    "a maximum that is a word": label_row(**MAP | {"maximum": "most"}, map_id="m3"),
    "facts of a map are missing": label_row(weights=MAP["weights"], map_id="m3"),
    "a surrogate": '{"map_id": "m1", "class": "vertical", "class_set": "bert", "annotator": "\\udcff"}\n',
    "a name twice": label_row() + label_row(),
}

LAUGHS = '<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "ha">' + "".join(
    f'<!ENTITY {new} "{("&" + old + ";") * 10}">' for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)
XML = {  # in place of frameIndex.xml of a FrameNet release
    "empty": "",
    "no XML": "frames",
    "cut short": '<frameIndex xmlns="http://framenet.icsi.berkeley.edu"><frame name="Motion"',
    "another root": "<html><body/></html>",
    "a billion laughs": LAUGHS + "]><frameIndex>&i;</frameIndex>",
    "an entity from a file": '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><frameIndex>&e;</frameIndex>',
    "an entity from a server": '<!DOCTYPE x [<!ENTITY e SYSTEM "http://127.0.0.1:9/x">]><frameIndex>&e;</frameIndex>',
    "a declaration from a file": '<!DOCTYPE frameIndex SYSTEM "file:///etc/passwd"><frameIndex/>',
    "frames without ids": '<frameIndex xmlns="http://framenet.icsi.berkeley.edu"><frame name="Motion"/></frameIndex>',
    "ids that are words": '<frameIndex xmlns="http://framenet.icsi.berkeley.edu"><frame name="M" ID="x"/></frameIndex>',
    "nested 200,000 deep": "<a>" * 200_000,
}

CONLLU = {
    "too few columns": "# sent_id = a\n1\tThe\tthe\n\n",
    "a head outside": "# text = The\n1\tThe\tthe\tDET\tDT\t_\t9\tdet\t_\t_\n\n",
    "a head that is a word": "# text = The\n1\tThe\tthe\tDET\tDT\t_\tx\tdet\t_\t_\n\n",
    "an id that is a word": "# text = The\none\tThe\tthe\tDET\tDT\t_\t0\troot\t_\t_\n\n",
    "words that are not in the text": "# text = Cats\n1\tDogs\tdog\tNOUN\tNN\t_\t0\troot\t_\t_\n\n",
}


MANIFESTS = {
    "no JSON": "{",
    "a list": "[]",
    "no tables": '{"migrations": []}',
    "tables with odd names": '{"migrations": [], "tables": {"run; DROP TABLE run": 1}}',
    "tables upwards": '{"migrations": [], "tables": {"../../etc/passwd": 1}}',
    "a table that is none": '{"migrations": [], "tables": {"nonesuch": 1}}',
    "the record of migrations": '{"migrations": [], "tables": {"migration": 1}}',
    "newer code": '{"migrations": [999], "tables": {}}',
    "migrations that are words": '{"migrations": "all", "tables": {}}',
    "migrations that are lists": '{"migrations": [[1]], "tables": {}}',
}

CLASSES = {  # in place of a good new class
    "no name": {"name": ""},
    "a name of 500 letters": {"name": "x" * 500},
    "a name that is no text": {"name": "\udcff"},
    "no word on what the eye sees": {"eye": ""},
    "5,000 letters on what the eye sees": {"eye": "x" * 5000},
    "a title that is no text": {"title": "\udcff"},
    "a colour that is more": {"colour": "red; background: url(http://127.0.0.1:9)"},
    "a key that is none": {"key": "Enter"},
    "rename a class that is none": {"kind": "rename", "name": "none"},
    "merge into a class that is none": {"kind": "merge", "name": "vertical", "into": "none"},
    "merge a class into itself": {"kind": "merge", "name": "vertical", "into": "vertical"},
}

GOOD = "good,yes\nbad,no\n" * 5
OWN = {  # a task of one's own
    "no column of sentences": "topic,label\n" + GOOD,
    "a column twice": "sentence,label,label\n" + "good,yes,yes\nbad,no,no\n" * 5,
    "one label only": "sentence,label\n" + "good,yes\n" * 6,
    "labels that look alike": "sentence,label\n" + "good,yes\nbad,YES\n" * 5,
    "a label for every row": "sentence,label\n" + "".join(f"good,{k}\n" for k in range(200)),
    "a row without a label": "sentence,label\ngood,\n" + GOOD,
    "an empty sentence": "sentence,label\n ,yes\n" + GOOD,
    "a split that is none": "sentence,label,split\ngood,yes,test\nbad,no,train\n",
    "no dev rows": "sentence,label,split\n" + "good,yes,train\nbad,no,train\n" * 3,
    "a label in dev only": "sentence,label,split\ngood,yes,train\nbad,no,train\nwell,maybe,dev\n",
    "a score of 7": "sentence,score\n" + "good,7\n" * 6,
    "a score that is a word": "sentence,score\n" + "good,much\n" * 6,
    "a quote that never ends": 'sentence,label\n"good,yes\n' + GOOD,
}


def framenet(place: Path, index: str) -> Path:
    """A release with nothing in it but this index."""
    (place / "frame").mkdir(parents=True)
    for name in ("frRelation.xml", "luIndex.xml", "fulltextIndex.xml", "semTypes.xml"):
        (place / name).write_text('<x xmlns="http://framenet.icsi.berkeley.edu"/>')
    (place / "frameIndex.xml").write_text(index)
    for file in (place, *place.rglob("*")):
        file.chmod(0o755 if file.is_dir() else 0o644)
    return place


Reader = Callable[[Path], Any]
