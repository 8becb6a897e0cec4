"""Two endpoints for the labelling sheet, which receive labels and return the next maps of a project without running a
page.

Access is checked as for a page: host and origin, XSRF token, signed cookie of a sign-in; then the store checks the
role.
"""

import json
from collections.abc import Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from core.errors import AtlasError, StoreError
from core.store.people import Person
from pages.parts.shell.guard import RefusedError, who_asks

LARGEST = 2 << 20  # bytes of a request: some thousand labels
Answer = Callable[[Person, dict[str, Any]], Response]


async def _body(request: Request) -> dict[str, Any]:
    """The request's JSON object. Errors: RefusedError for anything else, and for more than LARGEST."""
    if request.headers.get("content-type", "").split(";")[0].strip() != "application/json":
        raise RefusedError("a request must have the type application/json (reload the page, and try again)")
    content = bytearray()
    async for part in request.stream():
        content += part
        if len(content) > LARGEST:
            raise RefusedError(f"a request must not exceed {LARGEST >> 20} MB (send fewer labels at once)")
    try:
        body = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise RefusedError("the body of a request must be valid JSON (reload the page, and try again)") from error
    if not isinstance(body, dict):
        raise RefusedError("the body of a request must be a JSON object (reload the page, and try again)")
    return body


def _json(answer: dict[str, Any], status: int = 200) -> Response:
    """Return JSON in ASCII, because input from a browser may include surrogates, which UTF-8 cannot encode."""
    return Response(json.dumps(answer), status, media_type="application/json")


def _door(answer: Answer) -> Callable[[Request], Any]:
    async def opened(request: Request) -> Response:
        try:
            who, body = who_asks(request), await _body(request)
        except RefusedError as error:
            return _json({"refused": f"The app takes requests of its own pages only: {error}."}, 403)
        except AtlasError as error:
            return _json({"refused": str(error)}, 403)
        try:
            return await run_in_threadpool(answer, who, body)
        except AtlasError as error:
            return _json({"refused": str(error), "again": isinstance(error, StoreError)})

    return opened


def take_labels(who: Person, body: dict[str, Any]) -> Response:
    """Store the outboxes of a browser, and return what is acknowledged, what was refused and why, and the annotator
    status."""
    from pages.parts.shell import resources  # numpy, pandas and DuckDB, which a server's start need not wait for
    from pages.parts.team import project_sheet  # and scipy

    return _json(project_sheet.take(resources.database_for(who), body))


def give_maps(who: Person, body: dict[str, Any]) -> Response:
    """Return the next maps of a project for a person, as the sheet reads them."""
    from pages.parts.shell import resources  # as above
    from pages.parts.team import project_sheet  # and scipy

    project, annotator = str(body.get("project") or ""), str(body.get("annotator") or "")
    sheet = project_sheet.next_sheet(resources.database_for(who), project, annotator)
    return Response(sheet.data, media_type="application/octet-stream", headers={"cache-control": "no-store"})


# under whatever path the app lives at: server.baseUrlPath, or a proxy's
ROUTES = [
    Route("/{base:path}team/labels", _door(take_labels), methods=["POST"]),
    Route("/{base:path}team/maps", _door(give_maps), methods=["POST"]),
]
