"""Arrays of different shapes in one float16 file, read one at a time."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError


class Ragged:
    """Arrays of different shapes that are stored one after another in the file `folder`/`name`.f16."""

    def __init__(self, folder: Path, name: str, shapes: Sequence[tuple[int, ...]], data: Any) -> None:
        self.folder, self.name, self.shapes, self.data = folder, name, list(map(tuple, shapes)), data
        sizes = [int(np.prod(shape)) for shape in self.shapes]
        self.starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    @classmethod
    def create(cls, folder: Path, name: str, shapes: Sequence[tuple[int, ...]]) -> "Ragged":
        """Create a file for arrays of the given shapes. Raises InputError if it cannot be written."""
        total = max(1, sum(int(np.prod(shape)) for shape in shapes))
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{name}.json").write_text(json.dumps([list(shape) for shape in shapes]), encoding="utf-8")
            data = np.memmap(folder / f"{name}.f16", dtype=np.float16, mode="w+", shape=(total,))
        except OSError as error:
            raise InputError(
                f"Probing needs {2 * total / 2**20:.0f} MB in {folder}; the files could not be written "
                f"({error.strerror or error}). Free some space, or use fewer examples."
            ) from error
        return cls(folder, name, shapes, data)

    @classmethod
    def open(cls, folder: Path, name: str) -> "Ragged":
        shapes = [tuple(shape) for shape in json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))]
        return cls(folder, name, shapes, np.memmap(folder / f"{name}.f16", dtype=np.float16, mode="r"))

    def __len__(self) -> int:
        return len(self.shapes)

    def put(self, number: int, value: np.ndarray) -> None:
        """Store an array at index `number`. Raises ValueError if its shape differs from the declared shape."""
        if value.shape != self.shapes[number]:
            raise ValueError(
                f"Array {number} must have the shape {self.shapes[number]}; got {value.shape}. Reshape it."
            )
        self.data[self.starts[number] : self.starts[number + 1]] = value.reshape(-1)

    def get(self, number: int) -> np.ndarray:
        return self.data[self.starts[number] : self.starts[number + 1]].reshape(self.shapes[number])
