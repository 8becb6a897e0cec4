"""The private names of Streamlit, Starlette and uvicorn that the app relies on, and nothing else.

Each function has one purpose and names the public feature that would replace it. What guards something raises
InternalsError where its name is missing, which stops the start; tests/pages/test_streamlit_internals.py tries each on
the installed versions.
"""

import math
from collections.abc import Mapping
from typing import Any

import uvicorn
from streamlit import runtime
from streamlit.runtime.state import session_state


class InternalsError(RuntimeError):
    """A private name that guards something is missing in the installed version of Streamlit, Starlette or uvicorn."""

    def __init__(self, what: str, missing: str):
        super().__init__(
            f"The app does not start because {what} relies on {missing}, which the installed version lacks. Install "
            "the versions in requirements.txt."
        )


def server_settings(receive: Any) -> uvicorn.Config:
    """The settings of the uvicorn server whose lifespan messages come from `receive`.

    uvicorn reads the protocol class of its connections from them at each connection. Streamlit would replace this by
    an argument of `st.App` for settings of uvicorn.

    Errors: InternalsError where another server runs the app, or the settings name no protocol class.
    """
    settings = getattr(getattr(receive, "__self__", None), "config", None)
    if not (isinstance(settings, uvicorn.Config) and isinstance(getattr(settings, "http_protocol_class", None), type)):
        raise InternalsError("the limit on connections", "uvicorn's Config.http_protocol_class")
    return settings


def uploaded_files() -> Mapping[str, Mapping[str, Any]]:
    """What visitors uploaded, by session and file. Streamlit would replace this by a limit on uploads of a session.

    Errors: InternalsError where the store of files has no `file_storage`.
    """
    if not runtime.exists():
        return {}
    files = getattr(runtime.get_instance().uploaded_file_mgr, "file_storage", None)
    if not isinstance(files, Mapping):
        raise InternalsError("the limit on uploads", "MemoryUploadedFileManager.file_storage")
    return files


def refuse_infinite_numbers() -> None:
    """Treat `?field=1e999` like any other value that a field of numbers cannot have; Streamlit's own check lets it pass
    and the page fails. Streamlit would replace this by catching OverflowError where it reads a field from the address.

    Errors: InternalsError if the function that reads a parameter of the address is missing.
    """
    parse = getattr(session_state, "parse_url_param", None)
    if parse is None:
        raise InternalsError("the check of numbers in addresses", "session_state.parse_url_param")
    if hasattr(parse, "finite"):
        return

    def finite(value: str | list[str], value_type: str) -> Any:
        parsed = parse(value, value_type)
        if any(
            isinstance(number, float) and math.isinf(number)
            for number in [parsed, *(parsed if isinstance(parsed, list) else [])]
        ):
            raise ValueError(f"{value!r} is not a finite number")
        return parsed

    finite.finite = True  # type: ignore[attr-defined]
    session_state.parse_url_param = finite
