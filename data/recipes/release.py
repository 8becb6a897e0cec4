"""Give the next version its number: CHANGELOG.md, CITATION.cff and the package.

python -m data.recipes.release 0.5.0
"""

import argparse
import re
from datetime import UTC, datetime
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]


def released(changelog: str, version: str, day: str) -> str:
    """The changelog with what was unreleased under `version`. Errors: SystemExit in one sentence."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise SystemExit(f"release: a version is three numbers like 0.5.0, but {version!r} is not; correct it")
    if f"## [{version}]" in changelog:
        raise SystemExit(f"release: {version} is in the changelog already; choose the next number")
    head, mark, rest = changelog.partition("## [Unreleased]\n")
    if not mark or rest.lstrip().startswith("## ["):
        raise SystemExit("release: a version needs something under [Unreleased] in CHANGELOG.md; write it first")
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
    version, day = parser.parse_args().version, f"{datetime.now(UTC):%Y-%m-%d}"
    changelog, citation = PROJECT / "CHANGELOG.md", PROJECT / "CITATION.cff"
    changed = released(changelog.read_text(encoding="utf-8"), version, day)
    changelog.write_text(changed, encoding="utf-8")
    package = PROJECT / "core" / "__init__.py"
    package.write_text(numbered(package.read_text(encoding="utf-8"), version), encoding="utf-8")
    citation.write_text(cited(citation.read_text(encoding="utf-8"), version, day), encoding="utf-8")
    print(f"{version} of {day}: look at the change, commit it, then: git tag v{version} && git push --tags")


if __name__ == "__main__":
    main()
