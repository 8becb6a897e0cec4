"""Options that many studies share, with their types and help texts."""

from pathlib import Path
from typing import Annotated, Any

import pydantic.dataclasses
from pydantic import BeforeValidator, Field, ValidationInfo

from ..config import BUNDLED_MODELS, CLASSIFIER, ENCODER, command_line, settings
from ..errors import InputError
from ..tasks.glue import TaskRow, read_rows
from ..tuning.recipe import AUTO, preset_for
from ..tuning.saved_checkpoints import tuned_checkpoints
from .contract import Flag

LATEST = "latest"
DTYPES = {"bf16": "bfloat16", "fp32": "float32", "fp16": "float16"}


def _none_of_zero(value: Any) -> Any:
    return None if value == 0 else value


def _long_name(value: Any) -> Any:
    return DTYPES.get(value, value) if isinstance(value, str) else value


def _newest_of_latest(value: Any) -> Any:
    """Replace "latest" by the user's newest fine-tuned checkpoint, or the bundled one, so that the job names it."""
    if value != LATEST or Path(LATEST).is_dir():
        return value
    known = tuned_checkpoints(settings().runs / "finetuned")
    if known:
        return str(known[0].folder)
    if (BUNDLED_MODELS / CLASSIFIER).is_dir():
        return CLASSIFIER
    raise InputError(
        f'"{LATEST}" names the checkpoint that was fine-tuned here most recently, but there is none. Make one '
        f"with `{command_line('finetune', 'atlas-encoder', '--task', 'sst2')}`, or name a folder."
    )


