"""A hub on loopback: the routes that huggingface_hub asks for, served from folders, with whatever trouble is wanted.

`GET /api/models/ID/revision/NAME` says which commit a name is, `refs` lists all names, `tree/COMMIT` lists its files,
`HEAD` and `GET /ID/resolve/COMMIT/FILE` give them. Safetensors are served as large files are: named by their sha256.
"""

import hashlib
import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

_ROUTE = re.compile(
    r"^/(?:api/models/(?P<about>[\w.-]+(?:/[\w.-]+)?)/(?P<what>revision|tree|refs)(?:/(?P<name>[^?/]+))?"
    r"|(?P<id>[\w.-]+(?:/[\w.-]+)?)/resolve/(?P<commit>[^/]+)/(?P<file>[^?]+))"
)


@dataclass
class Hub:
    """What is served, the trouble that is made, and what was asked.

    repositories: {id: {revision: folder}}. status: {a part of the path: the answer's status}. cut: {file: bytes after
    which the connection breaks}, once each. other: {file: bytes that are sent in its place}. says: {file: the length
    that is said}. stalls: files that are begun and never go on. missing: files that are listed and not there. slow:
    {file: seconds before each hundredth part}. asked: every request as (method, path, range).
    """

    repositories: dict[str, dict[str, Path]]
    address: str = ""
    status: dict[str, int] = field(default_factory=dict)
    cut: dict[str, int] = field(default_factory=dict)
    other: dict[str, bytes] = field(default_factory=dict)
    says: dict[str, int] = field(default_factory=dict)
    stalls: set[str] = field(default_factory=set)
    missing: set[str] = field(default_factory=set)
    slow: dict[str, float] = field(default_factory=dict)
    asked: list[tuple[str, str, str | None]] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def commit(self, folder: Path) -> str:
        """40 hex digits for a revision's folder."""
        return hashlib.sha1(str(folder).encode(), usedforsecurity=False).hexdigest()

    def folder(self, name: str, revision: str) -> Path | None:
        """What a branch or a commit of a repository is."""
        known = self.repositories[name]
        return known.get(revision) or next((one for one in known.values() if self.commit(one) == revision), None)

    def ranges(self, file: str) -> list[str | None]:
        """The ranges that were asked of a file, None for all of it."""
        return [some for method, path, some in self.asked if method == "GET" and path.endswith(f"/{file}")]


@contextmanager
def serving_hub(repositories: dict[str, dict[str, Path]]) -> Iterator[Hub]:
    """A hub on a free port of this machine until the block ends."""
    hub = Hub(repositories)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Routes", (_Routes,), {"hub": hub}))
    server.daemon_threads = True
    hub.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        hub.over.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Routes(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def log_message(self, *_: object) -> None:
        """Nothing on the terminal."""

    def _answer(self, *, body: bool) -> None:
        hub = self.hub
        hub.asked.append((self.command, self.path.partition("?")[0], self.headers.get("Range")))
        for part, status in hub.status.items():
            if part in self.path:
                self._refuse(status)
                return
        found = _ROUTE.match(self.path)
        name = found and (found["about"] or found["id"])
        if not name or name not in hub.repositories:
            self._refuse(404, "RepoNotFound")
            return
        if found["what"] == "refs":
            self._json(
                {"branches": [self._ref(name, one) for one in hub.repositories[name]], "converts": [], "tags": []}
            )
            return
        folder = hub.folder(name, found["name"] or found["commit"])
        if folder is None:
            self._refuse(404, "RevisionNotFound")
        elif found["what"] == "revision":
            self._json({"id": name, "sha": hub.commit(folder), "siblings": [], "tags": [], "private": False})
        elif found["what"] == "tree":
            self._json([_listed(file) for file in sorted(folder.iterdir())])
        elif found["file"] in hub.missing or not (folder / found["file"]).is_file():
            self._refuse(404, "EntryNotFound")
        else:
            self._file(folder / found["file"], hub.commit(folder), body=body)

    def _ref(self, name: str, revision: str) -> dict[str, str]:
        commit = self.hub.commit(self.hub.repositories[name][revision])
        return {"name": revision, "ref": f"refs/heads/{revision}", "targetCommit": commit}

    def _refuse(self, status: int, code: str = "") -> None:
        self.send_response(status)
        if code:
            self.send_header("X-Error-Code", code)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _json(self, value: object) -> None:
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _file(self, file: Path, commit: str, *, body: bool) -> None:
        hub, data = self.hub, self.hub.other.get(file.name, file.read_bytes())
        first = int(asked[6:].partition("-")[0]) if (asked := self.headers.get("Range")) else 0
        self.send_response(206 if asked else 200)
        if asked:
            self.send_header("Content-Range", f"bytes {first}-{len(data) - 1}/{len(data)}")
        self.send_header("X-Repo-Commit", commit)
        self.send_header("ETag", f'"{_etag(file)}"')
        self.send_header("Accept-Ranges", "bytes")
        said = hub.says.get(file.name, len(data))
        self.send_header("Content-Length", str(said - first))
        if file.name in hub.says:
            self.send_header("Connection", "close")  # or the next request may go into a connection that is closing
        self.end_headers()
        if body:
            self._send(file.name, data[first:said], first)

    def _send(self, name: str, data: bytes, first: int) -> None:
        stop = self.hub.cut.pop(name, None)
        if name in self.hub.stalls:
            stop = 0 if first else len(data) // 2
        whole = stop is None
        if pause := self.hub.slow.get(name):
            self._send_slowly(data, pause)
            return
        self.wfile.write(data if whole else data[:stop])
        self.wfile.flush()
        if name in self.hub.stalls:
            self.hub.over.wait(60)
        if not whole or name in self.hub.says:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

    def _send_slowly(self, data: bytes, pause: float) -> None:
        part = len(data) // 100 + 1
        with suppress(OSError):  # whoever asked has gone
            for start in range(0, len(data), part):
                self.wfile.write(data[start : start + part])
                self.wfile.flush()
                if self.hub.over.wait(pause):
                    return


def _etag(file: Path) -> str:
    """As the hub names files: small ones by git's hash, large ones by their sha256."""
    data = file.read_bytes()
    if file.suffix == ".safetensors":
        return hashlib.sha256(data).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _listed(file: Path) -> dict[str, object]:
    entry: dict[str, object] = {"type": "file", "path": file.name, "size": file.stat().st_size, "oid": _etag(file)[:40]}
    if file.suffix == ".safetensors":
        entry["lfs"] = {"oid": _etag(file), "size": file.stat().st_size, "pointerSize": 130}
    return entry
