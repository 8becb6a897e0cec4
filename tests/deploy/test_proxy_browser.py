"""The app behind a real nginx, at a path of its own, with the block that docs/how-to/deploy.md shows."""

import os
import re
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from playwright.sync_api import expect

from tests.pages.browsing import PATIENCE, answers, free_port, serving, until

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(shutil.which("nginx") is None, reason="needs nginx (Debian's nginx-light)"),
]
NGINX_USUAL = 2**20  # bytes of a body that nginx takes unless it is told
GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "deploy.md"
DOCUMENTED = re.search(r"```nginx\n(.*?)```", GUIDE.read_text(), re.DOTALL)


@pytest.fixture(scope="module")
def proxied(tmp_path_factory):
    """The address that nginx listens at."""
    folder, port, inner = tmp_path_factory.mktemp("proxy"), free_port(), free_port()
    with serving(folder, port=inner, base="/atlas"), running_nginx(folder, nginx_block(port, inner)):
        until(lambda: answers(f"http://127.0.0.1:{port}/atlas"))
        yield f"http://127.0.0.1:{port}/atlas"


def nginx_block(port: int, inner: int) -> str:
    """The documented block, with free ports."""
    return (
        DOCUMENTED[1].replace("listen 8080", f"listen 127.0.0.1:{port}").replace("127.0.0.1:8501", f"127.0.0.1:{inner}")
    )


@contextmanager
def running_nginx(folder, block: str):
    own = "user root; " if os.geteuid() == 0 else ""  # else its workers could not write the bodies of uploads
    (folder / "nginx.conf").write_text(
        f"{own}daemon off; pid {folder}/pid; error_log {folder}/error.log; events {{}}\n"
        f"http {{ access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; "
        f"fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;\n{block}}}\n"
    )
    nginx = subprocess.Popen(["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf")])
    try:
        yield
    finally:
        nginx.terminate()
        nginx.wait(20)


@pytest.mark.slow  # 11 CPU seconds: a server and nginx of its own
def test_pages_cold_links_and_the_websocket_pass_the_proxy(proxied, page):
    page.goto(f"{proxied}/linguistics", timeout=PATIENCE)
    expect(page.get_by_role("heading", name="Linguistics")).to_be_visible(timeout=PATIENCE)
    page.goto(f"{proxied}/", timeout=PATIENCE)
    expect(page.get_by_role("heading", level=1).first).to_be_visible(timeout=PATIENCE)


@pytest.mark.slow  # 5 CPU seconds; cold links and the websocket pass it by default
def test_an_upload_passes_the_proxy(proxied, page):
    page.goto(f"{proxied}/linguistics?view=frames&mode=A+set+of+sentences", timeout=PATIENCE)
    page.get_by_role("combobox", name="Sentences").click(timeout=PATIENCE)
    page.get_by_role("option", name="a file").click()
    with page.expect_response(lambda answer: answer.request.method == "PUT", timeout=PATIENCE) as answered:
        page.locator("input[type=file]").set_input_files(
            {"name": "sentences.jsonl", "mimeType": "text/plain", "buffer": b'{"text": "A cat."}' + NGINX_USUAL * b"\n"}
        )
    assert answered.value.status in (200, 204)


@pytest.mark.thorough
def test_a_proxy_that_strips_the_prefix_is_said_in_a_clear_word(tmp_path):
    """Whoever opens the app finds out what is wrong and which line mends it, instead of an empty page."""
    port, inner = free_port(), free_port()
    passed, stripped = (f"proxy_pass http://127.0.0.1:{inner}/{path};" for path in ("atlas/", ""))
    block = nginx_block(port, inner)
    assert passed in block
    with serving(tmp_path, port=inner, base="/atlas"), running_nginx(tmp_path, block.replace(passed, stripped)):
        until(lambda: answered(f"http://127.0.0.1:{port}/atlas/")[0] == 404)
        for path in ("/atlas/", "/atlas/features", "/atlas/_stcore/health"):
            status, said = answered(f"http://127.0.0.1:{port}{path}")
            assert status == 404
            assert "lives at /atlas" in said
            assert "the proxy took the prefix away" in said


def answered(address: str) -> tuple[int, str]:
    try:
        with urlopen(address, timeout=20) as answer:  # noqa: S310 - our own server
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""
