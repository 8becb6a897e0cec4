"""Studies on tiny checkpoints with options that differ from the defaults: units, rows and tables equal stored ones.

`python -m tests.studies.test_measured_rows` stores them. Each test runs a study from end to end and compares its units,
partial results, rows, terminal output and the examples that the run names. The tests fail if a study ignores an
option, omits an example or changes a column.
"""

import json
import lzma
import re
import shutil
import tempfile
from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForSequenceClassification

from core import config
from core.jobs import worker
from core.patterns.classifier_registry import bundled_weights
from core.probing import layers
from core.store.rows import plain
from core.studies.ablation import sequential_test, setup
from core.studies.attention import inputs
from core.studies.circuits import circuit, gates, shapley
from core.studies.contract import declared, provenance_of_run
from core.studies.explanation import writes
from core.studies.frames import frame_heads
from core.studies.lookup import find_study
from core.studies.patterns import pattern_shares
from core.studies.probing import probe
from tests.capture.conftest import TEXT
from tests.families.tiny import tiny_config, tokenizer_of
from tests.studies.figures import figures
from tests.studies.planted import save_planted, write_rows

FILE = Path(__file__).with_name("measured_rows.json.xz")

DECIMAL = re.compile(r"[-+]?\d[\d,]*\.\d+")

PAIR = ["the old engine ran all night", "nobody in the village heard it stop"]
ATTENDING = {
    "tasks": ["sst2", "mrpc"], "split": "train", "data": "{data}", "limit": 7, "seed": 3, "compare": "{twin}",
}  # fmt: skip
TYPED = {"texts": [*TEXT[:2], PAIR]}
HYBRID = {"checkpoint": "{causal}", "tasks": ["sst2"], "data": "{data}", "limit": 6}  # sees back; some layers attend
SOME = {"data": "{data}", "split": "train", "limit": 18, "seed": 3}
CAUSAL = {"checkpoint": "{causal}", "data": "{data}", "limit": 6}
REFERENCE = {"reference": 11, "draws": 2}
SETTINGS = {"epochs": 1, "batch": 8, "learning_rate": 0.001, "max_length": 24}

