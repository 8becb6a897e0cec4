"""The server itself: who can reach it, which requests it takes, and how much."""

import http.client
from pathlib import Path

import pytest

from tests.pages.browsing import PATIENCE, visit

pytestmark = pytest.mark.browser
LISTENING, LOOPBACK = "0A", "0100007F"  # as /proc/net/tcp writes them
MEGABYTE = 2**20


def asked(address: str, path: str, headers: dict[str, str]) -> int:
    """The status that a PUT with these headers gets."""
    host, port = address.removeprefix("http://").split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=30)
    try:
        connection.putrequest("PUT", path)
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders()
        return connection.getresponse().status
    finally:
        connection.close()


def test_it_listens_on_this_machine_only(address):
    port = f"{int(address.rsplit(':', 1)[1]):04X}"
    rows = [line.split() for file in ("tcp", "tcp6") for line in Path("/proc/net", file).read_text().splitlines()[1:]]
    listening = [row[1].split(":")[0] for row in rows if row[3] == LISTENING and row[1].endswith(f":{port}")]
    assert listening == [LOOPBACK]


@pytest.mark.thorough
def test_an_upload_needs_the_token_and_has_a_bound(address, page):
    visit(page, f"{address}/linguistics?view=frames&mode=A+set+of+sentences")
    page.get_by_role("combobox", name="Sentences").click()
    page.get_by_role("option", name="a file").click()
    with page.expect_request(lambda request: request.method == "PUT", timeout=PATIENCE) as sent:
        page.locator("input[type=file]").set_input_files(
            {"name": "sentences.jsonl", "mimeType": "text/plain", "buffer": b'{"text": "A cat."}'}
        )
    path = sent.value.url.removeprefix(address)
    said = {name: value for name, value in sent.value.all_headers().items() if not name.startswith(":")}
    own = {name: said[name] for name in ("cookie", "x-xsrftoken", "content-type")}
    without = {name: value for name, value in own.items() if name != "x-xsrftoken"}
    assert asked(address, path, without | {"content-length": "0"}) == 403
    assert asked(address, path, own | {"x-xsrftoken": "forged", "content-length": "0"}) == 403
    assert asked(address, path, own | {"content-length": str(201 * MEGABYTE)}) == 413


def status_of(address: str, path: str) -> int:
    host, port = address.removeprefix("http://").split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=30)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.parametrize(
    "path", ["/_stcore/metrics", "/_stcore/metrics/", "/_stcore/metrics?a=b", "/_stcore/%6detrics"]
)
def test_the_metrics_of_the_server_answer_nobody(address, path):
    assert status_of(address, path) == 404
    assert status_of(address, "/_stcore/health") == 200


@pytest.mark.slow  # 5 CPU seconds and a server that nobody visited
def test_a_page_says_that_it_stands_after_its_maps_are_painted(fresh_address, page):
    """What is loaded then takes a core that the browser paints with."""
    maps = "[...document.querySelectorAll('[data-testid^=stBidi]')].map((one) => one.shadowRoot || one)"
    page.add_init_script(f"""{{
      const ask = window.fetch;
      window.fetch = (...asked) => {{
        if (asked[0] === "painted") window.stood = {maps}.some((part) => part.querySelector(".root[data-painted]"));
        return ask(...asked);
      }};
    }}""")
    with page.expect_response(lambda answer: answer.url == f"{fresh_address}/painted", timeout=PATIENCE):
        visit(page, fresh_address)
    assert page.evaluate("window.stood") is True


@pytest.mark.slow  # 5 CPU seconds and a server that nobody visited
def test_a_page_says_that_it_stands_past_the_script_so_that_nothing_typed_meanwhile_is_lost(fresh_address, page):
    """A component's message that left together with a typed name took the name along to its own fragment."""
    with page.expect_response(lambda answer: answer.url == f"{fresh_address}/painted", timeout=PATIENCE) as said:
        visit(page, f"{fresh_address}/annotate")
    assert (said.value.request.method, said.value.status) == ("POST", 204)
