"""Records that describe units of work."""

from dataclasses import dataclass

from ..tuning.recipe import Seeds


@dataclass(frozen=True)
class ExampleUnit:
    """A unit of work on some examples of a task.

    Attributes:
        positions: of the examples in the task.
        step: step of a study with several steps, such as "attribution".
        targets: numbers of the ablation targets, edges or fits; empty for all.
        groups: numbers of sets of heads.
        round: from 0.
        price: penalty for each open gate, in units of the loss.
    """

    positions: tuple[int, ...]
    step: str = ""
    targets: tuple[int, ...] = ()
    groups: tuple[tuple[int, ...], ...] = ()
    round: int = 0
    price: float = 0.0


@dataclass(frozen=True)
class ChunkUnit:
    """A unit of work on the inputs from `start` to `stop` of a task, treebank split or list, for one checkpoint."""

    checkpoint: str
    inputs: str
    start: int
    stop: int

    @property
    def key(self) -> str:
        return f"{self.checkpoint}|{self.inputs}|{self.start}"


@dataclass(frozen=True)
class NamedUnit:
    """A unit of work on one named item, such as an ablation method, a property or a snapshot.

    Attributes:
        source: weights that are measured.
        label: name in the results.
        number: position in the list of items, from 0.
        order, packed: for a unit of another study in a joint job, its position there and its arguments as JSON.
    """

    name: str
    source: str = ""
    label: str = ""
    number: int = 0
    order: int = 0
    packed: str = ""


@dataclass(frozen=True)
class TrainingUnit:
    """A unit of work that trains one model.

    Attributes:
        kind: of the fit, if a study has several.
        source: initial weights.
        seeds: for the weights of the output head, the sample of examples and the order of batches.
        fold: number of the fold that is left out, from 0.
        split: what the folds divide, or what is compared when weights are pruned.
        share: fraction of the training examples, or of the pruned weights, 0 to 1; None for all.
        frozen: number of frozen layers.
        kept: components that are not pruned.
        targets: numbers of the ablation targets that are recomputed in float32.
    """

    task: str = ""
    kind: str = ""
    source: str = "pretrained"
    seeds: Seeds = Seeds.all(0)  # noqa: RUF009 - frozen
    fold: int = 0
    split: str = ""
    share: float | None = None
    frozen: int = 0
    kept: tuple[str, ...] = ()
    targets: tuple[int, ...] = ()
