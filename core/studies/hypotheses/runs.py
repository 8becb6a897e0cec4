"""Which studies a batch of hypotheses needs, on which rows: the runs behind its criteria."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ... import config, studies
from ...capture.edge_names import edge_name
from ..contract import Study
from ..lookup import find_study
from .predicates import Hypothesis, counterpart_of, predicate_of
from .row_choice import FRAMES, RowChoice

if TYPE_CHECKING:
    from .hypothesis import HypothesisOptions

EFFECTS = "operators"
OPERATORS = ("zero", "mean")
OWN_RANDOM = ("why", "match")  # studies that compare with random weights themselves
RANDOM = tuple(f"random weights {seed}" for seed in (1, 2))
ONE_TASK = (EFFECTS, "classify-maps", "patch", "edge-effects")


def usual_rows(predicate: str, limit: int) -> tuple[str, str]:
    """Names of rows that a hypothesis may be thought of on, and of others that may judge it, where none were chosen."""
    study = predicate_of(predicate).study
    if study == "frame-heads":
        return f"{FRAMES}:train:0:0", f"{FRAMES}:dev:0:0"
    if study in (EFFECTS, "patch", "edge-effects"):  # of a classifier, so both of its task
        return f"sst2:train:{limit}:0", f"sst2:dev:{limit}:0"
    return f"sst2:dev:{limit}:0", f"rte:dev:{limit}:0"  # on which nothing that ships was measured


@dataclass(frozen=True)
class StudyRun:
    """One study on some rows. study: with its variant, as `Hypothesis.measured_by`; rows: "thought of on" or "judged
    on", or one of RANDOM: the judging rows, with fresh weights."""

    study: str
    checkpoint: str
    rows: str
    choice: RowChoice
    options: Any

    @property
    def key(self) -> tuple[str, str, str]:
        """What the run is found by."""
        return (self.study, self.checkpoint, self.rows)

    @property
    def is_random(self) -> bool:
        """Whether it is of fresh weights."""
        return self.rows in RANDOM

    @property
    def source(self) -> str:
        """Study, rows and checkpoint in a word."""
        source = f"{self.study} on {self.choice}, {self.checkpoint}"
        return f"{source} ({self.rows})" if self.is_random else source

    @property
    def does(self) -> Study[Any, Any]:
        """The study itself."""
        return find_study(self.study.partition(":")[0])


def runs_of(options: "HypothesisOptions") -> list[StudyRun]:
    """Every run that the batch needs, each once, in a fixed order."""
    needed: dict[tuple[str, str, str], list[Hypothesis]] = {}
    for hypothesis in options.hypotheses:
        for key in _keys(options.checkpoint, hypothesis):
            needed.setdefault(key, []).append(hypothesis)
    found = []
    for (study, checkpoint, rows), mine in needed.items():
        choice = options.thought if rows == "thought of on" else options.judged
        name = studies.worker_cache.random_name(checkpoint, 1 + RANDOM.index(rows)) if rows in RANDOM else checkpoint
        run_options = _options(study, name, choice, mine, options.pipeline)
        found.append(StudyRun(study, checkpoint, rows, choice, run_options))
    return found


def _keys(checkpoint: str, hypothesis: Hypothesis) -> list[tuple[str, str, str]]:
    study = hypothesis.measured_by
    keys = [(study, checkpoint, "thought of on"), (study, checkpoint, "judged on")]
    if study.partition(":")[0] not in OWN_RANDOM:
        keys += [(study, checkpoint, rows) for rows in RANDOM]
    if hypothesis.parameter("margin"):
        keys.append((EFFECTS, checkpoint, "judged on"))
    if hypothesis.parameter("counterpart"):
        keys.append((study, counterpart_of(hypothesis.parameter("counterpart"))[0], "judged on"))
    return list(dict.fromkeys(keys))


def _options(
    named: str, checkpoint: str, choice: RowChoice, hypotheses: Sequence[Hypothesis], pipeline: str | None
) -> Any:
    study, _, apart = named.partition(":")
    rows: dict[str, Any] = {"split": choice.split, "limit": choice.limit or 0, "seed": choice.seed, "data": choice.data}
    about: dict[str, Any] = {"checkpoint": checkpoint, **rows}
    if study in ONE_TASK:
        about |= {"task": choice.task, **_of_task(study, apart, checkpoint, hypotheses)}
        if study == "classify-maps":
            del about["checkpoint"]
    elif study == "frame-heads":
        about = {"checkpoint": checkpoint, "rows": choice.frames(), "filter": False, "direction": apart}
    else:
        about |= {"tasks": [choice.task], "pipeline": pipeline, **_of_tasks(study, apart, hypotheses)}
    return find_study(study).read(about)


def _of_task(study: str, apart: str, checkpoint: str, hypotheses: Sequence[Hypothesis]) -> dict[str, Any]:
    """Options of a study of one task."""
    if study == EFFECTS:
        return {"operators": list(OPERATORS)}
    if study == "classify-maps":
        file = config.ANNOTATIONS / apart / "classifier.safetensors"
        return {"checkpoints": [checkpoint], "classifier": str(file), "name": f"bundled, {apart}", "class_set": apart}
    if study == "patch":
        return {"kind": apart}
    edges = [edge_name(h.subject, h.parameter("reader"), h.parameter("input")) for h in hypotheses]
    return {"edges": sorted(set(edges))}


def _of_tasks(study: str, apart: str, hypotheses: Sequence[Hypothesis]) -> dict[str, Any]:
    """Options of a study of several tasks, where they are not its defaults."""
    controls = [hypothesis.parameter("control") for hypothesis in hypotheses]
    if study == "features":
        return {"features": _named([h.parameter("feature") for h in hypotheses] + controls)}
    if study == "relations":
        return {"relations": _named([h.relation for h in hypotheses] + controls)}
    if study == "roles":
        return {"sequences": 2}  # the fewest: no predicate is about words that come twice
    return {"compare": apart, "random_inputs": 12} if study == "match" else {"removal": 0, "single_heads": False}


def _named(names: Sequence[str]) -> list[str]:
    return sorted({name for name in names if name})
