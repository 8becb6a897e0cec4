"""The versions and hashes of every package that requirements.txt brings, its own needs among them:

    pip install uv && python -m data.recipes.hashes

writes requirements-hashed.txt, which `pip install --require-hashes -r requirements-hashed.txt` takes and nothing else.
"""

import subprocess
import sys

from core import config

OUT = config.PROJECT / "requirements-hashed.txt"
COMMAND = (
    "uv", "pip", "compile", "requirements.txt", "--generate-hashes", "--python-version", "3.11", "--python-platform",
    "linux", "--quiet", "--no-annotate", "--custom-compile-command", "python -m data.recipes.hashes",
    "--output-file", OUT.name,
)  # fmt: skip


def main() -> None:
    """Resolve the pins against the package registry and write the file."""
    try:
        subprocess.run(COMMAND, cwd=config.PROJECT, check=True)  # noqa: S603 - our own words
    except FileNotFoundError:
        sys.exit("The hashes are gathered by uv, which is not here: pip install uv.")


if __name__ == "__main__":
    main()
