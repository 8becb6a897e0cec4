"""What can be done with every architecture of the installed transformers: `python -m tests.families.conformance`.

Writes docs/reference/families-table.md. A tiny random checkpoint of each architecture is observed and changed: it says
what was tried, not what a list promises. Names as arguments try only those and write nothing but a JSON object a line
each; `--join FILE ...` writes the table of such lines, which must be of every architecture.
"""

import json
import re
import sys
import tempfile
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import transformers
from safetensors.torch import save_file

from core.capture.masks import lazily
from core.capture.reach import is_streamed, reach_of
from core.capture.running import capture, prepared
from core.capture.selfcheck import SHORT, run_checks
from core.capture.streaming import Streamer
from core.errors import AtlasError, CheckpointError
from core.map_sums import Needs
from core.models.checkpoint import Checkpoint
from core.models.opening import open_checkpoint, refuse_no_text
from tests.families.tiny import architectures, is_composite, tiny_config, tiny_of, tokenizer_of

TABLE = Path(__file__).parents[2] / "docs" / "reference" / "families-table.md"
ALL = "all"  # interventions
AT_SOFTMAX = "disable, zero, fixed patterns, cut edges, gates"
OF_STACKS = "disable, zero, fixed patterns in self-attention"  # of encoder-decoders
ABLATION = "disabling a head changes the output"
# of architectures whose tiny model cannot be made here: optional packages, or no class that AutoModel finds
NOT_BUILT = re.compile(r"requires the \w+ library|Could not find \w+ neither in|Unrecognized configuration class")


@dataclass(frozen=True)
class Outcome:
    """What was found for one architecture.

    Attributes:
        family: its `model_type`.
        maps: whether its maps are observed.
        interventions: ALL, AT_SOFTMAX, OF_STACKS, or "" for none.
        streaming: whether long inputs are measured without whole maps.
        why: the error, if something is refused, or what did not hold.
        built: whether its tiny model or default config could be made here.
        wrong: what must not be: maps without a passed self-check, or an error that is no sentence of ours.
    """

    family: str
    maps: bool = False
    interventions: str = ""
    streaming: bool = False
    why: str = ""
    built: bool = True
    wrong: str = ""

    @property
    def kind(self) -> str:
        """full, maps, refused, not built or wrong."""
        if self.wrong:
            return "wrong"
        if self.maps:
            return "full" if self.interventions else "maps"
        return "refused" if self.built else "not built"


def outcome_of(family: str) -> Outcome:
    """Try one architecture: its maps and an ablation, or the one error."""
    if is_composite(family):
        return _composite(family)
    try:
        refuse_no_text(tiny_config(family, 100), family)  # as opening does before the model is built
        checkpoint = tiny_of(family)
    except CheckpointError as error:
        return Outcome(family, why=_line(error))
    except Exception as error:  # each config and model class fails with classes of its own
        found = f"{type(error).__name__}: {_line(error)}"
        if NOT_BUILT.search(found):
            return Outcome(family, why=found.partition(" Model type should be")[0], built=False)
        return Outcome(family, wrong=f"no model: {found}")
    try:
        reach = reach_of(checkpoint)
    except CheckpointError as error:
        return Outcome(family, why=_line(error))
    except Exception as error:
        return Outcome(family, wrong=f"{type(error).__name__}: {_line(error)}")
    try:
        failed = {finding.name: finding.seen for finding in run_checks(checkpoint) if not finding.passed}
    except Exception as error:
        return Outcome(family, maps=True, wrong=f"{type(error).__name__}: {_line(error)}")
    if reach == "outputs":
        refused = failed.pop(ABLATION, "")
        wrong = (
            ""
            if f"Heads of {family} models cannot be ablated" in refused
            else f"not refused by name: {refused or 'nothing'}"
        )
        wrong = wrong or "; ".join(f"{name}: {seen}" for name, seen in failed.items())
        return Outcome(family, maps=True, why=refused, wrong=wrong)
    if failed:
        return Outcome(family, maps=True, wrong="; ".join(f"{name}: {seen}" for name, seen in failed.items()))
    some = OF_STACKS if checkpoint.family.translates else ALL if reach == "interface" else AT_SOFTMAX
    streams = len(checkpoint.sets) == 1 and is_streamed(checkpoint)
    wrong = _streams_wrongly(checkpoint) if streams else ""
    return Outcome(family, True, some, streams, wrong=wrong)


