"""How soon a command in the terminal starts, compared with the import that it cannot do without.

`maps` on a bundled checkpoint, and `--help`, in turns with `from transformers import BertModel, AutoTokenizer` in a
bare process; medians by the clock and by the CPU, which other work on the machine changes less.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = 5


def spent(command: list[str]) -> tuple[float, float]:
    """Seconds of a command by the clock and of the CPU."""
    before, began = os.times(), time.perf_counter()
    subprocess.run([sys.executable, *command], check=True, capture_output=True)
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return time.perf_counter() - began, cpu


def main() -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        maps = ["maps", "atlas-encoder", "--text", "The keys to the cabinet", "--out", str(Path(folder) / "maps.npz")]
        commands = {
            "import": ["-c", "from transformers import BertModel, AutoTokenizer"],
            "maps": ["-m", "core", *maps],
            "help": ["-m", "core", "--help"],
        }
        rounds = [{name: spent(command) for name, command in commands.items()} for _ in range(ROUNDS)]
    clock, cpu = ({name: statistics.median(one[name][k] for one in rounds) for name in commands} for k in (0, 1))
    return {
        "import, s": clock["import"],
        "maps, s": clock["maps"],
        "maps / import": statistics.median(one["maps"][0] / one["import"][0] for one in rounds),
        "maps / import, CPU": statistics.median(one["maps"][1] / one["import"][1] for one in rounds),
        "maps / import, goal": "at most 1.15",
        "help, s": clock["help"],
        "help, goal, s": "at most 0.6",
        **{f"{name}, CPU s": value for name, value in cpu.items()},
    }