def _some_path(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value or None


Checkpoint = Annotated[str, Flag("checkpoint: bundled name, local folder or hub ID", argument=True)]
Classifier = Annotated[
    str,
    BeforeValidator(_newest_of_latest),
    Flag(
        (
            'fine-tuned classifier: bundled name, local folder, hub ID, or "latest" (the most recently '
            "fine-tuned checkpoint, otherwise the bundled one)"
        ),
        argument=True,
    ),
]
A_TASK = "GLUE task (mrpc, stsb, sst2, qqp, rte, qnli or mnli), or the path of your own CSV file"
TaskName = Annotated[str, Flag(A_TASK, name="--task")]
SomePath = BeforeValidator(_some_path)
Data = Annotated[
    str | None,
    SomePath,
    Flag('folder with the TSV files of the GLUE tasks, or "hub" to download them (default: bundled samples)'),
]
InputSplit = Annotated[str, Flag("split of the task from which examples are taken: dev or train")]
Split = Annotated[
    str, Flag("split of the task: dev, train, or unseen (dev and training examples that were not used for fine-tuning)")
]
Limit = Annotated[
    int | None,
    BeforeValidator(_none_of_zero),
    Flag("maximum number of examples per task, drawn at random with the seed; 0 uses all examples", least=0),
]
FirstRows = Annotated[
    int | None,
    BeforeValidator(_none_of_zero),
    Flag("largest number of examples, counted from the start of the file; 0 uses all examples", least=0),
]
LARGEST_SEED = 2**63 - 1  # what the store keeps
Seed = Annotated[
    int,
    Field(ge=0, le=LARGEST_SEED),
    Flag(
        "random seed for sampling examples, null distributions, permutations and bootstrap intervals",
        least=0,
        most=LARGEST_SEED,
    ),
]
Reference = Annotated[
    int,
    Flag("number of training examples from which mean, resample and constant ablation compute replacement outputs"),
]
DrawnRows = Annotated[int, Flag("number of examples that --operator resample draws for each input", name="--draws")]
MeanBy = Annotated[
    str,
    Flag(
        "positions over which mean ablation averages: class (positions of the same class: first, separator or "
        "other), position (only the same position) or all"
    ),
]
Pipeline = Annotated[
    str | None, Flag("name or folder of a spaCy pipeline for tags and dependencies (default: the bundled pipeline)")
]
LinkDirection = Annotated[str, Flag("direction of attention: element_to_target, target_to_element or later_to_earlier")]
LinkPairing = Annotated[
    str,
    Flag(
        "how tokens of the frame element and of the target are paired: product (all pairs), or zip (first with "
        "first, second with second, as in the code of Kovaleva et al. 2019)"
    ),
]
Dtype = Annotated[
    str, BeforeValidator(_long_name), Flag("number format of the computation: float32, bfloat16 or float16")
]


@pydantic.dataclasses.dataclass(frozen=True)
class InputOptions:
    """Options that select a checkpoint and inputs of a task. Labels are not needed."""

    checkpoint: Checkpoint = ENCODER
    task: TaskName = "sst2"
    data: Data = None
    split: InputSplit = "dev"
    limit: Limit = 200
    seed: Seed = 0


def inputs_of_task(options: InputOptions) -> list[TaskRow]:
    """Load the inputs that the options select."""
    return read_rows(options.task, options.split, folder=options.data, limit=options.limit, seed=options.seed)


# ---------------------------------------------------------------- of fine-tuning

_NUMBERS = {"batch", "epochs", "max_length", "train_last", "reset_last", "train_limit", "dev_limit", "pad_to"}
_WORDS = {"decay", "pooling", "keep", "precision"}
_SWITCHES = {"true": True, "false": False}


def settings_of(given: Any) -> Any:
    """Parse fine-tuning settings such as "epochs=1". Raises InputError for an invalid setting."""
    if not isinstance(given, (list, tuple)):
        return given
    settings: dict[str, int | float | str | bool] = {}
    for setting in given:
        name, equals, value = setting.partition("=")
        try:
            if not equals:
                raise ValueError
            settings[name] = (
                value if name in _WORDS else _SWITCHES[value] if name == "bucketed" else
                int(value) if name in _NUMBERS else float(value)
            )  # fmt: skip
        except (ValueError, KeyError) as error:
            raise InputError(
                f"A setting must be written like epochs=1 or learning_rate=0.0005; got {setting!r}. Correct the "
                "setting."
            ) from error
    return settings


def _from_zero(given: Any) -> Any:
    return range(min(given, MOST_SEEDS + 1)) if isinstance(given, int) else given


TunedTasks = Annotated[
    tuple[str, ...],
    Flag(f"{A_TASK}; repeat the option for several tasks", name="--task", required=True),
]
Initialisations = Annotated[
    tuple[str, ...],
    Flag(
        "initialisation: pretrained, random, frozen (pre-trained weights, only the new classifier is trained) or "
        "untrained (pre-trained weights, no training); repeat the option for several initialisations",
        name="--init",
    ),
]
MOST_SEEDS = 1000
Seeds = Annotated[
    tuple[Annotated[int, Field(ge=0, le=LARGEST_SEED)], ...],
    BeforeValidator(_from_zero),
    Field(max_length=MOST_SEEDS),
    Flag("number of random seeds for repeated runs (seeds 0, 1, 2, ...)", typed=int, least=1, most=MOST_SEEDS),
]


def _preset_of_checkpoint(value: Any, known: ValidationInfo) -> Any:
    """Replace "auto" by the recipe for this checkpoint, so that the job names it."""
    return preset_for(str(known.data.get("checkpoint", ""))) if value == AUTO else value


Preset = Annotated[
    str,
    Field(validate_default=True),
    BeforeValidator(_preset_of_checkpoint),
    Flag(
        "fine-tuning recipe: paper, replication, small, bundled, long, compact, or auto (bundled for the bundled "
        "encoder, small for other bundled checkpoints, otherwise paper)"
    ),
]
Settings = Annotated[
    dict[str, Any],
    BeforeValidator(settings_of),
    Flag(
        "setting of the fine-tuning recipe to change, such as epochs=1; repeat the option for several settings",
        name="--set",
        typed=list[str],
    ),
]
Out = Annotated[
    str | None, Flag("folder for fine-tuned checkpoints (default: next to the database)", name="--out --folder")
]
