"""The browser's scripts, read by TypeScript's checker and by eslint: `npm ci --prefix tests && make scripts`.

They are put together as the app does: plain functions, one file after the other. So a bundle is
what is checked, and a line of it is told by its own file. Types are JSDoc's; what the labelling sheet's scripts share
is declared once, in pages/parts/label/sheet.d.ts.
"""

import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from core.drawing.payload import WORKBENCH
from pages.parts.label.label_sheet import SCRIPTS
from tests.sources import PROJECT

HERE, BUILT = Path(__file__).resolve().parent, PROJECT / "build" / "scripts"
TOOLS = PROJECT / "tests" / "node_modules" / ".bin"
TYPES = ["core/drawing/host.d.ts", "pages/parts/label/sheet.d.ts"]
CHECKER = [
    "--noEmit",
    "--allowJs",
    "--checkJs",
    "--target",
    "es2023",
    "--lib",
    "es2023,dom,dom.iterable",
    "--module",
    "esnext",
    "--moduleDetection",
    "force",
    "--pretty",
    "false",
]
TOLD = re.compile(r"^(?P<bundle>\S+?)\((?P<line>\d+),\d+\): error (?P<what>.*)$", re.MULTILINE)


def bundles() -> dict[str, list[str]]:
    """The files of each script that a browser gets, in their order."""
    workbench, label = [f"core/drawing/{name}.js" for name in WORKBENCH], "pages/parts/label"
    return {
        "label_sheet": [workbench[0], *(f"{label}/{name}.js" for name in (*SCRIPTS, "label_sheet"))],
        "atlas_view": [workbench[0], "pages/parts/atlas/atlas_view.js"],
        "small_maps": [workbench[0], "pages/parts/atlas/small_maps.js"],
        "maps_grid": [*workbench, "pages/parts/maps/in_streamlit.js"],
        "in_file": [*workbench, "core/drawing/in_file.js"],
        "in_notebook": [*workbench, "core/notebook/in_notebook.js"],
        "charts": ["core/drawing/charts.js"],
        "sentence": ["pages/parts/frames/sentence.js"],
        "sidebar": ["pages/parts/shell/sidebar.js"],
    }


def main() -> int:
    """Prints what is wrong; 1 where anything is."""
    places = {name: _built(name, files) for name, files in bundles().items()}
    wrong = sorted({*_types(places), *_rules(places)})
    print(
        "\n".join(
            [*wrong, f"{len(wrong)} found in {len({file for files in bundles().values() for file in files})} scripts"]
        )
    )
    return int(bool(wrong))


def _built(name: str, files: Sequence[str]) -> list[str]:
    """Write a bundle; where each of its lines comes from."""
    BUILT.mkdir(parents=True, exist_ok=True)
    texts = {file: (PROJECT / file).read_text(encoding="utf-8") for file in files}
    (BUILT / f"{name}.js").write_text("".join(texts.values()), encoding="utf-8")
    return [f"{file}:{line}" for file, text in texts.items() for line in range(1, text.count("\n") + 1)]


def _types(places: Mapping[str, list[str]]) -> Iterator[str]:
    scripts = [str(BUILT / f"{name}.js") for name in places]
    said = _said([str(TOOLS / "tsc"), *CHECKER, *scripts, *TYPES])
    for found in TOLD.finditer(said):
        lines = places.get(Path(found["bundle"]).stem)
        yield f"{lines[int(found['line']) - 1] if lines else found['bundle']} {found['what']}"


def _rules(places: Mapping[str, list[str]]) -> Iterator[str]:
    """What eslint finds; a name without a use only where every bundle that has it says so."""
    config = PROJECT / "tests" / "eslint.config.mjs"  # beside node_modules, where its imports are looked for
    said = _said([str(TOOLS / "eslint"), "--config", str(config), "--format", "json", "--no-ignore", str(BUILT)])
    holders = defaultdict(set)
    for name, lines in places.items():
        for place in lines:
            holders[place].add(name)
    unused = defaultdict(set)
    for report in json.loads(said):
        name = Path(report["filePath"]).stem
        for message in report["messages"]:
            text = f"{places[name][message['line'] - 1]} {message['message']} ({message['ruleId']})"
            if message["ruleId"] == "no-unused-vars":
                unused[text].add(name)
            else:
                yield text
    yield from (text for text, names in unused.items() if names == holders[text.split(" ")[0]])


def _said(command: Sequence[str]) -> str:
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1, 2) or (done.returncode and not done.stdout):
        raise SystemExit(f"{command[0]}: {done.stderr or done.stdout}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