# Studies are left out if the order of their rows or their p values depend on the last bits of sums, which differ
# between processors. Options differ from their defaults; {…} are folders that the tests create.
MEASURED = {
    "disable": [
        SOME | REFERENCE | {"operator": "resample", "what": "layers"},
        SOME | REFERENCE | {"operator": "mean", "mean_by": "position", "what": "all-but-one"},
        SOME | {"heads": "L1H1,L2-attention; L3H1"},
        SOME | {"what": "duplicates", "within": 0.95},
        CAUSAL | {"operator": "zero"},
    ],
    "importance": [SOME | {"split": "dev", "reading": "token", "normalize": False, "sweep": "disable"}, CAUSAL],
    "knockout": [SOME | {"edges": ["separators", "noun-adjective"], "renormalise": False}, CAUSAL],
    "operators": [
        SOME | REFERENCE | {"operators": ["mean", "constant", "resample"], "mean_by": "all"},
        CAUSAL | {"operators": ["disable", "zero"]},
    ],
    "patch": [SOME | {"kind": "scramble", "what": "blocks", "floor": 0.0}],
    "perturb": [SOME | {"kinds": ["scramble", "mask", "drop", "first-only", "synonym"]}],
    "prune": [
        SOME | {"split": "dev", "orders": ["importance", "recomputed", "sweep", "random"], "order_rows": 12, "steps": 3,
                "random_orders": 2, "reading": "token", "normalize": False, "operator": "disable"},
        CAUSAL | {"orders": ["importance", "random"], "order_rows": 8, "steps": 2, "random_orders": 1},
    ],
    "separators": [SOME, CAUSAL],
    "sequential-test": [
        SOME | {"limit": 36, "margin": 0.9, "clip": 3.0, "alpha": 0.2, "first": 16, "survivors": False},
        SOME | REFERENCE | {"limit": 20, "operator": "resample", "what": "layers", "first": 8},
        SOME | REFERENCE | {"limit": 20, "operator": "mean", "mean_by": "all", "heads": "L1H1,L2H3; L3H1", "first": 8},
        CAUSAL | {"limit": 20, "first": 8, "operator": "zero"},
    ],
    "sinks": [SOME | {"checkpoint": "{planted}", "limit": 9, "margin": 0.2}, CAUSAL],
    "budget": [
        ATTENDING | {"limit": 3}, TYPED | {"pipeline": "none"},
        {"tasks": ["sst2"], "data": "{data}", "limit": 4, "parts_of_speech": True}, HYBRID,
    ],
    "effective": [ATTENDING, TYPED],
    "features": [ATTENDING | {"features": ["noun", "punctuation", "start"], "word_types": True}, TYPED, HYBRID],
    "norms": [ATTENDING | {"features": ["noun", "separator"]}, TYPED, HYBRID],
    "redundancy": [TYPED | {"queries": 2, "groups": 3}, HYBRID],
    "relations": [HYBRID],
    "roles": [ATTENDING | {"sequences": 3, "period": 5, "times": 1.5}, TYPED | {"sequences": 2, "period": 4}],
    "statistics": [ATTENDING | {"queries": 2}, HYBRID],
    "edge-effects": [
        SOME | {"edges": ["L1H1>L2H3.v", "L1H4>L3H2.q"], "limit": 36},
        SOME | {"edges": ["L1H4>L3H2.q"], "kind": "drop"},
    ],
    "gates": [SOME | {"fit_rows": 8, "samples": 3, "starts": 2, "steps": 4, "margin": 0.3}],
    "shapley": [
        SOME | {"orders": 2, "operator": "mean", "mean_by": "position", "judge_rows": 6, "reference": 11, "limit": 9},
        SOME | {"orders": 2, "operator": "mean", "mean_by": "all", "judge_rows": 0, "reference": 5, "limit": 6},
    ],
    "why": [
        TYPED | {"removal": 0},
    ],
    "writes": [SOME | {"checkpoint": "{planted}", "pairs_file": "{pairs}", "limit": 6}],
    "representation": [SOME],
    "draw-maps": [
        {"tasks": ["sst2", "mrpc"], "split": "train", "data": "{data}", "count": 9, "per_input": 2, "seed": 3,
         "longest": 24},
        {"texts": TEXT, "count": 5, "per_input": 3},
    ],
    "pattern-shares": [
        SOME | {"checkpoints": ["{planted}", "{twin}"], "task": "sst2", "classifier": "{classifier}", "name": "one",
                "class_set": "bert", "limit": 9},
    ],
    "subnetworks": [
        {"task": "sst2", "data": "{data}", "seeds": [1], "preset": "compact",
         "settings": SETTINGS | {"train_limit": 16, "dev_limit": 10}, "shares": [0, 0.5], "scopes": ["layer"],
         "moments": ["after"], "structured": False},
    ],
    "transfer": [
        {"tasks": ["sst2"], "data": "{data}", "seeds": [1], "preset": "compact",
         "settings": SETTINGS | {"train_limit": 16, "dev_limit": 10}, "freeze": False},
    ],
    "cross-fitted-scores": [
        {"task": "sst2", "data": "{data}", "limit": 24, "folds": 3, "preset": "compact", "settings": SETTINGS,
         "seed": 2, "out": "{out}", "initialisations": ["pretrained", "untrained"], "seeds": [2]},
    ],
    "frame-heads": [
        {"direction": "target_to_element", "pairing": "zip", "average": "links", "without_first": True,
         "longest_sentence": 11, "longest_element": 2, "nearest": 2, "distance": "places", "one_span": False,
         "one_word": False, "core": "any", "draws": 99, "seed": 3},
        {"checkpoint": "{causal}", "filter": False, "direction": "later_to_earlier", "draws": 49},
    ],
    "probe": [
        {"properties": ["word order", "main auxiliary"], "treebank": "{treebank}", "limit": 3, "seed": 2},
    ],
    "syntax": [{"treebank": "{treebank}", "limit": 3, "seed": 2}],
    "translation": [{"checkpoint": "atlas-translator", "what": ["prune", "sweep"], "limit": 4,
                     "order_rows": 3, "seed": 2}],
}  # fmt: skip

CASES = [(study, number) for study, cases in MEASURED.items() for number in range(len(cases))]

SMALL_UNITS = [  # so that several partial results are merged, and little is trained
    *((module, "ROWS_A_UNIT", size) for module, size in (
        (setup, 13), (inputs, 4), (shapley, 5), (writes, 4), (pattern_shares, 5),
    )),
    (sequential_test, "EXACT_A_UNIT", 4), (sequential_test, "MOST_A_UNIT", 6), (gates, "FITS_A_UNIT", 2),
    (frame_heads, "SENTENCES_A_UNIT", 30), (circuit, "FLOOR", 1e-7),
    (layers, "LEAST_STEPS", 25), (layers, "REFITS", 2), (probe, "SIZES", {"train": 40, "agree": 12, "part": 12}),
]  # fmt: skip


def made(place: Path) -> dict[str, str]:
    """Checkpoints and examples, by the names that the options have for them."""
    torch.set_num_threads(1)
    found = {name: str(place / name) for name in ("out", "causal", "treebank", "pairs", "classifier")}
    found["planted"] = str(save_planted(place / "planted"))
    found["twin"] = str(save_planted(place / "twin", twin=True))
    found["data"] = str(write_rows(place / "data", 40))
    shutil.copytree(config.DATA / "samples" / "MRPC", place / "data" / "MRPC")
    tokenizer = tokenizer_of("jamba")
    torch.manual_seed(0)
    settings = tiny_config("jamba", len(tokenizer))  # two of its four layers have attention
    settings.pad_token_id = 0
    AutoModelForSequenceClassification.from_config(settings).save_pretrained(found["causal"])
    tokenizer.save_pretrained(found["causal"])
    (place / "treebank").mkdir()
    words = [word for word in TEXT[0].split() if word.isalpha()]
    lines = [
        f"{('next', 'other')[k % 2]},{word},{words[(k + 1 + k % 2) % len(words)]}" for k, word in enumerate(words * 2)
    ]
    Path(found["pairs"]).write_text("\n".join(["relation,source,target", *dict.fromkeys(lines)]))
    Path(found["classifier"]).write_bytes(bundled_weights("bert"))
    for file in (config.DATA / "treebank").glob("*.conllu"):
        sentences = file.read_text().split("\n\n")[:8]
        (place / "treebank" / file.name).write_text("\n\n".join(sentences) + "\n")
    return found


