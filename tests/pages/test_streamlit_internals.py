"""Contract tests: the private names of Streamlit and uvicorn that the app relies on do what it needs."""

from types import SimpleNamespace

import pytest
import uvicorn
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.state import session_state
from uvicorn.lifespan.on import LifespanOn

from pages.parts import streamlit_internals
from pages.parts.streamlit_internals import InternalsError


def test_the_lifespan_of_uvicorn_leads_to_its_settings():
    config = uvicorn.Config(app=lambda *_: None)
    config.load()
    assert streamlit_internals.server_settings(LifespanOn(config).receive) is config


def test_another_server_stops_the_start():
    with pytest.raises(InternalsError, match=r"limit on connections.*requirements\.txt"):
        streamlit_internals.server_settings(SimpleNamespace())


def test_uploads_are_kept_by_session_and_file(monkeypatch):
    files = MemoryUploadedFileManager("/upload")
    monkeypatch.setattr(streamlit_internals.runtime, "exists", lambda: True)
    monkeypatch.setattr(streamlit_internals.runtime, "get_instance", lambda: SimpleNamespace(uploaded_file_mgr=files))
    assert dict(streamlit_internals.uploaded_files()) == {}
    files.file_storage["session"]["file"] = "what was uploaded"
    assert streamlit_internals.uploaded_files()["session"]["file"] == "what was uploaded"


def test_a_store_of_uploads_without_its_files_is_an_error(monkeypatch):
    monkeypatch.setattr(streamlit_internals.runtime, "exists", lambda: True)
    monkeypatch.setattr(
        streamlit_internals.runtime, "get_instance", lambda: SimpleNamespace(uploaded_file_mgr=object())
    )
    with pytest.raises(InternalsError, match="limit on uploads"):
        streamlit_internals.uploaded_files()


def test_an_infinite_number_of_an_address_is_no_value_and_others_stay(monkeypatch):
    monkeypatch.setattr(session_state, "parse_url_param", session_state.parse_url_param)
    streamlit_internals.refuse_infinite_numbers()
    streamlit_internals.refuse_infinite_numbers()  # each run of a page asks for it
    for text in ("1e999", "-inf"):
        with pytest.raises(ValueError, match="finite"):
            session_state.parse_url_param(text, "double_value")
    assert session_state.parse_url_param("1.5", "double_value") == 1.5
    assert session_state.parse_url_param("inf", "string_value") == "inf"


def test_an_address_without_its_check_stops_the_start(monkeypatch):
    monkeypatch.delattr(session_state, "parse_url_param")
    with pytest.raises(InternalsError, match="numbers in addresses"):
        streamlit_internals.refuse_infinite_numbers()
