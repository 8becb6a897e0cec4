"""Which studies a batch of hypotheses needs, on which rows: the runs behind its criteria."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from core.studies.contract import Study
from core.studies.hypotheses.predicates import Hypothesis, counterpart_of, predicate_of
from core.studies.hypotheses.row_choice import RowChoice
from core.studies.lookup import find_study

if TYPE_CHECKING:
    from core.studies.hypotheses.hypothesis import Options

EFFECTS = "operators"
OPERATORS = ("zero", "mean")


@dataclass(frozen=True)
class StudyRun:
    """One study on some rows. rows: "thought of on" or "judged on"."""

    study: str
    checkpoint: str
    rows: str
    choice: RowChoice
    options: Any

    @property
    def key(self) -> tuple[str, str, str]:
        """What it is found by."""
        return (self.study, self.checkpoint, self.rows)

    @property
    def source(self) -> str:
        """Study, rows and checkpoint in a word."""
        return f"{self.study} on {self.choice}, {self.checkpoint}"

    @property
    def does(self) -> Study:
        """The study itself."""
        return find_study(self.study)


def runs_of(options: "Options") -> list[StudyRun]:
    """Every run that the batch needs, each once, in a fixed order."""
    needed: dict[tuple[str, str, str], list[Hypothesis]] = {}
    for hypothesis in options.hypotheses:
        for key in _keys(options.checkpoint, hypothesis):
            needed.setdefault(key, []).append(hypothesis)
    choices = {"thought of on": options.thought, "judged on": options.judged}
    return [
        StudyRun(*key, choices[key[2]], _options(*key[:2], choices[key[2]], mine, options.pipeline))
        for key, mine in needed.items()
    ]


def _keys(checkpoint: str, hypothesis: Hypothesis) -> list[tuple[str, str, str]]:
    study = predicate_of(hypothesis.predicate).study
    keys = [(study, checkpoint, "thought of on"), (study, checkpoint, "judged on")]
    if hypothesis.parameter("margin"):
        keys.append((EFFECTS, checkpoint, "judged on"))
    if hypothesis.parameter("counterpart"):
        keys.append((study, counterpart_of(hypothesis.parameter("counterpart"))[0], "judged on"))
    return list(dict.fromkeys(keys))


def _options(
    study: str, checkpoint: str, choice: RowChoice, hypotheses: Sequence[Hypothesis], pipeline: str | None
) -> Any:
    rows: dict[str, Any] = {"split": choice.split, "limit": choice.limit or 0, "seed": choice.seed, "data": choice.data}
    about: dict[str, Any] = {"checkpoint": checkpoint, **rows}
    if study == EFFECTS:
        return find_study(study).read({**about, "task": choice.task, "operators": list(OPERATORS)})
    about |= {"tasks": [choice.task], "pipeline": pipeline}
    controls = [hypothesis.parameter("control") for hypothesis in hypotheses]
    if study == "features":
        about["features"] = _named([h.parameter("feature") for h in hypotheses] + controls)
    elif study == "relations":
        about["relations"] = _named([h.relation for h in hypotheses] + controls)
    elif study == "roles":
        about["sequences"] = 2  # the fewest: no predicate is about words that come twice
    elif study == "why":
        about |= {"removal": 0, "single_heads": False}
    return find_study(study).read(about)


def _named(names: Sequence[str]) -> list[str]:
    return sorted({name for name in names if name})