def measured(study: str, options: dict, folders: dict[str, str], patch: pytest.MonkeyPatch) -> dict:
    """All that a job leaves, as JSON; folders have their names."""
    for module, name, value in SMALL_UNITS:
        patch.setattr(module, name, value)
    wanted = {"checkpoint": "{planted}"} if "checkpoint" in declared(find_study(study).options) else {}
    given = json.loads(re.sub(r"\{(\w+)\}", lambda name: folders[name[1]], json.dumps(wanted | options)))
    divided = worker.divide(study, given)
    units, run_units, found, provenance = divided["units"], [], [], []
    while units:
        run_units += units
        for unit in units:
            done = worker.run_unit(study, divided["options"], json.loads(json.dumps(unit)))
            found += json.loads(json.dumps(done["rows"]))
            provenance.append(done["provenance"])
        units = worker.more(study, divided["options"], found)["units"] if find_study(study).in_rounds else []
    rows = json.loads(json.dumps(worker.summarize(study, divided["options"], found)["rows"]))
    whole = find_study(study)
    rows = without_folders(rows, folders)
    said = whole.headline(rows)
    facts = provenance_of_run(divided["options"], worker.merged(provenance)).as_row()
    left = {
        "units": [[unit["key"], unit["size"]] for unit in run_units],
        "rows": rows,
        "shown": [one if isinstance(one, list) else figures(one) for one in plain(whole.shown(rows))],
        "headline": None if said is None else [figures(str(part)) for part in asdict(said).values()],
        "warnings": [figures(line) for line in whole.warnings(rows)],
        "provenance": {name: facts[name] for name in ("checkpoint", "task", "split", "seed", "dtype", "row_ids")},
    }
    return rounded(without_folders(left, folders))


def without_folders(left, folders: dict[str, str]):
    """The same with the names that folders have here in place of their paths."""
    text = json.dumps(left)
    for name, folder in folders.items():
        text = text.replace(folder, f"/{name}")
    return json.loads(text)


def rounded(value):
    """Numbers with as many digits as are compared, so that the file of them is small."""
    if isinstance(value, dict):
        return {name: rounded(of_name) for name, of_name in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


def close(value):
    """The same with numbers as they are on any machine: sums in another order differ in the last bits."""
    if isinstance(value, dict):
        return {name: close(of_name) for name, of_name in value.items()}
    if isinstance(value, list):
        return [close(item) for item in value]
    if isinstance(value, str) and DECIMAL.fullmatch(value):
        return Printed(value)
    return pytest.approx(value, rel=1e-3, abs=1e-5, nan_ok=True) if isinstance(value, float) else value


class Printed:
    """A number as a text has it; equal to its neighbours too, as sums of float32 that lie between the two are rounded
    to one of them on one processor and to the other on another."""

    def __init__(self, text: str) -> None:
        self.value, self.unit = float(text.replace(",", "")), 10.0 ** -len(text.partition(".")[2])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, str) or not DECIMAL.fullmatch(other):
            return False
        return abs(float(other.replace(",", "")) - self.value) < 1.5 * self.unit

    def __repr__(self) -> str:
        return f"{self.value} ± {self.unit}"


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return made(tmp_path_factory.mktemp("measured"))


@pytest.mark.thorough
@pytest.mark.parametrize(("study", "number"), CASES)
def test_a_job_leaves_what_it_left_before(study, number, folders, tmp_path, monkeypatch):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    before = json.loads(lzma.decompress(FILE.read_bytes()))[f"{study} {number}"]
    found = measured(study, MEASURED[study][number], folders | {"out": str(tmp_path / "out")}, monkeypatch)
    for name, value in found.items():
        assert value == close(before[name]), name


def measure_again() -> None:
    """Write what every line of MEASURED leaves today."""
    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        folders, found = made(Path(place)), {}
        for study, number in CASES:
            patch.setenv("ATLAS_DB", f"{place}/{study}-{number}/atlas.duckdb")
            own = folders | {"out": f"{place}/out-{study}-{number}"}
            found[f"{study} {number}"] = measured(study, MEASURED[study][number], own, patch)
        FILE.write_bytes(lzma.compress(json.dumps(found).encode(), preset=9))


if __name__ == "__main__":
    measure_again()
