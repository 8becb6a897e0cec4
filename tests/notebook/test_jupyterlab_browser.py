"""`show` in a real JupyterLab, in a real browser: the grid paints, hovers, and Python hears what was chosen.

Slow: JupyterLab takes its 10 to 60 seconds to start, and its kernel imports torch.
"""

import json
import os
import secrets
import subprocess
import sys

import pytest
from playwright.sync_api import expect

from tests.pages.browsing import PROJECT, answers_with, free_port, until

pytestmark = [pytest.mark.browser, pytest.mark.slow]
LONG = 180_000  # ms; JupyterLab's first page and the kernel's imports on a busy machine
CELLS = (
    "from core import notebook as atlas\nwidget = atlas.open('atlas-encoder').show('The cat sat.')\nwidget",
    "print('chosen', widget.view.get('head'))",
    "widget.view = {'head': 'L2H3'}",
)


def notebook(folder):
    """A notebook of CELLS."""
    cells = [
        {"cell_type": "code", "id": f"c{k}", "metadata": {}, "outputs": [], "execution_count": None, "source": source}
        for k, source in enumerate(CELLS)
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    written = {"nbformat": 4, "nbformat_minor": 5, "metadata": kernel, "cells": cells}
    (folder / "maps.ipynb").write_text(json.dumps(written))


@pytest.fixture
def lab(tmp_path):
    """The address of the notebook in a JupyterLab of its own."""
    notebook(tmp_path)
    port, token = free_port(), secrets.token_hex(16)
    settings = {f"JUPYTER_{name}_DIR": str(tmp_path / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")} | {
        "PYTHONPATH": str(PROJECT),
        "IPYTHONDIR": str(tmp_path / "ipython"),
        "ATLAS_DB": str(tmp_path / "a.duckdb"),
    }
    command = [
        sys.executable,
        "-m",
        "jupyterlab",
        "--no-browser",
        "--allow-root",
        f"--port={port}",
        "--ip=127.0.0.1",
        f"--IdentityProvider.token={token}",
        f"--ServerApp.root_dir={tmp_path}",
        "--LabApp.news_url=None",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    ]
    with (tmp_path / "lab.log").open("w") as log:
        server = subprocess.Popen(command, env=os.environ | settings, stdout=log, stderr=subprocess.STDOUT)
        try:
            status = f"http://127.0.0.1:{port}/api/status?token={token}"
            until(lambda: answers_with(status) or server.poll() is not None, seconds=LONG / 1000)
            assert server.poll() is None, (tmp_path / "lab.log").read_text()
            yield f"http://127.0.0.1:{port}/lab/tree/maps.ipynb?token={token}"
        finally:
            server.terminate()
            server.wait(30)


def run_cell(page, number):
    """Run a cell; again where JupyterLab took the key before its kernel was connected, and the cell has no number."""
    cell = page.locator(".jp-CodeCell").nth(number)
    for last in (False, False, True):
        cell.locator(".cm-content").click()
        page.keyboard.press("Shift+Enter")
        try:
            expect(cell.locator(".jp-InputPrompt")).not_to_have_text("[ ]:", timeout=LONG / 6)
            return
        except AssertionError:
            if last:
                raise


def test_the_grid_is_a_widget_that_paints_and_tells_what_was_chosen(lab, page):
    page.set_default_timeout(LONG)
    page.goto(lab, timeout=LONG)
    page.locator(".jp-CodeCell").nth(2).wait_for()
    page.locator('.jp-Notebook-ExecutionIndicator[data-status="idle"]').wait_for()  # the kernel is there
    run_cell(page, 0)
    root = page.locator(".jp-OutputArea .root")
    expect(root).to_have_attribute("data-head", "L2H2", timeout=LONG)
    expect(root.get_by_role("gridcell")).to_have_count(36)
    root.locator(".allBox").focus()
    page.keyboard.press("ArrowDown")
    expect(root).to_have_attribute("data-head", "L3H2")
    box = root.locator("canvas.over").bounding_box()
    margin, cell = map(float, root.locator(".oneBox").get_attribute("data-frame").split(","))
    page.mouse.move(box["x"] + margin + 1.5 * cell, box["y"] + margin + 2.5 * cell)
    expect(root.locator(".reading")).to_contain_text("L3H2: from “cat” (3) to “the” (2)")
    root.get_by_role("button", name="Lines").click()
    expect(root.locator(".reading")).to_contain_text("What each token receives")
    expect(page.locator(".jp-CodeCell").nth(1)).to_be_visible()
    expect(root).to_have_attribute("data-told", "L3H2")
    run_cell(page, 1)
    expect(page.locator(".jp-CodeCell").nth(1).locator(".jp-OutputArea-output")).to_contain_text("chosen L3H2")
    run_cell(page, 2)
    expect(root).to_have_attribute("data-head", "L2H3")
