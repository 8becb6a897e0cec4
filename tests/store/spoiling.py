"""A database with one sound row of each kind, and the JSON that each row may be spoiled with."""

import json
from typing import Any

from core.store import classifiers, findings, hypotheses, jobs, labels, projects, runs
from core.store.findings import Finding, Number
from tests.store.labelling import a_map, event

ROW = {"statistic": "s", "layer": 0, "head": 0, "value": 0.5}
RULES = {"k": 2, "lapse": 900.0, "ahead": 8, "order": "random", "seed": 0, "people": ["ada"]}
RECIPE = {"kind": "baseline", "epochs": 5, "batch": 8, "rate": 0.001}
SCORES = {"macro_f1": 0.5, "on": "unseen inputs", "rows": [], "maps": [], "confusions": [[[1, 0], [0, 1]]]}


def fill(db: Any) -> None:
    """One sound row in each table whose JSON pages read."""
    labels.store_maps(db, [a_map("m1"), a_map("m2", head=1)])
    labels.record_events(db, [event(1), event(2, "m2", "diagonal")])
    run = runs.record_run(db, "heads", {"limit": 3}, runs.Provenance("c", row_ids=("1",)), title="A sound run")
    runs.store_rows(db, run, [ROW])
    job = jobs.add_job(db, "heads", "A sound job", {"limit": 3})
    jobs.add_units(db, job, {"limit": 3}, [{"key": "k", "size": 3, "arguments": {}}])
    jobs.store_outcome(db, job, 0, jobs.UnitEnd(rows=[{"b": 1}], seconds=0.25, provenance={"checkpoint": "c"}))
    jobs.set_state(db, job, "done", run=run)
    maps = [projects.ProjectMap("m1", "label"), projects.ProjectMap("m2", "label")]
    projects.add_project(db, projects.Heading("A sound project", "bert"), recipe={"count": 2}, rules=RULES, maps=maps)
    snapshot = [["m1", "vertical", "tab:1"], ["m2", "diagonal", "tab:2"]]
    about = ("bert", b"weights", RECIPE, ["vertical", "diagonal"], snapshot, SCORES, "ada", "A sound classifier")
    classifiers.save_classifier(db, classifiers.Trained(*about))
    findings.pin(db, Finding("run", "A sound finding", "", "about", "", (Number("L1H1", "weight", 0.5),)))
    batch = hypotheses.StoredBatch(
        "c", "hash", {"task": "sst2"}, {"task": "rte"}, (("1", "ab"),), (("2", "cd"),), 1, 0.05
    )
    hypotheses.add_batch(db, batch, [(0, 0, "follows-relation", (("relation", "nsubj"),))])
    with db.write() as cursor:
        cursor.execute("INSERT INTO frame_release VALUES ('r', 'f', 'run', 1, '[]', now()::TIMESTAMP)")
        body = json.dumps({"id": "a", "text": "A cat sat.", "target": [[2, 5]]})
        cursor.execute(
            "INSERT INTO frame_annotation VALUES ('r', 'a', 'Self_motion', 'sit.v', [], 'A cat sat.', 3, ?)", [body]
        )


def spoil(db: Any, table: str, column: str, text: str) -> None:
    """Put JSON text into every row of a table, past all checks."""
    with db.write() as cursor:
        cursor.execute(f'UPDATE "{table}" SET "{column}" = ?', [text])  # noqa: S608 - names of a test


