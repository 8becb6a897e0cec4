"""Errors a person is meant to read: what must hold, what was seen, what to do. One sentence each.

Pages show the message of an `AtlasError` as it is; the terminal prints it and exits with 2. Anything else
that escapes is a defect of ours.
"""

LONGEST = 650  # characters of a message; names and texts in it may come from anywhere


class AtlasError(Exception):
    """Base of every error whose message is written for the user: always one line, whatever was put into it."""

    def __str__(self) -> str:
        line = " ".join(super().__str__().splitlines())
        shown = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in line)
        return shown if len(shown) <= LONGEST else f"{shown[: LONGEST // 2]} ... {shown[-LONGEST // 2 :]}"


class InputError(AtlasError):
    """A text, pair, span, upload or option that cannot be used."""


class ConfigError(AtlasError):
    """A setting or a secrets file that cannot be read or says half of what it must: the start stops."""


class CheckpointError(AtlasError):
    """A checkpoint that cannot be found, opened, trusted or used for what was asked."""


class InterventionError(AtlasError):
    """An intervention that is undefined here, or that changed nothing."""


class StoreError(AtlasError):
    """The database file: held by another process, newer, damaged, read-only, or full."""


class JobError(AtlasError):
    """A job that cannot be started, or units of it that failed."""
