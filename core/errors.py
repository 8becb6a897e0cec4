"""Errors for users: what must hold, what was seen, and what to do.

Pages show the message of an `AtlasError`; the terminal prints it and exits with 2. Any other exception is a defect.
"""

LONGEST = 650  # characters of a message, which may contain user text


class AtlasError(Exception):
    """Base of all errors for users; the message is always one line."""

    def __str__(self) -> str:
        line = " ".join(super().__str__().splitlines())
        shown = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in line)
        return shown if len(shown) <= LONGEST else f"{shown[: LONGEST // 2]} ... {shown[-LONGEST // 2 :]}"


class InputError(AtlasError):
    """An invalid text, pair, span, upload or option."""


class ConfigError(AtlasError):
    """An invalid setting or secrets file; the app does not start."""


class CheckpointError(AtlasError):
    """A checkpoint that cannot be found, opened, trusted or used for the request."""


class InterventionError(AtlasError):
    """An intervention that is undefined here, or has no effect."""


class StoreError(AtlasError):
    """The database file is held by another process, newer, damaged, read-only, or full."""


class JobError(AtlasError):
    """A job that cannot be started, or failed units."""
