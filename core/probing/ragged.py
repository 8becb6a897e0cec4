"""Arrays of many inputs in one file on disk, float16, each of its own shape; read one at a time."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError


class Ragged:
    """Arrays in the file `folder`/`name`.f16, one after another.

    `shapes` has the shape of each, known before anything is written.
    """

    def __init__(self, folder: Path, name: str, shapes: Sequence[tuple[int, ...]], data: Any) -> None:
        self.folder, self.name, self.shapes, self.data = folder, name, list(map(tuple, shapes)), data
        sizes = [int(np.prod(shape)) for shape in self.shapes]
        self.starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    @classmethod
    def create(cls, folder: Path, name: str, shapes: Sequence[tuple[int, ...]]) -> "Ragged":
        """Make room on disk for arrays of these shapes.

        Args:
            folder: that is written into; made where it is not there.
            shapes: of the arrays, in their order.

        Returns:
            The arrays, to be filled by `put`.

        Raises:
            InputError: the disk has no room or cannot be written.
        """
        total = max(1, sum(int(np.prod(shape)) for shape in shapes))
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{name}.json").write_text(json.dumps([list(shape) for shape in shapes]), encoding="utf-8")
            data = np.memmap(folder / f"{name}.f16", dtype=np.float16, mode="w+", shape=(total,))
        except OSError as error:
            raise InputError(
                f"Features of a probe are kept on disk, {2 * total / 2**20:.0f} MB in {folder}, which cannot be "
                f"written ({error.strerror or error}): make room, or lower the limit."
            ) from error
        return cls(folder, name, shapes, data)

    @classmethod
    def open(cls, folder: Path, name: str) -> "Ragged":
        """What `create` made and `put` filled."""
        shapes = [tuple(shape) for shape in json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))]
        return cls(folder, name, shapes, np.memmap(folder / f"{name}.f16", dtype=np.float16, mode="r"))

    def __len__(self) -> int:
        return len(self.shapes)

    def put(self, number: int, value: np.ndarray) -> None:
        """Write one array.

        Args:
            value: stored as float16. *Shape:* `shapes[number]`.

        Raises:
            ValueError: its shape is not that one.
        """
        if value.shape != self.shapes[number]:
            raise ValueError(f"array {number} was said to be {self.shapes[number]}; it is {value.shape}")
        self.data[self.starts[number] : self.starts[number + 1]] = value.reshape(-1)

    def get(self, number: int) -> np.ndarray:
        """One array as it lies on disk.

        Returns:
            *Shape:* `shapes[number]`, float16.
        """
        return self.data[self.starts[number] : self.starts[number + 1]].reshape(self.shapes[number])
