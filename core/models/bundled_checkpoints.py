"""Which checkpoints come with the project."""

import json

from .. import config


def bundled_names() -> list[str]:
    """The checkpoints that come with the project or with an installed package, as `open_checkpoint` takes them."""
    folders = sorted(config.BUNDLED_MODELS.glob("*/config.json"))
    bundled = [
        folder.parent.name for folder in folders if "model_type" in json.loads(folder.read_text(encoding="utf-8"))
    ]
    return bundled + list(config.packaged_checkpoints())
