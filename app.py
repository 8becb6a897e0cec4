"""The ASGI app: `streamlit run app.py`.

The script it serves lies in pages/parts/frame/: beside a folder named pages, a cold link to a page would run that
page alone.
"""

import gc
import os
import sys

# With JupyterLab beside it, jsonschema (of Altair) builds a grammar of IRIs at import: 2 s that nothing here needs.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

# ruff: noqa: E402 - what follows may import it
import streamlit as st
from starlette.middleware import Middleware
from starlette.routing import Route

import pages.parts.frame.closed
import pages.parts.frame.people
import pages.parts.frame.resources
import pages.parts.frame.shell
import pages.parts.frame.sockets
import pages.parts.frame.warming
import pages.parts.team.doors
from core.config import keep_to_folders, take_arguments
from core.errors import AtlasError

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # read when torch comes: spinning threads starve on a busy machine
take_arguments(sys.argv)  # streamlit run app.py -- --db PATH
try:
    pages.parts.frame.people.check()
except AtlasError as error:
    sys.exit(str(error))  # a door that cannot be checked stays shut
if pages.parts.frame.people.shared():
    keep_to_folders()
pages.parts.frame.sockets.answer_at_once()
gc.freeze()  # Streamlit collects garbage after every run; what the imports made is not worth looking at again
pages.parts.frame.warming.allow()
base = str(st.get_option("server.baseUrlPath") or "").strip("/")
painted = Route(f"/{base}/painted".replace("//", "/"), pages.parts.frame.warming.painted, methods=["POST"])
app = st.App(
    pages.parts.frame.shell.__file__,
    middleware=[Middleware(pages.parts.frame.closed.Closed, base=base)],
    routes=[painted, *pages.parts.team.doors.ROUTES],
)
