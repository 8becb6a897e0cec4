"""Capture the example that the maps page opens with, from the bundled encoder as it is now.

    python -m data.recipes.example_maps

Writes data/examples/maps.npz (weights, pieces, hash of the checkpoint's weights).
"""

from core import config
from core.atlas import example
from core.capture.running import capture
from core.models.opening import open_checkpoint


def main() -> None:
    encoder = open_checkpoint(config.ENCODER)
    encoding = encoder.encode(example.TEXT, example.PAIR)
    maps = capture(encoder, encoding)
    example.write(encoding, maps, encoder.weights_hash)
    print(f"{example.FILE}: {maps.layers} layers x {maps.heads} heads x {len(maps)} tokens")


if __name__ == "__main__":
    main()
