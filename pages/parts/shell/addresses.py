"""Where the addresses of earlier versions lead: 27 pages became views of eleven.

The server answers an old address with a redirect, its parameters under their names of today, so that bookmarks and
links in mail and papers stay good, and Back works as if they had always led there.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

Message = MutableMapping[str, Any]


class Move(NamedTuple):
    """Where an old page went: "page" or "page/view"; and what its `view=` means now: another view, or a mode of it."""

    to: str
    views: dict[str, str] = {}  # noqa: RUF012 - never written to


TASK, INPUT = {"task": "rows"}, {"effective_checkpoint": "checkpoint", "effective_text": "text"}
RENAMED = {  # old page: parameters that have another name now
    "atlas": TASK, "head": TASK, "statistics": INPUT, "generation": {"decoder": "checkpoint", "prompt": "text"},
    "features": {"run_checkpoint": "checkpoint", "run_compare": "beside"}, "disable": TASK, "prune": TASK,
    "perturb": TASK,
    "relations": {"run_checkpoint": "checkpoint", "run_compare": "beside"}, "probes": TASK, "subnetworks": TASK,
    "dashboard": {}, "change": {"before": "checkpoint"},
}  # fmt: skip
MOVED = {
    "atlas": Move("heads"),
    "head": Move("heads/one"),
    "values": Move("maps/norms"),
    "maps": Move("maps"),
    "generation": Move("maps/generation"),
    "frames": Move("linguistics/frames"),
    "features": Move("linguistics"),
    "relations": Move("linguistics/relations"),
    "statistics": Move("statistics"),
    "probes": Move("linguistics/probes"),
    "label": Move("annotate"),
    "patterns": Move("annotate/classifier"),
    "shares": Move("statistics/shares"),
    "agreement": Move("projects/agreement"),
    "truth": Move("projects/aggregated"),
    "adjudication": Move("projects/adjudication"),
    "projects": Move("projects"),
    "dashboard": Move("projects/progress"),
    "finetune": Move("finetuning", {"Seeds apart": "seeds"}),
    "change": Move("finetuning/change"),
    "disable": Move("interventions", {"Race": "sequential"}),
    "perturb": Move("interventions/patching"),
    "prune": Move("interventions/pruning"),
    "subnetworks": Move("interventions/subnetworks"),
    "reproduction": Move("reproduction"),
    "findings": Move("results/pinned"),
    "jobs": Move("results/jobs"),
}
STAYED = {name for name, move in MOVED.items() if move.to == name}  # their address is also one of today


def moved(name: str, query: str) -> str | None:
    """Where an old page's address leads, without the app's own path: "heads?view=one&head=L2H3"; None for today's."""
    if name == "start":
        return "?" + query if query else ""
    move = MOVED.get(name)
    query_pairs = parse_qsl(query, keep_blank_values=True)
    if move is None or (name in STAYED and not {key for key, _ in query_pairs} & RENAMED.get(name, {}).keys()):
        return None
    page, _, view = move.to.partition("/")
    if name == "statistics":
        view = "effective"
    renamed = RENAMED.get(name, {})
    parameters = []
    for key, value in query_pairs:
        if key == "view" and value in move.views:
            view = move.views[value]
        else:
            parameters.append(("mode" if key == "view" else renamed.get(key, key), value))
    parameters = [*([("view", view)] if view else []), *parameters]
    return page + ("?" + urlencode(parameters) if parameters else "")


class Redirects:
    """Answers an old address with where it went, and hands everything else on (ASGI).

    base: the path that the app lives at behind a proxy, "" for none.
    """

    def __init__(self, app: Callable[..., Awaitable[None]], base: str = ""):
        self._app, self._prefix = app, f"/{base}/" if base else "/"

    async def __call__(self, scope: Message, receive: Callable[[], Awaitable[Message]], send: Any) -> None:
        target = None
        if scope["type"] == "http" and scope["method"] in ("GET", "HEAD") and scope["path"].startswith(self._prefix):
            name = scope["path"].removeprefix(self._prefix).strip("/")
            target = moved(name, scope.get("query_string", b"").decode("latin-1"))
        if target is None:
            await self._app(scope, receive, send)
            return
        location = (self._prefix + target).encode("latin-1", "ignore")
        await send({"type": "http.response.start", "status": 307, "headers": [(b"location", location)]})
        await send({"type": "http.response.body", "body": b""})
