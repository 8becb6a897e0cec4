"""Put a trained pattern classifier beside the annotations it was trained on, so that it comes with the project.

    ATLAS_DB=/tmp/train.duckdb python -m core patterns train --class-set bert --beside
    python -m data.recipes.bundle_classifier bert --db /tmp/train.duckdb

Writes data/annotations/SET/classifier.safetensors and classifier.json (recipe, labels it saw, held-out scores).
"""

import argparse
import json
from pathlib import Path

from core import config
from core.codebook.registry import SHIPPED
from core.store.classifiers import classifiers, one_classifier
from core.store.database import Database

ABOUT = ("recipe", "classes", "snapshot", "scores")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("set", choices=SHIPPED)
    parser.add_argument("--db", type=Path, required=True)
    parser.add_argument("--classifier", help="default: the newest of the set")
    arguments = parser.parse_args()
    db = Database(arguments.db)
    classifier = one_classifier(db, arguments.classifier or str(classifiers(db, arguments.set)["classifier"].iloc[0]))
    db.close()
    folder = config.ANNOTATIONS / arguments.set
    (folder / "classifier.safetensors").write_bytes(classifier["weights"])
    about = {name: classifier[name] for name in ABOUT}
    (folder / "classifier.json").write_text(json.dumps(about, separators=(",", ":")) + "\n", encoding="utf-8")
    print(f"macro F1 {classifier['scores']['macro_f1']:.3f}, {classifier['labels']} labels, "
          f"{len(classifier['weights']):,} bytes")  # fmt: skip


if __name__ == "__main__":
    main()
