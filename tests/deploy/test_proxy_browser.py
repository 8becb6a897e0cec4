"""The app behind a real nginx, at a path of its own, with the block that docs/deploy.md shows."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.pages.browsing import PATIENCE, answers, free_port, serving, until

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(shutil.which("nginx") is None, reason="needs nginx (Debian's nginx-light)"),
]
DOCUMENTED = re.search(r"```nginx\n(.*?)```", (Path(__file__).parents[2] / "docs" / "deploy.md").read_text(), re.DOTALL)


@pytest.fixture(scope="module")
def proxied(tmp_path_factory):
    """The address that nginx listens at."""
    folder, port, inner = tmp_path_factory.mktemp("proxy"), free_port(), free_port()
    block = (
        DOCUMENTED[1].replace("listen 8080", f"listen 127.0.0.1:{port}").replace("127.0.0.1:8501", f"127.0.0.1:{inner}")
    )
    (folder / "nginx.conf").write_text(
        f"daemon off; pid {folder}/pid; error_log {folder}/error.log; events {{}}\n"
        f"http {{ access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; "
        f"fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;\n{block}}}\n"
    )
    with serving(folder, port=inner, base="/atlas"):
        nginx = subprocess.Popen(["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf")])
        try:
            until(lambda: answers(f"http://127.0.0.1:{port}/atlas"))
            yield f"http://127.0.0.1:{port}/atlas"
        finally:
            nginx.terminate()
            nginx.wait(20)


def test_pages_cold_links_and_the_websocket_pass_the_proxy(proxied, page):
    page.goto(f"{proxied}/features", timeout=PATIENCE)
    expect(page.get_by_role("heading", name="What heads attend to")).to_be_visible(timeout=PATIENCE)
    page.goto(f"{proxied}/", timeout=PATIENCE)
    expect(page.get_by_role("heading", level=1).first).to_be_visible(timeout=PATIENCE)


def test_an_upload_passes_the_proxy(proxied, page):
    page.goto(f"{proxied}/frames?view=A+set+of+sentences", timeout=PATIENCE)
    page.get_by_role("combobox", name="Sentences").click(timeout=PATIENCE)
    page.get_by_role("option", name="a file").click()
    with page.expect_response(lambda answer: answer.request.method == "PUT", timeout=PATIENCE) as answered:
        page.locator("input[type=file]").set_input_files(
            {"name": "sentences.jsonl", "mimeType": "text/plain", "buffer": b'{"text": "A cat."}'}
        )
    assert answered.value.status in (200, 204)
