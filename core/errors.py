"""Errors a person is meant to read: what must hold, what was seen, what to do. One sentence each.

Pages show the message of an `AtlasError` as it is; the terminal prints it and exits with 2. Anything else
that escapes is a defect of ours.
"""


class AtlasError(Exception):
    """Base of every error whose message is written for the user."""


class InputError(AtlasError):
    """A text, pair, span, upload or option that cannot be used."""


class CheckpointError(AtlasError):
    """A checkpoint that cannot be found, opened, trusted or used for what was asked."""


class InterventionError(AtlasError):
    """An intervention that is undefined here, or that changed nothing."""


class StoreError(AtlasError):
    """The database file: held by another process, newer, damaged, read-only, or full."""


class JobError(AtlasError):
    """A job that cannot be started, or units of it that failed."""
