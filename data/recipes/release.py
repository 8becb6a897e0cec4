"""Give the next version its number in CHANGELOG.md, CITATION.cff and core/__init__.py, where the build reads it.

python -m data.recipes.release 1.1.0             changes the three files
python -m data.recipes.release 1.1.0 --dry-run   shows what it would change, and changes nothing
"""

import argparse
import difflib
import re
from datetime import UTC, datetime
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
MOST_LINES = 40  # of a version in the changelog


def released(changelog: str, version: str, day: str) -> str:
    """The changelog with what was unreleased under `version`. Errors: SystemExit in one sentence."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise SystemExit(f"release: a version must be three numbers like 1.1.0; got {version!r}. Correct it.")
    if f"## [{version}]" in changelog:
        raise SystemExit(f"release: {version} is in the changelog already. Choose the next number.")
    head, mark, rest = changelog.partition("## [Unreleased]\n")
    if not mark or rest.lstrip().startswith("## "):
        raise SystemExit("release: a version needs something under [Unreleased] in CHANGELOG.md. Write it first.")
    lines = len(re.split(r"^## ", rest, maxsplit=1, flags=re.MULTILINE)[0].strip().splitlines())
    if lines > MOST_LINES:
        raise SystemExit(
            f"release: a version must have at most {MOST_LINES} lines; [Unreleased] has {lines}. Shorten it."
        )
    return f"{head}{mark}\n## [{version}] - {day}\n{rest}"


def cited(citation: str, version: str, day: str) -> str:
    """The citation with this version and date."""
    citation = re.sub(r"^version: .*$", f"version: {version}", citation, flags=re.MULTILINE)
    return re.sub(r"^date-released: .*$", f'date-released: "{day}"', citation, flags=re.MULTILINE)


def numbered(source: str, version: str) -> str:
    """The package's own file with this version."""
    return re.sub(r'^__version__ = ".*"$', f'__version__ = "{version}"', source, flags=re.MULTILINE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("version")
    parser.add_argument("--dry-run", action="store_true", help="show what would change, and change nothing")
    asked, day = parser.parse_args(), f"{datetime.now(UTC):%Y-%m-%d}"
    version = asked.version
    changes = {
        "CHANGELOG.md": lambda text: released(text, version, day),
        "CITATION.cff": lambda text: cited(text, version, day),
        "core/__init__.py": lambda text: numbered(text, version),
    }
    before = {name: (PROJECT / name).read_text(encoding="utf-8") for name in changes}
    after = {name: change(before[name]) for name, change in changes.items()}
    for name, text in after.items():
        if asked.dry_run:
            print(
                *difflib.unified_diff(before[name].splitlines(), text.splitlines(), name, name, lineterm=""), sep="\n"
            )
        else:
            (PROJECT / name).write_text(text, encoding="utf-8")
    done = "Nothing was changed. After the same command without --dry-run" if asked.dry_run else "Check the changes"
    print(f"{version}: {done}, commit them, then: git tag v{version} && git push origin v{version}")


if __name__ == "__main__":
    main()
