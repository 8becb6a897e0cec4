"""The four records that say what a unit of work is about."""

from dataclasses import dataclass

from ..tuning.recipe import Seeds


@dataclass(frozen=True)
class ExampleUnit:
    """A unit of work on some examples of a task, with what is measured on them.

    Attributes:
        positions: of the examples in their task.
        step: of a study that has several, such as "attribution".
        targets: numbers of the ablation targets, edges or fits; empty: all.
        groups: sets of heads by number.
        round: from 0.
        price: of an open gate, in units of the task's loss.
    """

    positions: tuple[int, ...]
    step: str = ""
    targets: tuple[int, ...] = ()
    groups: tuple[tuple[int, ...], ...] = ()
    round: int = 0
    price: float = 0.0


@dataclass(frozen=True)
class ChunkUnit:
    """Inputs `start` to `stop` of one checkpoint. `inputs`: a task, a split of a treebank or a list."""

    checkpoint: str
    inputs: str
    start: int
    stop: int

    @property
    def key(self) -> str:
        """Return the name of the chunk, which is unique among the units of work."""
        return f"{self.checkpoint}|{self.inputs}|{self.start}"


@dataclass(frozen=True)
class NamedUnit:
    """A unit of work that measures one of several named things, such as an ablation method, a property or a snapshot.

    Attributes:
        source: which weights are measured.
        label: what the results call it.
        number: its position among the others, from 0.
        order, packed: of a unit of another study in a joint job: its position there, and its arguments as JSON.
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
        kind: of the fit, where a study has several.
        source: which weights it starts from.
        seeds: of its head, sample of examples and order of batches.
        fold: the part of the examples that is left out, from 0.
        split: what the folds divide, or what is compared when weights are pruned.
        share: of the training examples or of the pruned weights, 0 to 1; None: all.
        frozen: how many layers do not learn.
        kept: components that are not pruned.
        targets: numbers of the ablation targets that are computed again in float32.
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
