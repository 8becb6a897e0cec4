"""Capture the example that the first pages open with, from the bundled encoder as it is now and, if it is installed,
from all-MiniLM-L6-v2.

    python -m data.recipes.example_maps

Writes data/examples/maps.npz and maps-all-MiniLM-L6-v2.npz (weights, pieces, hash of the checkpoint's weights).
"""

from core import config
from core.atlas import example
from core.capture.running import capture
from core.models.opening import open_checkpoint


def main() -> None:
    for name in dict.fromkeys((config.ENCODER, config.usual_encoder())):
        opened = open_checkpoint(name)
        encoding = opened.encode(example.TEXT, example.PAIR)
        maps = capture(opened, encoding)
        example.write(encoding, maps, opened.weights_hash, example.file_of(name))
        print(f"{example.file_of(name)}: {maps.layers} layers x {maps.heads} heads x {len(maps)} tokens")


if __name__ == "__main__":
    main()
