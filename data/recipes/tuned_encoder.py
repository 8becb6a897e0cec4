"""The fine-tuned checkpoint that ships: `python -m data.recipes.tuned_encoder` makes data/models/atlas-encoder-sst2.

The bundled encoder on the bundled SST-2-like rows, by the recipe that learns them, with seed 0; `--tuned FOLDER` takes
a run that `python -m core finetune` left instead of training again. Weights are float16, as its parent's are.
"""

import argparse
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from core import config
from core.atlas.scores import run_here
from core.models.weights import HEAD_FILE
from core.studies.lookup import find_study

NAME, TASK = config.CLASSIFIER, "sst2"
RECIPE = {"pooling": "mean", "epochs": 6}
COMMAND = f"python -m core finetune {config.ENCODER} --task {TASK} --preset small " + " ".join(
    f"--set {name}={value}" for name, value in RECIPE.items()
)
KEPT = ("config.json", "tokenizer.json", "tokenizer_config.json")


def trained(folder: Path) -> Path:
    """The run of seed 0 in `folder`."""
    study = find_study("finetune")
    given = {"checkpoint": config.ENCODER, "tasks": [TASK], "seeds": 1, "preset": "small", "settings": RECIPE}
    run_here(study, study.read(given | {"out": str(folder)}))
    return next(file.parent for file in folder.rglob("training.json"))


def ship(run: Path, out: Path) -> dict[str, Any]:
    """Write the checkpoint of a run into `out` with its card; returns the facts of its training."""
    facts: dict[str, Any] = json.loads((run / "training.json").read_text(encoding="utf-8"))
    if (facts["base"], facts["task"], facts["seed"]) != (config.ENCODER, TASK, 0):
        raise SystemExit(f"tuned_encoder: what ships is {config.ENCODER} on {TASK} with seed 0; {run} is another run.")
    out.mkdir(parents=True, exist_ok=True)
    for name in KEPT:
        shutil.copyfile(run / name, out / name)
    for name in ("model.safetensors", HEAD_FILE):
        halved = {key: tensor.to(torch.float16).contiguous() for key, tensor in load_file(run / name).items()}
        save_file(halved, out / name, metadata={"format": "pt"})
        (out / name).chmod(0o644)
    (out / "training.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    (out / "README.md").write_text(card(facts), encoding="utf-8")
    return facts


def card(facts: dict[str, Any]) -> str:
    """The model card, with the figures of the run."""
    accuracies = "; ".join(f"{epoch['epoch']}: {100 * epoch['accuracy']:.1f}" for epoch in facts["epochs"])
    rows, base = facts["rows"], facts["base_hash"][:16]
    return f"""# {NAME}

The bundled encoder, fine-tuned on the bundled SST-2-like examples, so that ablation, patching, change in attention and
circuits can be studied on a model above chance level. The sentences were made for this project, so the model does not
classify real reviews.

- **Recipe.** `{COMMAND}`,
  seed 0, on {rows["train"]} train examples; the classifier head reads the mean over tokens. The seed is the first
  one, not the best of several. `python -m data.recipes.tuned_encoder` repeats the fine-tuning. The weights are stored
  in float16 and opened in float32.
- **Accuracy** on the {rows["dev"]} bundled dev examples, by epoch: {accuracies}.
  The most frequent train label has an accuracy of 48.3 on dev, and the other label 51.7. docs/results/fine-tuning.md
  has the scores on other tasks and models.
- **Made from** {facts["base"]} with weights of SHA-256 `{base}...`, {facts["date"][:10]}, code {facts["code_version"]}.
- **Licence.** MIT for the weights.
"""


def main() -> None:
    """Train or take a run, and ship it."""
    given = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    given.add_argument("--tuned", type=Path, help="the folder of a run; default: make one")
    given.add_argument("--out", type=Path, default=config.BUNDLED_MODELS / NAME)
    chosen = given.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        facts = ship(chosen.tuned or trained(Path(folder)), chosen.out)
    print(f"{chosen.out}: accuracy {facts['metrics']['accuracy']:.3f} on {facts['rows']['dev']} rows")


if __name__ == "__main__":
    main()
