"""The documented nginx in front of the app's own server: hidden requests, TLS, cookies, and claimed addresses."""

import re
import shutil
import socket
import ssl
import subprocess
import time

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from core.sign_in import SignIn
from pages.parts.shell import middleware, people
from pages.parts.shell.guard import Guard
from tests.deploy.test_proxy_browser import GUIDE, nginx_block, running_nginx
from tests.pages.browsing import free_port
from tests.pages.test_connections import running

pytestmark = pytest.mark.skipif(shutil.which("nginx") is None, reason="needs nginx (Debian's nginx-light)")
BLOCKS = re.findall(r"```nginx\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
HIDDEN = b"GET /hidden HTTP/1.1\r\nHost: localhost\r\n\r\n"
OPEN = b"POST /atlas/open HTTP/1.1\r\nHost: localhost\r\n"
SMUGGLED = {
    "two lengths": b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two numbers": b"Content-Length: 5\r\nContent-Length: 80\r\n\r\n0\r\n\r\n",
    "a sign": b"Content-Length: +5\r\n\r\n0\r\n\r\n",
    "a list": b"Content-Length: 5, 80\r\n\r\n0\r\n\r\n",
    "two codings": b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "no coding": b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "a coding in quotes": b'Transfer-Encoding: "chunked"\r\n\r\n0\r\n\r\n',
    "a tab": b"Transfer-Encoding:\tchunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "a space before the colon": b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "a folded line": b"X: y\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a line feed alone": b"X: y\nContent-Length: 0\r\n\r\n0\r\n\r\n",
    "a chunk of a negative size": b"Transfer-Encoding: chunked\r\n\r\n-1\r\n",
    "a chunk of a size without end": b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
    "a chunk with an extension": b"Transfer-Encoding: chunked\r\n\r\n0;a=\n\r\n\r\n",
    "in a chunk": b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(HIDDEN), HIDDEN),
    "in a body": b"Content-Length: %d\r\n\r\n%b" % (len(HIDDEN), HIDDEN),
    "a websocket of no version": b"Upgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Version: 777\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nContent-Length: 0\r\n\r\n",
    "another protocol": b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABk\r\n"
    b"Content-Length: 0\r\n\r\n",
}
LINES = {
    "in a path": b"GET /atlas/%0d%0aHost:%20a%0d%0a%0d%0aGET%20/hidden%20HTTP/1.1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "above the prefix": b"GET /atlas/../hidden HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "above the prefix, encoded": b"GET /atlas/%2e%2e/hidden HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a whole address": b"GET http://localhost/hidden HTTP/1.1\r\nHost: localhost\r\n\r\n",
}


@pytest.fixture(scope="module")
def behind(tmp_path_factory):
    """The port of nginx, the port of its TLS, and what the app behind it was asked."""
    folder, asked = tmp_path_factory.mktemp("nginx"), []

    async def answer(request):
        asked.append((request.url.path, request.client.host, request.url.scheme))
        made = Response("text")
        made.set_cookie("_streamlit_user", "value", httponly=True)
        return made

    methods = ["GET", "POST"]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(people, "configured", lambda: SignIn(required=True, https=True))
        app = middleware.Headers(Guard(Starlette(routes=[Route("/{path:path}", answer, methods=methods)])))
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost",
         "-keyout", folder / "key.pem", "-out", folder / "certificate.pem"],
        check=True, capture_output=True,
    )  # fmt: skip
    port, tls = free_port(), free_port()
    with running(uvicorn.Config(app, lifespan="off", log_level="critical")) as inner:
        plain = nginx_block(port, inner)
        secure = plain.replace(f"listen 127.0.0.1:{port};", BLOCKS[1].replace("443", f"127.0.0.1:{tls}"))
        for name, file in (("/etc/ssl/atlas.pem", "certificate.pem"), ("/etc/ssl/atlas.key", "key.pem")):
            secure = secure.replace(name, str(folder / file))
        with running_nginx(folder, plain + secure):
            waited = time.monotonic() + 30
            while time.monotonic() < waited:
                try:
                    socket.create_connection(("127.0.0.1", tls), 1).close()
                    break
                except OSError:
                    time.sleep(0.05)
            yield port, tls, asked


def said(made, text):
    """What comes back for these bytes, until the other side is done."""
    made.settimeout(3)
    made.sendall(text)
    answer = b""
    try:
        while part := made.recv(65_536):
            answer += part
    except TimeoutError:
        pass
    return answer


@pytest.mark.thorough
@pytest.mark.parametrize("name", SMUGGLED)
def test_no_request_that_is_hidden_in_another_reaches_the_app(name, behind):
    port, _, asked = behind
    asked.clear()
    with socket.create_connection(("127.0.0.1", port), 5) as made:
        said(made, OPEN + SMUGGLED[name] + HIDDEN)
    with socket.create_connection(("127.0.0.1", port), 5) as other:  # over the connection that nginx may have kept
        assert b" 200 " in said(other, b"GET /atlas/other HTTP/1.0\r\nHost: localhost\r\n\r\n")
    assert {path for path, *_ in asked} <= {"/atlas/open", "/atlas/other"}
    assert asked[-1][0] == "/atlas/other"


@pytest.mark.parametrize("name", LINES)
def test_no_line_of_a_request_leads_past_the_prefix(name, behind):
    port, _, asked = behind
    asked.clear()
    with socket.create_connection(("127.0.0.1", port), 5) as made:
        said(made, LINES[name].replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1))
    assert len(asked) <= 1
    assert all(path.startswith("/atlas/") for path, *_ in asked)


def test_nobody_claims_the_address_of_somebody_else(behind):
    port, _, asked = behind
    asked.clear()
    with socket.create_connection(("127.0.0.1", port), 5, source_address=("127.0.0.2", 0)) as made:
        text = (
            b"GET /atlas/ HTTP/1.0\r\nHost: localhost\r\nX-Forwarded-For: 10.1.1.1\r\nForwarded: for=10.1.1.1\r\n\r\n"
        )
        assert b" 200 " in said(made, text)
    assert asked[0][1] == "127.0.0.2"


def test_over_tls_the_app_knows_it_and_cookies_of_a_sign_in_are_secure(behind):
    _, tls, asked = behind
    asked.clear()
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    with (
        socket.create_connection(("127.0.0.1", tls), 5) as made,
        trusting.wrap_socket(made, server_hostname="localhost") as over,
    ):
        answer = said(over, b"GET /atlas/ HTTP/1.0\r\nHost: localhost\r\n\r\n").decode()
    cookie = next(line for line in answer.splitlines() if line.lower().startswith("set-cookie"))
    assert "secure" in cookie.lower()
    assert "strict-transport-security" in answer.lower()
    assert asked[0][2] == "https"


def test_nginx_accepts_the_documented_limits(tmp_path):
    zones, in_location, in_server = BLOCKS[2].split("\n\n")
    block = nginx_block(8080, 8501).replace("proxy_buffering off;", "proxy_buffering off;\n" + in_location)
    block = block.replace("client_max_body_size 200m;", "client_max_body_size 200m;\n" + in_server)
    (tmp_path / "nginx.conf").write_text(
        f"pid {tmp_path}/pid; error_log {tmp_path}/error.log; events {{}}\n"
        f"http {{ access_log off;\n{zones}\n{block}}}\n"
    )
    asked = ["nginx", "-t", "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf")]
    checked = subprocess.run(asked, capture_output=True, text=True)
    assert "syntax is ok" in checked.stderr
