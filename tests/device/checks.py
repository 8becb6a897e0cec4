"""The checks of `python -m tests.device`: each compares a device with the CPU's float32, to a bound stated here."""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from core.capture import streaming
from core.capture.losses import LabelledRows, effects
from core.capture.running import capture, run
from core.capture.selfcheck import run_checks
from core.capture.sweeping import Computing, every_head, sweep
from core.models.checkpoint import Checkpoint
from core.models.family import FAMILIES
from core.models.opening import open_checkpoint
from core.scoring.distances import HeadDistances
from core.scoring.heads import SpecialPositions
from core.scoring.sequential_test import Rules, standings
from core.scoring.statistics import HeadStatistics
from core.tasks.glue import TASKS, read_rows
from core.tuning.batches import encode
from core.tuning.model import initialised
from core.tuning.recipe import Recipe
from core.tuning.training import Fit
from tests.families.tiny import tiny_of_record

DTYPES = ("float32", "bfloat16")
ROWS = 16
BOUNDS = {  # largest difference from the CPU's float32, by dtype: room for bfloat16's 8 bits
    "maps": {"float32": 1e-3, "bfloat16": 0.1},
    "statistics": {"float32": 1e-3, "bfloat16": 0.1},
    "logits": {"float32": 5e-3, "bfloat16": 0.5},
    "losses": {"float32": 1e-2, "bfloat16": 0.2},
}
MARGIN = 0.3  # where some heads have a verdict after so few rows


@dataclass(frozen=True)
class Checked:
    """name: what was compared; seen: the figure, beside its bound."""

    name: str
    dtype: str
    passed: bool
    seen: str


def all_checks(device: torch.device, families: Sequence[str] = tuple(FAMILIES)) -> Iterator[Checked]:
    """Every check in every dtype; one that cannot run has failed, in the words of its error."""
    for dtype in DTYPES:
        for family in families:
            yield _tried(f"self-check of {family}", dtype, lambda f=family, d=dtype: selfcheck(f, device, d))
        for name, check in (
            ("capture", captured),
            ("statistics without maps", streamed),
            ("sweep of every head", swept),
            ("verdicts of a race", raced),
            ("fine-tuning", tuned),
        ):
            yield _tried(name, dtype, lambda check=check, d=dtype: check(device, d))


def _tried(name: str, dtype: str, check) -> Checked:
    try:
        passed, seen = check()
    except Exception as error:  # whatever a device does differently is what this is for
        passed, seen = False, f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
    return Checked(name, dtype, bool(passed), seen)


def moved(checkpoint: Checkpoint, device: torch.device, dtype: str) -> Checkpoint:
    """A copy on a device, in a dtype."""
    model = copy.deepcopy(checkpoint.model).to(device, getattr(torch, dtype))
    return Checkpoint(checkpoint.name, model, checkpoint.tokenizer, checkpoint.weights_hash)


def _within(difference: float, kind: str, dtype: str) -> tuple[bool, str]:
    bound = BOUNDS[kind][dtype]
    return difference <= bound, f"differs by at most {difference:.2g} (bound {bound:g})"


def selfcheck(family: str, device: torch.device, dtype: str) -> tuple[bool, str]:
    """The six checks that a checkpoint passes when it is opened."""
    found = list(run_checks(moved(tiny_of_record(family), device, dtype)))
    broken = [f"{finding.name}: {finding.seen}" for finding in found if not finding.passed]
    return not broken, "; ".join(broken) or f"{len(found)} of {len(found)}"


def captured(device: torch.device, dtype: str) -> tuple[bool, str]:
    """Maps of the bundled encoder."""
    encoder = open_checkpoint("atlas-encoder", device="cpu")
    encoding = encoder.encode("The small engine ran all night without a pause.", "Nobody heard it stop.")
    wanted, found = (capture(one, encoding).weights for one in (encoder, moved(encoder, device, dtype)))
    return _within(float(np.abs(wanted - found).max()), "maps", dtype)


def streamed(device: torch.device, dtype: str) -> tuple[bool, str]:
    """Head statistics and distances from blocks of queries on the device, beside whole maps on the CPU."""
    encoder = open_checkpoint("atlas-encoder", device="cpu")
    encodings = [encoder.encode(row.text, row.pair) for row in read_rows("mrpc", "dev")[:ROWS]]
    wanted = _measured(encoder, encodings, without_maps=False)
    found = _measured(moved(encoder, device, dtype), encodings, without_maps=True)
    return _within(float(np.abs(wanted - found).max()), "statistics", dtype)


