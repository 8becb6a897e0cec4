"""Errors that are shown to users. Pages show the message of an `AtlasError`; the terminal prints it and exits with
status 2. Any other exception is a bug."""

from collections.abc import Iterable

LONGEST = 650  # characters of a message, which may contain user text

INTERRUPTED = 130  # exit status of a command after Ctrl-C
CLOSED = 141  # exit status if the reader closed standard output: 128 + SIGPIPE, as in shells


class AtlasError(Exception):
    """Base class of all errors that are shown to users. The message is always one line."""

    def __str__(self) -> str:
        line = " ".join(super().__str__().splitlines())
        shown = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in line)
        return shown if len(shown) <= LONGEST else f"{shown[: LONGEST // 2]} ... {shown[-LONGEST // 2 :]}"


class InputError(AtlasError):
    """Error raised if a text, pair, span, upload or option from a user is invalid."""


class ConfigError(AtlasError):
    """Error raised if a setting or secrets file is invalid, so that the app cannot start."""


class CheckpointError(AtlasError):
    """Error raised if a checkpoint cannot be found, opened, trusted or used for the request."""


class InterventionError(AtlasError):
    """Error raised if a model cannot be changed or measured as requested, or a change has no effect."""


class StoreError(AtlasError):
    """Error raised if the database, a backup or a stored result cannot be used. For example, the database is in use by
    another process, was written by a newer version, or is damaged or read-only."""


class JobError(AtlasError):
    """Error raised if a job cannot be started, resumed, cancelled or deleted, or if units of its work failed."""


class TrainingStoppedError(AtlasError):
    """Error raised if training is stopped. The next start resumes the training run."""


def check_choice(what: str, given: object, known: Iterable[str], error: type[AtlasError] = InputError) -> None:
    """Raise an error if a value, or a value in a list or tuple, is not among the allowed values. The message starts
    with `what`, such as "A pruning order"."""
    choices = tuple(known)
    for value in given if isinstance(given, (list, tuple)) else (given,):
        if value not in choices:
            raise error(f'{what} must be one of {", ".join(choices)}; got "{value}". Choose one of them.')


def check_range(what: str, value: int | float, low: int | float, high: int | float | None = None) -> None:
    """Raise InputError if a number is outside an allowed range. The message starts with `what`, such as "The number of
    epochs". If `high` is None, the range has no upper limit."""
    if high is None and not value >= low:
        raise InputError(f"{what} must be at least {low:g}; got {value:g}. Choose a larger number.")
    if high is not None and not low <= value <= high:
        raise InputError(f"{what} must be from {low:g} to {high:g}; got {value:g}. Choose a value in this range.")
