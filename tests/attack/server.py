"""Attacks on the server: its files, frames, headers, variables and requests."""

CATEGORIES = {
    "open files and sessions": (
        "tests/pages/test_connections.py::test_limits_fit_into_the_open_files",
        "tests/pages/test_connections.py::test_the_limit_on_open_files_is_raised",
        "tests/pages/test_connections.py::test_a_process_without_open_files_says_so_in_one_line_and_goes_on",
        "tests/pages/test_guard.py::test_an_address_opens_so_many_pages_and_is_told_so_in_a_sentence",
        "tests/pages/test_guard.py::test_a_person_opens_so_many_pages_from_anywhere_and_others_still_come",
        "tests/pages/test_guard.py::test_addresses_of_one_network_count_as_one",
    ),
    "half-open connections, however the app is started": (
        "tests/pages/test_connections.py::test_half_open_connections_end_however_the_app_is_started",
        "tests/pages/test_connections.py::test_a_server_that_does_not_tell_when_it_starts_is_answered_nothing",
    ),
    "requests hidden in the body of others": (
        "tests/pages/test_connections.py::test_a_second_request_hidden_in_the_body_of_another_is_not_answered",
        "tests/deploy/test_proxy_attacks.py",
    ),
    "private names of Streamlit and routes that it adds": ("tests/pages/test_streamlit_internals.py",),
    "frames, headers and cookies": ("tests/pages/test_headers.py",),
    "findings that come in": ("tests/findings/test_hostile_findings.py",),
    "terminals": ("tests/commands/test_terminal_escapes.py",),
    "text that reaches Markdown": ("tests/pages/test_untrusted_text.py",),
    "stored rows that somebody spoiled": ("tests/store/test_spoiled_bodies.py", "tests/pages/test_spoiled_rows.py"),
    "addresses of pages": ("tests/pages/test_hostile_addresses.py",),
    "variables of the environment and encodings of files": ("tests/test_config.py", "tests/test_encodings.py"),
}