def _measured(checkpoint: Checkpoint, encodings: list, *, without_maps: bool) -> np.ndarray:
    """Each row's mean statistics over what an even head has at most, and the distances between heads."""
    places = [SpecialPositions(encoding.first or 0, encoding.separators, 0) for encoding in encodings]
    numbers, before = list(range(len(encodings))), streaming.STREAMED_FROM
    statistics = HeadStatistics(checkpoint.layers, checkpoint.heads, causal=False).take(places, numbers)
    distances = HeadDistances(checkpoint.layers, checkpoint.heads, queries=4).take(numbers)
    streaming.STREAMED_FROM = 1 if without_maps else 10**9
    try:
        run(checkpoint, encodings, [statistics, distances])
    finally:
        streaming.STREAMED_FROM = before
    means = statistics.means.result().value
    return np.concatenate([(means / np.nanmax(means, (0, 1))).ravel(), distances.result().ravel()])


def _classifier(rows: int) -> tuple[Checkpoint, list, list[int], list[str]]:
    classifier = open_checkpoint("atlas-encoder-sst2", head="classifier", device="cpu")
    chosen = read_rows("sst2", "dev")[:rows]
    labels = [int(row.label) for row in chosen]
    return classifier, [classifier.encode(row.text) for row in chosen], labels, [row.id for row in chosen]


def swept(device: torch.device, dtype: str) -> tuple[bool, str]:
    """Logits of the bundled classifier with every head disabled in turn."""
    classifier, encodings, _, _ = _classifier(ROWS)
    variants = every_head(classifier.layers, classifier.heads)
    wanted = sweep(classifier, encodings, variants)
    found = sweep(moved(classifier, device, dtype), encodings, variants, computing=Computing(dtype=dtype))
    return _within(float((wanted.changed - found.changed.float().cpu()).abs().max()), "logits", dtype)


def raced(device: torch.device, dtype: str) -> tuple[bool, str]:
    """Exact effects of every head on the loss, and the verdicts of a race on them; a verdict that a difference within
    the bound could turn is not counted."""
    classifier, encodings, labels, names = _classifier(2 * ROWS)
    variants = every_head(classifier.layers, classifier.heads)
    rules, rows = Rules(MARGIN, 1.0, 2 * ROWS, len(variants), first=ROWS), LabelledRows(encodings, labels, names)
    wanted = effects(classifier, rows, variants).exact.numpy()
    found = effects(moved(classifier, device, dtype), rows, variants, dtype=dtype).exact.cpu().numpy()
    passed, seen = _within(float(np.abs(wanted - found).max()), "losses", dtype)
    first, second = standings(wanted, rules), standings(found, rules)
    room = np.abs(wanted - found).mean(1) + 1e-6
    near = np.min([np.abs(end - at) for end in (first.low, first.high) for at in (-MARGIN, MARGIN)], axis=0) <= room
    turned = int(((np.array(first.verdicts) != np.array(second.verdicts)) & ~near).sum())
    return passed and turned == 0, f"{seen}; {turned} of {int((~near).sum())} verdicts differ"


def tuned(device: torch.device, dtype: str) -> tuple[bool, str]:
    """The losses of a few steps of fine-tuning the bundled encoder without dropout."""
    base, losses = open_checkpoint("atlas-encoder", device="cpu"), []
    recipe = Recipe(epochs=1, batch=8, dropout=0.0, max_length=48)
    rows = [replace(row) for row in read_rows("sst2", "train")[: 4 * ROWS]]
    for to, precision in ((torch.device("cpu"), "float32"), (device, dtype)):
        if to.type == "cpu":
            precision = "float32"  # a CPU may only emulate bfloat16
        own = moved(base, to, "float32")
        model = initialised(own, TASKS["sst2"], "pretrained", recipe, 0).to(to)
        chosen = replace(recipe, precision=precision)
        fit = Fit(own, TASKS["sst2"], model, encode(own, rows, 48), encode(own, rows[:8], 48), chosen, 0)
        losses.append(np.array(fit.run().log.losses))
    return _within(float(np.abs(losses[0] - losses[1]).max()), "losses", dtype)
