"""The options that many studies share: their type, what a terminal and a page say of them, and what they take."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator

from core.studies.contract import Flag

DTYPES = {"bf16": "bfloat16", "fp32": "float32", "fp16": "float16"}


def _none_of_zero(value: Any) -> Any:
    return None if value == 0 else value


def _long_name(value: Any) -> Any:
    return DTYPES.get(value, value)


def _some_path(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value or None


Checkpoint = Annotated[str, Flag("bundled name, local folder or hub id", argument=True)]
Classifier = Annotated[str, Flag("a fine-tuned classifier: local folder or hub id", argument=True)]
TaskName = Annotated[str, Flag("mrpc, stsb, sst2, qqp, rte, qnli, mnli, or a CSV of your own", name="--task")]
Data = Annotated[
    str | None,
    BeforeValidator(_some_path),
    Flag("folder in GLUE's TSV form, or hub; default: the bundled samples"),
]
Split = Annotated[str, Flag("dev or train")]
Limit = Annotated[
    int | None,
    BeforeValidator(_none_of_zero),
    Flag("most rows of each task, drawn with the seed; 0 for all", least=0),
]
Seed = Annotated[int, Flag("of drawn rows, nulls, permutations and intervals")]
Dtype = Annotated[str, BeforeValidator(_long_name), Flag("float32, bfloat16 or float16")]