def _streams_wrongly(checkpoint: Checkpoint) -> str:
    """How far entropies of blocks are from those of whole maps; "" if they are equal."""
    encoding, seen = checkpoint.encode(SHORT), {}
    numbers = frozenset(checkpoint.sets[0].numbers)
    with torch.no_grad(), prepared(checkpoint) as run, lazily():
        run.streamer = Streamer([Needs(entropy=True)], lambda layer, sums: seen.update({layer: sums[0]}), numbers)
        checkpoint.model(**checkpoint.inputs([encoding]))
    weights = capture(checkpoint, encoding).weights
    whole = -np.where(weights > 0, weights * np.log(np.where(weights > 0, weights, 1)), 0).sum(-1)
    off = max(float(np.abs(seen[layer].entropies - whole[layer]).max()) for layer in numbers)
    return "" if off < 1e-3 else f"entropies of blocks are {off:.1e} from those of whole maps"


def _composite(family: str) -> Outcome:
    """The error of opening a checkpoint whose config is made of configs of several models."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            tiny_config(family, 100).save_pretrained(folder)
            tokenizer_of(family).save_pretrained(folder)
        except Exception as error:
            return Outcome(family, why=f"its config has no defaults: {_line(error)}", built=False)
        save_file({"a": torch.zeros(1)}, Path(folder, "model.safetensors"))
        try:
            open_checkpoint(folder, device="cpu")
        except CheckpointError as error:
            return Outcome(family, why=_line(error).replace(folder, family))
        except Exception as error:
            return Outcome(family, wrong=f"{type(error).__name__}: {_line(error)}")
    return Outcome(family, wrong="it opens without weights")


def _line(error: BaseException) -> str:
    text = re.sub(r" from '[^']*'", "", str(error)).strip().splitlines()  # a module's path on this machine
    return " ".join(text[:2] if isinstance(error, AtlasError) or len(text) > 1 else text) or type(error).__name__


def table(outcomes: Iterable[Outcome]) -> str:
    """The outcomes as a page of the documentation."""
    every = sorted(outcomes, key=lambda outcome: outcome.family)
    by_kind = {kind: [one for one in every if one.kind == kind] for kind in ("full", "maps", "refused", "not built")}
    lines = [
        "# Architectures of transformers",
        "",
        f"This page lists what can be measured in the {len(every)} architectures of transformers "
        f"{transformers.__version__} that AutoModel opens and that have a text config. Each architecture whose "
        "packages are installed was tested on a tiny random checkpoint. `python -m tests.families.conformance` "
        "regenerates the page.",
        "",
        "| result of the test | architectures |",
        "|---|--:|",
        f"| maps and interventions work | {len(by_kind['full'])} |",
        f"| maps work, interventions are refused with an error message | {len(by_kind['maps'])} |",
        f"| the checkpoint is refused with an error message | {len(by_kind['refused'])} |",
        f"| not tested, because the model needs packages that are not installed | {len(by_kind['not built'])} |",
        "",
        "In the column *long inputs*, *yes* means that inputs of 512 tokens or more are measured without whole maps.",
        "",
        "| architecture | maps | interventions | long inputs | why not |",
        "|---|---|---|---|---|",
    ]
    for one in every:
        if one.kind in ("full", "maps"):
            interventions = "all operators" if one.interventions == ALL else one.interventions or "no"
            streams = "yes" if one.streaming else "whole maps"
            lines.append(f"| {one.family} | yes | {interventions} | {streams} | {_cell(one.why)} |")
    lines += ["", "## Refused", "", "| architecture | error |", "|---|---|"]
    lines += [f"| {one.family} | {_cell(one.why)} |" for one in every if one.kind in ("refused", "not built")]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "/")[:300]


def joined(files: Iterable[str]) -> list[Outcome]:
    """The outcomes in files of JSON lines. Raises ValueError for an architecture that is missing."""
    lines = [line for file in files for line in Path(file).read_text(encoding="utf-8").splitlines()]
    by_family = {outcome.family: outcome for outcome in (Outcome(**json.loads(line)) for line in lines if line)}
    if missing := set(architectures()) - set(by_family):
        raise ValueError(f"Every architecture must be tried; these were not: {', '.join(sorted(missing))}.")
    return list(by_family.values())


def main() -> int:
    """Try the architectures that are named, or all; returns how many have an outcome that must not be."""
    if sys.argv[1:2] == ["--join"]:
        outcomes = joined(sys.argv[2:])
        TABLE.write_text(table(outcomes), encoding="utf-8")
        return sum(bool(outcome.wrong) for outcome in outcomes)
    warnings.filterwarnings("ignore")
    transformers.utils.logging.set_verbosity_error()
    outcomes = []
    for family in sys.argv[1:] or architectures():
        outcomes.append(outcome_of(family))
        print(json.dumps(outcomes[-1].__dict__), flush=True)
        tiny_of.cache_clear()
    if not sys.argv[1:]:
        TABLE.write_text(table(outcomes), encoding="utf-8")
    return sum(bool(outcome.wrong) for outcome in outcomes)


if __name__ == "__main__":
    sys.exit(main())
