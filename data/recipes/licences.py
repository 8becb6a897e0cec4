"""The licences of all pinned packages, as each states in its own metadata, into docs/reference/licences.md.

python -m data.recipes.licences            writes the two tables anew (the packages must be installed)
python -m data.recipes.licences --check    says whether they are as they would be written
"""

import argparse
import re
from collections import defaultdict
from importlib import metadata
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
LIST = PROJECT / "docs" / "reference" / "licences.md"
TABLES = {"app": "requirements.txt", "tests": "tests/requirements.txt"}
KNOWN = {  # words of metadata as SPDX has them
    r"Apache( Software)?( License)?(,? ?(Version )?2\.0)?( License)?": "Apache-2.0",
    r"MIT( License)?": "MIT",
    r"(BSD[- ]3[- ]Clause|3-Clause BSD)( License)?": "BSD-3-Clause",
    r"BSD[- ]2[- ]Clause( License)?": "BSD-2-Clause",
    r"BSD( License)?": "BSD",
    r"PSFL?|Python Software Foundation License": "PSF",
}
REFUSED = re.compile(r"\bA?GPL|General Public", re.IGNORECASE)


def pinned(file: Path) -> list[str]:
    """The packages of a requirements file, in its order."""
    return re.findall(r"^([\w.-]+)==", file.read_text(encoding="utf-8"), re.MULTILINE)


def licence_of(package: str) -> str:
    """The licence that an installed package states: its expression, field, classifiers, or licence file.

    Errors: SystemExit in one sentence where it is not installed, states none, or states one that does not fit.
    """
    try:
        about = metadata.metadata(package)
    except metadata.PackageNotFoundError:
        raise SystemExit(f"licences: {package} must be installed to say its licence; pip install it first") from None
    lines = about.get_all("Classifier") or []
    classifiers = [line.rpartition(" :: ")[2] for line in lines if line.startswith("License")]
    field = (about.get("License") or "").strip()
    said = [about.get("License-Expression") or "", *(line for line in field.splitlines()[:1]), *classifiers]
    for words in [*said, *_file_titles(package)]:
        if name := _spdx(words):
            if REFUSED.search(name) and "LGPL" not in name:
                raise SystemExit(f"licences: {package} is under {name}, which does not fit this project; leave it out")
            return name
    raise SystemExit(f"licences: {package} states no licence that is known here ({said}); add its words to KNOWN")


def _file_titles(package: str) -> list[str]:
    files = [file for file in metadata.files(package) or [] if re.match(r"(LICEN[CS]E|COPYING)", file.name)]
    lines = [
        line.strip() for file in files for line in file.read_text(encoding="utf-8").splitlines()[:5] if line.strip()
    ]
    return (
        [*lines, "BSD"]
        if any("Redistribution and use" in file.read_text(encoding="utf-8") for file in files)
        else lines
    )


def _spdx(words: str) -> str:
    words = words.strip()
    for pattern, name in KNOWN.items():
        if re.fullmatch(pattern, words, re.IGNORECASE):
            return name
    parts = re.split(r" (?:AND|OR|WITH) ", words)
    return (
        words
        if parts != [""] and all(re.fullmatch(r"[A-Za-z0-9.-]*-[A-Za-z0-9.-]+|MIT|Zlib|0BSD", part) for part in parts)
        else ""
    )


def table(file: Path) -> str:
    """The Markdown table of one requirements file: a line a licence, its packages in the file's order."""
    by_licence: dict[str, list[str]] = defaultdict(list)
    for package in pinned(file):
        by_licence[licence_of(package)].append(package)
    rows = [f"| {', '.join(packages)} | {licence} |" for licence, packages in sorted(by_licence.items())]
    return "\n".join(["| packages | licence |", "|---|---|", *rows])


def written(text: str) -> str:
    """The list with its tables anew; each lies between a line that begins it and one that ends it."""
    for name, file in TABLES.items():
        begin, end = f"<!-- {name}: generated -->", f"<!-- /{name} -->"
        head, opened, rest = text.partition(begin)
        _, closed, tail = rest.partition(end)
        if not (opened and closed):
            raise SystemExit(
                f"licences: docs/reference/licences.md must hold the lines {begin} and {end}; put them back"
            )
        text = f"{head}{begin}\n\n{table(PROJECT / file)}\n\n{end}{tail}"
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; status 1 where the list is out of date")
    check, before = parser.parse_args().check, LIST.read_text(encoding="utf-8")
    after = written(before)
    if check and after != before:
        raise SystemExit("licences: docs/reference/licences.md is out of date; run python -m data.recipes.licences")
    LIST.write_text(after, encoding="utf-8")


if __name__ == "__main__":
    main()
