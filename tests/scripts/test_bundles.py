"""What `python -m tests.scripts` reads is what browsers get: every script, in the app's order."""

from pathlib import Path

from core.drawing import payload
from core.notebook import showing
from pages.parts.atlas import atlas_view, head_pictures
from pages.parts.label import label_sheet
from pages.parts.maps import maps_grid
from tests.scripts.__main__ import bundles
from tests.sources import PROJECT


def text(name):
    return "".join((PROJECT / file).read_text(encoding="utf-8") for file in bundles()[name])


def test_every_script_of_the_project_is_in_a_bundle():
    there = {str(file.relative_to(PROJECT)) for room in ("core", "pages") for file in (PROJECT / room).rglob("*.js")}
    assert {file for files in bundles().values() for file in files} == there


def test_bundles_are_put_together_as_the_app_does(monkeypatch):
    built = {}
    monkeypatch.setattr(maps_grid, "_component", lambda name, source, style: built.update({name: source}))
    maps_grid.workbench_component()
    for name, module in (("label_sheet", label_sheet), ("atlas_view", atlas_view), ("small_maps", head_pictures)):
        maps_grid.drawing_component(name, Path(module.__file__).parent, *getattr(module, "SCRIPTS", ()))
    assert built == {name: text(name) for name in ("maps_grid", "label_sheet", "atlas_view", "small_maps")}
    assert payload.workbench_script() + payload.script("in_file") == text("in_file")
    of_notebook = payload.workbench_script(), (PROJECT / "core/notebook/in_notebook.js").read_text(encoding="utf-8")
    assert "".join(of_notebook) == text("in_notebook")
    assert showing.script_text().startswith(of_notebook[0])
    assert showing.script_text().endswith(of_notebook[1])
