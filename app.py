"""The ASGI app: `streamlit run app.py`, or `python app.py`.

The script it serves lies in pages/parts/shell/: beside a folder named pages, a cold link to a page would run that
page alone.
"""

import gc
import logging
import os
import sys
from pathlib import Path

# With JupyterLab beside it, jsonschema (of Altair) builds a grammar of IRIs at import: 2 s that nothing here needs.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

# ruff: noqa: E402 - what follows may import it
import streamlit as st
from starlette.middleware import Middleware
from starlette.routing import Route

import pages.parts.shell.connections
import pages.parts.shell.guard
import pages.parts.shell.middleware
import pages.parts.shell.people
import pages.parts.shell.sign_in
import pages.parts.shell.warming
import pages.parts.team.http_routes
from core.config import environment_faults, keep_to_folders, take_arguments
from core.errors import AtlasError
from pages.parts import streamlit_internals

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # read when torch comes: spinning threads starve on a busy machine
logging.basicConfig(format="%(message)s")
logging.getLogger("atlas").setLevel(logging.INFO)
take_arguments(sys.argv)  # streamlit run app.py -- --db PATH
if faults := environment_faults():
    sys.exit("\n".join(faults))
try:
    streamlit_internals.check()
    pages.parts.shell.people.check()
except (AtlasError, streamlit_internals.InternalsError) as error:
    sys.exit(str(error))  # a door that cannot be checked stays shut
if pages.parts.shell.people.shared():
    keep_to_folders()
gc.freeze()  # Streamlit collects garbage after every run; what the imports made is not worth looking at again
SCRIPT = Path(pages.parts.shell.warming.__file__).with_name("shell.py")  # its imports come behind the first answers
pages.parts.shell.warming.allow()
base = str(st.get_option("server.baseUrlPath") or "").strip("/")
painted = Route(f"/{base}/painted".replace("//", "/"), pages.parts.shell.warming.painted, methods=["POST"])
routes = [painted, *pages.parts.team.http_routes.ROUTES, *pages.parts.shell.sign_in.routes()]
app = st.App(
    SCRIPT,
    lifespan=pages.parts.shell.warming.serving,
    middleware=[
        Middleware(pages.parts.shell.connections.BoundedServer),
        Middleware(pages.parts.shell.middleware.Headers),
        Middleware(pages.parts.shell.middleware.Closed, base=base, own=routes),
        Middleware(pages.parts.shell.guard.Guard),
        Middleware(pages.parts.shell.middleware.Bundle, base=base),
        Middleware(pages.parts.shell.warming.FirstPage, base=base),
    ],
    routes=routes,
)

if __name__ == "__main__":
    try:
        settings = streamlit_internals.options_in_environment()
    except ValueError as error:
        sys.exit(str(error))
    app.run(config=settings)
