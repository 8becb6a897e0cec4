"""Sign-in against a real OIDC server on this machine: who gets in, as whom, and what the store lets them do."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.pages.browsing import PATIENCE, answers_with, free_port, serving, settled, until
from tests.pages.test_label_browser import all_saved, fill

pytestmark = pytest.mark.browser
PEOPLE = {
    "ada": {"email": "Ada@example.org", "email_verified": True},
    "grace": {"email": "grace@example.org"},
    "vera": {"email": "vera@example.org"},
    "eve": {"email": "eve@example.org"},  # signs in, but nobody gave her a role
    "mallory": {"email": "ada@example.org", "email_verified": False},  # says she is ada
}
SECRETS = """
[auth]
redirect_uri = "http://127.0.0.1:{port}/oauth2callback"
cookie_secret = "only-for-this-test-0123456789abcdef"
client_id = "atlas"
client_secret = "only-for-this-test"
server_metadata_url = "{provider}/.well-known/openid-configuration"

[roles]
admin = ["ada@example.org"]
annotator = ["grace@example.org"]
viewer = ["vera@example.org"]
"""


@pytest.fixture(scope="module")
def provider():
    port = free_port()
    claims = [f"--user-claims={json.dumps({'sub': sub} | about)}" for sub, about in PEOPLE.items()]
    command = [sys.executable, "-m", "oidc_provider_mock", "--port", str(port), *claims]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    try:
        until(lambda: answers_with(f"{address}/.well-known/openid-configuration") or server.poll() is not None)
        yield address
    finally:
        server.terminate()
        server.wait(20)


@pytest.fixture(scope="module")
def guarded(provider, tmp_path_factory) -> str:
    """The address of an app that asks everybody to sign in."""
    folder: Path = tmp_path_factory.mktemp("guarded")
    port = free_port()
    fill(folder, 10)
    (folder / "secrets.toml").write_text(SECRETS.format(port=port, provider=provider))
    with serving(folder, port=port, STREAMLIT_SECRETS_FILES=str(folder / "secrets.toml")) as address:
        yield address


def sign_in(page, address: str, sub: str) -> None:
    page.goto(f"{address}/maps")
    page.get_by_role("button", name="Sign in").click(timeout=PATIENCE)
    page.get_by_placeholder("sub").fill(sub, timeout=PATIENCE)
    page.get_by_role("button", name="Authorize").click()
    page.get_by_test_id("stApp").wait_for(timeout=PATIENCE)
    settled(page)


@pytest.mark.thorough
def test_nobody_sees_a_page_before_signing_in(guarded, page):
    page.goto(f"{guarded}/jobs")
    page.get_by_role("button", name="Sign in").wait_for(timeout=PATIENCE)
    expect(page.locator(".st-key-pages")).to_have_count(0)
    assert "No job has been started" not in page.inner_text("body")


@pytest.mark.slow  # 5 CPU seconds; nobody and an annotator walk by default, the rules are in tests/test_sign_in.py
def test_an_admin_is_known_by_mail_address_and_can_leave(guarded, page):
    sign_in(page, guarded, "ada")
    page.get_by_text("ada@example.org · admin").wait_for(timeout=PATIENCE)
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/oauth2/end_session*", timeout=PATIENCE)  # signed out at the provider, too
    page.goto(f"{guarded}/maps")
    expect(page.get_by_role("button", name="Sign in")).to_be_visible(timeout=PATIENCE)


def open_label_page(page, address: str) -> None:
    page.goto(f"{address}/annotate")
    page.locator('[data-testid="stMain"] h1').first.wait_for(timeout=PATIENCE)
    settled(page)


@pytest.mark.slow  # 5 CPU seconds; nobody and an annotator walk by default, the rules are in tests/test_sign_in.py
def test_a_viewer_looks_and_labels_nothing(guarded, page):
    sign_in(page, guarded, "vera")
    page.get_by_text("vera@example.org · viewer").wait_for(timeout=PATIENCE)
    page.locator('[data-testid="stMain"] h1').first.wait_for(timeout=PATIENCE)
    expect(page.get_by_role("alert")).to_have_count(0)
    open_label_page(page, guarded)
    page.get_by_text("role annotator is required").wait_for(timeout=PATIENCE)
    expect(page.locator(".root[data-cursor]")).to_have_count(0)


@pytest.mark.slow  # 8 CPU seconds; roles are tried without a browser in test_people.py and test_guard.py
def test_an_annotator_labels_under_their_own_name_and_changes_no_classes(guarded, page):
    sign_in(page, guarded, "grace")
    open_label_page(page, guarded)
    expect(page.get_by_label("Your name", exact=True)).to_have_value("grace@example.org")
    expect(page.get_by_label("Your name", exact=True)).to_be_disabled()
    root = page.locator(".root[data-cursor]")
    root.wait_for(timeout=PATIENCE)
    root.locator("canvas").focus()
    page.keyboard.press("1")
    all_saved(root, 1)
    page.get_by_role("button", name="Maps and files").click()
    page.get_by_role("radio", name="Classes", exact=True).click()
    page.get_by_label("Name", exact=True).fill("wave")
    page.get_by_label("Appearance").fill("A wave.")
    page.get_by_role("button", name="Add the class", exact=True).click()
    page.get_by_text("role admin is required").wait_for(timeout=PATIENCE)


@pytest.mark.slow  # 5 CPU seconds; nobody and an annotator walk by default, the rules are in tests/test_sign_in.py
def test_who_signs_in_opens_no_folder_that_the_app_was_not_given(guarded, page):
    sign_in(page, guarded, "ada")
    page.goto(f"{guarded}/maps?text=Hello&checkpoint=/etc")
    expect(page.get_by_text("folder that this app may read").first).to_be_visible(timeout=PATIENCE)


@pytest.mark.slow  # 5 CPU seconds; nobody and an annotator walk by default, the rules are in tests/test_sign_in.py
@pytest.mark.parametrize(("sub", "said"), [("eve", "have no role in this app"), ("mallory", "not verified")])
def test_someone_without_a_role_or_a_verified_address_stays_out(guarded, page, sub, said):
    sign_in(page, guarded, sub)
    page.get_by_text(said).wait_for(timeout=PATIENCE)
    expect(page.locator(".st-key-pages")).to_have_count(0)


@pytest.mark.slow  # 2 CPU seconds; test_sign_in_cookie.py forges 44 without a browser
def test_a_forged_cookie_is_nobody(guarded, page):
    claims = json.dumps({"email": "ada@example.org", "email_verified": True, "is_logged_in": True})
    page.context.add_cookies([{"name": "_streamlit_user", "value": claims.encode().hex(), "url": guarded}])
    page.goto(f"{guarded}/maps")
    expect(page.get_by_role("button", name="Sign in")).to_be_visible(timeout=PATIENCE)