OF_OTHER_KIND = [  # table, column, value: a list for an object, an object for a list, text for either
    (table, column, json.dumps(value))
    for (table, column), value in {
        ("run", "options"): [1], ("run", "row_ids"): {"a": 1}, ("job", "options"): [[1]], ("job", "asked"): "text",
        ("job_unit", "arguments"): [], ("job_outcome", "provenance"): 5, ("project", "recipe"): ["x"],
        ("project", "rules"): "k", ("classifier", "recipe"): [], ("classifier", "classes"): {"vertical": 1},
        ("classifier", "snapshot"): {"m1": "vertical"}, ("classifier", "scores"): [0.5], ("finding", "numbers"): {},
        ("finding", "pictures"): "x", ("frame_release", "skipped"): {"where": "x"}, ("frame_annotation", "body"): [],
        ("hypothesis_batch", "thought"): [], ("hypothesis_batch", "judged_rows"): {"2": "cd"},
        ("hypothesis", "parameters"): {"relation": "nsubj"}, ("study_row", "body"): [ROW],
    }.items()
]  # fmt: skip
OF_OTHER_TYPE = [  # within an object or a list
    ("project", "rules", json.dumps(RULES | {"k": "2"})),
    ("project", "rules", json.dumps(RULES | {"k": 10**9})),
    ("project", "rules", json.dumps(RULES | {"k": 0})),
    ("project", "rules", json.dumps(RULES | {"k": True})),
    ("project", "rules", json.dumps(RULES | {"people": "ada"})),
    ("project", "rules", json.dumps(RULES | {"people": [{"name": "ada"}]})),
    ("project", "rules", json.dumps(RULES | {"lapse": float("inf")})),
    ("project", "rules", json.dumps(RULES | {"lapse": 1e300})),
    ("project", "rules", json.dumps(RULES | {"gold_rate": None})),
    ("project", "rules", json.dumps(RULES | {"seed": 0.5})),
    ("project", "recipe", json.dumps({"checkpoints": "c"})),
    ("project", "recipe", json.dumps({"count": [2]})),
    ("classifier", "recipe", json.dumps(RECIPE | {"epochs": "5"})),
    ("classifier", "recipe", json.dumps(RECIPE | {"kind": ["baseline"]})),
    ("classifier", "classes", '[["vertical"], "diagonal"]'),
    ("classifier", "snapshot", '[["m1", "vertical"]]'),
    ("classifier", "snapshot", '["m1"]'),
    ("classifier", "snapshot", "[5]"),
    ("classifier", "scores", json.dumps(SCORES | {"macro_f1": "high"})),
    ("classifier", "scores", json.dumps(SCORES | {"macro_f1": float("nan")})),
    ("classifier", "scores", json.dumps(SCORES | {"macro_f1": [0.5]})),
    ("classifier", "scores", json.dumps(SCORES | {"rows": {"a": 1}})),
    ("classifier", "scores", json.dumps(SCORES | {"maps": ["m1"]})),
    ("classifier", "scores", json.dumps(SCORES | {"confusions": "none"})),
    ("classifier", "scores", json.dumps(SCORES | {"confusions": [[1, 2]]})),
    ("finding", "numbers", '[{"name": "L1H1", "what": "w", "value": "0.5"}]'),
    ("finding", "numbers", '[{"name": "L1H1"}]'),
    ("finding", "numbers", '[{"name": 5, "what": "w", "value": 0.5}]'),
    ("finding", "numbers", '["L1H1"]'),
    ("finding", "numbers", '[{"name": "L1H1", "what": "w", "value": 0.5, "n": "many"}]'),
    ("finding", "numbers", '[{"name": "L1H1", "what": "w", "value": NaN}]'),
    ("finding", "pictures", "[5]"),
    ("frame_release", "skipped", '["x"]'),
    ("frame_release", "skipped", '[{"where": 5}]'),
    ("frame_annotation", "body", '{"text": 5}'),
    ("frame_annotation", "body", '{"text": "A", "elements": {"a": 1}}'),
    ("hypothesis", "parameters", '[["relation"]]'),
    ("hypothesis", "parameters", '[["relation", {"a": 1}]]'),
    ("hypothesis_batch", "thought_rows", "[5]"),
    ("hypothesis_batch", "runs", '["r"]'),
]
SPOILED = OF_OTHER_KIND + OF_OTHER_TYPE
