"""Sphinx settings of the docs. `make site` builds them into build/site; the pages load nothing from other hosts."""

import os
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))
WORK = PROJECT / "build" / "site-notebooks"  # of the notebooks: the package, their database, what IPython runs first
os.environ |= {
    "HF_HUB_OFFLINE": "1",
    "TQDM_DISABLE": "1",
    "ATLAS_DB": str(WORK / "atlas.duckdb"),
    "IPYTHONDIR": str(WORK / "ipython"),
}
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(WORK / "package"), os.environ.get("PYTHONPATH")]))

from core import __version__ as release  # noqa: E402 - after the path

project = "Attention Atlas"
copyright = "the authors of Attention Atlas"
version = release
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx-mathjax-offline", "data.recipes.site"]
exclude_patterns = ["borders/README.md"]
nitpicky = False

html_theme = "pydata_sphinx_theme"
html_title = "Attention Atlas"
html_show_sourcelink = False
html_copy_source = False
html_extra_path = ["gallery"]
html_theme_options = {
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": False,
}
html_sidebars = {"index": []}

myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
myst_links_external_new_tab = False
suppress_warnings = [
    "myst-nb.mime_type",
    "myst-nb.lexer",
]  # a widget's view: the site shows the page that the widget saves

nb_execution_mode = "force"
nb_execution_timeout = 300  # seconds a cell, on a busy machine
nb_execution_raise_on_error = True
nb_execution_in_temp = True
nb_ipywidgets_js = {}  # MyST-NB would load require.js and a widget manager from elsewhere
nb_merge_streams = True
nb_mime_priority_overrides = [("html", "application/vnd.jupyter.widget-view+json", None)]  # shown as saved HTML instead

autodoc_member_order = "bysource"
autodoc_typehints = "description"
napoleon_google_docstring = True
